//! Golden sessions: `tests/sessions/<case>/events.ndjson` through the reducer to `spans.snap`, a tree to be read.
//! A folder is a test. `INSTA_UPDATE=always cargo test --test sessions` accepts; the diff of the tree is the review.
//! The form of a line is described in `tests/sessions/README.md`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "sessions/checks.rs"]
mod checks;
#[path = "sessions/script.rs"]
mod script;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fi_hook_to_otlp::conversation::{Conversation, Options, Output, SessionSpan, resource};
use fi_hook_to_otlp::event::Agent;
use fi_hook_to_otlp::span::{Span, Value};
use fi_hook_to_otlp::{redact, semconv, tree};
use script::{Line, Script, Step};

/// What has come out of a session.
#[derive(Default)]
struct Run {
    conversations: BTreeMap<String, Conversation>,
    /// Closed spans and root snapshots, in order of their way out.
    out: Vec<Span>,
    counts: BTreeMap<&'static str, usize>,
    /// One line per step that let spans out.
    journal: String,
}

impl Run {
    fn of(script: &Script) -> Self {
        let mut run = Self::default();
        for line in &script.lines {
            let (said, outputs) = run.step(line, script);
            run.take(line.at_ms, &said, outputs, &script.options);
        }
        run
    }

    fn step(&mut self, line: &Line, script: &Script) -> (String, Vec<Output>) {
        let (options, origin) = (&script.options, &script.origin);
        match &line.step {
            Step::Event { name, event, capture } => {
                let conversation = self.conversations.entry(event.conversation.clone());
                let conversation = conversation.or_insert_with(|| Conversation::new(origin.clone()));
                let outputs = conversation.apply(&redact::event((**event).clone(), &script.allowed), capture, options);
                (name.clone(), outputs)
            }
            Step::AgentExit(agent) => {
                let each = self.conversations.values_mut();
                let outputs = each.flat_map(|conversation| conversation.agent_exited(agent, &line.now, options));
                ("agent exit".to_owned(), outputs.collect())
            }
            Step::Tick(live) => {
                let is_live = |agent: &Agent| live.contains(agent);
                let each = self.conversations.values_mut();
                let outputs = each.flat_map(|conversation| conversation.overdue(&line.now, &is_live, options));
                ("tick".to_owned(), outputs.collect())
            }
        }
    }

    fn take(&mut self, at_ms: u64, said: &str, outputs: Vec<Output>, options: &Options) {
        let mut names = Vec::new();
        for output in outputs {
            match output {
                Output::Span(span) => {
                    names.push(span.name.clone());
                    self.out.push(span);
                }
                Output::Session(span) => {
                    names.push("[root]".to_owned());
                    self.out.push(span);
                }
                Output::Count(reason) => *self.counts.entry(reason).or_default() += 1,
            }
        }
        checks::prefix(&self.out, options.session_span);
        if !names.is_empty() {
            let (secs, ms) = (at_ms / 1_000, at_ms % 1_000);
            let _ = writeln!(self.journal, "  {secs}.{ms:03} {said}: {}", names.join(", "));
        }
        self.reload();
    }

    /// The store keeps a conversation as text between any two events.
    fn reload(&mut self) {
        for conversation in self.conversations.values_mut() {
            let text = serde_json::to_string(conversation).unwrap();
            let stored: Conversation = serde_json::from_str(&text).unwrap();
            assert!(*conversation == stored, "a conversation changes when it is stored");
            *conversation = stored;
        }
    }

    fn open_spans(&self, options: &Options) -> Vec<Span> {
        self.conversations.values().flat_map(|conversation| conversation.preview(options)).collect()
    }

    fn render(&self, script: &Script) -> String {
        let mut resource = resource(&script.origin);
        resource.insert(semconv::TELEMETRY_DISTRO_VERSION.to_owned(), Value::from("<version>"));
        let mut page = format!("{}\n\n", script.note);
        page.push_str(&tree::render(&resource, &self.out, tree::Style::SNAPSHOT));
        let open = self.open_spans(&script.options);
        if !open.is_empty() {
            page.push_str("\nstill open\n");
            page.push_str(&tree::render(&BTreeMap::new(), &open, tree::Style::BRIEF));
        }
        let _ = write!(page, "\nway out, {}\n{}", script.options.session_span.as_str(), self.journal);
        let counts: Vec<String> = self.counts.iter().map(|(reason, count)| format!("{reason}={count}")).collect();
        if !counts.is_empty() {
            let _ = writeln!(page, "\ncounts  {}", counts.join("  "));
        }
        page
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() > 30, "the golden sessions are missing");
    cases
}

fn check(case: &Path) {
    let script = Script::read(&fs::read_to_string(case.join("events.ndjson")).unwrap());
    let run = Run::of(&script);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(case);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("spans", run.render(&script)));
    checks::spans(&run.out, &run.open_spans(&script.options), script.options.session_span);
    checks::resource(&resource(&script.origin));
}

#[test]
fn golden_sessions() {
    let failed: Vec<String> = cases()
        .iter()
        .filter(|case| catch_unwind(AssertUnwindSafe(|| check(case))).is_err())
        .map(|case| case.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(failed.is_empty(), "these sessions failed, see above: {}", failed.join(", "));
}

/// The policy decides about the root alone: every other span is the same under each of them, but for `none`'s parents.
#[test]
fn the_root_policy_changes_nothing_but_the_root() {
    for case in cases() {
        let mut script = Script::read(&fs::read_to_string(case.join("events.ndjson")).unwrap());
        let mut seen: Option<Vec<Span>> = None;
        for policy in SessionSpan::ALL {
            script.options.session_span = policy;
            let mut spans = Run::of(&script).out;
            spans.retain(|span| span.role != fi_hook_to_otlp::span::Role::Session);
            for turn in spans.iter_mut().filter(|span| span.role == fi_hook_to_otlp::span::Role::Turn) {
                assert_eq!(turn.parent.is_none(), policy == SessionSpan::None, "{}", case.display());
                turn.parent = None;
            }
            assert!(seen.get_or_insert_with(|| spans.clone()) == &spans, "{} {}", case.display(), policy.as_str());
        }
    }
}

/// Two registrations of the same hooks report everything twice: no span more, none less.
#[test]
fn a_second_registration_adds_nothing() {
    for case in cases() {
        let script = Script::read(&fs::read_to_string(case.join("events.ndjson")).unwrap());
        let mut doubled = Script { lines: Vec::new(), ..script.clone() };
        for line in &script.lines {
            doubled.lines.push(line.clone());
            doubled.lines.extend(line.by_another_registration());
        }
        let (once, twice) = (Run::of(&script), Run::of(&doubled));
        assert!(once.out == twice.out, "{}", case.display());
    }
}
