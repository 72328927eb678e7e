//! What one hooks.json says, or why it says nothing.
//!
//! The rules of reference section 1.1 and 1.4: a bad member voids the whole file, silently in agy, with the reason here;
//! a flat `PreToolUse` or `PostToolUse` action is dropped alone. Keys nobody documents void the file too: no source says
//! that agy ignores them, and a registration must not depend on it. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::matcher::Matcher;
use crate::event::Event;

/// The timeout of a handler that names none (bundled hooks.md).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// One hooks.json.
#[derive(Clone, Debug, Default)]
pub struct HookFile {
    /// The named hooks, by name. Whether agy keeps the order of the file is not known.
    pub hooks: Vec<NamedHook>,
    /// What was dropped without voiding the file.
    pub notes: Vec<String>,
}

/// One top-level member.
#[derive(Clone, Debug)]
pub struct NamedHook {
    /// Its key.
    pub name: String,
    /// `enabled`; true if absent.
    pub enabled: bool,
    /// What it runs, in the order of the file.
    pub actions: Vec<Action>,
}

/// One handler of one event.
#[derive(Clone, Debug)]
pub struct Action {
    /// When it runs.
    pub event: Event,
    /// For which tools; for all with a lifecycle event.
    pub matcher: Matcher,
    /// What it runs.
    pub handler: Handler,
    /// The place of its group, or its own in a flat list.
    pub group: usize,
    /// Its place in its group; 0 in a flat list.
    pub place: usize,
}

/// What a handler runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The text given to `sh -c`.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// Why a file counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VoidFile(String);

/// Makes the error; shorter at its many places.
fn void<T>(reason: String) -> Result<T, VoidFile> {
    Err(VoidFile(reason))
}

impl HookFile {
    /// Reads a hooks.json.
    ///
    /// # Errors
    /// [`VoidFile`] names the first member that voids it.
    pub fn parse(text: &str) -> Result<Self, VoidFile> {
        let value: Value = serde_json::from_str(text).map_err(|error| VoidFile(format!("not JSON: {error}")))?;
        let Value::Object(members) = value else {
            return void("not an object of named hooks".to_owned());
        };
        let mut file = Self::default();
        for (name, value) in members.into_iter().collect::<BTreeMap<_, _>>() {
            let hook = named_hook(&name, value, &mut file.notes)?;
            file.hooks.push(hook);
        }
        Ok(file)
    }
}

fn named_hook(name: &str, value: Value, notes: &mut Vec<String>) -> Result<NamedHook, VoidFile> {
    let Value::Object(members) = value else {
        return void(format!("{name:?} is not a map of events; remove it or put events in it"));
    };
    let mut hook = NamedHook { name: name.to_owned(), enabled: true, actions: Vec::new() };
    for (key, value) in members.into_iter().collect::<BTreeMap<_, _>>() {
        match (key.as_str(), value) {
            ("enabled", Value::Bool(enabled)) => hook.enabled = enabled,
            ("enabled", _) => return void(format!("{name}.enabled is not a boolean")),
            (_, Value::Array(entries)) => match Event::named(&key) {
                Some(event) if event.is_grouped() => grouped(&mut hook, event, entries, notes)?,
                Some(event) => flat(&mut hook, event, entries)?,
                None => notes.push(format!("{name}.{key}: no such event, it never fires")),
            },
            _ => return void(format!("{name}.{key} is not a list of handlers")),
        }
    }
    Ok(hook)
}

/// `PreToolUse`, `PostToolUse`: a list of `{matcher, hooks}`.
fn grouped(hook: &mut NamedHook, event: Event, entries: Vec<Value>, notes: &mut Vec<String>) -> Result<(), VoidFile> {
    for (group, entry) in entries.into_iter().enumerate() {
        let at = format!("{}.{event}[{group}]", hook.name);
        let mut members = object(&at, entry)?;
        let Some(handlers) = members.remove("hooks") else {
            notes.push(format!("{at} has no \"hooks\": a handler outside of a matcher group is dropped"));
            continue;
        };
        let Value::Array(handlers) = handlers else {
            return void(format!("{at}.hooks is not a list of handlers"));
        };
        let matcher = match members.remove("matcher") {
            None => Ok(Matcher::all()),
            Some(Value::String(text)) => Matcher::parse(&text),
            Some(_) => return void(format!("{at}.matcher is not a string")),
        };
        no_more(&at, &members)?;
        let handlers =
            handlers.into_iter().enumerate().map(|(place, value)| handler(&format!("{at}.hooks[{place}]"), value));
        let handlers = handlers.collect::<Result<Vec<_>, _>>()?;
        match matcher {
            Err(bad) => notes.push(format!("{at}: {bad}")),
            Ok(matcher) => hook.actions.extend(handlers.into_iter().enumerate().filter_map(|(place, handler)| {
                Some(Action { event, matcher: matcher.clone(), handler: handler?, group, place })
            })),
        }
    }
    Ok(())
}

/// The lifecycle events: a list of handlers. A matcher group here voids the file (1.0.15).
fn flat(hook: &mut NamedHook, event: Event, entries: Vec<Value>) -> Result<(), VoidFile> {
    for (group, entry) in entries.into_iter().enumerate() {
        if let Some(handler) = handler(&format!("{}.{event}[{group}]", hook.name), entry)? {
            hook.actions.push(Action { event, matcher: Matcher::all(), handler, group, place: 0 });
        }
    }
    Ok(())
}

/// One handler; `None` for the undocumented `prompt` type, which runs no command.
fn handler(at: &str, value: Value) -> Result<Option<Handler>, VoidFile> {
    let mut members = object(at, value)?;
    if members.contains_key("hooks") {
        return void(format!("{at} is a matcher group where a handler belongs"));
    }
    match members.remove("type") {
        None => {}
        Some(Value::String(kind)) if kind == "command" => {}
        Some(Value::String(kind)) if kind == "prompt" => return Ok(None),
        Some(_) => return void(format!("{at}.type is not \"command\"")),
    }
    let command = match members.remove("command") {
        Some(Value::String(command)) if !command.is_empty() => command,
        _ => return void(format!("{at}.command is missing or not a string")),
    };
    let timeout = match members.remove("timeout") {
        None => DEFAULT_TIMEOUT,
        Some(value) => match value.as_u64() {
            // The proto default is indistinguishable from an absent field.
            Some(0) => DEFAULT_TIMEOUT,
            Some(seconds) => Duration::from_secs(seconds),
            None => return void(format!("{at}.timeout is not a whole number of seconds")),
        },
    };
    no_more(at, &members)?;
    Ok(Some(Handler { command, timeout }))
}

fn object(at: &str, value: Value) -> Result<Map<String, Value>, VoidFile> {
    match value {
        Value::Object(members) => Ok(members),
        _ => void(format!("{at} is not an object")),
    }
}

fn no_more(at: &str, members: &Map<String, Value>) -> Result<(), VoidFile> {
    match members.keys().next() {
        None => Ok(()),
        Some(key) => void(format!("{at}.{key} is not a documented key")),
    }
}

#[cfg(test)]
mod tests;
