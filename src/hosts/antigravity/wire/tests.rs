//! The scanner against odd, cut and hostile bytes.

use proptest::prelude::*;

use super::super::fields::Field;
use super::*;

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen(Vec<(Field, String)>, Vec<(Part, Raw)>);

impl Fields for Seen {
    fn set(&mut self, field: Field, value: Kept<'_>) {
        let text = match value {
            Kept::Text(text) => format!("text {text}"),
            Kept::Bare(word) => format!("bare {word}"),
            Kept::Nested => "nested".to_owned(),
        };
        self.0.push((field, text));
    }

    fn content(&mut self, part: Part, raw: Raw) {
        self.1.push((part, raw));
    }
}

fn scan(bytes: &[u8]) -> (Vec<(Field, String)>, Progress) {
    let mut scanner = Scanner::new(Seen::default());
    scanner.feed(bytes);
    let (seen, progress) = scanner.finish();
    (seen.0, progress)
}

fn kept(field: Field, text: &str) -> (Field, String) {
    (field, text.to_owned())
}

#[test]
fn only_listed_fields_at_their_own_depth_are_kept() {
    let (seen, progress) = scan(
        br#"{"conversationId":"c","toolCall":{"args":{"name":"inner","conversationId":"inner","stepIdx":9},"name":"run"},
            "other":{"conversationId":"inner"},"list":["stepIdx",{"stepIdx":1}],"stepIdx":4,"name":"top"} trailing"#,
    );
    assert_eq!(progress, Progress::Complete);
    assert_eq!(
        seen,
        [kept(Field::Conversation, "text c"), kept(Field::ToolName, "text run"), kept(Field::Step, "bare 4")]
    );
}

