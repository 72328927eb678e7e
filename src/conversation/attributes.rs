//! Builds the spans: which attribute stands where, as `semconv` lists them. The only file that names keys of spans.
//! Pure; decided in `docs/adr/0009-own-attribute-table.md`.

use std::collections::BTreeMap;

use super::clock::Time;
use super::model_call::{CallEnd, ModelCall};
use super::session::SessionEnd;
use super::stop::TurnEnd;
use super::turn::{Gathering, Turn, verdict};
use super::{Conversation, Options, SessionSpan, SpanNames};
use crate::event::{Origin, Stop, Surface, Told};
use crate::ids;
use crate::redact::Text;
use crate::semconv as key;
use crate::span::{Role, Span, SpanId, SpanLink, Status, Value};

const AGENT: &str = "antigravity";

/// The resource that all spans of a conversation share; the user's attributes cannot replace what back ends rely on.
#[must_use]
pub fn resource(origin: &Origin) -> BTreeMap<String, Value> {
    let user = origin.resource.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let ours = [
        (key::SERVICE_NAME, origin.service_name.as_str()),
        (key::PROJECT_NAME, origin.project_name.as_str()),
        (key::PROJECT_TYPE, "observe"),
        (key::OPENINFERENCE_PROJECT_NAME, origin.project_name.as_str()),
        (key::FI_SEMCONV, "otel_genai"),
        (key::TELEMETRY_DISTRO_NAME, env!("CARGO_PKG_NAME")),
        (key::TELEMETRY_DISTRO_VERSION, env!("CARGO_PKG_VERSION")),
    ];
    user.chain(ours.map(|(name, value)| (name.to_owned(), Value::from(value)))).collect()
}

/// The attributes of a span event about a step.
pub(super) fn event_attributes(step: Option<i64>, tool: Option<&str>) -> BTreeMap<String, Value> {
    Attributes::default().maybe(key::STEP_INDEX, step).maybe(key::GEN_AI_TOOL_NAME, tool).0
}

/// A tool call that has ended.
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) step: Option<i64>,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) failed: bool,
    pub(super) told: Told,
}

/// What the duration of a tool's span means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolTiming {
    /// agy asks for permission between the two hooks.
    IncludesApproval,
    /// The start was not observed.
    EndOnly,
    /// It has not ended; for a preview.
    Running,
}

/// Attributes in the making.
#[derive(Default)]
struct Attributes(BTreeMap<String, Value>);

impl Attributes {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// A mark: there only if true.
    fn mark(self, name: &str, marked: bool) -> Self {
        if marked { self.with(name, true) } else { self }
    }

    /// Content under its keys, and of which type it is.
    fn content(mut self, text: Option<&Text>, keys: &[&str], mime_type: &str) -> Self {
        let Some(text) = text else { return self };
        for name in keys {
            self = self.with(name, text.clone());
        }
        // A JSON value that was cut is none any more.
        self.with(mime_type, if text.is_json() { "application/json" } else { "text/plain" }).limits(Some(text))
    }

    /// What became of content on its way here.
    fn limits(self, text: Option<&Text>) -> Self {
        let Some(text) = text else { return self };
        let mut attributes = self.mark(key::TRUNCATED, text.is_truncated());
        if !text.rules().is_empty() {
            let mut rules = text.rules().to_vec();
            if let Some(Value::Texts(before)) = attributes.0.remove(key::REDACTED) {
                rules.extend(before);
            }
            rules.sort_unstable();
            rules.dedup();
            attributes.0.insert(key::REDACTED.to_owned(), Value::Texts(rules));
        }
        attributes
    }
}

/// What the span kinds have in common.
struct Outline {
    role: Role,
    span_id: SpanId,
    parent: Option<SpanId>,
    name: String,
    start: Time,
    end: Time,
}

impl Conversation {
    fn root_id(&self) -> SpanId {
        ids::span_id(&self.id, Role::Session, 0, self.session.start_ns())
    }

    /// Attributes that every span of this role carries.
    fn common(&self, role: Role) -> Attributes {
        let (kind, operation) = match role {
            Role::Session => ("CHAIN", None),
            Role::Turn => ("AGENT", Some("invoke_agent")),
            Role::ModelCall => ("LLM", Some("chat")),
            Role::Tool => ("TOOL", Some("execute_tool")),
        };
        let agent = match role {
            Role::Session | Role::Turn => Some(AGENT),
            Role::ModelCall | Role::Tool => None,
        };
        Attributes::default()
            .with(key::FI_SPAN_KIND, kind)
            .with(key::OPENINFERENCE_SPAN_KIND, kind)
            .with(key::SESSION_ID, self.id.as_str())
            .with(key::CONVERSATION_ID, self.id.as_str())
            .maybe(key::OPERATION_NAME, operation)
            .maybe(key::GEN_AI_AGENT_NAME, agent)
            .maybe(key::AGENT_NAME, agent)
            .maybe(key::USER_ID, self.origin.user_id.as_deref())
            .maybe(key::SURFACE, self.surface.map(Surface::as_str))
    }

