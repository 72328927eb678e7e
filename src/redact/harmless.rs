//! Says whether what a secret-like name is given is no secret after all: a variable, a call, a type, a placeholder, a
//! plain word where code has its variables. May not be generous: what it does not know is a secret.

use super::bytes::{byte, is_space, is_word, part, run};
use super::context;
use super::names::{self, Kind};
use super::steps::look;

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Between quotes, or as a string of JSON.
    Quoted,
    /// `KEY=value` in a shell or an `.env`, `--flag value`, a query: what stands there is a value, and never a variable.
    Shell,
    /// `password: word` at the begin of a line: a value in YAML, a type in code.
    Line,
    /// Elsewhere: a plain word is a variable.
    Code,
}

/// Longest value that can be harmless.
const MOST: usize = 256;

/// Values that say that there is none, or of what kind it is.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "any", "array", "basic", "bearer", "bool", "boolean", "byte", "bytes", "char", "date", "default", "disabled",
    "empty", "enabled", "error", "fail", "failed", "false", "float", "guid", "hidden", "include", "inherit", "int", "integer", "invalid",
    "list", "map", "missing", "omit", "same-origin",
    "never", "nil", "no", "none", "null", "number", "object", "off", "on", "option", "optional", "pass", "passed", "password", "prompt",
    "read", "redacted", "removed", "required", "secret", "self", "some", "str", "string", "text", "this", "token",
    "true", "type", "undefined", "unknown", "unset", "uuid", "varchar", "void", "write", "yes",
];
/// Words that no value of a flag is.
#[rustfmt::skip]
const STOPS: &[&str] = &[
    "a", "and", "are", "argument", "arguments", "as", "at", "be", "by", "can", "flag", "flags", "for", "from", "has", "if", "in",
    "instead", "is", "may", "must", "not", "of", "on", "option", "options", "or", "parameter", "should", "the", "to", "via", "was",
    "when", "will", "with",
];
/// What stands for a secret that was taken out.
const MARK: &[u8] = super::content::REDACTED.as_bytes();

/// Whether `value`, which a name of that kind is given, is no secret.
pub(super) fn harmless(value: &[u8], kind: Kind, place: Place) -> bool {
    look(value.len().min(MOST));
    if value.len() > MOST {
        return false;
    }
    let value = value.trim_ascii();
    let place = if kind == Kind::Cookie && context::is_cookie(value) { Place::Quoted } else { place };
    let bare = value.trim_ascii_end().strip_suffix(b"?").or_else(|| value.strip_suffix(b"!")).unwrap_or(value);
    is_mask(value)
        || is_example(value)
        || kind == Kind::Token && value.len() < 4
        || is_reference(value)
        || is_word_of(bare, KEYWORDS)
            && !(place == Place::Shell
                && kind == Kind::Password
                && is_word_of(bare, &["password", "secret", "default"]))
        || is_number(value) && (kind != Kind::Password || value.len() < 4)
        || is_path(value)
        || match place {
            Place::Quoted => is_label(value, kind) || is_between(value),
            Place::Shell => {
                is_word_of(value.strip_suffix(b".").unwrap_or(value), STOPS) || is_lookup(value) || is_argument(value)
            }
            Place::Line => !may_be_password(value, kind) && (is_code(value) || is_plain(value)),
            Place::Code => is_code(value) || is_plain(value),
        }
}

/// `your_key`, `YOUR-TOKEN-HERE`, `required|string`, `sk-...`, `.*/`.
fn is_example(value: &[u8]) -> bool {
    let your = part(value, 0, 4).eq_ignore_ascii_case(b"your") && matches!(byte(value, 4), b'_' | b'-' | b' ');
    your && !value.iter().any(u8::is_ascii_digit)
        || value.starts_with(b"required|")
        || value.len() < 12 && value.ends_with(b"...") && value.iter().filter(|byte| **byte == b'.').count() == 3
        || value.starts_with(b".*") && !byte(value, 2).is_ascii_alphanumeric()
}

