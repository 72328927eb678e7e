//! The settings as a user writes them: precedence, destinations, profiles, and the page that describes them.

use std::time::Duration;

use fi_hook_to_otlp::config::{
    Compression, Destination, EnvFile, Protocol, Secret, SessionSpan, Settings, Source, Sources, SpanNames, State,
    Wanted, explain, resolve, settings_page,
};
use fi_hook_to_otlp::event::Surface;

/// Sources from lines of text: managed file, environment, settings file.
fn sources(managed: &str, environment: &str, file: &str) -> Sources {
    let read = |text: &str| EnvFile::parse("env".into(), text.as_bytes());
    let some = |text: &str| (!text.is_empty()).then(|| read(text));
    let environment = "HOME=/home/u\n".to_owned() + environment;
    Sources { managed: some(managed), environment: read(&environment).pairs, file: some(file) }
}

fn settings(managed: &str, environment: &str, file: &str) -> Settings {
    resolve(&sources(managed, environment, file))
}

fn of_file(text: &str) -> Settings {
    settings("", "", text)
}

fn of_environment(text: &str) -> Settings {
    settings("", text, "")
}

fn shown(settings: &Settings) -> String {
    settings.destination.to_string()
}

const FI: &str = "FI_API_KEY=api-hush\nFI_SECRET_KEY=secret-hush\nFI_BASE_URL=https://fi.test\n";
const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT=http://otlp.test:4318\n";
const AT_FI: &str = "Future AGI at https://fi.test/tracer/v1/traces";
const AT_OTLP: &str = "OTLP (http/protobuf) at http://otlp.test:4318/v1/traces";

#[test]
fn the_page_is_that_of_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, settings_page()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == settings_page(), "docs/settings.md is old: run UPDATE_DOCS=1 cargo test --test settings");
}

#[test]
fn nothing_set_is_the_defaults() {
    let settings = of_file("");
    assert!(matches!(settings.destination, Destination::None { .. }));
    assert_eq!(settings.problems, []);
    assert_eq!(settings.origin.service_name, "antigravity-cli");
    assert_eq!(settings.origin.project_name, "antigravity-sessions");
    assert_eq!((settings.disabled, settings.digest, settings.capture), (None, false, Wanted::default()));
    assert_eq!(settings.surfaces, [Surface::Cli, Surface::Ide]);
    assert_eq!((settings.timeout, settings.idle), (Duration::from_secs(10), Duration::from_secs(10)));
    assert_eq!((settings.session_idle, settings.max_age), (Duration::from_mins(60), Duration::from_hours(168)));
    assert_eq!(settings.max_bytes, 256 * 1024 * 1024);
    assert_eq!((settings.session_span(), settings.span_names), (SessionSpan::Once, SpanNames::Friendly));
}

