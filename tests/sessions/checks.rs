//! What is true of the spans of every session.

use std::collections::{BTreeMap, BTreeSet};

use fi_hook_to_otlp::conversation::SessionSpan;
use fi_hook_to_otlp::semconv::{self, Kind, Place};
use fi_hook_to_otlp::span::{Role, Span, SpanId, Value};

/// Under `update` and `first` nothing is out before the root of its trace is.
pub(crate) fn prefix(out: &[Span], policy: SessionSpan) {
    if !matches!(policy, SessionSpan::Update | SessionSpan::First) {
        return;
    }
    let mut rooted = BTreeSet::new();
    for span in out {
        if span.role == Role::Session {
            rooted.insert(span.trace_id);
        }
        assert!(rooted.contains(&span.trace_id), "{} is out before its root", span.name);
    }
}

/// Checks what has come out; `open` is what is still to come.
pub(crate) fn spans(out: &[Span], open: &[Span], policy: SessionSpan) {
    let mut last: BTreeMap<SpanId, &Span> = BTreeMap::new();
    for span in out {
        let before = last.insert(span.span_id, span);
        if let Some(before) = before {
            assert_eq!((before.role, span.role), (Role::Session, Role::Session), "{} is out twice", span.name);
            assert_eq!(policy, SessionSpan::Update, "the root is out twice");
            assert_eq!((&before.name, before.start_ns, &before.parent), (&span.name, span.start_ns, &span.parent));
            assert!(before.end_ns <= span.end_ns, "the root became shorter");
        }
    }
    let coming = open.iter().map(|span| (span.span_id, span));
    let known: BTreeMap<SpanId, &Span> = last.clone().into_iter().chain(coming).collect();
    let resumed = out.iter().any(|span| span.attributes.contains_key(semconv::SESSION_RESUMED));
    for span in known.values() {
        one(span);
        let Some(parent) = span.parent else {
            let root = if policy == SessionSpan::None { Role::Turn } else { Role::Session };
            assert_eq!(span.role, root, "{} has no parent", span.name);
            continue;
        };
        let parent = known.get(&parent).unwrap_or_else(|| panic!("{} hangs under a parent that is nowhere", span.name));
        assert_eq!(span.trace_id, parent.trace_id);
        let within = span.start_ns >= parent.start_ns && span.end_ns <= parent.end_ns;
        let root_was_final = parent.role == Role::Session && (policy == SessionSpan::First || resumed);
        let late = span.attributes.contains_key(semconv::LATE);
        assert!(within || late || root_was_final, "{} is not within {}", span.name, parent.name);
    }
}

fn one(span: &Span) {
    assert!(span.start_ns > 0 && span.end_ns >= span.start_ns, "{} has impossible times", span.name);
    assert!(!span.name.is_empty());
    keys(span.role.into(), &span.attributes);
    span.events.iter().for_each(|event| keys(Place::Event, &event.attributes));
    span.links.iter().for_each(|link| keys(Place::Link, &link.attributes));
    for event in &span.events {
        assert!(semconv::EVENTS.iter().any(|(name, _)| *name == event.name), "{} is not listed", event.name);
        assert!(event.at_ns >= span.start_ns && event.at_ns <= span.end_ns, "{} is outside of its span", event.name);
    }
    for key in semconv::KEYS.iter().filter(|key| key.when == "always" && key.places.contains(&span.role.into())) {
        assert!(span.attributes.contains_key(key.name), "{} lacks {}", span.name, key.name);
    }
}

/// Checks a resource.
pub(crate) fn resource(attributes: &BTreeMap<String, Value>) {
    for key in semconv::KEYS.iter().filter(|key| key.places.contains(&Place::Resource)) {
        assert!(attributes.contains_key(key.name), "the resource lacks {}", key.name);
    }
}

fn keys(place: Place, attributes: &BTreeMap<String, Value>) {
    for (name, value) in attributes {
        assert!(semconv::allows(place, name), "{name} on a {} is not in the table", place.as_str());
        let kind = semconv::find(name).unwrap().kind;
        let fits = match value {
            Value::Bool(_) => kind == Kind::Bool,
            Value::Int(_) => kind == Kind::Int,
            Value::Text(_) => kind == Kind::Text,
            Value::Texts(_) => kind == Kind::Texts,
            Value::Content(_) => kind == Kind::Content,
            Value::Double(_) => false,
        };
        assert!(fits, "{name} is no {}", kind.as_str());
    }
}