    fn span(&self, outline: Outline, status: Status, attributes: Attributes) -> Span {
        let Outline { role, span_id, parent, name, start, end } = outline;
        let end = end.not_before(start.ns);
        let attributes = attributes.mark(key::CLAMPED, start.clamped || end.clamped).0;
        Span {
            trace_id: ids::trace_id(&self.id),
            span_id,
            parent,
            role,
            name,
            start_ns: start.ns,
            end_ns: end.ns,
            status,
            attributes,
            events: Vec::new(),
            links: Vec::new(),
        }
    }

    /// The session root as it is now.
    pub(super) fn root_span(&self) -> Span {
        let attributes = self
            .common(Role::Session)
            .maybe(key::REQUEST_MODEL, self.model.as_deref())
            .maybe(key::SESSION_END, self.session.ended.map(SessionEnd::as_str))
            .mark(key::SESSION_RESUMED, self.session.resumed);
        let outline = Outline {
            role: Role::Session,
            span_id: self.root_id(),
            parent: None,
            name: "Antigravity session".to_owned(),
            start: Time { ns: self.session.start_ns(), clamped: false },
            end: Time { ns: self.session.end_ns(), clamped: false },
        };
        let mut span = self.span(outline, self.session.status(), attributes);
        span.links = self.session.caller.map(|(trace, span)| link(trace, span, "traceparent")).into_iter().collect();
        span
    }

    pub(super) fn turn_span(
        &self,
        turn: &Turn,
        gathered: &Gathering,
        how: TurnEnd<'_>,
        end: Time,
        options: &Options,
    ) -> Span {
        let (status, stop_attributes) = match how {
            TurnEnd::Stop(stop, seen) => {
                let (error, digest) =
                    (seen.event.told().content.error.as_ref(), seen.event.told().digests.error.as_deref());
                stopped(stop, error, self.turn_attributes(turn, gathered).maybe(key::ERROR_DIGEST, digest))
            }
            TurnEnd::Interrupted => {
                (Status::Unset, self.turn_attributes(turn, gathered).mark(key::TURN_INTERRUPTED, true))
            }
            TurnEnd::Running => (Status::Unset, self.turn_attributes(turn, gathered)),
        };
        let outline = Outline {
            role: Role::Turn,
            span_id: turn.span_id,
            parent: (options.session_span != SessionSpan::None).then(|| self.root_id()),
            name: match options.span_names {
                SpanNames::Friendly => "Antigravity turn".to_owned(),
                SpanNames::Semconv => format!("invoke_agent {AGENT}"),
            },
            start: turn.start,
            end,
        };
        let mut span = self.span(outline, status, stop_attributes);
        span.events.clone_from(&gathered.events);
        span.events.sort_by_key(|event| event.at_ns);
        span.links = gathered.continues.map(|earlier| link(span.trace_id, earlier, "continues")).into_iter().collect();
        span
    }

    fn turn_attributes(&self, turn: &Turn, gathered: &Gathering) -> Attributes {
        let unobserved = (!gathered.unobserved.is_empty()).then(|| Value::Texts(gathered.unobserved.clone()));
        self.common(Role::Turn)
            .with(key::TURN_INDEX, turn.index)
            .maybe(key::REQUEST_MODEL, gathered.model.as_deref())
            .mark(key::TURN_PARTIAL, gathered.partial)
            .mark(key::TURN_CONTINUED, gathered.continues.is_some())
            .mark(key::SESSION_RESUMED, gathered.resumed)
            .maybe(key::TURN_UNNAMED_STEPS, Some(gathered.unnamed_steps).filter(|count| *count > 0))
            .maybe(key::TURN_UNOBSERVED_TOOLS, unobserved)
            .content(gathered.prompt.as_ref(), &[key::INPUT_VALUE], key::INPUT_MIME_TYPE)
    }

    pub(super) fn call_span(
        &self,
        turn: &Turn,
        call: &ModelCall,
        end: Time,
        how: CallEnd,
        output: Option<&Text>,
        options: &Options,
    ) -> Span {
        let answered_ns = call.first_tool_ns.unwrap_or(end.ns);
        let response_ms = answered_ns.saturating_sub(call.start.ns) / 1_000_000;
        let attributes = self
            .common(Role::ModelCall)
            .with(key::PROVIDER_NAME, "gcp.gen_ai")
            .with(key::LLM_PROVIDER, "google")
            .maybe(key::REQUEST_MODEL, call.model.as_deref())
            .maybe(key::LLM_MODEL_NAME, call.model.as_deref())
            .with(key::TURN_INDEX, turn.index)
            .maybe(key::INVOCATION_NUM, call.numbers.num)
            .maybe(key::INITIAL_NUM_STEPS, call.numbers.initial_steps)
            .with(key::RESPONSE_MS, i64::try_from(response_ms).unwrap_or(i64::MAX))
            .maybe(key::TIMING, (how == CallEnd::Inferred).then_some("inferred"))
            .content(output, &[key::OUTPUT_VALUE], key::OUTPUT_MIME_TYPE)
            .mark(key::LATE, turn.open.is_none());
        let outline = Outline {
            role: Role::ModelCall,
            span_id: ids::span_id(&self.id, Role::ModelCall, call.ordinal, call.start.ns),
            parent: Some(turn.span_id),
            name: match (options.span_names, &call.model) {
                (SpanNames::Friendly, _) => "Model call".to_owned(),
                (SpanNames::Semconv, Some(model)) => format!("chat {model}"),
                (SpanNames::Semconv, None) => "chat".to_owned(),
            },
            start: call.start,
            end,
        };
        let status = match how {
            CallEnd::Observed => Status::Ok,
            CallEnd::Inferred | CallEnd::Running => Status::Unset,
        };
        self.span(outline, status, attributes)
    }

