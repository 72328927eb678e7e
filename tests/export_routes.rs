//! The way to a receiver: TLS and who is trusted, proxies, and an environment that would like to have a say.

mod support;

use std::path::PathBuf;
use std::time::Duration;

use fi_hook_to_otlp::config::{Destination, Protocol, Proxies, Secret, Tls};
use fi_hook_to_otlp::export::{Answer, Exporter, Outcome};
use support::certificates::Authority;
use support::proxy::Proxy;
use support::receiver::{Receiver, Speaks};
use support::spans::{class_of, otlp, run, send};

const SPEAKS: [(Speaks, Protocol, &str); 2] =
    [(Speaks::Http, Protocol::HttpProtobuf, "/v1/traces"), (Speaks::Grpc, Protocol::Grpc, "")];
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "collector.test"];

fn over(url: &str, protocol: Protocol, tls: Tls, proxies: Proxies) -> Destination {
    let mut destination = otlp(url, protocol);
    if let Destination::Otlp { route, .. } = &mut destination {
        route.tls = tls;
        route.proxies = proxies;
    }
    destination
}

fn trusting(authority: &Authority) -> Tls {
    Tls { certificate: Some(authority.file()), ..Tls::default() }
}

fn assert_tls_failure(answer: &Answer, words: &str) {
    assert_eq!((class_of(&answer.outcome), answer.reason, answer.code), ("configuration", "tls", None), "{answer:?}");
    assert!(answer.message.as_deref().is_some_and(|message| message.contains(words)), "{answer:?}");
}

#[test]
fn a_private_authority_is_trusted_when_named_and_only_then() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (speaks, protocol, path) in SPEAKS {
        let receiver = Receiver::start_with(speaks, Some(authority.issue(&HOSTS, 80).server()));
        let url = receiver.url() + path;
        let send = |tls| send(&over(&url, protocol, tls, Proxies::default()));
        assert_eq!(send(trusting(&authority)).outcome, Outcome::Delivered);
        assert_tls_failure(&send(trusting(&other)), "certificate");
        assert_tls_failure(&send(Tls::default()), "certificate");
        assert_eq!(receiver.requests().len(), 1, "nothing is sent to whom we do not trust");
    }
}

#[test]
fn an_expired_certificate_or_one_of_another_host_is_refused() {
    let authority = Authority::new();
    for (speaks, protocol, path) in SPEAKS {
        for (hosts, years, words) in [(&HOSTS[..], 1, "expired"), (&["elsewhere.test"][..], 80, "not valid for")] {
            let receiver = Receiver::start_with(speaks, Some(authority.issue(hosts, years).server()));
            let url = receiver.url() + path;
            let answer = send(&over(&url, protocol, trusting(&authority), Proxies::default()));
            assert_tls_failure(&answer, words);
            assert_eq!(receiver.requests().len(), 0);
        }
    }
}

#[test]
fn https_is_never_answered_in_plain() {
    for (speaks, protocol, path) in SPEAKS {
        let plain = Receiver::start_with(speaks, None);
        let url = format!("https://127.0.0.1:{}{path}", plain.port());
        let answer = send(&over(&url, protocol, Tls::default(), Proxies::default()));
        assert_eq!(plain.requests().len(), 0);
        // A receiver that just hangs up could come back as the right one, so that is tried again.
        assert!(matches!(answer.reason, "tls" | "connection_failed"), "{answer:?}");
    }
}

#[test]
fn plain_http_to_a_tls_port_says_so() {
    let authority = Authority::new();
    for (speaks, protocol, path) in SPEAKS {
        let receiver = Receiver::start_with(speaks, Some(authority.issue(&HOSTS, 80).server()));
        let answer = send(&otlp(&format!("http://127.0.0.1:{}{path}", receiver.port()), protocol));
        assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "protocol"), "{answer:?}");
    }
}

