//! Content on a real file: it is looked for in all of them.

use std::path::{Path, PathBuf};

use crate::conversation::Output;
use crate::redact::Text;
use crate::span::{Role, Span, Status, Value};
use crate::store::tests::{HOUR, NOW, span, with_spans};
use crate::store::{Batch, DeliveryState, FILE, Settled, Store, signed};
use rusqlite::{Connection, params};

/// A span with content of this length, and a word of it to look for.
fn saying(number: u8, word: &str, length: usize) -> Output {
    let text: Text = serde_json::from_value(serde_json::json!({
        "text": word.repeat(length / word.len()), "json": false, "truncated": false,
    }))
    .unwrap();
    let mut span = span(number, Role::Tool);
    span.status = Status::Error(Some(text.clone()));
    span.attributes.insert("input.value".into(), Value::Content(text));
    span.attributes.insert("input.mime_type".into(), "text/plain".into());
    Output::Span(span)
}

fn found(folder: &Path, word: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let holds = |path: &PathBuf| std::fs::read(path).unwrap().windows(word.len()).any(|part| part == word.as_bytes());
    files.filter(holds).map(|path| path.display().to_string()).collect()
}

/// Rows of all lengths, between others that grow and shrink: a row that is moved leaves copies in its page. Without the
/// blanks before content one of these seeds finds such a copy.
#[test]
fn content_is_gone_from_all_files_once_its_spans_have_an_outcome() {
    for seed in 38..44u64 {
        let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = move |most: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((chance >> 33) % most).unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        store.db.pragma_update(None, "synchronous", "OFF").unwrap();
        let mut roots = 0;
        for number in 1..=200u8 {
            let said = saying(number, "canary", [6, 20, 60, 200, 500, 900, 1500][below(7)]);
            with_spans(&mut store, "one", &[said]);
            if below(3) == 0 {
                with_spans(&mut store, "one", &[Output::Span(span(201, Role::Session))]);
                roots += 1;
            }
            if roots > 0 && below(2) == 0 {
                let root = Span { name: "r".repeat(below(3000)), ..span(201, Role::Session) };
                let body = serde_json::to_string(&root).unwrap();
                let nth = "(SELECT id FROM spans WHERE role = 'session' ORDER BY id LIMIT 1 OFFSET ?1)";
                let grow = format!("UPDATE spans SET body = ?2 WHERE id = {nth}");
                store.db.execute(&grow, params![signed(below(roots) as u64), body]).unwrap();
            }
            if below(10) == 0 {
                store.clear_log().unwrap();
            }
        }
        assert!(!found(folder.path(), "canary").is_empty(), "what waits is there");
        while let Some(batch) = store.next_batch(NOW).unwrap() {
            assert!(batch.has_content());
            let outcome = if seed % 2 == 0 { Settled::Delivered } else { Settled::Partial { rejected: 1 } };
            store.settle(&batch, outcome, &DeliveryState::default(), NOW).unwrap();
        }
        assert!(store.clear_log().unwrap());
        assert_eq!(found(folder.path(), "canary"), Vec::<String>::new(), "seed {seed}");
        let spans = store.spans("one").unwrap();
        assert!(spans.len() == 201 && spans.iter().all(|stored| !stored.span.has_content()));
        let tool = spans.iter().find(|stored| stored.span.role == Role::Tool).unwrap();
        assert_eq!(tool.span.status, Status::Error(None));
        assert_eq!(tool.span.attributes.keys().collect::<Vec<_>>(), ["input.mime_type"]);
    }
}

#[test]
fn content_goes_with_what_is_given_up_or_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &[saying(1, "canary", 6000)]);
    with_spans(&mut store, "two", &[saying(2, "canary", 6000), saying(3, "canary", 60)]);
    let batch = store.next_batch(NOW).unwrap().unwrap();
    for attempt in 0..5 {
        store.trying(batch.id, NOW).unwrap();
        let batch = Batch { tries: attempt, first_try_ns: NOW, ..batch.clone() };
        store.settle(&batch, Settled::Refused, &DeliveryState::default(), NOW + 25 * HOUR).unwrap();
    }
    assert_eq!(store.spans("one").unwrap()[0].outcome.as_deref(), Some("refused"));
    assert_eq!(store.expire(NOW + 1, NOW + HOUR).unwrap(), 2);
    assert!(store.clear_log().unwrap());
    assert_eq!(found(folder.path(), "canary"), Vec::<String>::new());
}

#[test]
fn a_reader_only_postpones_the_clearing_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    with_spans(&mut store, "one", &[saying(1, "canary", 600)]);
    let reader = Connection::open(folder.path().join(FILE)).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM spans;").unwrap();
    let batch = store.next_batch(NOW).unwrap().unwrap();
    store.settle(&batch, Settled::Delivered, &DeliveryState::default(), NOW).unwrap();
    assert!(!store.clear_log().unwrap());
    reader.execute_batch("COMMIT").unwrap();
    assert!(store.clear_log().unwrap());
    assert_eq!(found(folder.path(), "canary"), Vec::<String>::new());
}