#[test]
fn one_destination_by_the_rules() {
    let managed_otlp = OTLP.replace("otlp.test", "managed.test");
    let at_managed = AT_OTLP.replace("otlp.test", "managed.test");
    for (managed, environment, file, expected) in [
        ("", "", FI, AT_FI),
        ("", FI, "", AT_FI),
        ("", FI, OTLP, AT_FI),
        ("", OTLP, FI, AT_FI),
        ("", "", &(FI.to_owned() + OTLP), AT_FI),
        ("", "", OTLP, AT_OTLP),
        ("", OTLP, "", AT_OTLP),
        ("", "OTEL_EXPORTER_OTLP_ENDPOINT=http://ambient.test", OTLP, AT_OTLP),
        ("", "FI_BASE_URL=https://fi.test", "FI_API_KEY=a\nFI_SECRET_KEY=b\nFI_BASE_URL=https://x.test", AT_FI),
        ("", "FI_API_KEY=a", OTLP, AT_OTLP),
        ("", "FI_API_KEY=a", "", "Future AGI, incomplete: set FI_SECRET_KEY, FI_BASE_URL"),
        ("", &("FI_API_KEY=a\nFI_SECRET_KEY=b\n".to_owned() + OTLP), "", "Future AGI, incomplete: set FI_BASE_URL"),
        ("", OTLP, "FI_API_KEY=a", "Future AGI, incomplete: set FI_SECRET_KEY, FI_BASE_URL"),
        (
            "",
            "FI_API_KEY=\nFI_SECRET_KEY= ",
            "FI_BASE_URL=https://fi.test",
            "Future AGI, incomplete: set FI_API_KEY, FI_SECRET_KEY",
        ),
        (&managed_otlp, FI, FI, &at_managed),
        (&managed_otlp, "", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://user.test/x", &at_managed),
        (FI, OTLP, OTLP, AT_FI),
        ("FI_BASE_URL=https://fi.test", "FI_BASE_URL=https://x.test", "FI_API_KEY=a\nFI_SECRET_KEY=b", AT_FI),
        ("FI_BASE_URL=https://fi.test", "", OTLP, "Future AGI, incomplete: set FI_API_KEY, FI_SECRET_KEY"),
        ("", "FI_PROJECT_NAME=p", "", "none:"),
        ("", "", "OTEL_EXPORTER_OTLP_HEADERS=a=b", "none:"),
    ] {
        let settings = settings(managed, environment, file);
        assert!(
            shown(&settings).starts_with(expected),
            "{} for {managed:?} {environment:?} {file:?}",
            shown(&settings)
        );
    }
}

#[test]
fn an_otlp_destination_in_full() {
    let settings = of_file(
        "OTEL_EXPORTER_OTLP_ENDPOINT=https://h/base\nOTEL_EXPORTER_OTLP_PROTOCOL=HTTP/JSON\n\
         OTEL_EXPORTER_OTLP_HEADERS=Authorization=Basic%20aHVzaA==,X-B=c\nOTEL_EXPORTER_OTLP_COMPRESSION=gzip\n\
         OTEL_EXPORTER_OTLP_TIMEOUT=2500\nOTEL_EXPORTER_OTLP_CERTIFICATE=~/ca.pem\nHTTPS_PROXY=http://u:hush@p:1\n\
         NO_PROXY=x.test\n",
    );
    assert_eq!(settings.problems, []);
    let Destination::Otlp { route, protocol, headers, compression } = &settings.destination else {
        panic!("{settings:?}")
    };
    assert_eq!(
        (route.url.as_str(), *protocol, *compression),
        ("https://h/base/v1/traces", Protocol::HttpJson, Compression::Gzip)
    );
    assert_eq!(route.timeout, Duration::from_millis(2500));
    assert_eq!(route.tls.certificate, Some("/home/u/ca.pem".into()));
    assert_eq!(route.proxies.https.as_ref().map(Secret::expose), Some("http://u:hush@p:1"));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("authorization", "Basic aHVzaA=="), ("x-b", "c")]);
    let text = format!("{settings:?}");
    assert!(!text.contains("aHVzaA") && !text.contains("hush"), "{text}");
}

#[test]
fn nothing_shows_keys() {
    let sources = sources("", FI, &(OTLP.to_owned() + "OTEL_EXPORTER_OTLP_HEADERS=a=hush"));
    let settings = resolve(&sources);
    let text = format!("{sources:?} {settings:?} {} {:?}", settings.destination, explain(&sources, &settings));
    assert!(!text.contains("hush"), "{text}");
    let query = of_file("OTEL_EXPORTER_OTLP_ENDPOINT=http://h?key=hush");
    assert!(!format!("{query:?} {}", query.destination).contains("hush"));
}

#[test]
fn signal_settings_go_before_generic_ones_of_the_same_source() {
    let settings = of_file(
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://t:4317\n\
         OTEL_EXPORTER_OTLP_PROTOCOL=http/json\nOTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc\n\
         OTEL_EXPORTER_OTLP_HEADERS=a=1,b=2\nOTEL_EXPORTER_OTLP_TRACES_HEADERS=a=3\n",
    );
    assert_eq!(shown(&settings), "OTLP (grpc) at http://t:4317");
    let Destination::Otlp { headers, .. } = &settings.destination else { panic!("{settings:?}") };
    assert_eq!(headers.len(), 1, "not merged");
}

