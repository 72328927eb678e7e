//! How agy is told to run us: one named hook in its hooks.json. Pure. The two shapes that agy wants are two types, since
//! a lifecycle event in the shape of a tool event voids the whole file, silently (agy 1.0.15), and a tool event in the
//! other shape never fires. Decided in `docs/adr/0031-the-registered-command.md`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The name of our hook: the one top-level member of hooks.json that is ours.
pub const MEMBER: &str = "fi-hook-to-otlp";
/// The program's file name.
pub const PROGRAM: &str = "fi-hook-to-otlp";
/// Seconds until agy gives a hook up. The hook itself gives up after 5; agy's own default is 30.
const TIMEOUT_SECONDS: u32 = 10;

/// A word of the shell's language that stands for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord(String);

impl ShellWord {
    /// Quotes a path for `sh`. A path below `home` starts with `$HOME`, so that the file can be committed.
    ///
    /// # Errors
    /// For a path with control characters, which no line of a hooks.json should hold.
    pub fn of_path(path: &str, home: Option<&str>) -> Result<Self, Unquotable> {
        if path.chars().any(char::is_control) {
            return Err(Unquotable);
        }
        let below_home =
            home.filter(|home| home.len() > 1).and_then(|home| path.strip_prefix(home.trim_end_matches('/')));
        let (start, rest) = match below_home {
            Some(rest) if rest.starts_with('/') => ("$HOME", rest),
            _ => ("", path),
        };
        let mut word = format!("\"{start}");
        for character in rest.chars() {
            if matches!(character, '"' | '\\' | '$' | '`') {
                word.push('\\');
            }
            word.push(character);
        }
        word.push('"');
        Ok(Self(word))
    }

    /// The copy in the folder of hooks.json, in which agy runs its hooks.
    #[must_use]
    pub fn vendored() -> Self {
        Self(format!("\"./{MEMBER}/{PROGRAM}\""))
    }
}

impl fmt::Display for ShellWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path that cannot be written into a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path has control characters: use another one")]
pub struct Unquotable;

/// What becomes of PreToolUse, agy's permission gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PreToolUse {
    /// Registered, answered with nothing at all (measured neutral on 1.0.3 to 1.2.6).
    #[default]
    NoReply,
    /// Registered, answered with `{"decision":""}`.
    EmptyDecision,
    /// Not registered: tools have no start times then.
    Unregistered,
}

/// One command that agy runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Handler {
    r#type: &'static str,
    command: String,
    timeout: u32,
}

/// The shape of a lifecycle event: handlers, without any matcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Lifecycle([Handler; 1]);

/// The shape of a tool event: groups of handlers by tool name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Tool([MatcherGroup; 1]);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct MatcherGroup {
    matcher: &'static str,
    hooks: [Handler; 1],
}

/// Our hook, as it stands in hooks.json below [`MEMBER`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Registration {
    session_start: Lifecycle,
    pre_invocation: Lifecycle,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_tool_use: Option<Tool>,
    post_tool_use: Tool,
    post_invocation: Lifecycle,
    stop: Lifecycle,
}

