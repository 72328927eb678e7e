//! The `matcher` of a tool group: a regular expression for the whole tool name.
//!
//! Bundled hooks.md (1.1.x): `*` and the empty text match all; `run_command` matches exactly that; `a|b`; `browser_.*`.
//! The name is the model-facing one (measured 1.2.6). Pure.

use regex::Regex;

/// Which tools a group is for.
#[derive(Clone, Debug)]
pub struct Matcher(Option<Regex>);

/// The matcher is not a regular expression.
#[derive(Debug, thiserror::Error)]
#[error("matcher {0:?} is not a regular expression; write a tool name, a pattern, or *")]
pub struct BadMatcher(String);

impl Matcher {
    /// The matcher for every step.
    #[must_use]
    pub const fn all() -> Self {
        Self(None)
    }

    /// Reads a matcher.
    ///
    /// # Errors
    /// [`BadMatcher`] if it is neither `*`, nor empty, nor a regular expression.
    pub fn parse(text: &str) -> Result<Self, BadMatcher> {
        if text.is_empty() || text == "*" {
            return Ok(Self::all());
        }
        // The group keeps the anchors outside of an alternation.
        Regex::new(&format!("^(?:{text})$")).map(|regex| Self(Some(regex))).map_err(|_| BadMatcher(text.to_owned()))
    }

    /// Whether the group is for this tool. A step without a name is matched by the matchers that match all.
    #[must_use]
    pub fn matches(&self, tool: Option<&str>) -> bool {
        match (&self.0, tool) {
            (None, _) => true,
            (Some(regex), Some(name)) => regex.is_match(name),
            (Some(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_for_the_whole_name() {
        let cases = [
            ("*", "run_command", true),
            ("", "run_command", true),
            ("run_command", "run_command", true),
            ("run_command", "run_command_async", false),
            ("run_command", "prerun_command", false),
            ("run_command", "RUN_COMMAND", false),
            ("view_file|run_command", "run_command", true),
            ("view_file|run_command", "view_file", true),
            ("view_file|run_command", "view_file_outline", false),
            ("view|file", "view_file", false),
            ("browser_.*", "browser_click", true),
            ("browser_.*", "browser", false),
            ("browser_.*", "my_browser_click", false),
            ("mcp_[a-z]+_get_issue", "mcp_github_get_issue", true),
        ];
        for (matcher, tool, expected) in cases {
            assert_eq!(Matcher::parse(matcher).unwrap().matches(Some(tool)), expected, "{matcher:?} on {tool:?}");
        }
    }

    #[test]
    fn only_a_matcher_for_all_takes_a_step_without_a_name() {
        assert!(Matcher::parse("*").unwrap().matches(None));
        assert!(!Matcher::parse(".*").unwrap().matches(None));
    }

    #[test]
    fn a_broken_pattern_is_an_error() {
        for text in ["(", "a{2,1}", "*run"] {
            assert!(Matcher::parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
