//! OTLP over gRPC: tonic's channel over our connector, and the client generated from the OTLP definition, because the
//! exporter crate tells neither the status nor RetryInfo nor what was rejected.
//! Never retries: tonic connects anew at the next request. Decided in `docs/adr/0015-export-transports.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{HeaderMap, USER_AGENT};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_types::StatusExt;

use super::classify::{self, Failure};
use super::connect::{self, Wire};
use super::sniff::Sniffing;
use super::{Answer, BuildError, Code, Outcome, USER_AGENT as OUR_NAME, encode, failure, headers};
use crate::config::{Compression, Destination};
use crate::span::{Span, Value};

/// One gRPC destination.
#[derive(Debug)]
pub(super) struct GrpcTransport {
    channel: Channel,
    metadata: MetadataMap,
    secrets: Vec<String>,
    compression: Compression,
    timeout: Duration,
    /// Whether the last connection was answered with anything but HTTP/2.
    foreign: Arc<AtomicBool>,
}

impl GrpcTransport {
    pub(super) fn build(destination: &Destination) -> Result<Self, BuildError> {
        let Destination::Otlp { route, compression, .. } = destination else {
            return Err(BuildError::NoDestination(destination.to_string()));
        };
        let mut headers: HeaderMap = headers::of(destination)?;
        // The channel sets this one itself, so a user's own goes through it.
        let agent = headers.remove(USER_AGENT).and_then(|value| value.to_str().ok().map(str::to_owned));
        let secrets = headers::secrets(&headers);
        let setup = |error: tonic::transport::Error| BuildError::Setup(error.to_string());
        let (connector, _) = connect::connector(route, Wire::Grpc)?;
        let endpoint = Endpoint::from_shared(route.url.clone()).map_err(setup)?;
        let endpoint = endpoint.user_agent(agent.unwrap_or_else(|| OUR_NAME.to_owned())).map_err(setup)?;
        let foreign = Arc::<AtomicBool>::default();
        let connector = Sniffing { inner: connector, foreign: Arc::clone(&foreign) };
        Ok(Self {
            channel: endpoint.connect_with_connector_lazy(connector),
            metadata: MetadataMap::from_headers(headers),
            secrets,
            compression: *compression,
            timeout: route.timeout,
            foreign,
        })
    }

    pub(super) async fn export(&self, resource: &BTreeMap<String, Value>, spans: &[Span]) -> Answer {
        let scope = encode::scope();
        let batch = spans.iter().map(|span| encode::span_data(span, scope.clone())).collect();
        let resource = ResourceAttributesWithSchema::from(&encode::resource(resource));
        self.send(ExportTraceServiceRequest { resource_spans: group_spans_by_resource_and_scope(batch, &resource) })
            .await
    }

    pub(super) async fn probe(&self) -> Answer {
        self.send(ExportTraceServiceRequest::default()).await
    }

    async fn send(&self, message: ExportTraceServiceRequest) -> Answer {
        let mut client = TraceServiceClient::new(self.channel.clone()).accept_compressed(CompressionEncoding::Gzip);
        if self.compression == Compression::Gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let mut request = Request::new(message);
        *request.metadata_mut() = self.metadata.clone();
        match tokio::time::timeout(self.timeout, client.export(request)).await {
            Ok(Ok(response)) => self.accepted(response.into_inner()),
            Ok(Err(status)) => self.refused(&status),
            Err(_) => {
                let words = format!("no answer within {} s", self.timeout.as_secs_f64());
                classify::answer(classify::failure(Failure::Timeout), None, Some(words))
            }
        }
    }

    fn accepted(&self, response: ExportTraceServiceResponse) -> Answer {
        let code = Some(Code::Grpc(0));
        let partial = response.partial_success.unwrap_or_default();
        if partial.rejected_spans <= 0 && partial.error_message.is_empty() {
            return classify::answer((Outcome::Delivered, "delivered"), code, None);
        }
        let message = headers::cleaned(&partial.error_message, &self.secrets);
        let rejected = u64::try_from(partial.rejected_spans).unwrap_or_default();
        let outcome = Outcome::Partial { rejected, message: message.clone().unwrap_or_default() };
        classify::answer((outcome, "partial_success"), code, message)
    }

    /// A status with an error below it was made here, because no answer came; one without came from the receiver.
    fn refused(&self, status: &Status) -> Answer {
        if let Some(error) = std::error::Error::source(status) {
            let (failure, words) = match failure::of(error) {
                (Failure::Connection, _) if self.foreign.load(Ordering::Relaxed) => {
                    (Failure::Protocol, "the receiver does not answer in HTTP/2".to_owned())
                }
                other => other,
            };
            return classify::answer(classify::failure(failure), None, headers::cleaned(&words, &self.secrets));
        }
        let code = i32::from(status.code());
        let after = status.get_details_retry_info().and_then(|info| info.retry_delay);
        let meaning = classify::grpc(code, after);
        classify::answer(meaning, Some(Code::Grpc(code)), headers::cleaned(status.message(), &self.secrets))
    }
}