#[test]
fn what_cannot_be_used_is_named_and_never_repeated() {
    for (file, name, words) in [
        ("FI_HOOK_TIMEOUT=hush", "FI_HOOK_TIMEOUT", "expected seconds"),
        ("FI_HOOK_IDLE_SECONDS=-1", "FI_HOOK_IDLE_SECONDS", "expected whole seconds"),
        ("FI_HOOK_MAX_MB=0", "FI_HOOK_MAX_MB", "expected a whole number"),
        ("FI_HOOK_SURFACES=hush", "FI_HOOK_SURFACES", "expected some of cli, ide, desktop"),
        ("FI_HOOK_CAPTURE_CONTENT=args,hush", "FI_HOOK_CAPTURE_CONTENT", "ignored: word 2"),
        ("FI_HOOK_SESSION_SPAN=hush", "FI_HOOK_SESSION_SPAN", "expected update"),
        ("FI_HOOK_SPAN_NAMES=hush", "FI_HOOK_SPAN_NAMES", "expected friendly"),
        ("FI_HOOK_DISABLED=hush", "FI_HOOK_DISABLED", "expected 1 or 0"),
        ("FI_HOOK_LOG_FILE=$HOME/hush", "FI_HOOK_LOG_FILE", "expected an absolute path"),
        ("FI_HOOK_EXCLUDE_PATHS=hush", "FI_HOOK_EXCLUDE_PATHS", "expected absolute paths"),
        ("OTEL_RESOURCE_ATTRIBUTES=hush", "OTEL_RESOURCE_ATTRIBUTES", "expected name=value"),
        ("FI_HOOK_TIMOUT=hush", "FI_HOOK_TIMOUT", "did you mean FI_HOOK_TIMEOUT?"),
        ("FI_SOMETHING_ELSE=hush", "FI_SOMETHING_ELSE", "is no setting"),
        ("OTEL_TRACES_SAMPLER=hush", "OTEL_TRACES_SAMPLER", "is no setting"),
        ("FI_HOOK_CONFIG=/hush", "FI_HOOK_CONFIG", "only in the process environment"),
        ("hush", "env", "line 1: expected NAME=value"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4317", "OTEL_EXPORTER_OTLP_ENDPOINT", "port 4317"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nOTEL_EXPORTER_OTLP_PROTOCOL=hush",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "expected http/protobuf",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nOTEL_EXPORTER_OTLP_TRACES_TIMEOUT=hush",
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "expected whole milliseconds",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://h\nFI_API_KEY=hush",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "Future AGI is incomplete",
        ),
    ] {
        let settings = of_file(file);
        assert_eq!(settings.problems.len(), 1, "{file}: {:?}", settings.problems);
        let problem = &settings.problems[0];
        assert_eq!((problem.name.as_str(), problem.source), (name, Source::File), "{problem}");
        assert!(problem.text.contains(words) && !problem.to_string().contains("hush"), "{problem}");
    }
}

#[test]
fn content_is_captured_by_its_words_and_never_by_mistake() {
    let args = Wanted { args: true, ..Wanted::default() };
    let digested = Wanted { args: true, errors: true, ..Wanted::default() };
    for (file, captured, scanned, problems) in [
        ("", Wanted::default(), Wanted::default(), 0),
        ("FI_HOOK_CAPTURE_CONTENT=1", Wanted::ALL, Wanted::ALL, 0),
        ("FI_HOOK_CAPTURE_CONTENT=false", Wanted::default(), Wanted::default(), 0),
        ("FI_HOOK_CAPTURE_CONTENT=args", args, args, 0),
        ("FI_HOOK_CAPTURE_CONTENT=args,all", args, args, 1),
        ("FI_HOOK_CAPTURE_CONTENT=everything", Wanted::default(), Wanted::default(), 1),
        ("FI_HOOK_DIGEST=1", Wanted::default(), digested, 0),
        ("FI_HOOK_CAPTURE_CONTENT=args\nFI_HOOK_DIGEST=1", args, digested, 0),
        ("FI_HOOK_CAPTURE_CONTENTS=1", Wanted::default(), Wanted::default(), 1),
    ] {
        let settings = of_file(file);
        assert_eq!((settings.capture, settings.wanted()), (captured, scanned), "{file}");
        assert_eq!(settings.problems.len(), problems, "{file}");
    }
}

