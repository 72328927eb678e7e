//! Reads `events.ndjson`; payloads go through the same scanner as in the hook process.

use std::time::Duration;

use fi_hook_to_otlp::config::{self, EnvFile, Sources};
use fi_hook_to_otlp::conversation::{Now, Options, SessionSpan, SpanNames};
use fi_hook_to_otlp::event::{Agent, Capture, Event, Origin, Wanted};
use fi_hook_to_otlp::hosts::{self, Progress};
use fi_hook_to_otlp::redact::{Allowed, DigestKey, Raw};
use serde_json::Value;

/// When the scripts begin: 2026-11-30T09:00:00Z.
const REALTIME_MS: u64 = 1_796_029_200_000;
/// How long the machine had been running then.
const BOOTTIME_MS: u64 = 3_600_000;
const AGENT: u64 = 4242;

/// A session to be folded.
#[derive(Clone)]
pub(crate) struct Script {
    /// Where it comes from and what it shows.
    pub(crate) note: String,
    pub(crate) options: Options,
    pub(crate) origin: Origin,
    pub(crate) allowed: Allowed,
    pub(crate) lines: Vec<Line>,
}

/// One step of a session.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) at_ms: u64,
    pub(crate) now: Now,
    pub(crate) step: Step,
}

#[derive(Clone)]
pub(crate) enum Step {
    Event { name: String, event: Box<Event<Raw>>, capture: Capture },
    AgentExit(Agent),
    Tick(Vec<Agent>),
}

impl Line {
    /// The same event, reported a moment later by hooks that stand in another file.
    pub(crate) fn by_another_registration(&self) -> Option<Self> {
        let mut line = self.clone();
        let Step::Event { capture, .. } = &mut line.step else { return None };
        capture.registration += 1_000;
        capture.realtime_ns += 1_000;
        capture.boottime_ns += 1_000;
        Some(line)
    }
}

impl Script {
    pub(crate) fn read(text: &str) -> Self {
        let mut script = Self {
            note: String::new(),
            options: Options::default(),
            origin: Origin {
                service_name: "antigravity-cli".into(),
                project_name: "antigravity-sessions".into(),
                ..Origin::default()
            },
            allowed: Allowed::default(),
            lines: Vec::new(),
        };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            script.add(&line);
        }
        assert!(!script.note.is_empty(), "the first line has to tell where the session comes from");
        script
    }

    fn add(&mut self, line: &Value) {
        if let Some(note) = line.get("note") {
            self.note = note.as_str().unwrap().to_owned();
        } else if let Some(options) = line.get("options") {
            self.set(options);
        } else if let Some(settings) = line.get("settings") {
            self.allow(settings.as_str().unwrap());
        } else {
            self.lines.push(parse_line(line));
        }
    }

    /// Lines of a settings file, as the hook process reads them; digests get a key of their own.
    fn allow(&mut self, lines: &str) {
        let file = EnvFile::parse("env".into(), lines.as_bytes());
        let settings = config::resolve(&Sources { file: Some(file), ..Sources::default() });
        assert_eq!(settings.problems, []);
        let digest_key = settings.digest.then(|| DigestKey::new([7; 32]));
        self.allowed = Allowed { content: settings.capture, digest_key };
    }

    fn set(&mut self, options: &Value) {
        for (name, value) in options.as_object().unwrap() {
            let word = value.as_str();
            match name.as_str() {
                "session_span" => self.options.session_span = SessionSpan::parse(word.unwrap()).unwrap(),
                "span_names" => self.options.span_names = SpanNames::parse(word.unwrap()).unwrap(),
                "session_idle_s" => self.options.session_idle = Duration::from_secs(value.as_u64().unwrap()),
                "user_id" => self.origin.user_id = word.map(str::to_owned),
                "resource" => self.origin.resource = serde_json::from_value(value.clone()).unwrap(),
                other => panic!("unknown option {other}"),
            }
        }
    }
}

/// A session is folded with all of its content, so that what is not allowed has to be stopped on its way.
fn parse_line(line: &Value) -> Line {
    let at_ms = line["at_ms"].as_u64().unwrap();
    let skew_ms = line["skew_ms"].as_i64().unwrap_or(0);
    let boot_ms = line["boot_ms"].as_u64().unwrap_or(BOOTTIME_MS + at_ms);
    let now = Now {
        realtime_ns: (REALTIME_MS + at_ms).saturating_add_signed(skew_ms) * 1_000_000,
        boottime_ns: boot_ms * 1_000_000,
        boot_id: line["boot"].as_str().unwrap_or("boot-1").to_owned(),
    };
    let step = if let Some(agent) = line.get("agent_exit") {
        Step::AgentExit(agent_of(agent))
    } else if let Some(tick) = line.get("tick") {
        Step::Tick(tick["live"].as_array().map(|live| live.iter().map(agent_of).collect()).unwrap_or_default())
    } else {
        let name = line["event"].as_str().unwrap().to_owned();
        let capture = Capture {
            realtime_ns: now.realtime_ns,
            boottime_ns: now.boottime_ns,
            boot_id: now.boot_id.clone(),
            agent: match line.get("agent") {
                Some(Value::Null) => None,
                Some(agent) => Some(agent_of(agent)),
                None => Some(agent_of(&AGENT.into())),
            },
            registration: line["registration"].as_u64().unwrap_or(1),
            traceparent: line["traceparent"].as_str().map(str::to_owned),
        };
        Step::Event { event: Box::new(event_of(&name, &line["payload"])), name, capture }
    };
    Line { at_ms, now, step }
}

fn agent_of(pid: &Value) -> Agent {
    Agent { pid: pid.as_u64().unwrap().try_into().unwrap(), started_ns: 1, namespace: 4_026_531_836, marked: true }
}

/// What the hook process makes of a payload.
fn event_of(name: &str, payload: &Value) -> Event<Raw> {
    let mut scan = hosts::find("antigravity").unwrap().scan(name).unwrap();
    scan.want(Wanted::ALL);
    assert_eq!(scan.feed(payload.to_string().as_bytes()), Progress::Complete);
    scan.finish().unwrap().event
}
