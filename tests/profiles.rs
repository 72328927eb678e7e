//! Which settings of the process environment make a profile of their own.

use std::cell::Cell;

use fi_hook_to_otlp::config::{DEFAULT_PROFILE, EnvFile, Sources, profile, resolve};

/// Sources from lines of text: managed file, environment, settings file.
fn sources(managed: &str, environment: &str, file: &str) -> Sources {
    let read = |text: &str| EnvFile::parse("env".into(), text.as_bytes());
    let some = |text: &str| (!text.is_empty()).then(|| read(text));
    Sources { managed: some(managed), environment: read(environment).pairs, file: some(file) }
}

const FI: &str = "FI_API_KEY=api-hush\nFI_SECRET_KEY=secret-hush\nFI_BASE_URL=https://fi.test\n";
const OTLP: &str = "OTEL_EXPORTER_OTLP_ENDPOINT=http://otlp.test:4318\n";
const KEY: [u8; 32] = [7; 32];

fn profile_of(managed: &str, environment: &str, file: &str) -> String {
    let sources = sources(managed, environment, file);
    profile(&sources, &resolve(&sources), || Some(KEY))
}

#[test]
fn only_what_counts_in_the_process_environment_makes_a_profile() {
    for (managed, environment, file) in [
        ("", "", FI),
        ("", "FI_API_KEY=\nFI_PROJECT_NAME= ", FI),
        ("", "FI_HOOK_STATE_DIR=/x\nFI_HOOK_LOG_FILE=/x\nFI_HOOK_TIMEOUT=3", FI),
        ("", "FI_HOOK_DISABLED=1\nFI_HOOK_SURFACES=ide\nFI_HOOK_EXCLUDE_PATHS=/x\nFI_HOOK_CAPTURE_CONTENT=1", FI),
        ("", "FI_HOOK_MAX_MB=1\nFI_HOOK_MAX_DAYS=1\nFI_HOOK_IDLE_SECONDS=1\nHTTPS_PROXY=http://p:1", FI),
        ("", "OTEL_SERVICE_NAME=theirs\nOTEL_EXPORTER_OTLP_ENDPOINT=http://x", FI),
        ("", "FI_API_KEY=a\nFI_SECRET_KEY=b", OTLP),
        (FI, FI, ""),
        (OTLP, FI, ""),
        ("FI_PROJECT_NAME=p", "FI_PROJECT_NAME=q", ""),
    ] {
        assert_eq!(profile_of(managed, environment, file), DEFAULT_PROFILE, "{managed:?} {environment:?} {file:?}");
    }
    for environment in [
        FI,
        OTLP,
        "FI_API_KEY=a",
        "FI_PROJECT_NAME=p",
        "OTEL_SERVICE_NAME=s",
        "OTEL_RESOURCE_ATTRIBUTES=a=b",
        "FI_HOOK_SESSION_SPAN=first",
        "FI_HOOK_SPAN_NAMES=semconv",
        "FI_HOOK_USER_ID=u",
        "FI_HOOK_CONFIG=/x",
    ] {
        let name = profile_of("", environment, "");
        assert!(name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{environment}: {name}");
    }
}

#[test]
fn a_profile_hangs_on_values_not_on_order_and_hides_keys() {
    let turned: String = FI.lines().rev().fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(profile_of("", FI, ""), profile_of("", &turned, ""));
    assert_eq!(profile_of("", FI, ""), profile_of("", FI, "FI_PROJECT_NAME=p"), "the file is not hashed");
    for other in [FI.replace("api-hush", "other"), FI.replace("fi.test", "x.test"), FI.to_owned() + "FI_PROJECT_NAME=p"]
    {
        assert_ne!(profile_of("", FI, ""), profile_of("", &other, ""));
    }
    let (a, b) = (sources("", FI, ""), sources("", &FI.replace("api-hush", "other"), ""));
    let with = |sources: &Sources, key: Option<[u8; 32]>| profile(sources, &resolve(sources), || key);
    assert_ne!(with(&a, Some(KEY)), with(&a, Some([8; 32])), "another key, another name");
    assert_eq!(with(&a, None), with(&b, None), "without a key the value does not enter");
    let asked = Cell::new(false);
    let plain = sources("", "FI_PROJECT_NAME=p", "");
    let _ = profile(&plain, &resolve(&plain), || {
        asked.set(true);
        None
    });
    assert!(!asked.get(), "no key file is made for a setting that is no secret");
}