#[test]
fn a_destination_that_cannot_be_used_says_why() {
    for (file, words) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT=hush:4318", "OTEL_EXPORTER_OTLP_ENDPOINT: the scheme is missing"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:hush@h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: the URL holds"),
        (&(OTLP.to_owned() + "OTEL_EXPORTER_OTLP_HEADERS=hush"), "OTEL_EXPORTER_OTLP_HEADERS: pair 1 has no `=`"),
        (&FI.replace("https://fi.test", "hush"), "FI_BASE_URL: the scheme is missing"),
        (&FI.replace("api-hush", "api-hüsh"), "FI_API_KEY has characters"),
    ] {
        let settings = of_file(file);
        let Destination::Invalid { reason } = &settings.destination else { panic!("{settings:?}") };
        assert!(reason.starts_with(words) && !reason.contains("hush"), "{reason}");
    }
}

#[test]
fn timeouts() {
    for (file, expected) in [
        (FI.to_owned() + "FI_HOOK_TIMEOUT=3", 3000),
        (FI.to_owned() + "OTEL_EXPORTER_OTLP_TIMEOUT=3", 10_000),
        (OTLP.to_owned() + "OTEL_EXPORTER_OTLP_TIMEOUT=3", 3),
        (OTLP.to_owned() + "OTEL_EXPORTER_OTLP_TIMEOUT=3\nOTEL_EXPORTER_OTLP_TRACES_TIMEOUT=4", 4),
        (OTLP.to_owned() + "OTEL_EXPORTER_OTLP_TIMEOUT=3\nFI_HOOK_TIMEOUT=0.5", 500),
    ] {
        let settings = of_file(&file);
        let route = settings.destination.route().map(|route| route.timeout);
        assert_eq!((settings.timeout, route), (Duration::from_millis(expected), Some(settings.timeout)), "{file}");
    }
}

#[test]
fn ambient_settings_count_only_when_nothing_else_names_a_destination() {
    let ambient =
        "OTEL_SERVICE_NAME=theirs\nOTEL_SDK_DISABLED=true\nOTEL_EXPORTER_OTLP_HEADERS=a=b\n".to_owned() + OTLP;
    let alone = of_environment(&ambient);
    assert_eq!((alone.origin.service_name.as_str(), alone.disabled), ("theirs", Some("OTEL_SDK_DISABLED")));
    assert!(matches!(&alone.destination, Destination::Otlp { headers, .. } if headers.len() == 1));
    for (environment, file) in
        [(ambient.clone(), FI), (ambient.clone() + FI, ""), (ambient.clone() + "FI_API_KEY=a", "")]
    {
        let other = settings("", &environment, file);
        assert_eq!((other.origin.service_name.as_str(), other.disabled), ("antigravity-cli", None), "{file}");
    }
    let kept = settings("", &ambient, &(OTLP.to_owned() + "OTEL_SERVICE_NAME=ours"));
    assert_eq!(kept.origin.service_name, "ours");
    assert!(matches!(&kept.destination, Destination::Otlp { headers, .. } if headers.is_empty()));
}

#[test]
fn keys_of_a_file_never_go_to_an_ambient_endpoint() {
    let settings = settings("", OTLP, "OTEL_EXPORTER_OTLP_HEADERS=a=hush");
    assert!(matches!(&settings.destination, Destination::Otlp { headers, .. } if headers.is_empty()));
    assert_eq!(settings.problems.len(), 1);
    assert!(settings.problems[0].text.contains("not sent"));
}

