//! `docs/privacy.md` against the program: two conversations that differ in one field are folded, and what differs in their
//! spans is where the field goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use fi_hook_to_otlp::config::SETTINGS;
use fi_hook_to_otlp::conversation::{Conversation, Options, Output};
use fi_hook_to_otlp::event::{Capture, Origin};
use fi_hook_to_otlp::hosts;
use fi_hook_to_otlp::redact::{self, Allowed, DigestKey};
use fi_hook_to_otlp::semconv::{KEYS, Kind};
use fi_hook_to_otlp::span::{Role, Span, Status, Value};
use serde_json::{Value as Json, json};

use super::examples;
use super::pages::{Page, path};
use fi_hook_to_otlp::config::Sources;

const PAGE: &str = "docs/privacy.md";

/// Two values that each field can have.
fn samples(field: &str) -> [Json; 2] {
    let product = |name: &str| json!(format!("/home/u/.gemini/{name}/brain/x"));
    match field {
        "stepIdx" | "invocationNum" | "initialNumSteps" | "executionNum" => [json!(3), json!(4)],
        "fullyIdle" => [json!(true), json!(false)],
        "transcriptPath" | "artifactDirectoryPath" => [product("antigravity-cli"), product("antigravity-ide")],
        "toolCall.args" => [json!({"Query": "one"}), json!({"Query": "two"})],
        "terminationReason" => [json!("ERROR"), json!("MODEL_ERROR")],
        "workspacePaths" => [json!(["/one"]), json!(["/two"])],
        _ => [json!("one"), json!("two")],
    }
}

/// The spans of a conversation whose events all have all fields, one of them with this value.
fn spans(allowed: &Allowed, settings: &str, field: &str, value: &Json) -> Vec<Span> {
    let wanted = examples::resolve(settings, Sources::default()).wanted();
    let mut payload = json!({
        "conversationId": "c", "modelName": "m", "stepIdx": 2, "invocationNum": 0, "initialNumSteps": 1, "executionNum": 0,
        "terminationReason": "ERROR", "error": "e",
    });
    payload["toolCall"] = json!({"name": "t"});
    match field.split_once('.') {
        Some((outer, inner)) => payload[outer][inner] = value.clone(),
        None => payload[field] = value.clone(),
    }
    let payload = payload.to_string();
    let mut conversation = Conversation::new(Origin::default());
    let mut spans = Vec::new();
    for (at, name) in ["PreInvocation", "PreToolUse", "PostToolUse", "PostInvocation", "Stop"].into_iter().enumerate() {
        let mut scan = hosts::find("antigravity").unwrap().scan(name).unwrap();
        scan.want(wanted);
        scan.feed(payload.as_bytes());
        let event = redact::event(scan.finish().unwrap().event, allowed);
        let ns = u64::try_from(at + 1).unwrap() * 1_000_000_000;
        let capture = Capture {
            realtime_ns: ns,
            boottime_ns: ns,
            boot_id: "b".into(),
            agent: None,
            registration: 1,
            traceparent: None,
        };
        for output in conversation.apply(&event, &capture, &Options::default()) {
            if let Output::Span(span) | Output::Session(span) = output {
                spans.push(span);
            }
        }
    }
    assert!(
        [Role::Session, Role::Turn, Role::ModelCall, Role::Tool]
            .iter()
            .all(|role| spans.iter().any(|span| span.role == *role))
    );
    spans
}

/// Where the value of a field can be seen, under these settings.
fn places(settings: &str, field: &str) -> BTreeSet<String> {
    let resolved = examples::resolve(settings, Sources::default());
    let digest_key = resolved.digest.then(|| DigestKey::new([1; 32]));
    let allowed = Allowed { content: resolved.capture, digest_key };
    let [one, two] = samples(field).map(|value| spans(&allowed, settings, field, &value));
    assert_eq!(one.len(), two.len(), "{field}");
    let mut found = BTreeSet::new();
    for (one, two) in one.iter().zip(&two) {
        assert_eq!(one.role, two.role, "{field}");
        if one.name != two.name {
            found.insert("the span's name".to_owned());
        }
        if one.status != two.status {
            found.insert("the status message".to_owned());
        }
        let keys: BTreeSet<&String> = one.attributes.keys().chain(two.attributes.keys()).collect();
        found.extend(keys.into_iter().filter(|key| one.attributes.get(*key) != two.attributes.get(*key)).cloned());
    }
    found
}

/// The rows of the table after a marker: the words in code of each cell, and the cell.
fn table(page: &Page, marker: &str) -> Vec<Vec<(Vec<String>, String)>> {
    let after = page.text.split_once(&format!("<!-- fields: {marker} -->\n")).unwrap().1;
    let rows = after.lines().take_while(|line| line.starts_with('|')).skip(2);
    let cell = |cell: &str| (cell.split('`').skip(1).step_by(2).map(str::to_owned).collect(), cell.trim().to_owned());
    let rows: Vec<Vec<_>> = rows.map(|row| row.trim_matches('|').split('|').map(cell).collect()).collect();
    assert!(rows.len() > 1, "{marker}");
    rows
}

