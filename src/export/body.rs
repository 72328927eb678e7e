//! Reads the body of an HTTP answer: what was rejected, or the receiver's words. Pure.
//! Decided in `docs/adr/0015-export-transports.md`.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use serde_json::Value as Json;

/// What a receiver did not take of an accepted request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Partial {
    pub(super) rejected: u64,
    pub(super) message: String,
}

impl Partial {
    pub(super) const fn is_nothing(&self) -> bool {
        self.rejected == 0 && self.message.is_empty()
    }
}

/// Reads the body of a 2xx; None if it is no OTLP answer. An empty one is.
///
/// Receivers answer JSON to protobuf and leave the content type out, so the body is asked before the header is.
pub(super) fn success(content_type: &str, body: &[u8]) -> Option<Partial> {
    if body.is_empty() {
        return Some(Partial::default());
    }
    if is_page(content_type, body) {
        return None;
    }
    if first(body) == Some(b'{') {
        return json_success(&serde_json::from_slice(body).ok()?);
    }
    let response = ExportTraceServiceResponse::decode(body).ok()?;
    // Plain text can pass for fields that nobody knows, so without the right type every byte must be known.
    let declared = ["protobuf", "octet-stream"].iter().any(|kind| content_type.contains(kind));
    if !declared && response.encoded_len() != body.len() {
        return None;
    }
    let partial = response.partial_success.unwrap_or_default();
    Some(Partial {
        rejected: u64::try_from(partial.rejected_spans).unwrap_or_default(),
        message: partial.error_message,
    })
}

fn json_success(body: &Json) -> Option<Partial> {
    let body = body.as_object()?;
    let field =
        |of: &serde_json::Map<String, Json>, camel: &str, snake: &str| of.get(camel).or_else(|| of.get(snake)).cloned();
    let Some(Json::Object(partial)) = field(body, "partialSuccess", "partial_success") else {
        return Some(Partial::default());
    };
    // A 64-bit number is a string in OTLP's JSON; not every receiver knows that.
    let rejected = match field(&partial, "rejectedSpans", "rejected_spans") {
        Some(Json::String(text)) => text.parse().unwrap_or_default(),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    };
    let message = field(&partial, "errorMessage", "error_message");
    Some(Partial { rejected, message: message.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default() })
}

/// The receiver's words, out of a protobuf or JSON `Status`, a page's title, or plain text.
pub(super) fn words(content_type: &str, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if is_page(content_type, body) {
        return title(&text).unwrap_or("a page").to_owned();
    }
    if content_type.contains("protobuf")
        && let Ok(status) = tonic_types::pb::Status::decode(body)
    {
        return status.message;
    }
    if let Some(message) = serde_json::from_slice(body).ok().as_ref().and_then(json_words) {
        return message;
    }
    text.into_owned()
}

fn json_words(body: &Json) -> Option<String> {
    let body = body.as_object()?;
    ["message", "error", "detail"].iter().find_map(|name| match body.get(*name)? {
        Json::String(text) => Some(text.clone()),
        Json::Object(inner) => inner.get("message")?.as_str().map(str::to_owned),
        _ => None,
    })
}

fn is_page(content_type: &str, body: &[u8]) -> bool {
    content_type.to_ascii_lowercase().contains("html") || first(body) == Some(b'<')
}

fn first(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn title(page: &str) -> Option<&str> {
    let (_, after) = page.split_once("<title")?;
    let (title, _) = after.split_once('>')?.1.split_once('<')?;
    Some(title.trim()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    #[test]
    fn what_a_success_says() {
        let proto = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess { rejected_spans: 2, error_message: "no".into() }),
        }
        .encode_to_vec();
        let rejected = |rejected, message: &str| Some(Partial { rejected, message: message.to_owned() });
        for (content_type, body, expected) in [
            ("", &b""[..], rejected(0, "")),
            ("text/html", b"", rejected(0, "")),
            ("application/x-protobuf", &proto, rejected(2, "no")),
            ("", &proto, rejected(2, "no")),
            ("application/json", b"{}", rejected(0, "")),
            ("application/x-protobuf", b" {\"partialSuccess\":{}}", rejected(0, "")),
            ("application/json", br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, rejected(3, "x")),
            ("application/json", br#"{"partial_success":{"rejected_spans":3}}"#, rejected(3, "")),
            ("application/json", br#"{"partialSuccess":null}"#, rejected(0, "")),
            ("text/html; charset=utf-8", b"hello", None),
            ("", b"<!doctype html><html>", None),
            ("text/plain", b"hello", None),
            ("text/plain", b"xxxx", None),
            ("application/x-protobuf", b"xxxx", rejected(0, "")),
            ("application/json", b"{", None),
        ] {
            assert_eq!(success(content_type, body), expected, "{content_type} {}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn whose_words_are_kept() {
        let status = tonic_types::pb::Status { code: 3, message: "bad span".into(), details: vec![] }.encode_to_vec();
        for (content_type, body, expected) in [
            ("application/x-protobuf", &status[..], "bad span"),
            ("application/json", br#"{"code":3,"message":"bad span"}"#, "bad span"),
            ("application/json", br#"{"error":{"message":"bad span"}}"#, "bad span"),
            ("application/json", br#"["bad span"]"#, r#"["bad span"]"#),
            ("text/plain", b"bad span\n", "bad span\n"),
            ("text/html", b"<html><head><title>502 Bad Gateway</title>", "502 Bad Gateway"),
            ("text/html", b"<html>", "a page"),
        ] {
            assert_eq!(words(content_type, body), expected);
        }
    }
}