#[test]
fn what_belongs_to_the_data() {
    let origin =
        of_file("OTEL_RESOURCE_ATTRIBUTES=service.name=a,project_name=b,team=x%2Cy,empty=\nFI_HOOK_USER_ID=u@x.test\n")
            .origin;
    assert_eq!((origin.service_name.as_str(), origin.project_name.as_str()), ("a", "b"));
    assert_eq!(
        origin.resource.into_iter().collect::<Vec<_>>(),
        [("empty".into(), String::new()), ("team".into(), "x,y".into())]
    );
    assert_eq!(origin.user_id.as_deref(), Some("u@x.test"));
    let origin =
        of_file("OTEL_RESOURCE_ATTRIBUTES=service.name=a,project_name=b\nOTEL_SERVICE_NAME=c\nFI_PROJECT_NAME=d")
            .origin;
    assert_eq!((origin.service_name.as_str(), origin.project_name.as_str(), origin.resource.len()), ("c", "d", 0));
}

#[test]
fn session_root_policy_follows_the_destination_unless_set() {
    for (file, expected) in [
        (FI.to_owned(), SessionSpan::Update),
        ("FI_API_KEY=a".to_owned(), SessionSpan::Update),
        (OTLP.to_owned(), SessionSpan::Once),
        (FI.to_owned() + "FI_HOOK_SESSION_SPAN=First", SessionSpan::First),
        (OTLP.to_owned() + "FI_HOOK_SESSION_SPAN=none", SessionSpan::None),
    ] {
        assert_eq!(of_file(&file).session_span(), expected, "{file}");
    }
}

#[test]
fn excluded_folders_match_by_whole_components() {
    let settings = of_file("FI_HOOK_EXCLUDE_PATHS=/work/secret/:~/private");
    for (path, expected) in [
        ("/work/secret", true),
        ("/work/secret/deep/er", true),
        ("/work//./secret/x", true),
        ("\\work\\secret\\x", true),
        ("/work/secretive", false),
        ("/work", false),
        ("/home/u/private/x", true),
        ("/other/work/secret", false),
        ("", false),
    ] {
        assert_eq!(settings.excludes(path), expected, "{path}");
    }
    assert!(!of_file("").excludes("/work"));
}

#[test]
fn every_setting_is_explained() {
    let sources = sources(
        "FI_PROJECT_NAME=m",
        &("FI_PROJECT_NAME=e\n".to_owned() + OTLP),
        &(FI.to_owned() + "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
    );
    let rows = explain(&sources, &resolve(&sources));
    let found: Vec<_> = rows.iter().map(|row| (row.name, row.source, row.value.as_deref(), row.state)).collect();
    assert_eq!(
        found,
        [
            ("FI_API_KEY", Source::File, None, State::Used),
            ("FI_SECRET_KEY", Source::File, None, State::Used),
            ("FI_BASE_URL", Source::File, Some("https://fi.test"), State::Used),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", Source::Ambient, Some("http://otlp.test:4318"), State::Ambient),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", Source::File, Some("grpc"), State::OtherDestination),
            ("FI_PROJECT_NAME", Source::Managed, Some("m"), State::Used),
            ("FI_PROJECT_NAME", Source::Environment, Some("e"), State::Shadowed),
        ]
    );
}

#[test]
fn proxies_stand_in_files_or_in_the_environment_in_either_case() {
    for (environment, file, expected) in [
        ("https_proxy=http://low:1", "", "http://low:1"),
        ("https_proxy=http://low:1\nHTTPS_PROXY=http://up:1", "", "http://up:1"),
        ("HTTPS_PROXY=http://up:1", "HTTPS_PROXY=http://file:1", "http://file:1"),
    ] {
        let settings = settings("", environment, &(FI.to_owned() + file));
        let proxy = settings.destination.route().and_then(|route| route.proxies.https.clone());
        assert_eq!(proxy.as_ref().map(Secret::expose), Some(expected), "{environment} {file}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_a_panic_and_shows_no_key(file in ".{0,200}", environment in ".{0,200}") {
        let text = format!("{FI}{file}\n");
        let sources = Sources {
            managed: None,
            environment: vec![("OTEL_EXPORTER_OTLP_HEADERS".into(), environment.clone()), ("FI_HOOK_TIMEOUT".into(), environment)],
            file: Some(EnvFile::parse("env".into(), text.as_bytes())),
        };
        let settings = resolve(&sources);
        let shown = format!("{settings:?} {:?}", explain(&sources, &settings));
        proptest::prop_assert!(!shown.contains("hush"), "{}", shown);
    }
}
