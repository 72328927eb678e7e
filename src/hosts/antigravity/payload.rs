//! From the kept fields of a payload to the [`Event`] they mean. All fields are optional in some version of agy; only
//! the conversation must be there. No I/O.

use super::fields::{Field, Fields, Kept, Part};
use super::wire::Scanner;
use crate::event::{Action, Event, Invocation, Stop, Surface, Told, ToolStep, Wanted};
use crate::hosts::{Progress, Rejection, Scan, Seen};
use crate::redact::Raw;

/// Reads the payload of one event.
#[derive(Debug)]
pub(super) struct PayloadScan {
    event: &'static str,
    scanner: Scanner<Payload>,
}

impl PayloadScan {
    pub(super) fn new(event: &'static str) -> Self {
        Self { event, scanner: Scanner::new(Payload::EMPTY) }
    }
}

impl Scan for PayloadScan {
    fn want(&mut self, wanted: Wanted) {
        self.scanner.want(of_use(self.event, wanted));
    }

    fn feed(&mut self, bytes: &[u8]) -> Progress {
        self.scanner.feed(bytes)
    }

    fn finish(self: Box<Self>) -> Result<Seen, Rejection> {
        let blank = self.scanner.is_blank();
        match self.scanner.finish() {
            (payload, Progress::Complete) => payload.seen(self.event),
            (_, Progress::More) if blank => Err(Rejection::Empty),
            (_, Progress::More) => Err(Rejection::Truncated),
            (_, Progress::Invalid) => Err(Rejection::NotAnObject),
        }
    }
}

/// The content that this event brings: later versions send some of it with every event (`lastUserInput`, 1.4.7), and what
/// belongs to no span of the event is not written down with it.
fn of_use(event: &str, wanted: Wanted) -> Wanted {
    let tool = matches!(event, "PreToolUse" | "PostToolUse");
    Wanted {
        args: wanted.args && tool,
        errors: wanted.errors && matches!(event, "PostToolUse" | "Stop"),
        prompts: wanted.prompts && event == "PreInvocation",
        outputs: wanted.outputs && event == "PostInvocation",
        results: wanted.results && event == "PostToolUse",
    }
}

/// The kept fields of a payload, as far as they came.
#[derive(Debug, Default)]
struct Payload {
    conversation: Option<String>,
    model: Option<String>,
    step: Option<i64>,
    tool: Option<String>,
    failed: bool,
    invocation_num: Option<i64>,
    initial_steps: Option<i64>,
    reason: Option<String>,
    execution_num: Option<i64>,
    fully_idle: Option<bool>,
    surface: Option<Surface>,
    workspaces: Vec<String>,
    /// In a box, since most hooks keep none.
    told: Option<Box<Told<Raw>>>,
}

impl Payload {
    const EMPTY: Self = Self {
        conversation: None,
        model: None,
        step: None,
        tool: None,
        failed: false,
        invocation_num: None,
        initial_steps: None,
        reason: None,
        execution_num: None,
        fully_idle: None,
        surface: None,
        workspaces: Vec::new(),
        told: None,
    };

    fn seen(self, event: &str) -> Result<Seen, Rejection> {
        let invocation = Invocation { num: self.invocation_num, initial_steps: self.initial_steps };
        let step = ToolStep { step: self.step, tool: self.tool, failed: self.failed };
        let action = match event {
            "PreInvocation" => Action::PreInvocation(invocation),
            "PostInvocation" => Action::PostInvocation(invocation),
            "PreToolUse" => Action::PreToolUse(ToolStep { failed: false, ..step }),
            "PostToolUse" => Action::PostToolUse(step),
            "Stop" => Action::Stop(Stop {
                reason: self.reason,
                execution_num: self.execution_num,
                fully_idle: self.fully_idle,
                failed: self.failed,
            }),
            _ => Action::SessionStart,
        };
        let conversation = self.conversation.filter(|id| !id.trim().is_empty()).ok_or(Rejection::NoConversation)?;
        let event = Event { conversation, model: self.model, surface: self.surface, action, told: self.told };
        Ok(Seen { event, workspaces: self.workspaces })
    }
}