#[test]
fn null_scalars_and_nested_values_of_kept_fields_are_told_apart() {
    let (seen, progress) =
        scan(br#"{"toolCall":null,"error":{"code":1},"fullyIdle":true,"stepIdx":"7","modelName":[]}"#);
    assert_eq!(progress, Progress::Complete);
    assert_eq!(
        seen,
        [
            kept(Field::Error, "nested"),
            kept(Field::FullyIdle, "bare true"),
            kept(Field::Step, "text 7"),
            kept(Field::Model, "nested"),
        ]
    );
}

#[test]
fn lists_of_paths_are_kept_and_bounded() {
    let (seen, _) = scan(br#"{"workspacePaths":["/a",{"x":["/no"]},"/b",3],"stepIdx":1}"#);
    assert_eq!(
        seen,
        [
            kept(Field::Workspace, "text /a"),
            kept(Field::Workspace, "nested"),
            kept(Field::Workspace, "text /b"),
            kept(Field::Workspace, "bare 3"),
            kept(Field::Step, "bare 1"),
        ]
    );
    let many = format!(r#"{{"workspacePaths":[{}"/last"],"stepIdx":1}}"#, r#""/p","#.repeat(1000));
    let (seen, progress) = scan(many.as_bytes());
    assert_eq!((seen.len(), progress), (KEPT_ENTRIES + 1, Progress::Complete));
}

#[test]
fn what_is_no_object_is_told_at_once() {
    for bytes in [&b"[]"[..], b"null", b"\"text\"", b"\x00\x01", b"}", b"{]", b"{1:2}", b"{\"a\" 1}", b"{\"a\":}"] {
        assert_eq!(scan(bytes).1, Progress::Invalid, "{bytes:?}");
    }
    for bytes in [&b""[..], b"  \n", b"{", b"{\"a", b"{\"a\":", b"{\"a\":{", b"{\"a\":\"x\\"] {
        assert_eq!(scan(bytes).1, Progress::More, "{bytes:?}");
    }
    assert_eq!(scan(b"\xef\xbb\xbf{}").1, Progress::Complete);
}

#[test]
fn memory_stays_bounded_for_deep_and_long_values() {
    let mut scanner = Scanner::new(Seen::default());
    scanner.feed(br#"{"x":"#);
    for _ in 0..1000 {
        scanner.feed(&[b'['; 1000]);
    }
    scanner.feed(&[b']'; 1_000_000]);
    scanner.feed(br#","modelName":""#);
    for _ in 0..100 {
        scanner.feed(&[b'm'; 1000]);
    }
    assert_eq!(scanner.feed(br#"","stepIdx":2}"#), Progress::Complete);
    assert!(scanner.kept.capacity() <= 2 * KEPT_BYTES && scanner.key.capacity() <= 2 * KEY_BYTES);
    let (seen, _) = scanner.finish();
    assert_eq!(seen.0.len(), 2);
    assert_eq!(seen.0[0].1.len(), "text ".len() + KEPT_BYTES);
    assert_eq!(seen.0[1], kept(Field::Step, "bare 2"));
}

fn contents(bytes: &[u8], wanted: Wanted) -> (Vec<(Part, Raw)>, Progress) {
    let mut scanner = Scanner::new(Seen::default());
    scanner.want(wanted);
    scanner.feed(bytes);
    let (seen, progress) = scanner.finish();
    (seen.1, progress)
}

fn raw(json: &str) -> Raw {
    Raw::new(json.as_bytes().to_vec(), true)
}

#[test]
fn content_is_kept_exactly_as_it_came_and_only_if_wanted() {
    let payload = br#"{"modelThinking":"no","toolCall":{"error":"no","args" : {"a":[1,"}\""],"error":"in"} ,"name":"run","result":"no"},
        "args":{"no":1},"error":"e\u0041", "lastUserInput":"u","modelOutput":7 ,"result":[{"r":1}],"transcriptPath":"/no",
        "workspacePaths":["/no"],"artifactDirectoryPath":"/no","future":{"result":"no","toolCall":{"args":{"no":1}}}}"#;
    let all = [
        (Part::Args, raw(r#"{"a":[1,"}\""],"error":"in"}"#)),
        (Part::Error, raw(r#""e\u0041""#)),
        (Part::Prompt, raw(r#""u""#)),
        (Part::Output, raw("7")),
        (Part::Result, raw(r#"[{"r":1}]"#)),
    ];
    assert_eq!(contents(payload, Wanted::ALL), (all.to_vec(), Progress::Complete));
    assert_eq!(contents(payload, Wanted::default()), (vec![], Progress::Complete));
    for (part, wanted) in [
        (Part::Args, Wanted { args: true, ..Wanted::default() }),
        (Part::Error, Wanted { errors: true, ..Wanted::default() }),
        (Part::Prompt, Wanted { prompts: true, ..Wanted::default() }),
        (Part::Output, Wanted { outputs: true, ..Wanted::default() }),
        (Part::Result, Wanted { results: true, ..Wanted::default() }),
    ] {
        let one = all.iter().filter(|(of, _)| *of == part).cloned().collect();
        assert_eq!(contents(payload, wanted), (one, Progress::Complete), "{part:?}");
    }
}

#[test]
fn nothing_is_no_content() {
    for nothing in ["{}", "[]", "\"\"", "null"] {
        let payload = format!(r#"{{"error":{nothing},"toolCall":{{"args":{nothing}}},"result":{nothing}}}"#);
        assert_eq!(contents(payload.as_bytes(), Wanted::ALL), (vec![], Progress::Complete), "{nothing}");
    }
}

#[test]
fn content_is_cut_and_what_follows_is_read() {
    for (open, close) in [("\"", "\""), ("[\"", "\"]")] {
        let mut scanner = Scanner::new(Seen::default());
        scanner.want(Wanted::ALL);
        scanner.feed(br#"{"result":"#);
        scanner.feed(open.as_bytes());
        for _ in 0..1000 {
            scanner.feed(&[b'x'; 1000]);
        }
        assert!(scanner.content.as_ref().unwrap().raw.capacity() <= 2 * CONTENT_BYTES);
        scanner.feed(close.as_bytes());
        assert_eq!(scanner.feed(br#","error":"e","stepIdx":2}"#), Progress::Complete);
        let (seen, _) = scanner.finish();
        let cut = format!("{open}{}", "x".repeat(CONTENT_BYTES - open.len()));
        assert_eq!(seen.1, [(Part::Result, Raw::new(cut.into_bytes(), false)), (Part::Error, raw("\"e\""))]);
        assert!(seen.0.contains(&kept(Field::Step, "bare 2")));
    }
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0usize..400) {
        let mut payload = br#"{"conversationId":"#.to_vec();
        payload.extend(&bytes);
        for sample in [&bytes[..], &payload[..]] {
            let whole = scan(sample);
            let (first, second) = sample.split_at(cut.min(sample.len()));
            let mut scanner = Scanner::new(Seen::default());
            scanner.feed(first);
            scanner.feed(second);
            let (seen, progress) = scanner.finish();
            prop_assert_eq!((seen.0, progress), whole);
        }
    }

    #[test]
    fn content_does_not_depend_on_the_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in any::<String>(), cut in 0usize..400) {
        let value = serde_json::json!({"k": [text, {"n": null}], "m": 1.5});
        let payload = serde_json::json!({"toolCall": {"args": value.clone(), "name": "t"}, "lastUserInput": value["k"][0].clone()}).to_string();
        let mut hostile = br#"{"error":"#.to_vec();
        hostile.extend(&bytes);
        for sample in [payload.as_bytes(), &hostile[..]] {
            let whole = contents(sample, Wanted::ALL);
            let (first, second) = sample.split_at(cut.min(sample.len()));
            let mut scanner = Scanner::new(Seen::default());
        scanner.want(Wanted::ALL);
            scanner.feed(first);
            scanner.feed(second);
            let (seen, progress) = scanner.finish();
            prop_assert_eq!((seen.1, progress), whole);
        }
        let (seen, _) = contents(payload.as_bytes(), Wanted::ALL);
        prop_assert!(seen.contains(&(Part::Args, raw(&value.to_string()))));
    }

    #[test]
    fn real_json_is_read_as_serde_json_reads_it(model in any::<String>(), step in any::<i64>(), junk in any::<String>(), depth in 0usize..20) {
        let mut nested = serde_json::json!({"stepIdx": 5, "text": junk.clone()});
        for _ in 0..depth {
            nested = serde_json::json!([nested, {"k": "\"}]{["}]);
        }
        let value = serde_json::json!({"a": nested, "modelName": model.clone(), "z": junk, "stepIdx": step});
        let (seen, progress) = scan(value.to_string().as_bytes());
        prop_assert_eq!(progress, Progress::Complete);
        let (model, step) = (kept(Field::Model, &format!("text {model}")), kept(Field::Step, &format!("bare {step}")));
        prop_assert!(seen.contains(&model) && seen.contains(&step));
    }
}