#[test]
fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let server = authority.mutual(&authority.issue(&HOSTS, 80));
    let (client_certificate, client_key) = authority.client_files();
    for (speaks, protocol, path) in SPEAKS {
        let mut server = (*server).clone();
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let receiver = Receiver::start_with(speaks, Some(server.into()));
        let with = Tls {
            client_certificate: Some(client_certificate.clone()),
            client_key: Some(client_key.clone()),
            ..trusting(&authority)
        };
        let send = |tls| send(&over(&(receiver.url() + path), protocol, tls, Proxies::default()));
        assert_eq!(send(with).outcome, Outcome::Delivered);
        let answer = send(trusting(&authority));
        assert_ne!(answer.outcome, Outcome::Delivered);
        assert_eq!(receiver.requests().len(), 1);
    }
}

#[test]
fn a_file_that_is_no_certificate_is_named() {
    let authority = Authority::new();
    let (certificate, key) = authority.client_files();
    let stranger = Authority::new();
    let other = stranger.client_files().1;
    let empty = authority.write("empty.pem", "hush\n");
    let missing = PathBuf::from("/nonexistent/ca.pem");
    let tls = |certificate: Option<&PathBuf>, chain: Option<&PathBuf>, key: Option<&PathBuf>| Tls {
        certificate: certificate.cloned(),
        client_certificate: chain.cloned(),
        client_key: key.cloned(),
    };
    for (tls, parts) in [
        (tls(Some(&missing), None, None), ["OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent/ca.pem"]),
        (tls(Some(&empty), None, None), ["OTEL_EXPORTER_OTLP_CERTIFICATE", "no certificate"]),
        (tls(None, Some(&empty), Some(&key)), ["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "no certificate"]),
        (tls(None, Some(&certificate), Some(&empty)), ["OTEL_EXPORTER_OTLP_CLIENT_KEY", "no private key"]),
        (tls(None, Some(&certificate), Some(&other)), ["OTEL_EXPORTER_OTLP_CLIENT_KEY", "does not go with"]),
        (tls(None, Some(&certificate), None), ["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is set", "CLIENT_KEY"]),
        (tls(None, None, Some(&key)), ["OTEL_EXPORTER_OTLP_CLIENT_KEY is set", "CLIENT_CERTIFICATE"]),
    ] {
        let destination = over("https://127.0.0.1:1/", Protocol::HttpProtobuf, tls.clone(), Proxies::default());
        let error = Exporter::build(&destination).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)) && !error.contains("hush"), "{error}");
        let plain = over("http://127.0.0.1:1/", Protocol::HttpProtobuf, tls, Proxies::default());
        assert!(Exporter::build(&plain).is_ok(), "without TLS the files are not read");
    }
}

fn all(proxy: &str) -> Proxies {
    Proxies { all: Some(Secret::new(proxy)), ..Proxies::default() }
}

#[test]
fn a_proxy_leads_to_the_receiver() {
    let authority = Authority::new();
    for (speaks, protocol, path) in SPEAKS {
        for secure in [false, true] {
            let tls = secure.then(|| authority.issue(&HOSTS, 80).server());
            let receiver = Receiver::start_with(speaks, tls);
            let proxy = Proxy::start(receiver.port(), Some("Basic dXNlcjpodXNoLXA="));
            let scheme = if secure { "https" } else { "http" };
            let url = format!("{scheme}://collector.test:4318{path}");
            let with = all(&format!("http://user:hush-p@{}", proxy.authority()));
            let answer = send(&over(&url, protocol, trusting(&authority), with));
            assert_eq!(answer.outcome, Outcome::Delivered, "{protocol:?} {scheme} {answer:?}");
            let start = if secure || protocol == Protocol::Grpc {
                "CONNECT collector.test:4318 HTTP/1.1\r\n"
            } else {
                "POST http://collector.test:4318/v1/traces HTTP/1.1\r\n"
            };
            assert!(proxy.heads()[0].starts_with(start), "{:?}", proxy.heads());
            assert_eq!(proxy.heads()[0].contains("hush-hush"), start.starts_with("POST"), "keys go through the tunnel");
            assert_eq!(receiver.only_request().header("x-key"), Some("hush-hush"));

            let answer = send(&over(&url, protocol, trusting(&authority), all(&proxy.url())));
            assert_eq!(
                (class_of(&answer.outcome), answer.reason),
                ("configuration", "proxy_authorization"),
                "{answer:?}"
            );
            assert_eq!(receiver.requests().len(), 1);
        }
    }
}

