//! What a hook's end means to agy: exit code, stdout and timeout turned into an effect.
//!
//! Reference section 1.2 and 1.3. protojson is strict: an unknown key or a wrong type fails the whole reply, and a field may
//! be written in lower camel case or as in the proto. Pure: knows nothing of processes but how one ended.

use serde_json::{Map, Value};

use crate::behaviour::{Behaviour, EmptyDecision, TimeoutOutcome};
use crate::event::Event;

/// How a hook process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookEnd<'a> {
    /// The exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// Everything it wrote to stdout.
    pub stdout: &'a [u8],
    /// Whether it was still running, or its stdout or stderr still open, when its time was up.
    pub timed_out: bool,
}

/// What a `PreToolUse` reply decides, the weakest first: of several hooks the strongest counts (inferred).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// No opinion.
    #[default]
    Neutral,
    /// `allow`.
    Allow,
    /// `ask`.
    Ask,
    /// `force_ask`.
    ForceAsk,
    /// `deny_unless_prior_grant`, in the proto only.
    DenyUnlessGranted,
    /// `deny`, or a reply that cannot be taken otherwise; with the reason the model sees.
    Deny(String),
}

/// How a `PostInvocation` reply steers the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Termination {
    /// As the model left it.
    #[default]
    None,
    /// One more model call at least.
    ForceContinue,
    /// No more model call.
    Terminate,
}

/// What replies change. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effect {
    /// For a tool.
    pub decision: Decision,
    /// Arguments to put over those of the tool.
    pub overwrite: Map<String, Value>,
    /// Steps to add to the trajectory.
    pub inject: u64,
    /// For the loop.
    pub termination: Termination,
    /// Why the turn is aborted, if it is.
    pub abort: Option<String>,
    /// Whether a stopping turn goes on.
    pub goes_on: bool,
    /// What agy would log as an error, whatever it does about it.
    pub fault: Option<String>,
}

impl Effect {
    /// Adds the effect of the next hook of the same event.
    pub fn add(&mut self, next: Self) {
        // Ordered by strength; of two equal ones the first keeps its reason.
        if next.decision > self.decision && !matches!(self.decision, Decision::Deny(_)) {
            self.decision = next.decision;
        }
        self.overwrite.extend(next.overwrite);
        self.inject += next.inject;
        self.termination = self.termination.max(next.termination);
        self.abort = self.abort.take().or(next.abort);
        self.goes_on |= next.goes_on;
        self.fault = self.fault.take().or(next.fault);
    }

    /// A word or two for the report.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.abort, &self.decision) {
            (Some(reason), _) => format!("abort: {reason}"),
            (None, Decision::Deny(reason)) => format!("deny: {reason}"),
            (None, Decision::Allow) => "allow".to_owned(),
            (None, Decision::Ask) => "ask".to_owned(),
            (None, Decision::ForceAsk) => "force_ask".to_owned(),
            (None, Decision::DenyUnlessGranted) => "deny_unless_prior_grant".to_owned(),
            (None, Decision::Neutral) if self.goes_on => "continue".to_owned(),
            (None, Decision::Neutral) => match self.termination {
                Termination::ForceContinue => "force_continue".to_owned(),
                Termination::Terminate => "terminate".to_owned(),
                Termination::None => "neutral".to_owned(),
            },
        }
    }
}

/// The effect of one hook.
#[must_use]
pub fn interpret(event: Event, end: HookEnd<'_>, behaviour: &Behaviour) -> Effect {
    if end.timed_out && behaviour.on_timeout == TimeoutOutcome::Open {
        return Effect { fault: Some("timed out".to_owned()), ..Effect::default() };
    }
    let reply = match (end.timed_out, end.exit_code) {
        (true, _) => Err("timed out".to_owned()),
        (false, Some(0)) => Fields::parse(end.stdout),
        (false, Some(code)) => Err(format!("exit status {code}")),
        (false, None) => Err("ended by a signal".to_owned()),
    };
    let effect = reply.and_then(|fields| match fields {
        // No bytes at all: no opinion (measured 1.0.3, 1.1.7, 1.1.12, 1.2.6). A lone newline is not known, and not JSON.
        None => Ok(Effect::default()),
        Some(fields) => effect(event, fields, behaviour),
    });
    effect.unwrap_or_else(|fault| failed(event, fault))
}

/// What a reply that cannot be used does to each event.
fn failed(event: Event, fault: String) -> Effect {
    let mut effect = Effect { fault: Some(fault.clone()), ..Effect::default() };
    match event {
        Event::PreToolUse => effect.decision = Decision::Deny(fault),
        // Measured for PreInvocation [1.2.1]; PostInvocation is taken to be as strict.
        Event::PreInvocation | Event::PostInvocation => effect.abort = Some(fault),
        // The tool has run, the turn is over, the session begins: nothing is left to fail.
        Event::PostToolUse | Event::Stop | Event::SessionStart => {}
    }
    effect
}