impl Fields for Payload {
    fn set(&mut self, field: Field, value: Kept<'_>) {
        match field {
            Field::Conversation => self.conversation = text(value),
            Field::Model => self.model = text(value),
            Field::Step => self.step = number(value),
            Field::ToolName => self.tool = text(value),
            Field::Error => self.failed = is_error(&value),
            Field::InvocationNum => self.invocation_num = number(value),
            Field::InitialSteps => self.initial_steps = number(value),
            Field::Reason => self.reason = text(value),
            Field::ExecutionNum => self.execution_num = number(value),
            Field::FullyIdle => self.fully_idle = flag(&value),
            Field::TranscriptPath | Field::ArtifactPath => {
                self.surface = text(value).and_then(|path| surface(&path)).or(self.surface);
            }
            Field::Workspace => self.workspaces.extend(text(value)),
        }
    }

    fn content(&mut self, part: Part, raw: Raw) {
        let content = &mut self.told.get_or_insert_default().content;
        let place = match part {
            Part::Args => &mut content.args,
            Part::Error => &mut content.error,
            Part::Prompt => &mut content.prompt,
            Part::Output => &mut content.output,
            Part::Result => &mut content.result,
        };
        *place = Some(raw);
    }
}

fn text(value: Kept<'_>) -> Option<String> {
    match value {
        Kept::Text(text) => Some(text),
        Kept::Bare(_) | Kept::Nested => None,
    }
}

/// A whole number; protojson writes 64-bit ones as strings.
fn number(value: Kept<'_>) -> Option<i64> {
    match value {
        Kept::Text(text) => text.parse().ok(),
        Kept::Bare(word) => word.parse().ok(),
        Kept::Nested => None,
    }
}

fn flag(value: &Kept<'_>) -> Option<bool> {
    match value {
        Kept::Bare("true") => Some(true),
        Kept::Bare("false") => Some(false),
        Kept::Bare(_) | Kept::Text(_) | Kept::Nested => None,
    }
}

/// `error` is `""` on success (1.1.7 to 1.4.7); a later version may send an object.
fn is_error(value: &Kept<'_>) -> bool {
    match value {
        Kept::Text(text) => !text.is_empty(),
        Kept::Bare(word) => !matches!(*word, "null" | "false"),
        Kept::Nested => true,
    }
}

/// Tells the product by its app-data folder, with either separator. The last `.gemini` counts: a home folder may lie
/// below another one.
fn surface(path: &str) -> Option<Surface> {
    let mut parts = path.rsplit(['/', '\\']);
    let mut app = "";
    loop {
        let part = parts.next()?;
        if part == ".gemini" {
            match app {
                "antigravity-cli" => return Some(Surface::Cli),
                "antigravity-ide" => return Some(Surface::Ide),
                "antigravity" => return Some(Surface::Desktop),
                _ => {}
            }
        }
        app = part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_app_data_folder_tells_the_surface() {
        for (path, expected) in [
            ("/home/user/.gemini/antigravity-cli/brain/x", Some(Surface::Cli)),
            ("/home/user/.gemini/antigravity-ide/brain/x", Some(Surface::Ide)),
            ("/home/user/.gemini/antigravity/brain/x", Some(Surface::Desktop)),
            (r"C:\Users\user\.gemini\antigravity-cli\brain", Some(Surface::Cli)),
            ("/srv/.gemini/antigravity/home/.gemini/antigravity-cli/brain", Some(Surface::Cli)),
            ("/path/to/.gemini/other/antigravity-cli", None),
            ("/home/user/antigravity-cli/brain", None),
            ("", None),
        ] {
            assert_eq!(surface(path), expected, "{path}");
        }
    }

    #[test]
    fn numbers_come_bare_or_as_strings() {
        assert_eq!(number(Kept::Bare("17")), Some(17));
        assert_eq!(number(Kept::Text("17".into())), Some(17));
        assert_eq!(number(Kept::Bare("1e3")), None);
        assert_eq!(number(Kept::Bare("null")), None);
    }
}