fn is_word_of(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// Nothing but what was taken out, dots, stars or one letter again and again.
pub(super) fn is_mask(value: &[u8]) -> bool {
    let mut rest = value;
    let mut kept = Vec::new();
    while let Some((&first, others)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(MARK) {
            rest = after;
        } else {
            kept.push(first);
            rest = others;
        }
    }
    kept.iter().all(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii())
        || kept.iter().all(|byte| matches!(byte, b'x' | b'X'))
}

/// A variable of a shell, a template or a configuration, or a call or a path of names in code.
pub(super) fn is_reference(value: &[u8]) -> bool {
    let all = |from: usize, belongs: fn(u8) -> bool| from < value.len() && run(value, from, belongs) == value.len();
    match byte(value, 0) {
        b'$' => value.len() < 4 && all(1, |byte| byte.is_ascii_digit()) || is_variable(value),
        b'%' => {
            value.len() < 4 && all(1, |byte| byte.is_ascii_alphabetic())
                || value.ends_with(b"%") && all(1, |byte| is_word(byte) || byte == b'%')
        }
        b'{' => value.ends_with(b"}") || value.starts_with(b"{{") || value.starts_with(b"{%"),
        b'<' => value.ends_with(b">") || all(1, is_word),
        b'#' => value.starts_with(b"#{"),
        b'!' => {
            value.get(1).is_some_and(u8::is_ascii_alphabetic)
                && all(1, |byte| is_word(byte) || matches!(byte, b'-' | b'.' | b' ' | b':'))
        }
        b'&' | b'*' => {
            all(1, |byte| is_word(byte) || matches!(byte, b'.' | b':')) && !value.iter().any(u8::is_ascii_digit)
        }
        b'@' => all(1, |byte| is_word(byte) || byte == b'@'),
        _ => value.starts_with(b"process.env") || has_scheme(value),
    }
}

/// `${NAME}`, `$NAME`, `$(…`, and several of them with punctuation between. `${NAME:-default}` is one only without.
fn is_variable(value: &[u8]) -> bool {
    let mut at = 0;
    while at < value.len() {
        if byte(value, at) != b'$' {
            if byte(value, at).is_ascii_alphanumeric() {
                return false;
            }
            at += 1;
            continue;
        }
        match byte(value, at + 1) {
            b'(' => return true,
            b'{' => {
                let end =
                    run(value, at + 2, |byte| is_word(byte) || matches!(byte, b'.' | b'{' | b' ' | b'#' | b'/' | b'!'));
                let end = if byte(value, end) == b':' && matches!(byte(value, end + 1), b'?' | b'-' | b'=') {
                    let message = byte(value, end + 1) == b'?';
                    run(value, end + 2, |byte| message && byte != b'}')
                } else {
                    end
                };
                if !matches!(byte(value, end), b'}' | b'(' | b'[') && end < value.len() {
                    return false;
                }
                at = run(value, end, |byte| byte == b'}').max(end + 1);
            }
            b'$' => at += 1,
            first if first.is_ascii_alphabetic() || first == b'_' => {
                at = run(value, at + 1, |byte| {
                    is_word(byte) || matches!(byte, b':' | b'.' | b'-' | b'>' | b'[' | b']' | b'{' | b'}')
                });
            }
            _ => return false,
        }
    }
    true
}

fn has_scheme(value: &[u8]) -> bool {
    let end = run(value, 0, |byte| byte.is_ascii_lowercase() || byte == b'+');
    end > 1 && part(value, end, end + 3) == b"://"
}

fn is_number(value: &[u8]) -> bool {
    let hex = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"#"));
    hex.is_some_and(|hex| hex.len() <= 8 && hex.iter().all(u8::is_ascii_hexdigit))
        || value.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-' | b',' | b'%'))
}

/// A path of plain names. What looks random in it makes it a secret, for base64 has slashes.
fn is_path(value: &[u8]) -> bool {
    let rooted =
        [b"/".as_slice(), b"./", b"../", b"~/", b"file:", b"@/", b"\\"].iter().any(|root| value.starts_with(root))
            || (byte(value, 0).is_ascii_alphabetic()
                && byte(value, 1) == b':'
                && matches!(byte(value, 2), b'/' | b'\\')
                && byte(value, 3) != b'/');
    rooted
        && value
            .iter()
            .all(|&byte| is_word(byte) || matches!(byte, b'/' | b'.' | b'-' | b'~' | b'\\' | b':' | b'<' | b'>' | b'@'))
        && value.iter().filter(|byte| byte.is_ascii_uppercase()).count() <= 4
        && value.iter().filter(|byte| byte.is_ascii_digit()).count() <= 4
}

