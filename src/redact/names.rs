//! Says whether a name promises a secret: `DB_PASSWORD` and `authToken` do, `max_tokens` and `sort_key` do not. A name is
//! split into words; one of them, or two, must be known, and what follows may only say which of several it is. May not
//! look at a value.

/// What kind of secret a name promises. It decides how doubtful a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any word may be one.
    Password,
    /// Made by a machine: never a short plain word, never a number.
    Token,
    /// The value of an `Authorization` header.
    Authorization,
    /// The value of a `Cookie` header.
    Cookie,
}

/// Longest name that is looked at; of a longer one it is the end that counts.
pub(super) const MOST: usize = 64;
const MOST_WORDS: usize = 12;

/// Each promises a password, or something as bad.
#[rustfmt::skip]
const PASSWORDS: &[&str] = &[
    "password", "passwords", "passwd", "passphrase", "passphrases", "passcode", "pwd", "pword", "secret", "secrets",
    "credential", "credentials", "creds",
];
/// A word may end in one of these: `pgpassword`, `clientsecret`.
const PASSWORD_ENDS: &[&str] = &["password", "passwd", "passphrase", "secret", "passwort", "pwd"];
#[rustfmt::skip]
const TOKEN_ENDS: &[&str] = &[
    "apikey", "accesskey", "secretkey", "privatekey", "accountkey", "signingkey", "encryptionkey", "authkey",
    "masterkey", "authtoken", "accesstoken", "refreshtoken", "idtoken", "sessiontoken", "bearertoken", "apitoken",
    "usertoken", "sessionid", "sessid",
];
/// `…_key` is secret after one of these.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "access", "account", "admin", "aes", "ai", "anthropic", "api", "app", "application", "auth", "aws", "azure",
    "client", "cohere", "cookie", "credential", "crypt", "crypto", "datadog", "dd", "decryption", "deepseek",
    "deploy", "enc", "encrypt", "encryption", "fernet", "function", "gcp", "gemini", "github", "gitlab", "google", "gpg",
    "groq", "hmac", "host", "jwt", "license", "linode", "mailgun", "mandrill", "master", "mistral", "openai",
    "openrouter", "password", "pgp", "private", "relic", "root", "rsa", "secret", "sendgrid", "server", "service",
    "session", "shared", "sign", "signing", "ssh", "ssl", "storage", "stripe", "subscription", "tls", "twilio",
    "unseal", "webhook", "vapid", "write",
];
/// `…_token` is none after one of these.
#[rustfmt::skip]
const NO_TOKENS: &[&str] = &[
    "bos", "cancel", "cancellation", "cls", "completion", "continuation", "current", "end", "eos", "first", "input",
    "last", "lex", "mask", "max", "min", "next", "num", "output", "pad", "page", "peek", "per", "prev", "previous",
    "prompt", "sep", "special", "start", "stop", "sync", "syntax", "total", "unexpected", "unk", "expected", "expect",
    "close", "open", "comment", "string", "identifier", "keyword",
];
/// `…_password` is none after one of these: it says what to do, or whether.
const NO_PASSWORDS: &[&str] = &[
    "ask", "change", "check", "existing", "forgot", "generate", "get", "has", "hide", "invalid", "is", "missing", "no",
    "require", "requires", "reset", "show", "toggle", "use", "validate", "verify", "wrong", "with", "without",
];
/// `…_pass` is secret after one of these; alone it may be one.
const PASSES: &[&str] = &[
    "account", "admin", "api", "app", "auth", "become", "database", "db", "docker", "email", "ftp", "http", "ldap",
    "login", "mail", "mongo", "mysql", "pg", "postgres", "proxy", "rabbitmq", "redis", "registry", "root", "smtp",
    "ssh", "sudo", "user", "vault", "wifi",
];
/// Words that may follow, for they only say which one it is.
#[rustfmt::skip]
const SUFFIXES: &[&str] = &[
    "b64", "base", "base64", "backup", "ci", "current", "dev", "development", "enc", "encoded", "encrypted", "hash",
    "live", "local", "main", "new", "old", "org", "plain", "plaintext", "previous", "primary", "prod", "production",
    "raw", "read", "ro", "root", "rw", "sandbox", "secondary", "stage", "staging", "str", "string", "test", "testing",
    "text", "val", "value", "write",
];

/// The words of a name, in lower case.
struct Words {
    letters: [u8; MOST],
    ends: [usize; MOST_WORDS],
    count: usize,
}

