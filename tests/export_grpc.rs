//! OTLP over gRPC, over real sockets: what is sent, and what each status means.

mod support;

use std::time::Duration;

use fi_hook_to_otlp::config::{Compression, Destination, Protocol, Secret};
use fi_hook_to_otlp::export::{Code, Exporter, Outcome};
use support::receiver::{Manner, Receiver, Reply, Server};
use support::spans::{class_of, otlp, resource, run, send, span};
use tokio::io::AsyncWriteExt;

fn grpc(receiver: &Receiver) -> Destination {
    otlp(&receiver.url(), Protocol::Grpc)
}

#[test]
fn spans_and_metadata_arrive() {
    let receiver = Receiver::start_grpc();
    let answer = send(&grpc(&receiver));
    assert_eq!((answer.outcome, answer.code), (Outcome::Delivered, Some(Code::Grpc(0))));
    let request = receiver.only_request();
    assert_eq!(request.header("x-key"), Some("hush-hush"));
    let agent = request.header("user-agent").unwrap();
    assert!(agent.starts_with("fi-hook-to-otlp/") && agent.contains("OTel-OTLP-Exporter-Rust/"), "{agent}");
    assert_eq!(request.spans().len(), 1);
    assert_eq!(request.header("grpc-encoding"), None);
    assert_eq!(request.request.unwrap().resource_spans[0].resource.as_ref().unwrap().attributes.len(), 2);
}

#[test]
fn gzip_is_sent_when_asked_for() {
    let receiver = Receiver::start_grpc();
    let mut destination = grpc(&receiver);
    if let Destination::Otlp { compression, .. } = &mut destination {
        *compression = Compression::Gzip;
    }
    assert_eq!(send(&destination).outcome, Outcome::Delivered);
    assert_eq!(send(&destination.without_compression()).outcome, Outcome::Delivered);
    let encodings: Vec<_> = receiver.requests().iter().map(|r| r.header("grpc-encoding").map(str::to_owned)).collect();
    assert_eq!(encodings, [Some("gzip".to_owned()), None]);
}

#[test]
fn every_status_means_what_the_table_says() {
    let receiver = Receiver::start_grpc();
    let destination = grpc(&receiver);
    run(async {
        let exporter = Exporter::build(&destination).unwrap();
        for code in 1..=16 {
            let class = match code {
                1 | 4 | 10 | 11 | 14 | 15 => "retry",
                3 | 8 => "refused",
                _ => "configuration",
            };
            receiver.script([Reply::grpc(code, "no, hush-hush")]);
            let answer = exporter.export(&resource(), &[span(1)]).await;
            assert_eq!((class_of(&answer.outcome), answer.code), (class, Some(Code::Grpc(code))), "{answer:?}");
            assert_eq!(answer.message.as_deref(), Some("no, [REDACTED]"));
        }
    });
    assert_eq!(receiver.requests().len(), 16, "each was sent once");
}

#[test]
fn retry_info_and_partial_success_are_read() {
    let receiver = Receiver::start_grpc();
    let after = Some(Duration::from_secs(7));
    for (reply, outcome) in [
        (Reply::grpc(8, "quota").retry_info(Duration::from_secs(7)), Outcome::Retry { after }),
        (Reply::grpc(14, "busy").retry_info(Duration::from_secs(7)), Outcome::Retry { after }),
        (Reply::grpc(8, "quota"), Outcome::Refused),
        (Reply::partial(1, "too old"), Outcome::Partial { rejected: 1, message: "too old".to_owned() }),
        (Reply::partial(0, "warning"), Outcome::Partial { rejected: 0, message: "warning".to_owned() }),
        (Reply::partial(0, ""), Outcome::Delivered),
    ] {
        receiver.script([reply]);
        assert_eq!(send(&grpc(&receiver)).outcome, outcome);
    }
}

#[test]
fn no_answer_is_tried_again() {
    let mut receiver = Receiver::start_grpc();
    let mut destination = grpc(&receiver);
    if let Destination::Otlp { route, .. } = &mut destination {
        route.timeout = Duration::from_millis(300);
    }
    receiver.script([Reply::ok().manner(Manner::Hang)]);
    let answer = send(&destination);
    assert_eq!((answer.outcome, answer.reason), (Outcome::Retry { after: None }, "timeout"));
    receiver.stop();
    let answer = send(&destination);
    assert_eq!(
        (answer.outcome, answer.reason, answer.code),
        (Outcome::Retry { after: None }, "connection_refused", None)
    );
}

#[test]
fn a_receiver_that_comes_back_is_used_again() {
    let mut receiver = Receiver::start_grpc();
    let destination = grpc(&receiver);
    run(async {
        let exporter = Exporter::build(&destination).unwrap();
        assert_eq!(exporter.export(&resource(), &[span(1)]).await.outcome, Outcome::Delivered);
        receiver.stop();
        let answer = exporter.export(&resource(), &[span(1)]).await;
        assert_eq!(class_of(&answer.outcome), "retry", "{answer:?}");
        receiver.restart();
        assert_eq!(exporter.export(&resource(), &[span(1)]).await.outcome, Outcome::Delivered);
    });
}

#[test]
fn a_receiver_dying_under_a_request_is_tried_again() {
    let mut receiver = Receiver::start_grpc();
    let destination = grpc(&receiver);
    receiver.script([Reply::ok().manner(Manner::Hang)]);
    let sending = std::thread::spawn(move || send(&destination));
    receiver.wait_for(1);
    receiver.stop();
    let answer = sending.join().unwrap();
    assert_eq!((class_of(&answer.outcome), answer.code), ("retry", None), "{answer:?}");
}

#[test]
fn the_other_protocol_on_the_port_is_a_matter_of_configuration() {
    let http = Server::start(0, |mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        // Read to the end, else the system answers what is still coming with a reset, which overtakes the answer.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    });
    let answer = send(&otlp(&format!("http://127.0.0.1:{}", http.port), Protocol::Grpc));
    assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "protocol"), "{answer:?}");
    let grpc = Receiver::start_grpc();
    let answer = send(&otlp(&(grpc.url() + "/v1/traces"), Protocol::HttpProtobuf));
    assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "protocol"), "{answer:?}");
}

#[test]
fn the_probe_is_empty() {
    let receiver = Receiver::start_grpc();
    let destination = grpc(&receiver);
    let answer = run(async { Exporter::build(&destination).unwrap().probe().await });
    assert_eq!(answer.outcome, Outcome::Delivered);
    assert_eq!(receiver.only_request().request.unwrap().resource_spans, []);
}

#[test]
fn a_value_that_metadata_cannot_hold_is_named_without_being_shown() {
    let receiver = Receiver::start_grpc();
    let mut destination = grpc(&receiver);
    if let Destination::Otlp { headers, .. } = &mut destination {
        headers.push(("x-bad".to_owned(), Secret::new("hush\n")));
    }
    let error = Exporter::build(&destination).unwrap_err().to_string();
    assert!(error.contains("x-bad") && !error.contains("hush"), "{error}");
}
