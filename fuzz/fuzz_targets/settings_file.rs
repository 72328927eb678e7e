//! Any bytes as a settings file, the user's or the administrator's: no panic, and no key in what is shown.

#![no_main]

use fi_hook_to_otlp::config::{self, EnvFile, Sources};
use libfuzzer_sys::fuzz_target;

/// Made up.
const KEY: &str = "hush-4711-hush";

fuzz_target!(|bytes: &[u8]| {
    let planted = format!("FI_API_KEY={KEY}\nOTEL_EXPORTER_OTLP_HEADERS=x-key={KEY}\n");
    for text in [bytes.to_vec(), [planted.as_bytes(), bytes].concat(), [bytes, b"\n", planted.as_bytes()].concat()] {
        let file = EnvFile::parse("env".into(), &text);
        assert!(!format!("{file:?}").contains(KEY));
        for managed in [false, true] {
            let (managed, file) = if managed { (Some(file.clone()), None) } else { (None, Some(file.clone())) };
            let sources = Sources { managed, file, ..Sources::default() };
            let settings = config::resolve(&sources);
            // What was put before the planted lines may make something else of them, but no key is shown.
            let shown = format!("{settings:?} {}", settings.destination);
            assert!(!shown.contains(KEY), "{shown}");
        }
    }
});