/// What a cell says, in the words of [`places`].
fn said((code, cell): &(Vec<String>, String)) -> BTreeSet<String> {
    let known = |word: &&String| KEYS.iter().any(|key| key.name == **word);
    let mut said: BTreeSet<String> = code.iter().filter(known).cloned().collect();
    said.extend(
        ["the span's name", "the status message"]
            .iter()
            .filter(|words| cell.contains(**words))
            .map(|words| (*words).to_owned()),
    );
    said
}

#[test]
fn every_field_goes_where_the_page_says() {
    let page = Page::read(PAGE);
    for row in table(&page, "always") {
        for field in &row[0].0 {
            assert_eq!(places("", field), said(&row[1]), "{field}");
        }
    }
    for row in table(&page, "content") {
        let (field, word) = (&row[0].0[0], &row[1].0[0]);
        assert_eq!(places("", field), BTreeSet::new(), "{field} by default");
        assert_eq!(places(&format!("FI_HOOK_CAPTURE_CONTENT={word}"), field), said(&row[2]), "{field}");
        assert_eq!(places("FI_HOOK_CAPTURE_CONTENT=1", field), said(&row[2]), "{field}");
    }
    for row in table(&page, "digest") {
        assert_eq!(places("FI_HOOK_DIGEST=1", &row[0].0[0]), said(&row[1]), "{:?}", row[0]);
    }
    for row in table(&page, "never") {
        for field in &row[0].0 {
            let found = places("FI_HOOK_CAPTURE_CONTENT=1\nFI_HOOK_DIGEST=1", field);
            assert_eq!(found, BTreeSet::new(), "{field}");
        }
    }
}

#[test]
fn no_field_word_or_attribute_of_content_is_missing() {
    let page = Page::read(PAGE);
    let tables = ["always", "content", "digest", "never"].map(|marker| table(&page, marker));
    let listed: BTreeSet<String> = tables.iter().flatten().flat_map(|row| row[0].0.clone()).collect();
    for file in fs::read_dir(path("tests/payloads")).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let payload: BTreeMap<String, Json> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for (field, value) in payload {
            match (field.as_str(), value) {
                ("toolCall", Json::Object(inner)) => {
                    assert!(inner.keys().all(|key| listed.contains(&format!("toolCall.{key}"))), "{}", file.display());
                }
                ("toolCall", Json::Null) => {}
                _ => assert!(listed.contains(&field), "{}: {field} is in none of the tables", file.display()),
            }
        }
    }
    let words: BTreeSet<String> = table(&page, "content").iter().map(|row| row[1].0[0].clone()).collect();
    let setting = SETTINGS.iter().find(|setting| setting.name == "FI_HOOK_CAPTURE_CONTENT").unwrap();
    let fi_hook_to_otlp::config::Kind::Words(known) = setting.kind else { panic!("not a list of words") };
    assert_eq!(words, known.iter().map(|word| (*word).to_owned()).collect());
    for key in KEYS.iter().filter(|key| key.kind == Kind::Content || key.name.ends_with("_digest")) {
        assert!(page.text.contains(&format!("`{}`", key.name)), "{}", key.name);
    }
}

/// A span as the page shows it.
fn shown(span: &Span) -> String {
    let mut page = match &span.status {
        Status::Unset => span.name.clone(),
        Status::Ok => format!("{}  OK", span.name),
        Status::Error(None) => format!("{}  ERROR", span.name),
        Status::Error(Some(text)) => format!("{}  ERROR {:?}", span.name, text.as_str()),
    };
    page.push('\n');
    for (key, value) in &span.attributes {
        let value = match value {
            Value::Text(text) => text.clone(),
            Value::Content(text) => text.as_str().to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Texts(texts) => texts.join(", "),
            other => format!("{other:?}"),
        };
        let _ = writeln!(page, "  {key} = {value}");
    }
    page
}

#[test]
fn the_example_is_what_the_program_makes_of_it() {
    let page = Page::read(PAGE);
    let payload = page.marked("example: payload");
    let mut text = page.text.clone();
    for (marker, settings) in [("example: off", ""), ("example: on", "FI_HOOK_CAPTURE_CONTENT=args,errors")] {
        let resolved = examples::resolve(settings, Sources::default());
        let mut scan = hosts::find("antigravity").unwrap().scan("PostToolUse").unwrap();
        scan.want(resolved.wanted());
        scan.feed(payload.as_bytes());
        let allowed = Allowed { content: resolved.capture, digest_key: None };
        let event = redact::event(scan.finish().unwrap().event, &allowed);
        let mut conversation = Conversation::new(Origin::default());
        let capture = Capture {
            realtime_ns: 1_796_029_200_000_000_000,
            boottime_ns: 1,
            boot_id: "b".into(),
            agent: None,
            registration: 1,
            traceparent: None,
        };
        let outputs = conversation.apply(&event, &capture, &Options::default());
        let spans = outputs.into_iter().filter_map(|output| match output {
            Output::Span(span) => Some(span),
            Output::Session(_) | Output::Count(_) => None,
        });
        let tool = spans.into_iter().find(|span| span.role == Role::Tool).unwrap();
        let block = format!("<!-- {marker} -->\n```text\n");
        let (before, rest) = text.split_once(&block).unwrap();
        let (_, after) = rest.split_once("```\n").unwrap();
        text = format!("{before}{block}{}```\n{after}", shown(&tool));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(PAGE), &text).unwrap();
    }
    assert!(Page::read(PAGE).text == text, "the example is old: UPDATE_DOCS=1 cargo test --test docs example");
}
