//! The text of a settings file: KEY=value lines as a shell would read them, but nothing is ever expanded or run.
//! Pure; a line that cannot be read is reported by its number only, since it may hold a key.
//! Decided in `docs/adr/0010-settings-precedence.md`.

use std::fmt;
use std::path::PathBuf;

/// Largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 64 * 1024;

/// A settings file, read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Names and values in the order of the file.
    pub pairs: Vec<(String, String)>,
    /// What could not be read, without values.
    pub problems: Vec<String>,
}

impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.pairs.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("EnvFile")
            .field("path", &self.path)
            .field("names", &names)
            .field("problems", &self.problems)
            .finish()
    }
}

impl EnvFile {
    /// Reads the bytes of a file; invalid UTF-8 is replaced.
    #[must_use]
    pub fn parse(path: PathBuf, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut file = Self { path, ..Self::default() };
        for (index, line) in text.lines().enumerate() {
            match parse_line(line) {
                Ok(Some((name, value))) => file.add(name, value, index + 1),
                Ok(None) => {}
                Err(why) => file.problems.push(format!("line {}: {why}; the line is ignored", index + 1)),
            }
        }
        file
    }

    /// A file that is there but could not be read.
    #[must_use]
    pub fn unreadable(path: PathBuf, why: impl Into<String>) -> Self {
        Self { path, pairs: Vec::new(), problems: vec![why.into()] }
    }

    /// The value of a name; the last line counts, as in a shell.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn add(&mut self, name: &str, value: String, line: usize) {
        if self.pairs.iter().any(|(known, _)| known == name) {
            self.problems.push(format!("line {line}: {name} is set before; this line counts"));
        }
        self.pairs.push((name.to_owned(), value));
    }
}

/// Reads one line; None for a blank or a comment.
fn parse_line(line: &str) -> Result<Option<(&str, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line,
    };
    let Some((name, value)) = line.split_once('=') else {
        return Err("expected NAME=value");
    };
    let name = name.trim();
    if !is_name(name) {
        return Err("the part before `=` is no name of a setting");
    }
    Ok(Some((name, parse_value(value.trim())?)))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn parse_value(value: &str) -> Result<String, &'static str> {
    match value.chars().next() {
        Some('"') => quoted(value, '"'),
        Some('\'') => quoted(value, '\''),
        _ => Ok(without_comment(value).to_owned()),
    }
}

/// A comment starts at a `#` after a blank; a `#` inside a value stays.
fn without_comment(value: &str) -> &str {
    let mut blank = true;
    for (at, c) in value.char_indices() {
        if c == '#' && blank {
            return value.get(..at).unwrap_or(value).trim_end();
        }
        blank = c.is_whitespace();
    }
    value
}

/// Takes the quotes off. In double quotes a backslash protects `"`, `\`, `$` and a backtick, as in a shell.
fn quoted(value: &str, quote: char) -> Result<String, &'static str> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    chars.next();
    while let Some(c) = chars.next() {
        if c == quote {
            let rest = chars.as_str().trim_start();
            return if rest.is_empty() || rest.starts_with('#') {
                Ok(text)
            } else {
                Err("there is text after the closing quote")
            };
        }
        if c != '\\' || quote == '\'' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some(protected @ ('"' | '\\' | '$' | '`')) => text.push(protected),
            Some(other) => text.extend(['\\', other]),
            None => return Err("the closing quote is missing"),
        }
    }
    Err("the closing quote is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<Option<(&str, String)>, &'static str> {
        parse_line(line)
    }

    #[test]
    fn lines_are_read_as_a_shell_would_but_never_expanded() {
        for (line, value) in [
            ("A=b", "b"),
            ("A = b c ", "b c"),
            ("export A=b", "b"),
            ("export\tA=b", "b"),
            ("A=b=c", "b=c"),
            ("A=b # comment", "b"),
            ("A=b#c", "b#c"),
            ("A=#c", ""),
            ("A=", ""),
            ("A=\"b # c\" # d", "b # c"),
            ("A='b\"$X`y`'", "b\"$X`y`"),
            (r#"A="b\"c\\d\$e\n""#, r#"b"c\d$e\n"#),
            ("A=$HOME/x", "$HOME/x"),
            ("A=`id`", "`id`"),
            ("A=Basic YTpi==", "Basic YTpi=="),
            ("exported=1", "1"),
        ] {
            let name = if line.starts_with("exported") { "exported" } else { "A" };
            assert_eq!(one(line), Ok(Some((name, value.to_owned()))), "{line}");
        }
        for line in ["", "  ", "# A=b", "   # x"] {
            assert_eq!(one(line), Ok(None), "{line}");
        }
        for line in ["A", "=b", "A B=c", "1A=b", "A=\"b", "A='b", "A=\"b\" c", "A=\"b\\"] {
            assert!(one(line).is_err(), "{line}");
        }
    }

    #[test]
    fn bom_crlf_doubles_and_bad_lines() {
        let file = EnvFile::parse("env".into(), b"\xef\xbb\xbfA=1\r\nsecret-key-line\r\nA=2\r\nB=\xff\n");
        assert_eq!(file.get("A"), Some("2"));
        assert_eq!(file.get("B"), Some("\u{fffd}"));
        assert_eq!(file.get("C"), None);
        assert_eq!(file.problems.len(), 2);
        assert!(file.problems[0].starts_with("line 2:"), "{:?}", file.problems);
        assert!(!format!("{file:?}").contains("secret-key"), "no text of a line may show");
    }

    #[test]
    fn debug_shows_names_only() {
        let file = EnvFile::parse("env".into(), b"FI_API_KEY=hush");
        assert_eq!(format!("{file:?}"), r#"EnvFile { path: "env", names: ["FI_API_KEY"], problems: [] }"#);
    }
}