impl Words {
    fn of(name: &[u8]) -> Self {
        let mut words = Self { letters: [0; MOST], ends: [0; MOST_WORDS], count: 0 };
        let name = name.get(name.len().saturating_sub(MOST)..).unwrap_or_default();
        let mut length = 0;
        let mut last = 0_u8;
        for (at, &byte) in name.iter().enumerate() {
            let next = name.get(at + 1).copied().unwrap_or(0);
            let hump = byte.is_ascii_uppercase()
                && (last.is_ascii_lowercase() || (last.is_ascii_uppercase() && next.is_ascii_lowercase()));
            if hump || !byte.is_ascii_alphanumeric() {
                words.end(length);
            }
            if byte.is_ascii_alphanumeric() {
                if let Some(letter) = words.letters.get_mut(length) {
                    *letter = byte.to_ascii_lowercase();
                }
                length += 1;
            }
            last = byte;
        }
        words.end(length);
        words
    }

    fn end(&mut self, at: usize) {
        let begin = self.count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        if at == begin {
            return;
        }
        if self.count == MOST_WORDS {
            // The end counts, so the first two become one.
            self.ends.copy_within(1.., 0);
            self.count -= 1;
        }
        if let Some(end) = self.ends.get_mut(self.count) {
            *end = at;
            self.count += 1;
        }
    }

    fn get(&self, index: Option<usize>) -> &str {
        let Some(index) = index.filter(|index| *index < self.count) else { return "" };
        let begin = index.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        let letters = self.ends.get(index).and_then(|end| self.letters.get(begin..*end)).unwrap_or_default();
        str::from_utf8(letters).unwrap_or_default()
    }
}

/// Whether three letters stand in it that a name which promises something has. Most names have none, and are done with that.
fn may_promise(name: &[u8]) -> bool {
    let lower = |at: usize| name.get(at).map_or(0, u8::to_ascii_lowercase);
    let (mut first, mut second) = (lower(0), lower(1));
    name.len() < 3
        || (2..name.len()).any(|at| {
            let third = lower(at);
            let found = matches!(
                [first, second, third],
                [b'p', b'a', b's' | b't']
                    | [b'p', b'w', _]
                    | [_, b'p', b'w']
                    | [b'p', b's', b'k']
                    | [b's', b'e', b'c' | b's']
                    | [b'c', b'r', b'e']
                    | [b'k', b'e', b'y']
                    | [b't', b'o', b'k']
                    | [b'a', b'u', b't']
                    | [b'c', b'o', b'o']
                    | [b'j', b'w', b't']
                    | [b'b', b'e', b'a']
                    | [b'p', b'h', b'r']
                    | [b'm', b'n', b'e']
                    | [b's', b'i', b'g']
                    | [b'r', b'c', b'o' | b'f']
            );
            (first, second) = (second, third);
            found
        })
}

/// What kind of secret the name promises.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    super::steps::look(name.len());
    if may_promise(name) { promised(name) } else { None }
}

fn promised(name: &[u8]) -> Option<Kind> {
    let words = Words::of(name);
    let mut count = words.count;
    while let Some(last) = count.checked_sub(1) {
        if let Some(found) = ends_in(&words, last) {
            return Some(found);
        }
        let word = words.get(Some(last));
        let says_which = SUFFIXES.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit());
        if !says_which {
            return None;
        }
        count = last;
    }
    None
}

