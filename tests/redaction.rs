//! The corpus in `tests/redaction`: no secret of it gets through, in whatever it is wrapped and wherever it is cut, and nothing
//! that only looks like one is touched.
//!
//! A line is a sample. `⟦…⟧` is what must not be seen again, `⏎` an end of a line; `¦` is nothing, and keeps services that
//! look for real secrets from finding one here. `@json ` comes before what is a value of JSON already.

#![expect(clippy::unwrap_used, clippy::string_slice, reason = "a failure here is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use fi_hook_to_otlp::redact::rules::{AROUND, RULES};
use fi_hook_to_otlp::redact::{CONTENT_CHARS, Raw, Shape, Text, content};
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redaction");
/// Rules about the input rather than about what it says; they have tests of their own.
const NO_SAMPLES: [&str; 2] = ["cut-off", "unreadable"];

/// How some secrets begin, which is no secret and may be seen where the rest was cut off.
const PUBLIC: &str = "-BEGIN OPENSSH PRIVATE KEY BLOCK- -BEGIN RSA PRIVATE KEY- -BEGIN EC PRIVATE KEY- -BEGIN PGP PRIVATE KEY- \
    -BEGIN ENCRYPTED PRIVATE KEY- -BEGIN PRIVATE KEY- Private-Lines: 1\nPrivate-Lines: 2\n FlyV1 fm";

struct Sample {
    rule: String,
    text: String,
    json: bool,
    /// What of its secrets stands nowhere beside them, in every way that they can be read.
    parts: BTreeSet<String>,
}

/// So many characters of a secret are too many to be seen.
const PART: usize = 6;

fn files(folder: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(format!("{FOLDER}/{folder}")).unwrap().map(Result::unwrap);
    let name = |path: std::path::PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| (name(entry.path()), fs::read_to_string(entry.path()).unwrap())).collect()
}

fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.replace('¦', "").replace('⏎', "\n"))
}

fn secrets() -> Vec<Sample> {
    let files = files("secrets");
    files.iter().flat_map(|(rule, text)| lines(text).map(|line| Sample::new(rule, &line))).collect()
}

