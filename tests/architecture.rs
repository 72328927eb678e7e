//! Who may use whom: reads the `use` lines of the sources, so that a layer is crossed only by changing this table.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// What each module of ours may use. The longest matching name counts.
///
/// Layers: data → pure → edge → sender → commands. Whatever is not named here does not exist.
const MAY_USE: &[(&str, &[&str])] = &[
    // Data.
    // Content has one type, whose one maker is `redact`.
    ("event", &["redact::Text"]),
    ("span", &["redact::Text"]),
    ("semconv", &["span"]),
    // Pure: time, environment and randomness are arguments.
    ("ids", &["span"]),
    ("redact", &["event"]),
    ("hosts", &["event", "redact::Raw"]),
    ("tree", &["span", "semconv"]),
    ("conversation", &["event", "span", "semconv", "ids", "redact"]),
    ("config", &["event", "conversation", "export::endpoint"]),
    ("spool::format", &["event", "redact"]),
    ("install::plan", &["hosts"]),
    ("demo::recording", &[]),
    ("export::encode", &["span", "semconv"]),
    ("export::classify", &["export"]),
    ("export::endpoint", &[]),
    // Edge: files, clocks, processes, network.
    ("sys", &[]),
    ("config::sources", &["config"]),
    ("spool", &["sys"]),
    ("store", &["conversation", "event", "span", "export::encode"]),
    ("export", &["config", "span", "semconv"]),
    ("capture", &["config", "event", "hosts", "redact", "spool", "sys"]),
    ("install", &["sys"]),
    ("demo", &["capture", "hosts", "span", "store"]),
    // Drive.
    ("sender", &["config", "conversation", "event", "export", "hosts", "spool", "store", "sys"]),
    // Shell.
    (
        "commands",
        &[
            "capture",
            "config",
            "conversation",
            "demo",
            "event",
            "hosts",
            "ids",
            "install",
            "sender",
            "span",
            "spool",
            "store",
            "sys",
            "tree",
        ],
    ),
    ("cli", &["commands"]),
];

/// Modules that do no I/O and read no clock, whatever they import.
const PURE: &[&str] = &[
    "event",
    "span",
    "semconv",
    "ids",
    "redact",
    "hosts",
    "tree",
    "conversation",
    "spool::format",
    "install::plan",
    "demo::recording",
    "export::encode",
    "export::classify",
    "export::endpoint",
];

/// Words that only an edge may say.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io::stdin",
    "std::time::Instant",
    "SystemTime::now",
    "Instant::now",
    "rustix::",
    "libc::",
    "tokio::",
    "getrandom::",
    "File::open",
];

struct Source {
    module: String,
    path: PathBuf,
    /// Without its tests.
    text: String,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(SOURCES)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
                found.push(Source { module: module(&path), path, text });
            }
        }
    }
    found.retain(|source| !source.module.ends_with("::tests") && !source.module.ends_with("::properties"));
    assert!(found.len() > 30);
    found
}

fn module(path: &Path) -> String {
    let inner = path.strip_prefix(SOURCES).unwrap().with_extension("");
    let mut parts: Vec<_> = inner.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts.join("::")
}

/// The longest of `names` that is `module` or encloses it.
fn row<'a>(names: impl Iterator<Item = &'a str>, module: &str) -> Option<&'a str> {
    names
        .filter(|name| module == *name || module.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))
        .max_by_key(|name| name.len())
}

fn used(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let names = code.split("crate::").skip(1);
    names
        .map(|name| name.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect::<String>())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn modules_use_only_what_their_layer_allows() {
    let table: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        if ["main", "lib", ""].contains(&source.module.as_str()) {
            continue;
        }
        let Some(own) = row(table.keys().copied(), &source.module) else {
            wrong.push(format!("{}: no row in MAY_USE", source.module));
            continue;
        };
        let family = own.split("::").next().unwrap();
        for name in used(&source.text) {
            let within = row(std::iter::once(own), &name).is_some();
            // An edge may use the pure part of its own family.
            let same_family = row(std::iter::once(family), &name).is_some() && !PURE.contains(&own);
            let allowed = table[own].iter().any(|allowed| row(std::iter::once(*allowed), &name).is_some());
            if !(within || same_family || allowed) {
                wrong.push(format!("{} uses crate::{name}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_modules_touch_nothing_outside() {
    let mut wrong = Vec::new();
    for source in sources() {
        if row(PURE.iter().copied(), &source.module).is_none() {
            continue;
        }
        for (number, line) in source.text.lines().enumerate() {
            if !line.trim_start().starts_with("//") && IMPURE.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}:{}: {}", source.path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_spool_format_takes_values_for_redacted() {
    let callers: Vec<_> = sources()
        .into_iter()
        .filter(|source| source.text.contains("from_spool("))
        .map(|source| source.module)
        .collect();
    assert_eq!(
        callers.iter().map(String::as_str).filter(|module| *module != "redact").collect::<Vec<_>>(),
        ["spool::format"]
    );
}

#[test]
fn only_sys_is_unsafe() {
    for source in sources() {
        let inside = row(std::iter::once("sys"), &source.module).is_some();
        assert!(inside || !source.text.contains("unsafe {"), "{}", source.path.display());
    }
}

#[test]
fn files_and_functions_are_small() {
    let mut wrong = Vec::new();
    for source in sources() {
        let most = if source.module == "main" { 40 } else { 400 };
        let lines = fs::read_to_string(&source.path).unwrap().lines().count();
        if lines > most {
            wrong.push(format!("{}: {lines} lines, at most {most}", source.path.display()));
        }
        let mut begun: Option<(usize, usize)> = None;
        for (number, line) in source.text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let opens = code.split('(').next().is_some_and(|head| head.contains("fn ")) && !code.starts_with("//");
            match begun {
                None if opens && !code.ends_with(';') => begun = Some((number, indent)),
                Some((from, at)) if indent == at && code.starts_with('}') => {
                    if number - from + 1 > 60 {
                        wrong.push(format!(
                            "{}:{}: {} lines, at most 60",
                            source.path.display(),
                            from + 1,
                            number - from + 1
                        ));
                    }
                    begun = None;
                }
                // A declaration without a body.
                Some((_, at)) if indent == at && code.ends_with(';') => begun = None,
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