/// Letters alone, or with what joins words.
fn is_plain(value: &[u8]) -> bool {
    !value.is_empty()
        && value.iter().all(|&byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.' | b'/'))
        || value.contains(&b' ') && value.split(|&byte| byte == b' ').all(|word| !is_mixed(word))
}

fn is_random(word: &[u8]) -> bool {
    word.len() >= 8 && is_mixed(word)
}

fn is_mixed(word: &[u8]) -> bool {
    word.len() >= 4 && word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic)
}

/// `swordfish`, where a type would not be in lower case, or have another name.
fn may_be_password(value: &[u8], kind: Kind) -> bool {
    kind == Kind::Password && value.len() >= 6 && value.iter().all(u8::is_ascii_lowercase)
}

/// A call, a member, an index, a type with parameters, the begin of a block.
fn is_code(value: &[u8]) -> bool {
    let value = value.strip_suffix(b";").or_else(|| value.strip_suffix(b",")).unwrap_or(value);
    let first = byte(value, 0);
    if matches!(first, b'(' | b'[' | b'{' | b'|' | b'<') && !value.starts_with(MARK) {
        return true;
    }
    if !(first.is_ascii_alphabetic() || matches!(first, b'_' | b'&' | b'*' | b'!' | b'@')) {
        return false;
    }
    let head = run(value, 1, |byte| is_word(byte) || byte == b'\'');
    let name = part(value, 0, head);
    match (byte(value, head), byte(value, head + 1)) {
        (b'(' | b'[' | b'<', _) | (b':', b':') | (b'!', b'(' | b'[' | b'{') | (b'-', b'>') | (b'?', b'.' | b':') => {
            true
        }
        (b'.', next) => !is_random(name) && (next.is_ascii_alphabetic() || next == b'_') && is_members(value, head),
        (b' ', _) => is_operation(value, head, name),
        (0, _) if head == value.len() => is_plain(name),
        _ => false,
    }
}

/// `name,` or `self.name)`: an argument of a call that has a line of its own.
fn is_argument(value: &[u8]) -> bool {
    let bare = value.trim_ascii_end();
    let end = bare.iter().rposition(|byte| !matches!(byte, b',' | b')')).map_or(0, |last| last + 1);
    end > 0 && end < bare.len() && (is_code(part(bare, 0, end)) || is_plain(part(bare, 0, end)))
}

/// ` + name + `, `, `: what stands between two strings, the first of which ends with the name.
fn is_between(value: &[u8]) -> bool {
    let next = byte(value, 1);
    matches!(byte(value, 0), b'+' | b',' | b')' | b']' | b'%' | b'.' | b';' | b'&' | b'|' | b':')
        && (is_space(next) || matches!(next, 0 | b'"' | b'\'' | b')' | b'(' | b'{' | b':' | b';' | b',' | b'}'))
}

/// `os.environ[…`: nothing that a shell would take for a value.
fn is_lookup(value: &[u8]) -> bool {
    let head = run(value, 0, is_word);
    let members = run(value, head, |byte| is_word(byte) || byte == b'.');
    byte(value, 0).is_ascii_alphabetic() && members > head && matches!(byte(value, members), b'(' | b'[')
}

/// `.name.name(…`: members as far as they go, none of which looks random.
fn is_members(value: &[u8], at: usize) -> bool {
    let end = run(value, at, |byte| is_word(byte) || byte == b'.');
    let plain =
        part(value, at, end).split(|&byte| byte == b'.').all(|name| !is_random(name) || byte(value, end) == b'(');
    plain
        && (end == value.len()
            || matches!(byte(value, end), b'(' | b'[' | b'?' | b'!' | b'-' | b' ' | b'/' | b')' | b'<' | b'|' | b':'))
}