/// What kind of secret the words up to `last` promise.
fn ends_in(words: &Words, last: usize) -> Option<Kind> {
    let word = words.get(Some(last)).trim_end_matches(|c: char| c.is_ascii_digit());
    let before = words.get(last.checked_sub(1));
    if PASSWORDS.contains(&word) || PASSWORD_ENDS.iter().any(|end| word.ends_with(end)) {
        return (!NO_PASSWORDS.contains(&before)).then_some(Kind::Password);
    }
    if TOKEN_ENDS.iter().any(|end| word.ends_with(end)) {
        return Some(Kind::Token);
    }
    match word {
        "token" if !NO_TOKENS.contains(&before) => Some(Kind::Token),
        "key" | "keys" if KEYS.contains(&before) => Some(Kind::Token),
        "pass" | "pw" if PASSES.contains(&before) => Some(Kind::Password),
        "pass" | "pw" if before.is_empty() => Some(Kind::Token),
        "requirepass" | "masterauth" | "storepass" | "keypass" | "psk" | "userpass" | "dbpass" | "smtppass"
        | "pgpass" | "ftppass" | "sshpass" => Some(Kind::Password),
        "phrase" if matches!(before, "seed" | "recovery" | "pass" | "mnemonic") => Some(Kind::Password),
        "word" if before == "pass" => Some(Kind::Password),
        "authorization" => Some(Kind::Authorization),
        "auth" if before.is_empty() || matches!(before, "basic" | "proxy" | "docker" | "npm" | "registry" | "x") => {
            Some(Kind::Token)
        }
        "cookie" => Some(Kind::Cookie),
        "dockerconfigjson" | "dockercfg" => Some(Kind::Token),
        "jwt" => Some(Kind::Token),
        "bearer" if !before.is_empty() => Some(Kind::Token),
        "pat" if matches!(before, "github" | "gitlab" | "gh" | "azure" | "ado" | "devops") => Some(Kind::Token),
        "mnemonic" | "sig" if before.is_empty() => Some(Kind::Token),
        "signature" if matches!(before, "amz" | "goog") => Some(Kind::Token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_promises_something_is_looked_at() {
        let words = [
            "token",
            "key",
            "keys",
            "pass",
            "pw",
            "requirepass",
            "masterauth",
            "storepass",
            "keypass",
            "psk",
            "userpass",
            "dbpass",
            "smtppass",
            "pgpass",
            "ftppass",
            "sshpass",
            "phrase",
            "word",
            "authorization",
            "auth",
            "cookie",
            "jwt",
            "bearer",
            "pat",
            "mnemonic",
            "sig",
            "signature",
            "dockerconfigjson",
            "dockercfg",
        ];
        let befores = ["", "seed", "recovery", "pass", "npm", "x", "github", "amz", "goog", "db", "api"];
        let mut promises = 0;
        for word in words.iter().chain(PASSWORDS).chain(PASSWORD_ENDS).chain(TOKEN_ENDS) {
            for before in befores.iter().chain(KEYS).chain(PASSES) {
                for name in
                    [format!("{before}_{word}"), format!("{before}{word}2"), format!("{before}-{word}").to_uppercase()]
                {
                    promises += usize::from(promised(name.as_bytes()).is_some());
                    assert_eq!(kind(name.as_bytes()), promised(name.as_bytes()), "{name}");
                }
            }
        }
        assert!(promises > 1000, "{promises}");
    }

    #[test]
    fn names_of_secrets() {
        for (name, kind) in [
            ("password", Kind::Password),
            ("DB_PASSWORD", Kind::Password),
            ("PGPASSWORD", Kind::Password),
            ("spring.datasource.password", Kind::Password),
            ("userPassword2", Kind::Password),
            ("Dpassword", Kind::Password),
            ("clientSecret", Kind::Password),
            ("SECRET_KEY_BASE", Kind::Token),
            ("AWS_SECRET_ACCESS_KEY", Kind::Token),
            ("aws_session_token", Kind::Token),
            ("authToken", Kind::Token),
            ("_authToken", Kind::Token),
            ("APIKey", Kind::Token),
            ("apikey", Kind::Token),
            ("X-API-Key", Kind::Token),
            ("GITHUB_TOKEN_PROD", Kind::Token),
            ("API_KEY_2", Kind::Token),
            ("AccountKey", Kind::Token),
            ("--access-token", Kind::Token),
            ("SMTP_PASS", Kind::Password),
            ("Proxy-Authorization", Kind::Authorization),
            ("Set-Cookie", Kind::Cookie),
        ] {
            assert_eq!(super::kind(name.as_bytes()), Some(kind), "{name}");
        }
    }

    #[test]
    fn names_of_other_things() {
        for name in [
            "",
            "_",
            "key",
            "max_tokens",
            "sort_key",
            "primary_key",
            "primaryKey",
            "foreign_key",
            "token_count",
            "tokenizer",
            "tokens",
            "nextToken",
            "next_page_token",
            "eos_token",
            "password_file",
            "passwordLength",
            "secretName",
            "secret_arn",
            "token_type",
            "token_url",
            "key_id",
            "private_key_id",
            "public_key",
            "cache_key",
            "partitionKey",
            "bypass",
            "compass",
            "first_pass",
            "passes",
            "author",
            "authority",
            "monkey",
            "keyboard",
            "hotkey",
            "secretary",
            "compassionate",
            "forgot_password",
            "reset-password",
            "showPassword",
            "cookies",
            "cookie_policy",
            "api_url",
            "passport",
            "signature",
            "design",
            "key_path",
            "api_key_name",
            "bucket_key",
            "x",
        ] {
            assert_eq!(super::kind(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn of_a_long_name_the_end_counts() {
        let name = "a_".repeat(200) + "password";
        assert_eq!(kind(name.as_bytes()), Some(Kind::Password));
    }
}
