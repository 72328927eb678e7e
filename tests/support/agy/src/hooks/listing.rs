//! What `agy -p "/hooks" --output-format json` prints.
//!
//! Shape reported for 1.2.7 (changelog 1.1.12 brought the command): `command.data.hooks[]` with name, enabled, source and
//! actions of event, type, command and `timeout_seconds`. The other members of the answer are not known. Pure.

use serde_json::{Value, json};

use super::discover::Loaded;

/// The surviving hooks, disabled ones too.
#[must_use]
pub fn listing(loaded: &Loaded) -> Value {
    let hooks: Vec<Value> = loaded
        .sources
        .iter()
        .map(|source| {
            let actions: Vec<Value> = source
                .hook
                .actions
                .iter()
                .map(|action| {
                    let handler = &action.handler;
                    json!({"event": action.event, "type": "command", "command": handler.command, "timeout_seconds": handler.timeout.as_secs()})
                })
                .collect();
            json!({"name": source.hook.name, "enabled": source.hook.enabled, "source": source.path, "actions": actions})
        })
        .collect();
    json!({"command": {"data": {"hooks": hooks}}})
}