#[test]
fn a_proxy_that_says_no_or_is_not_there() {
    let authority = Authority::new();
    let receiver = Receiver::start_with(Speaks::Http, Some(authority.issue(&HOSTS, 80).server()));
    let proxy = Proxy::start_answering(receiver.port(), None, "403 Forbidden");
    let url = "https://collector.test:4318/v1/traces";
    let via = |proxy: &str| send(&over(url, Protocol::HttpProtobuf, trusting(&authority), all(proxy)));
    let answer = via(&proxy.url());
    assert_eq!((class_of(&answer.outcome), answer.reason), ("configuration", "proxy"), "{answer:?}");
    let gone = proxy.url();
    drop(proxy);
    let answer = via(&gone);
    assert_eq!((class_of(&answer.outcome), answer.reason), ("retry", "connection_refused"), "{answer:?}");
}

#[test]
fn this_machine_and_excluded_hosts_are_reached_directly() {
    let receiver = Receiver::start();
    let proxy = Proxy::start(receiver.port(), None);
    let direct = otlp(&(receiver.url() + "/v1/traces"), Protocol::HttpProtobuf);
    let Destination::Otlp { route, .. } = &direct else { unreachable!() };
    let answer = send(&over(&route.url, Protocol::HttpProtobuf, Tls::default(), all(&proxy.url())));
    assert_eq!(answer.outcome, Outcome::Delivered);
    let excluded = Proxies { no: Some("collector.invalid".to_owned()), ..all(&proxy.url()) };
    let answer = send(&over("http://collector.invalid/", Protocol::HttpProtobuf, Tls::default(), excluded));
    assert_eq!(answer.reason, "dns");
    assert_eq!(proxy.heads(), Vec::<String>::new());
}

/// The part of `an_ambient_environment_has_no_say` that runs in a process with that environment.
#[test]
fn sending_for_the_environment_test() {
    let Ok(port) = std::env::var("FI_TEST_PORT") else { return };
    for (path, protocol) in [("/v1/traces", Protocol::HttpProtobuf), ("/v1/traces", Protocol::HttpJson)] {
        let mut destination = otlp(&format!("http://127.0.0.1:{port}{path}"), protocol);
        if let Destination::Otlp { route, .. } = &mut destination {
            route.timeout = Duration::from_secs(5);
        }
        assert_eq!(send(&destination).outcome, Outcome::Delivered);
    }
}

#[test]
fn an_ambient_environment_has_no_say() {
    let receiver = Receiver::start();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sending_for_the_environment_test"]).env("FI_TEST_PORT", receiver.port().to_string());
    for what in ["", "TRACES_"] {
        command
            .env(format!("OTEL_EXPORTER_OTLP_{what}HEADERS"), "x-key=stolen,x-leak=hush")
            .env(format!("OTEL_EXPORTER_OTLP_{what}COMPRESSION"), "gzip")
            .env(format!("OTEL_EXPORTER_OTLP_{what}ENDPOINT"), "http://127.0.0.1:1")
            .env(format!("OTEL_EXPORTER_OTLP_{what}PROTOCOL"), "grpc")
            .env(format!("OTEL_EXPORTER_OTLP_{what}TIMEOUT"), "1");
    }
    command.env("OTEL_SERVICE_NAME", "leak").env("OTEL_RESOURCE_ATTRIBUTES", "leak=1");
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.header("x-key"), Some("hush-hush"));
        assert_eq!((request.header("x-leak"), request.header("content-encoding")), (None, None));
        let sent = format!("{:?}", request.request);
        assert!(!sent.contains("leak"), "{sent}");
        assert_eq!(request.spans()[0].attributes.len(), 6);
    }
}

#[test]
fn an_exporter_needs_no_network_to_be_made() {
    let authority = Authority::new();
    let destination =
        over("https://collector.invalid/", Protocol::HttpProtobuf, trusting(&authority), Proxies::default());
    assert!(run(async { Exporter::build(&destination) }).is_ok());
    let shown = format!("{:?} {destination:?}", run(async { Exporter::build(&destination) }).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
}
