//! The shape of a trace: who is below whom, in order of time, and what failed. README's tree, the demo's and what a
//! receiver got must agree in it.

use agy_stand_in::Recording;
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode};

use super::pages::{self, Page};
use super::support::receiver::Receiver;
use super::support::sandbox::Sandbox;

/// Depth, name, whether it failed.
type Line = (usize, String, bool);

/// Of a tree as `show` draws it.
fn of_tree(text: &str) -> Vec<Line> {
    let drawn = text.lines().filter_map(|line| {
        let at = line.find("─ ")?;
        let name = line.get(at + "─ ".len()..)?.split("  ").next()?.to_owned();
        let depth = line.get(..at)?.chars().count() / 3;
        Some((depth, name, line.contains("ERROR")))
    });
    drawn.collect()
}

/// Of what a receiver got.
fn of_spans(spans: &[Span]) -> Vec<Line> {
    fn below(parent: &[u8], depth: usize, spans: &[Span], lines: &mut Vec<Line>) {
        let mut children: Vec<_> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
        children.sort_by_key(|span| (span.start_time_unix_nano, span.name == "run_command"));
        for span in children {
            let failed = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
            lines.push((depth, span.name.clone(), failed));
            below(&span.span_id, depth + 1, spans, lines);
        }
    }
    let mut lines = Vec::new();
    below(&[], 0, spans, &mut lines);
    lines
}

fn of_readme() -> Vec<Line> {
    let lines = of_tree(&Page::read("README.md").marked("tree"));
    assert_eq!((lines.len(), lines.iter().filter(|(_, _, failed)| *failed).count()), (13, 1));
    lines
}

#[test]
fn readme_shows_the_demos_tree() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["demo"]).output().unwrap();
    assert_eq!(of_tree(&String::from_utf8(output.stdout).unwrap()), of_readme());
}

#[test]
fn the_session_sample_becomes_that_tree_through_agys_hooks() {
    let (sandbox, receiver) = (Sandbox::new(), Receiver::start());
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    sandbox.register();
    let text = std::fs::read_to_string(pages::path("examples/sessions/demo.ndjson")).unwrap();
    let recording = Recording::parse(&text).unwrap();
    let events = recording.lines.len();
    let run = sandbox.agy().play(&recording).unwrap();
    assert!(run.status.success() && run.report.faults().count() == 0, "{}", run.stderr);
    assert_eq!(run.report.hooks.len(), events);
    assert_eq!(of_spans(&receiver.wait_for_spans(13)), of_readme());
}
