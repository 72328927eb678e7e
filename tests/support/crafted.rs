//! Spool records made by the test instead of a hook: with clocks of its choice, or far more than hooks could write.

use std::fs;
use std::path::PathBuf;

use fi_hook_to_otlp::event::{Action, Agent, Capture, Event, Invocation, Origin, Stop, Surface, ToolStep};
use fi_hook_to_otlp::redact::{self, Allowed};
use fi_hook_to_otlp::spool::dir::file_name;
use fi_hook_to_otlp::spool::format::{Captured, Entry, encode};

use super::ledger::tool;
use super::sandbox::Sandbox;

/// The clocks at one event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) realtime_ns: u64,
    pub(crate) boottime_ns: u64,
    pub(crate) boot: &'a str,
}

/// The record of one event of an agent that cannot be told.
pub(crate) fn record(conversation: &str, at: At<'_>, action: Action) -> Vec<u8> {
    record_by(None, conversation, at, action)
}

/// The record of one event.
pub(crate) fn record_by(agent: Option<Agent>, conversation: &str, at: At<'_>, action: Action) -> Vec<u8> {
    encode(&Entry::Event(Box::new(Captured {
        capture: Capture {
            realtime_ns: at.realtime_ns,
            boottime_ns: at.boottime_ns,
            boot_id: at.boot.to_owned(),
            agent,
            registration: 1,
            traceparent: None,
        },
        origin: Origin { service_name: "antigravity-cli".into(), ..Origin::default() },
        event: redact::event(
            Event {
                model: Some("m".into()),
                surface: Some(Surface::Cli),
                ..Event::new(conversation.to_owned(), action)
            },
            &Allowed::default(),
        ),
    })))
}

/// The end of a tool.
pub(crate) fn post_tool(conversation: &str, step: u64) -> Action {
    Action::PostToolUse(ToolStep {
        step: i64::try_from(step).ok(),
        tool: Some(tool(conversation, step)),
        failed: false,
    })
}

/// The start of a tool.
pub(crate) fn pre_tool(conversation: &str, step: u64) -> Action {
    Action::PreToolUse(ToolStep { step: i64::try_from(step).ok(), tool: Some(tool(conversation, step)), failed: false })
}

/// A model call.
pub(crate) fn call(num: i64, initial_steps: i64) -> Invocation {
    Invocation { num: Some(num), initial_steps: Some(initial_steps) }
}

/// An orderly end of a turn.
pub(crate) fn stop() -> Action {
    let reason = Some("NO_TOOL_CALL".to_owned());
    Action::Stop(Stop { reason, execution_num: Some(0), fully_idle: Some(true), failed: false })
}

impl Sandbox {
    /// The spool's folder, made if need be.
    pub(crate) fn inbox(&self) -> PathBuf {
        let spool = self.profile().join("spool");
        for folder in [spool.join("tmp"), spool.join("new")] {
            fs::create_dir_all(folder).unwrap();
        }
        let private = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        fs::set_permissions(self.state(), private).unwrap();
        spool.join("new")
    }

    /// Leaves a record in the spool as a hook would, under a name of that time; `number` makes it unique.
    pub(crate) fn leave(&self, at: At<'_>, number: u64, record: &[u8]) {
        let name = file_name(at.realtime_ns, 1, number);
        let beside = self.inbox().join("../tmp").join(&name);
        fs::write(&beside, record).unwrap();
        fs::rename(beside, self.inbox().join(name)).unwrap();
    }

    /// Starts a sender as a hook would, and returns at once.
    pub(crate) fn wake(&self) {
        self.hook("SessionStart", br#"{"conversationId":"wake"}"#);
    }
}