impl Registration {
    /// The hook that runs `program` at every event.
    #[must_use]
    pub fn new(program: &ShellWord, pre_tool_use: PreToolUse) -> Self {
        let handler =
            |words: &str| Handler { r#type: "command", command: command(program, words), timeout: TIMEOUT_SECONDS };
        let lifecycle = |event: &str| Lifecycle([handler(event)]);
        let tool = |words: &str| Tool([MatcherGroup { matcher: "*", hooks: [handler(words)] }]);
        Self {
            session_start: lifecycle("SessionStart"),
            pre_invocation: lifecycle("PreInvocation"),
            pre_tool_use: match pre_tool_use {
                PreToolUse::NoReply => Some(tool("PreToolUse")),
                PreToolUse::EmptyDecision => Some(tool("PreToolUse --reply empty-decision")),
                PreToolUse::Unregistered => None,
            },
            post_tool_use: tool("PostToolUse"),
            post_invocation: lifecycle("PostInvocation"),
            stop: lifecycle("Stop"),
        }
    }

    /// A whole hooks.json with our hook alone.
    #[must_use]
    pub fn file_text(&self) -> String {
        self.pretty() + "\n"
    }

    /// The member to paste into the braces of a hooks.json that is there.
    #[must_use]
    pub fn member_text(&self) -> String {
        let file = self.pretty();
        let inner = file.strip_prefix("{\n").and_then(|text| text.strip_suffix("\n}"));
        inner.unwrap_or_default().to_owned() + "\n"
    }

    /// The same as a value, to compare with what a file holds.
    #[must_use]
    pub fn value(&self) -> Value {
        // Cannot fail: strings, numbers and lists of them, under keys that are strings.
        serde_json::to_value(self).unwrap_or_default()
    }

    fn pretty(&self) -> String {
        // Cannot fail, as above; what is written is read back and validated anyway.
        serde_json::to_string_pretty(&BTreeMap::from([(MEMBER, self)])).unwrap_or_default()
    }
}

/// A missing, foreign or killed program must not become an exit code: agy takes those of PreToolUse for a denial.
fn command(program: &ShellWord, words: &str) -> String {
    format!("{program} hook antigravity {words} 2>/dev/null || :")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_one_word_of_the_shell() {
        let home = Some("/home/me");
        for (path, home, expected) in [
            ("/home/me/.local/bin/x", home, r#""$HOME/.local/bin/x""#),
            ("/home/me/.local/bin/x", Some("/home/me/"), r#""$HOME/.local/bin/x""#),
            ("/home/meadow/x", home, r#""/home/meadow/x""#),
            ("/opt/x", home, r#""/opt/x""#),
            ("/opt/x", Some("/"), r#""/opt/x""#),
            ("/opt/x", Some(""), r#""/opt/x""#),
            ("/opt/x", None, r#""/opt/x""#),
            (r#"/o p/a"b\c$d`e'f"#, None, r#""/o p/a\"b\\c\$d\`e'f""#),
        ] {
            assert_eq!(ShellWord::of_path(path, home).unwrap().to_string(), expected);
        }
        assert_eq!(ShellWord::of_path("/a\nb", None), Err(Unquotable));
    }

    #[test]
    fn the_default_registration_is_exactly_this() {
        let program = ShellWord::of_path("/h/.local/bin/fi-hook-to-otlp", Some("/h")).unwrap();
        let registration = Registration::new(&program, PreToolUse::NoReply);
        let flat = |event: &str| {
            format!(
                r#"[{{"type":"command","command":"\"$HOME/.local/bin/fi-hook-to-otlp\" hook antigravity {event} 2>/dev/null || :","timeout":10}}]"#
            )
        };
        let grouped = |event: &str| format!(r#"[{{"matcher":"*","hooks":{}}}]"#, flat(event));
        let expected = format!(
            r#"{{"fi-hook-to-otlp":{{"SessionStart":{},"PreInvocation":{},"PreToolUse":{},"PostToolUse":{},"PostInvocation":{},"Stop":{}}}}}"#,
            flat("SessionStart"),
            flat("PreInvocation"),
            grouped("PreToolUse"),
            grouped("PostToolUse"),
            flat("PostInvocation"),
            flat("Stop"),
        );
        let text = registration.file_text();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::from_str::<Value>(&expected).unwrap());
        assert!(text.ends_with("}\n") && text.starts_with("{\n  \"fi-hook-to-otlp\": {\n    \"SessionStart\""));
        assert_eq!(format!("{{\n{}}}\n", registration.member_text()), text);
    }

    #[test]
    fn pre_tool_use_can_be_left_out_or_answered_otherwise() {
        let events = |pre_tool_use| {
            let value = Registration::new(&ShellWord::vendored(), pre_tool_use).value();
            let command = value.pointer("/PreToolUse/0/hooks/0/command").and_then(Value::as_str).map(str::to_owned);
            (value.as_object().unwrap().len(), command)
        };
        assert_eq!(events(PreToolUse::Unregistered), (5, None));
        let expected = r#""./fi-hook-to-otlp/fi-hook-to-otlp" hook antigravity PreToolUse --reply empty-decision 2>/dev/null || :"#;
        assert_eq!(events(PreToolUse::EmptyDecision), (6, Some(expected.to_owned())));
    }
}
