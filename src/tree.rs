//! Spans as a readable tree: the golden sessions and the `show` command. Pure: text out, no terminal, no clock.
//! The form is fixed by the golden files: `tests/sessions/*/spans.snap`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::semconv as key;
use crate::span::{Role, Span, SpanId, SpanLink, Status, TraceId, Value};

/// How much a tree shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Every attribute on its own line, what all spans of a trace share once at the trace; else a few words per span.
    pub attributes: bool,
    /// Ids, renamed `T1`, `S1`, … in order of appearance, so that two runs can be compared.
    pub ids: bool,
    /// Times of day at this offset from UTC in seconds; else seconds since the root's start.
    pub utc_offset: Option<i32>,
}

impl Style {
    /// For golden files: everything, nothing that differs between two runs but the times themselves.
    pub const SNAPSHOT: Self = Self { attributes: true, ids: true, utc_offset: None };
    /// For people: one line per span.
    pub const BRIEF: Self = Self { attributes: false, ids: false, utc_offset: None };
}

/// Draws all traces, each span once: of two with the same id the later one in the list, as back ends keep it.
///
/// Times are relative to the trace's first root, durations in seconds.
#[must_use]
pub fn render(resource: &BTreeMap<String, Value>, spans: &[Span], style: Style) -> String {
    let mut newest: BTreeMap<(TraceId, SpanId), &Span> = BTreeMap::new();
    for span in spans {
        newest.insert((span.trace_id, span.span_id), span);
    }
    let mut traces: BTreeMap<TraceId, Vec<&Span>> = BTreeMap::new();
    for span in newest.into_values() {
        traces.entry(span.trace_id).or_default().push(span);
    }
    let mut traces: Vec<Trace<'_>> = traces.into_values().map(|spans| Trace::new(spans, style)).collect();
    traces.sort_by_key(|trace| trace.begin_ns);

    let mut page = String::new();
    if style.attributes && !resource.is_empty() {
        let shown: Vec<String> = resource.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
        line(&mut page, format_args!("resource  {}", shown.join("  ")));
    }
    for (index, trace) in traces.iter().enumerate() {
        trace.draw(&mut page, index + 1);
    }
    page
}

/// One trace, laid out.
struct Trace<'a> {
    spans: Vec<&'a Span>,
    style: Style,
    begin_ns: u64,
    /// Attributes that every span has with the same value.
    shared: BTreeMap<&'a str, &'a Value>,
    numbers: BTreeMap<SpanId, usize>,
    /// The width of the column with the names.
    width: usize,
}

impl<'a> Trace<'a> {
    fn new(mut spans: Vec<&'a Span>, style: Style) -> Self {
        spans.sort_by_key(|span| (span.start_ns, span.role, span.end_ns, &span.name, span.span_id));
        let begin_ns = spans.first().map_or(0, |span| span.start_ns);
        let mut trace = Self { spans, style, begin_ns, shared: BTreeMap::new(), numbers: BTreeMap::new(), width: 0 };
        if let (Some((first, others)), true) = (trace.spans.split_first(), style.attributes)
            && !others.is_empty()
        {
            let by_all = |name: &str, value: &Value| others.iter().all(|span| span.attributes.get(name) == Some(value));
            let shared = first.attributes.iter().filter(|(name, value)| by_all(name, value));
            trace.shared = shared.map(|(name, value)| (name.as_str(), value)).collect();
        }
        for root in trace.roots() {
            trace.measure(root, 0);
        }
        trace
    }

