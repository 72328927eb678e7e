//! What the engine costs, counted in bytes looked at, and what must hold for any input.

use proptest::prelude::*;

use super::content::{CONTENT_CHARS, Raw, Shape, content};
use super::{Allowed, NAME_CHARS, event, name, steps};
use crate::event::{Action, Event, ToolStep};

#[test]
fn names_lose_control_and_direction_marks_and_are_capped() {
    assert_eq!(name("run\u{0}_\u{1b}[31mcommand\u{202e}", 128), "run_[31mcommand");
    assert_eq!(name(&"é".repeat(300), NAME_CHARS).chars().count(), NAME_CHARS);
    assert_eq!(name("  a b\n", 128), "a b");
}

#[test]
fn a_name_of_nothing_but_marks_is_no_name() {
    let step = ToolStep { step: Some(1), tool: Some(" \n".into()), failed: false };
    let raw = Event { model: Some("\u{7}".into()), ..Event::new("c".into(), Action::PreToolUse(step)) };
    let safe = event(raw, &Allowed::default());
    assert_eq!(safe.model, None);
    assert_eq!(safe.action, Action::PreToolUse(ToolStep { step: Some(1), tool: None, failed: false }));
}

/// Steps for a string of `unit`, again and again, of at least so many bytes.
fn cost(unit: &str, bytes: usize, shape: Shape) -> usize {
    let text = unit.repeat(bytes / unit.len() + 1);
    let raw = Raw::new(serde_json::to_vec(&text).unwrap(), true);
    steps::count(|| drop(content(&raw, shape))) * bytes / raw.len()
}

/// Ordinary arguments: a command, a path, a bit of code with an escape in it.
const BENIGN: &str = "cargo test --workspace -- --nocapture 2>&1 | tail -n 20\nlet total: usize = items.iter().map(|item| item.len() * 2).sum();\n\
    if (value === null) { return { status: 'ok', count: 12, url: \"https://example.com/a/b?c=d\" }; }\n# see /srv/app/src/main.rs:42\nprintf 'done: %d\\n' 12\n";

#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    "ghp_", "ghp_ghp_ghp_ghp_ghp", "sk-", "sk-sk-proj-", "eyJ", "eyJ.", "eyJaaaaaaaaaaaa.", "AKIA", "AIza",
    "AIzaAIzaAIza ", "xoxb-", "glpat-", "npm_", "hvs.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqh\n", "-", "password=", "password=password=", "password:",
    "password: ", "\npassword: ", "token=$", "token=$(", "token=${", "token=${a:-", "token=\"$", "token='",
    "token=\"\"\"", "password=\\\"", "a=", "=", ":", ">", "<password>", "password: |\n", "password: |\n  ", "\"", "'",
    "\\", "\\\"", "\\u", "\\u0041", "\\n", "/home/", "/home//home/", "/home/a/home/a", "\\Users\\", "C:\\Users\\a b",
    "/", "://", "://::@@", "a://a:", "a://a:a@", "a://a:b/c", "@", "@tcp(", "a:@tcp(", "bearer ", "Basic Basic ",
    "curl -u a:", " -u a:", " -p", "sshpass -p -p ", "--token ", "--token --token", "\"--token\", ",
    "machine password ", "{", "[", "{\"a\":", "[[\"", "{\"password\":[", "\u{e9}", "\u{1f600}", "\u{200b}", "Q~",
    "-us1", "0:AA", "1234567890:AA", ".atlasv1.", "SK0", "pat", "Private-Lines: 1\n", "hooks.slack.com/", "a.b.c(",
    "Authorization: ", "Cookie: ", "Authorization: Bearer ", "token = a.", "token = a || ", "aA1", "\t", "\n", " ",
    "\0", "curl a", "curl ;", "curl -u ", "curl \"'", "echo a|", "echo a | sudo -S ", "sudo -S <<< a ", "echo ", "curl --value ", "data:\n",
    "\ndata:\n", "kind: Secret\ndata:\n  a: b\n", "kind: Secret\n", "password 'a", "set A_TOKEN ", "A_TOKEN || ", "a||", "(\"", "auth=(\"a\", \"",
    "setpassword(\"", "htpasswd -b a ", "vault kv put a=", "usermod useradd ",
];

#[test]
fn hostile_input_costs_at_most_three_times_what_benign_input_does() {
    for shape in [Shape::Plain, Shape::Json] {
        for bytes in [4 << 10, 60 << 10] {
            let benign = cost(BENIGN, bytes, shape);
            let dear: Vec<_> = HOSTILE
                .iter()
                .map(|unit| (unit, cost(unit, bytes, shape)))
                .filter(|(_, cost)| *cost > 3 * benign)
                .map(|(unit, cost)| format!("{unit:?} {:.1}", cost as f64 / benign as f64))
                .collect();
            assert!(
                dear.is_empty(),
                "{bytes} bytes, {:.1} steps a byte: {}",
                benign as f64 / bytes as f64,
                dear.join(", ")
            );
        }
    }
}