/// `await f()`, `new X`, `a || b`, `x as y`, `move || …`.
fn is_operation(value: &[u8], at: usize, name: &[u8]) -> bool {
    let rest = part(value, run(value, at, is_space), value.len());
    is_word_of(
        name,
        &[
            "await", "new", "match", "if", "yield", "async", "move", "typeof", "not", "lambda", "ref", "mut",
            "function", "case",
        ],
    ) || !is_random(name)
        && [
            b"||".as_slice(),
            b"&&",
            b"??",
            b"?",
            b"+",
            b"|",
            b"or ",
            b"if ",
            b"as ",
            b"in ",
            b"and ",
            b"==",
            b"-",
            b"{",
            b"=>",
        ]
        .iter()
        .any(|operator| rest.starts_with(operator))
}

/// Says something about a secret: its label, its variable, its kind.
fn is_label(value: &[u8], kind: Kind) -> bool {
    let spoken = value.contains(&b' ') && {
        let last = value.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
        let mut words = value.split(|byte| !byte.is_ascii_alphanumeric());
        words.any(|word| names::kind(word).is_some() || word.eq_ignore_ascii_case(b"key"))
            && !value.split(|&byte| byte == b' ').any(is_random)
            && !last.is_empty()
    };
    let variable = value.contains(&b'_')
        && (value.iter().all(|&byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
            || value.iter().all(|&byte| byte.is_ascii_lowercase() || byte == b'_'))
        && names::kind(value).is_some();
    let word = kind != Kind::Password
        && value.iter().all(|&byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-' | b'.' | b' '))
        && (value.len() <= 12 || value.iter().any(|byte| matches!(byte, b'_' | b'-' | b'.' | b' ')));
    // A type, in quotes for it is not known yet.
    let path = kind != Kind::Password && value.contains(&b'.') && is_plain(value);
    spoken
        || variable
        || path
        || word
        || (byte(value, 0).is_ascii_uppercase()
            && value.iter().skip(1).all(u8::is_ascii_lowercase)
            && names::kind(value).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_calls_and_types_are_harmless() {
        for value in [
            "",
            "***",
            "xxxx",
            "[REDACTED]",
            "$TOKEN",
            "${TOKEN}",
            "${TOKEN:-}",
            "${TOKEN:?not set}",
            "$(cat file)",
            "${{ secrets.TOKEN }}",
            "{{ token }}",
            "<your-token>",
            "%s",
            "%TOKEN%",
            "#{token}",
            "process.env.API_KEY",
            "null",
            "None",
            "/run/secrets/db_password",
            "https://example.com/oauth",
            "12",
        ] {
            for place in [Place::Quoted, Place::Shell, Place::Line, Place::Code] {
                assert!(harmless(value.as_bytes(), Kind::Token, place), "{value} {place:?}");
            }
        }
        for value in [
            "getpass()",
            "os.environ[\"TOKEN\"]",
            "config.token",
            "self.password",
            "Config::token",
            "opts->password",
            "token",
            "String",
            "Option<String>",
            "&str",
            "await getToken()",
            "a || b",
            "new Token(1)",
            "SecretString,",
            "req.headers.authorization;",
        ] {
            assert!(harmless(value.as_bytes(), Kind::Password, Place::Code), "{value}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_secret() {
        for value in [
            "hunter2",
            "s3cr3t!",
            "correct-horse-1",
            "$2b$12$abc",
            "${TOKEN:-hunter2}",
            "ab.c9d8e7f6",
            "/abCDeFgHiJ12345",
            "[REDACTED]q7",
        ] {
            for place in [Place::Quoted, Place::Shell, Place::Line, Place::Code] {
                assert!(!harmless(value.as_bytes(), Kind::Password, place), "{value} {place:?}");
            }
        }
        assert!(!harmless(b"swordfish", Kind::Password, Place::Line));
        assert!(!harmless(b"swordfish", Kind::Token, Place::Shell));
        assert!(!harmless(b"swordfish", Kind::Password, Place::Quoted));
        assert!(!harmless(&[b'a'; 300], Kind::Token, Place::Code));
    }
}