    /// Spans without a parent here.
    fn roots(&self) -> Vec<&'a Span> {
        let here = |id: SpanId| self.spans.iter().any(|span| span.span_id == id);
        self.spans.iter().filter(|span| !span.parent.is_some_and(here)).copied().collect()
    }

    fn children(&self, parent: &Span) -> Vec<&'a Span> {
        self.spans.iter().filter(|span| span.parent == Some(parent.span_id)).copied().collect()
    }

    /// Numbers the spans in order of appearance and measures the names.
    fn measure(&mut self, span: &'a Span, depth: usize) {
        self.numbers.insert(span.span_id, self.numbers.len() + 1);
        self.width = self.width.max((depth + 1) * 3 + span.name.chars().count());
        for child in self.children(span) {
            self.measure(child, depth + 1);
        }
    }

    fn draw(&self, page: &mut String, number: usize) {
        if self.style.ids {
            line(page, format_args!("trace T{number}"));
        }
        for (name, value) in &self.shared {
            line(page, format_args!("     {name} = {}", text(value)));
        }
        let roots = self.roots();
        for (index, root) in roots.iter().enumerate() {
            self.draw_span(page, root, "", index + 1 == roots.len());
        }
    }

    fn draw_span(&self, page: &mut String, span: &Span, indent: &str, is_last: bool) {
        let (branch, inner) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let indent_below = format!("{indent}{inner}");
        let children = self.children(span);
        let padding = self.width.saturating_sub(indent.chars().count() + 3 + span.name.chars().count());
        let head = format!("{indent}{branch}{}{:padding$}", span.name, "");
        line(page, format_args!("{head}  {}", self.facts(span)));
        let detail = format!("{indent_below}{}    ", if children.is_empty() { " " } else { "│" });
        for (name, value) in span.attributes.iter().filter(|_| self.style.attributes) {
            if !self.shared.contains_key(name.as_str()) {
                line(page, format_args!("{detail}{name} = {}", text(value)));
            }
        }
        for event in &span.events {
            let facts: Vec<String> =
                event.attributes.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
            line(page, format_args!("{detail}event {} {}  {}", self.time(event.at_ns), event.name, facts.join("  ")));
        }
        for link in &span.links {
            line(page, format_args!("{detail}link {}  {}", self.linked(link), link_reason(link)));
        }
        for (index, child) in children.iter().enumerate() {
            self.draw_span(page, child, &indent_below, index + 1 == children.len());
        }
    }

    /// The columns after the name.
    fn facts(&self, span: &Span) -> String {
        let duration = seconds(span.end_ns.saturating_sub(span.start_ns));
        let mut facts = format!("{:>8}  {duration:>8}s", self.time(span.start_ns));
        if self.style.attributes {
            facts.push_str(if span.role == Role::ModelCall { "  client  " } else { "  internal" });
        }
        if let (Some(number), true) = (self.numbers.get(&span.span_id), self.style.ids) {
            let _ = write!(facts, "  S{number}");
        }
        match &span.status {
            Status::Unset => {}
            Status::Ok => facts.push_str("  OK"),
            Status::Error(None) => facts.push_str("  ERROR"),
            Status::Error(Some(message)) => {
                let _ = write!(facts, "  ERROR {:?}", message.as_str());
            }
        }
        if let Some(parent) = span.parent.filter(|parent| !self.numbers.contains_key(parent)) {
            let _ = write!(facts, "  (parent {parent} is not here)");
        }
        if !self.style.attributes {
            facts.push_str(&words(span));
        }
        facts
    }

    fn time(&self, ns: u64) -> String {
        let Some(offset) = self.style.utc_offset else {
            return match ns.checked_sub(self.begin_ns) {
                Some(after) => format!("+{}", seconds(after)),
                None => format!("-{}", seconds(self.begin_ns - ns)),
            };
        };
        let millis = i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX).saturating_add(i64::from(offset) * 1_000);
        let of_day = millis.rem_euclid(24 * 60 * 60 * 1_000);
        let (secs, ms) = (of_day / 1_000, of_day % 1_000);
        format!("{:02}:{:02}:{:02}.{ms:03}", secs / 3_600, secs / 60 % 60, secs % 60)
    }

    fn linked(&self, link: &SpanLink) -> String {
        match self.numbers.get(&link.span_id) {
            Some(number) if self.style.ids => format!("S{number}"),
            Some(_) | None => format!("{}/{}", link.trace_id, link.span_id),
        }
    }
}

/// What a person wants to know of a span beyond its line, in words: the model, the reason, the marks.
fn words(span: &Span) -> String {
    let mut words = Vec::new();
    let told: &[&str] = match span.role {
        Role::ModelCall => &[key::REQUEST_MODEL, key::TIMING],
        Role::Turn => &[key::TERMINATION_REASON],
        Role::Session => &[key::SESSION_END],
        Role::Tool => &[key::TIMING],
    };
    let shown = told.iter().filter_map(|name| span.attributes.get(*name)).map(text);
    words.extend(shown.filter(|word| word != "includes_approval"));
    for (name, value) in &span.attributes {
        if *value == Value::Bool(true) && *name != key::FULLY_IDLE {
            words.extend(name.rsplit('.').next().map(str::to_owned));
        }
    }
    if words.is_empty() { String::new() } else { format!("  {}", words.join(", ")) }
}