fn string(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The ways an agent may send a text: what is sent, and as what it is taken.
fn wrapped(text: &str) -> Vec<(&'static str, String, Shape)> {
    let argument = json!({ "CommandLine": text, "Cwd": "/srv" }).to_string();
    let inner = json!({ "a": [{ "b": argument }] }).to_string();
    let deep = json!({ "c": inner }).to_string();
    vec![
        ("text", string(text), Shape::Plain),
        ("argument", argument.clone(), Shape::Json),
        ("double-encoded", string(&argument), Shape::Json),
        ("JSON in JSON", inner, Shape::Json),
        ("JSON in JSON in JSON", deep.clone(), Shape::Json),
        ("four deep", string(&json!({ "d": deep }).to_string()), Shape::Json),
        ("a key", json!({ text: 1 }).to_string(), Shape::Json),
        ("a fragment", string(&format!("$ echo {} > x", string(&format!("say {} twice", string(text))))), Shape::Plain),
    ]
}

fn redacted(raw: &str, shape: Shape) -> Text {
    content(&Raw::new(raw.as_bytes().to_vec(), true), shape)
}

/// The text, and what it may be read as by somebody who undoes escapes.
fn readings(text: &str) -> Vec<String> {
    let mut readings = vec![text.to_owned()];
    while readings.last().unwrap().contains('\\') && readings.len() < 6 {
        let last = readings.last().unwrap();
        let next = last
            .replace("\\\\", "\u{1}")
            .replace("\\\"", "\"")
            .replace("\\n", "\n")
            .replace("\\/", "/")
            .replace('\u{1}', "\\");
        readings.push(next);
    }
    readings
}

impl Sample {
    fn new(rule: &str, line: &str) -> Self {
        let (line, json) = line.strip_prefix("@json ").map_or((line, false), |line| (line, true));
        let secrets: Vec<_> = line.split('⟦').skip(1).map(|rest| rest.split_once('⟧').unwrap().0).collect();
        assert!(!secrets.is_empty(), "{rule}: {line}");
        let text = line.replace(['⟦', '⟧'], "");
        let beside = secrets.iter().fold(text.clone(), |text, secret| text.replace(secret, "\u{0}"));
        let beside = readings(&beside).concat() + PUBLIC;
        let mut parts = BTreeSet::new();
        for secret in secrets.iter().flat_map(|secret| readings(secret)) {
            let letters: Vec<char> = secret.chars().collect();
            let windows = letters.windows(PART.min(letters.len()).max(1));
            parts.extend(windows.map(|window| window.iter().collect::<String>()).filter(|part| !beside.contains(part)));
        }
        if rule == "private-key" {
            parts.retain(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')));
        }
        Self { rule: rule.to_owned(), text, json, parts }
    }

    /// A part of its secrets that can be read in `text`.
    fn seen(&self, text: &str) -> Option<&str> {
        let readings = readings(text);
        self.parts.iter().find(|part| readings.iter().any(|text| text.contains(part.as_str()))).map(String::as_str)
    }
}

#[test]
fn every_rule_has_samples_and_every_sample_a_rule() {
    let mut rules: Vec<_> = RULES.iter().map(|rule| rule.name).chain(AROUND.iter().copied()).collect();
    rules.retain(|rule| !NO_SAMPLES.contains(rule));
    rules.sort_unstable();
    let names: Vec<_> = files("secrets").into_keys().collect();
    assert_eq!(names, rules);
    for rule in rules {
        assert!(secrets().iter().filter(|sample| sample.rule == rule).count() >= 2 || rule.ends_with("-key"), "{rule}");
    }
    assert!(secrets().len() >= 200, "{}", secrets().len());
    assert!(files("harmless").values().flat_map(|text| lines(text)).count() >= 200);
}

#[test]
fn no_secret_gets_through() {
    let mut wrong = Vec::new();
    for sample in secrets() {
        let ways = if sample.json {
            vec![("as it is", sample.text.clone(), Shape::Json), ("double-encoded", string(&sample.text), Shape::Json)]
        } else {
            wrapped(&sample.text)
        };
        for (way, raw, shape) in ways {
            let text = redacted(&raw, shape);
            if let Some(part) = sample.seen(text.as_str()) {
                wrong.push(format!("{} as {way}: {part:?} in {}", sample.rule, text.as_str()));
            }
            if matches!(way, "text" | "as it is") && !text.rules().contains(&sample.rule) {
                wrong.push(format!("{} as {way}: by {:?}: {}", sample.rule, text.rules(), text.as_str()));
            }
            let json = serde_json::from_str::<Value>(text.as_str()).is_ok();
            if text.is_json() && !json || !text.is_truncated() && !json && shape == Shape::Json {
                wrong.push(format!("{} as {way}: no JSON: {}", sample.rule, text.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), secrets().len(), wrong.join("\n"));
}

#[test]
fn what_stands_beside_a_secret_stays() {
    for (text, kept) in [
        (
            "curl -H 'Authorization: Bearer a1b2c3d4e5' https://x.example",
            "curl -H 'Authorization: Bearer [REDACTED]' https://x.example",
        ),
        ("export DB_PASSWORD=hunter2 && make", "export DB_PASSWORD=[REDACTED] && make"),
        ("docker login -p hunter2 && docker run -p 80:80 x", "docker login -p [REDACTED] && docker run -p 80:80 x"),
        ("echo hunter2 | sudo -S ls | head", "echo [REDACTED] | sudo -S ls | head"),
        ("kind: Secret\ndata:\n  a: YWJj\ntype: Opaque", "kind: Secret\ndata:\n  a: [REDACTED]\ntype: Opaque"),
        (
            "data:\n  a: YWJj\nkind: Secret\n---\ndata:\n  a: b",
            "data:\n  a: [REDACTED]\nkind: Secret\n---\ndata:\n  a: b",
        ),
        ("postgres://app:hunter2@db/app", "postgres://app:[REDACTED]@db/app"),
        ("password: hunter2 # ours\nuser: app", "password: [REDACTED] # ours\nuser: app"),
        ("cat /home/jdoe/a.txt /Users/Shared/b", "cat /home/<user>/a.txt /Users/Shared/b"),
        (
            "{\"password\": \"hunter2\", \"n\": 12345678901234567890.10}",
            "{\"password\": \"[REDACTED]\", \"n\": 12345678901234567890.10}",
        ),
    ] {
        assert_eq!(redacted(&string(text), Shape::Plain).as_str(), kept);
    }
}

#[test]
fn nothing_else_is_touched() {
    let mut wrong = Vec::new();
    for (file, text) in files("harmless") {
        for line in lines(&text) {
            for (way, raw, shape) in wrapped(&line) {
                let text = redacted(&raw, shape);
                if !text.rules().is_empty() {
                    wrong.push(format!("{file} as {way}: {:?}: {}", text.rules(), text.as_str()));
                    break;
                }
                if shape == Shape::Json {
                    let sent: Value = serde_json::from_str(&raw).unwrap();
                    let sent = sent.as_str().map_or(sent.clone(), |inner| serde_json::from_str(inner).unwrap());
                    assert_eq!(serde_json::from_str::<Value>(text.as_str()).unwrap(), sent, "{file} as {way}");
                } else {
                    assert_eq!(string(text.as_str()), raw, "{file} as {way}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether to cut every sample everywhere, which takes minutes: `CUTS=all`. Otherwise at a choice of places.
fn cuts_all() -> bool {
    std::env::var_os("CUTS").is_some_and(|cuts| cuts == "all")
}

/// Text of that many characters that no rule has anything against.
fn padding(characters: usize) -> String {
    "some words of text ".chars().cycle().take(characters).collect()
}

#[test]
fn no_secret_gets_through_where_the_output_is_cut() {
    let mut rule = String::new();
    for sample in secrets().iter().filter(|sample| !sample.json) {
        let length = sample.text.chars().count() + 12;
        // Everywhere for the first sample of a rule, in a dozen places for the others: it takes a while.
        let step = if sample.rule == rule && !cuts_all() { length / 12 } else { 1 };
        rule.clone_from(&sample.rule);
        for left in (0..length.min(400)).step_by(step) {
            let text = format!("{}\n{}", padding(CONTENT_CHARS - 1 - left), sample.text);
            let text = redacted(&string(&text), Shape::Plain);
            assert!(text.as_str().chars().count() <= CONTENT_CHARS);
            let end = &text.as_str()
                [text.as_str().rfind('\n').map_or(0, |at| at.saturating_sub(900)).min(CONTENT_CHARS - 1 - left)..];
            assert_eq!(sample.seen(end), None, "{}, {left} from the cut: {end}", sample.rule);
            let half = (2..10).any(|length| text.as_str().ends_with(&"[REDACTED]"[..length]));
            assert!(!half, "{}: {end}", sample.rule);
        }
    }
}

#[test]
fn no_secret_gets_through_where_the_input_is_cut() {
    for sample in secrets().iter().filter(|sample| !sample.json) {
        let argument = json!({ "a": 1, "CommandLine": sample.text }).to_string();
        for raw in [string(&sample.text), string(&argument), argument] {
            let step = if cuts_all() { 1 } else { 1 + raw.len() / 160 };
            for end in (1..raw.len()).step_by(step) {
                let text = content(&Raw::new(raw.as_bytes()[..end].to_vec(), false), Shape::Json);
                assert_eq!(sample.seen(text.as_str()), None, "{} cut at {end}: {}", sample.rule, text.as_str());
                assert!(text.is_truncated() && !text.is_json());
            }
        }
    }
}

#[test]
fn no_secret_gets_through_at_64_kib() {
    const MOST: usize = 64 << 10;
    let (each, step) = if cuts_all() { (1, 1) } else { (5, 7) };
    for sample in secrets().iter().filter(|sample| !sample.json).step_by(each) {
        let inside = string(&sample.text);
        let inside = &inside[1..inside.len() - 1];
        for kept in (0..inside.len()).step_by(step) {
            // What was redacted makes room, so that the end comes within the output.
            let head = format!("{{\"pwd\":\"{}\",\"CommandLine\":\"x\\n", "p".repeat(MOST - kept - 29));
            let mut raw = format!("{head}{inside}\"}}").into_bytes();
            let start = raw.len() - inside.len() - 2;
            let end = start + kept;
            raw.truncate(end);
            let text = content(&Raw::new(raw, false), Shape::Json);
            assert!(text.as_str().len() < 500, "{}", text.as_str());
            assert_eq!(sample.seen(text.as_str()), None, "{} cut at {kept}: {}", sample.rule, text.as_str());
        }
    }
}