#[test]
fn hostile_structure_costs_no_more() {
    let benign = cost(BENIGN, 60 << 10, Shape::Json);
    let size = 60 << 10;
    let nested = |open: &str, close: &str| {
        format!(
            "{}1{}",
            open.repeat(size / (open.len() + close.len())),
            close.repeat(size / (open.len() + close.len()))
        )
    };
    let mut strings = "x".repeat(size / 2);
    while strings.len() < size {
        strings = serde_json::to_string(&vec![strings]).unwrap();
    }
    for raw in [
        nested("[", "]"),
        nested("{\"password\":", "}"),
        format!("[{}1]", "[],".repeat(size / 3)),
        format!("[{}1]", "{\"a\":\"b\"},".repeat(size / 10)),
        format!("[{}1]", "\"[1]\",".repeat(size / 6)),
        format!("{{{}\"a\":1}}", "\"value\":\"\",".repeat(size / 11)),
        format!("{{{}\"a\":1}}", "\"data\":{},".repeat(size / 10)),
        format!("{{{}\"a\":1}}", format!("\"data\":{{{}\"a\":1}},", "\"data\":\"\",".repeat(50)).repeat(size / 514)),
        nested("{\"data\":", "}"),
        format!("[\"vault\",{}1]", "\"login\",".repeat(size / 8)),
        format!("[{}1]", "\"{\\\"a\\\":[\",".repeat(size / 12)),
        "[".repeat(size),
        "[\"".repeat(size / 2),
        strings,
    ] {
        let cost = steps::count(|| drop(content(&Raw::new(raw.clone().into_bytes(), true), Shape::Json)));
        assert!(
            cost * size / raw.len() <= 3 * benign,
            "{} steps a byte, benign {}: {}",
            cost / raw.len(),
            benign / size,
            raw.get(..40).unwrap()
        );
    }
}

#[test]
fn the_cost_is_linear() {
    for unit in HOSTILE.iter().chain([&BENIGN]) {
        let (short, long) = (cost(unit, 8 << 10, Shape::Plain), cost(unit, 64 << 10, Shape::Plain));
        // Eight times, and a look at the begin of a long text that turns out to be too little.
        assert!(long <= short * 10, "{unit:?}: {short} for 8 KiB, {long} for 64 KiB");
    }
}

/// Pieces that mean something to some rule, and some that do not.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        3 => "[a-zA-Z0-9_+/=-]{1,40}",
        2 => "[ -~]{0,12}",
        1 => prop::sample::select(vec![" ", "\n", "\"", "'", "\\", "[REDACTED]", "<user>", ": ", " = ", "=", ",", "}"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        text().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((text(), inner.clone()), 0..4).prop_map(|members| members.into_iter().collect()),
            inner.prop_map(|value| value.to_string().into()),
        ]
    })
}

fn of(bytes: Vec<u8>, whole: bool, shape: Shape) -> super::Text {
    let text = content(&Raw::new(bytes, whole), shape);
    assert!(text.as_str().chars().count() <= CONTENT_CHARS);
    let odd =
        |c: char| super::is_format(c) || c.is_control() && c != '\n' && c != '\t' && !(text.is_json() && c == '\r');
    assert!(!text.as_str().contains(odd), "{:?}", text.as_str());
    assert!(text.rules().is_sorted());
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400), whole: bool) {
        of(bytes.clone(), whole, Shape::Json);
        of([b"\"", bytes.as_slice(), b"\""].concat(), whole, Shape::Plain);
        of([b"{\"a\":\"", bytes.as_slice(), b"\"}"].concat(), whole, Shape::Json);
    }

    #[test]
    fn json_stays_json(value in json()) {
        let text = of(value.to_string().into_bytes(), true, Shape::Json);
        if value.is_object() || value.is_array() {
            prop_assert_eq!(text.is_json(), !text.is_truncated());
        }
        if text.is_json() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(text.as_str()).is_ok(), "{}", text.as_str());
        }
    }

    #[test]
    fn what_was_redacted_stays_as_it_is(text in text()) {
        let first = of(serde_json::to_vec(&text).unwrap(), true, Shape::Plain);
        if !first.is_truncated() {
            let second = of(serde_json::to_vec(first.as_str()).unwrap(), true, Shape::Plain);
            prop_assert_eq!(first.as_str(), second.as_str());
        }
    }

    #[test]
    fn what_was_redacted_as_json_stays_as_it_is(value in json()) {
        let first = of(value.to_string().into_bytes(), true, Shape::Json);
        if first.is_json() {
            let second = of(first.as_str().as_bytes().to_vec(), true, Shape::Json);
            prop_assert_eq!(first.as_str(), second.as_str());
        }
    }

    #[test]
    fn a_planted_secret_never_shows(head in text(), tail in text(), deep in 0_usize..4, cut in any::<prop::sample::Index>(), secret in "[a-zA-Z0-9]{40}") {
        let mut value = serde_json::Value::from(format!("{head} ghp_{secret} {tail}"));
        for _ in 0..deep {
            value = serde_json::json!({ "a": value.to_string() });
        }
        let raw = value.to_string().into_bytes();
        let cut = 1 + cut.index(raw.len());
        for text in [of(raw.clone(), true, Shape::Json), of(raw[..cut].to_vec(), false, Shape::Json)] {
            for start in 0..30 {
                prop_assert!(!text.as_str().contains(secret.get(start..start + 10).unwrap()), "{}", text.as_str());
            }
        }
    }

    #[test]
    fn the_steps_are_bounded(text in text()) {
        let raw = Raw::new(serde_json::to_vec(&text).unwrap(), true);
        let steps = steps::count(|| drop(content(&raw, Shape::Plain)));
        prop_assert!(steps <= 40 * raw.len() + 400, "{} steps for {} bytes", steps, raw.len());
    }
}