fn link_reason(link: &SpanLink) -> String {
    link.attributes.get(key::LINK_REASON).map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Texts(texts) => format!("[{}]", texts.join(", ")),
        Value::Content(text) => printable(text.as_str()),
    }
}

/// On one line, and without what a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

fn seconds(ns: u64) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// Adds a line without blanks at its end.
fn line(page: &mut String, content: std::fmt::Arguments<'_>) {
    page.push_str(content.to_string().trim_end());
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::SpanEvent;

    fn span(id: u8, parent: Option<u8>, role: Role, name: &str, from_ms: u64, to_ms: u64) -> Span {
        Span {
            trace_id: TraceId([9; 16]),
            span_id: SpanId([id; 8]),
            parent: parent.map(|id| SpanId([id; 8])),
            role,
            name: name.into(),
            start_ns: from_ms * 1_000_000,
            end_ns: to_ms * 1_000_000,
            status: Status::Ok,
            attributes: BTreeMap::from([("session.id".to_owned(), Value::from("c"))]),
            events: Vec::new(),
            links: Vec::new(),
        }
    }

    fn session() -> Vec<Span> {
        let mut tool = span(4, Some(2), Role::Tool, "run_command", 1_200, 1_900);
        tool.status = Status::Error(None);
        tool.attributes.insert(key::LATE.to_owned(), Value::Bool(true));
        let mut turn = span(2, Some(1), Role::Turn, "Antigravity turn", 1_100, 2_500);
        let at_ns = 1_300_000_000;
        turn.events.push(SpanEvent { name: "antigravity.step.unnamed".into(), at_ns, attributes: BTreeMap::new() });
        let mut call = span(3, Some(2), Role::ModelCall, "Model call", 1_100, 2_000);
        call.attributes.insert(key::REQUEST_MODEL.to_owned(), Value::from("gemini-3.5-flash"));
        vec![
            tool,
            call,
            turn,
            span(1, None, Role::Session, "outdated snapshot", 1_000, 1_100),
            span(1, None, Role::Session, "Antigravity session", 1_000, 2_500),
        ]
    }

    #[test]
    fn in_full() {
        let resource = BTreeMap::from([("service.name".to_owned(), Value::from("antigravity-cli"))]);
        insta::assert_snapshot!(render(&resource, &session(), Style::SNAPSHOT), @r"
        resource  service.name=antigravity-cli
        trace T1
             session.id = c
        └─ Antigravity session    +0.000     1.500s  internal  S1  OK
           └─ Antigravity turn    +0.100     1.400s  internal  S2  OK
              │    event +0.300 antigravity.step.unnamed
              ├─ Model call       +0.100     0.900s  client    S3  OK
              │       gen_ai.request.model = gemini-3.5-flash
              └─ run_command      +0.200     0.700s  internal  S4  ERROR
                      antigravity.late = true
        ");
    }

    #[test]
    fn in_brief_with_times_of_day() {
        let style = Style { utc_offset: Some(-3_600), ..Style::BRIEF };
        insta::assert_snapshot!(render(&BTreeMap::new(), &session(), style), @r"
        └─ Antigravity session  23:00:01.000     1.500s  OK
           └─ Antigravity turn  23:00:01.100     1.400s  OK
              │    event 23:00:01.300 antigravity.step.unnamed
              ├─ Model call     23:00:01.100     0.900s  OK  gemini-3.5-flash
              └─ run_command    23:00:01.200     0.700s  ERROR  late
        ");
    }

    #[test]
    fn an_orphan_is_shown_as_a_root() {
        let orphan = [span(4, Some(2), Role::Tool, "run_command", 1_200, 1_900)];
        insta::assert_snapshot!(render(&BTreeMap::new(), &orphan, Style::BRIEF), @"└─ run_command    +0.000     0.700s  OK  (parent 0202020202020202 is not here)");
    }
}