fn effect(event: Event, mut fields: Fields, behaviour: &Behaviour) -> Result<Effect, String> {
    let mut effect = Effect::default();
    match event {
        Event::PreToolUse => {
            effect.decision = decision(&mut fields, behaviour.empty_decision)?;
            let overwrite = fields.object("overwrite", "overwrite")?;
            if behaviour.profile.applies_overwrite() {
                effect.overwrite = overwrite;
            }
            fields.array("permissionOverrides", "permission_overrides")?;
        }
        Event::PreInvocation => effect.inject = injected(&mut fields, behaviour)?,
        Event::PostInvocation => {
            effect.inject = injected(&mut fields, behaviour)?;
            effect.termination =
                match fields.text("terminationBehavior", "termination_behavior")?.unwrap_or_default().as_str() {
                    "" => Termination::None,
                    "force_continue" => Termination::ForceContinue,
                    "terminate" => Termination::Terminate,
                    other => return Err(format!("unknown termination behavior {other:?}")),
                };
        }
        Event::Stop => {
            effect.goes_on = fields.text("decision", "decision")?.is_some_and(|decision| decision == "continue");
            fields.text("reason", "reason")?;
        }
        Event::SessionStart if behaviour.profile.injects_at_session_start() => {
            effect.inject = injected(&mut fields, behaviour)?;
        }
        Event::SessionStart | Event::PostToolUse => {}
    }
    fields.done()?;
    Ok(effect)
}

fn decision(fields: &mut Fields, empty: EmptyDecision) -> Result<Decision, String> {
    let decision = fields.text("decision", "decision")?;
    let reason = fields.text("reason", "reason")?.unwrap_or_default();
    // Deprecated pair of the proto; its default, false, is why a reply without a decision denies.
    let allow_tool = fields.flag("allowTool", "allow_tool")?;
    let deny_reason = fields.text("denyReason", "deny_reason")?.unwrap_or_default();
    Ok(match decision.as_deref() {
        None | Some("") if allow_tool => Decision::Allow,
        Some("") if empty == EmptyDecision::Neutral => Decision::Neutral,
        None | Some("") => Decision::Deny(if reason.is_empty() { deny_reason } else { reason }),
        Some("allow") => Decision::Allow,
        Some("deny") => Decision::Deny(reason),
        Some("ask") => Decision::Ask,
        Some("force_ask") => Decision::ForceAsk,
        Some("deny_unless_prior_grant") => Decision::DenyUnlessGranted,
        Some(other) => return Err(format!("unknown pre-tool hook decision: {other:?}")),
    })
}

/// The number of steps in `injectSteps`; each must be of exactly one documented kind.
fn injected(fields: &mut Fields, behaviour: &Behaviour) -> Result<u64, String> {
    let steps = fields.array("injectSteps", "inject_steps")?;
    let mut count = 0;
    for step in steps {
        let Value::Object(members) = step else { return Err("an injected step is not an object".to_owned()) };
        let mut kinds = members.keys();
        match (kinds.next().map(String::as_str), kinds.next()) {
            (
                Some(
                    "toolCall" | "tool_call" | "userMessage" | "user_message" | "ephemeralMessage"
                    | "ephemeral_message",
                ),
                None,
            ) => {}
            (Some("systemMessage" | "system_message"), None) if behaviour.profile.injects_system_messages() => {}
            (Some(other), None) => return Err(format!("unknown field {other:?} in an injected step")),
            _ => return Err("an injected step is not of exactly one kind".to_owned()),
        }
        count += 1;
    }
    Ok(count)
}

/// The members of a reply; taking one out says that it is known.
struct Fields(Map<String, Value>);

impl Fields {
    /// `None` for no bytes at all.
    fn parse(stdout: &[u8]) -> Result<Option<Self>, String> {
        if stdout.is_empty() {
            return Ok(None);
        }
        match serde_json::from_slice(stdout) {
            Ok(Value::Object(members)) => Ok(Some(Self(members))),
            Ok(_) => Err("the reply is not a JSON object".to_owned()),
            Err(error) => Err(format!("the reply is not JSON: {error}")),
        }
    }

    /// `null` is as good as absent in protojson.
    fn take(&mut self, name: &str, proto: &str) -> Option<Value> {
        let value = self.0.remove(name).or_else(|| self.0.remove(proto));
        value.filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str, proto: &str) -> Result<Option<String>, String> {
        match self.take(name, proto) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{name} is not a string")),
        }
    }

    fn flag(&mut self, name: &str, proto: &str) -> Result<bool, String> {
        match self.take(name, proto) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(format!("{name} is not a boolean")),
        }
    }

    fn array(&mut self, name: &str, proto: &str) -> Result<Vec<Value>, String> {
        match self.take(name, proto) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(format!("{name} is not an array")),
        }
    }

    fn object(&mut self, name: &str, proto: &str) -> Result<Map<String, Value>, String> {
        match self.take(name, proto) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members),
            Some(_) => Err(format!("{name} is not an object")),
        }
    }

    fn done(self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(key) => Err(format!("unknown field {key:?}")),
        }
    }
}

#[cfg(test)]
mod tests;