    pub(super) fn tool_span(
        &self,
        turn: &Turn,
        call: &ToolCall,
        ordinal: i64,
        timing: ToolTiming,
        options: &Options,
    ) -> Span {
        let (timing_word, status) = match timing {
            ToolTiming::IncludesApproval => (Some("includes_approval"), Status::Ok),
            ToolTiming::EndOnly => (Some("end_only"), Status::Ok),
            ToolTiming::Running => (None, Status::Unset),
        };
        let call_id = call.step.map(|step| format!("step-{step}"));
        let attributes = self
            .common(Role::Tool)
            .with(key::GEN_AI_TOOL_NAME, call.name.as_str())
            .with(key::TOOL_NAME, call.name.as_str())
            .with(key::GEN_AI_TOOL_TYPE, "function")
            .maybe(key::GEN_AI_TOOL_CALL_ID, call_id.clone())
            .maybe(key::TOOL_ID, call_id)
            .maybe(key::ERROR_TYPE, call.failed.then_some("tool_error"))
            .with(key::TURN_INDEX, turn.index)
            .maybe(key::STEP_INDEX, call.step)
            .maybe(key::TIMING, timing_word)
            .mark(key::LATE, turn.open.is_none());
        let attributes = told(&call.told, attributes);
        let outline = Outline {
            role: Role::Tool,
            span_id: ids::span_id(&self.id, Role::Tool, ordinal, call.start.ns),
            parent: Some(turn.span_id),
            name: match options.span_names {
                SpanNames::Friendly => call.name.clone(),
                SpanNames::Semconv => format!("execute_tool {}", call.name),
            },
            start: call.start,
            end: call.end,
        };
        let status = if call.failed { Status::Error(call.told.content.error.clone()) } else { status };
        self.span(outline, status, attributes)
    }
}

/// What was captured of a tool call.
fn told(told: &Told, attributes: Attributes) -> Attributes {
    let Told { content, digests } = told;
    attributes
        .content(content.args.as_ref(), &[key::INPUT_VALUE, key::TOOL_CALL_ARGUMENTS], key::INPUT_MIME_TYPE)
        .content(content.result.as_ref(), &[key::OUTPUT_VALUE, key::TOOL_CALL_RESULT], key::OUTPUT_MIME_TYPE)
        .limits(content.error.as_ref())
        .maybe(key::ARGS_DIGEST, digests.args.as_deref())
        .maybe(key::ERROR_DIGEST, digests.error.as_deref())
}

/// What a Stop adds to its turn.
fn stopped(stop: &Stop, error: Option<&Text>, attributes: Attributes) -> (Status, Attributes) {
    let verdict = verdict(stop);
    let status = match verdict.status {
        Status::Error(_) => Status::Error(error.cloned()),
        other @ (Status::Unset | Status::Ok) => other,
    };
    let attributes = attributes
        .maybe(key::ERROR_TYPE, verdict.error_type)
        .maybe(key::TERMINATION_REASON, stop.reason.as_deref())
        .maybe(key::EXECUTION_NUM, stop.execution_num)
        .maybe(key::FULLY_IDLE, stop.fully_idle)
        .limits(error);
    (status, attributes)
}

fn link(trace_id: crate::span::TraceId, span_id: SpanId, reason: &str) -> SpanLink {
    SpanLink { trace_id, span_id, attributes: Attributes::default().with(key::LINK_REASON, reason).0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_resource_attributes_are_added_but_replace_nothing() {
        let user = [("team", "blue"), ("project_type", "experiment"), ("service.name", "mine")];
        let origin = Origin {
            service_name: "antigravity-cli".into(),
            project_name: "p".into(),
            resource: user.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            user_id: None,
        };
        let resource = resource(&origin);
        assert_eq!(resource.get("team"), Some(&Value::from("blue")));
        assert_eq!(resource.get("project_type"), Some(&Value::from("observe")));
        assert_eq!(resource.get("service.name"), Some(&Value::from("antigravity-cli")));
    }
}
