//! Reads JSON and keeps nothing: whether a text is JSON, and where a number or word of it ends. May not recurse, since it
//! sees values of any depth; decided in `docs/adr/0040-redaction-engine.md`.

use super::bytes::{byte, is_space, part, run};
use super::decode;
use super::json::Stop;

/// Whether bytes are an object or a list of JSON.
pub(super) fn check(bytes: &[u8]) -> Result<(), Stop> {
    if !matches!(byte(bytes, run(bytes, 0, is_space)), b'{' | b'[') {
        return Err(Stop::Broken);
    }
    let mut nothing = Skip { bytes, at: 0 };
    nothing.value()?;
    if run(bytes, nothing.at, is_space) < bytes.len() { Err(Stop::Broken) } else { Ok(()) }
}

/// Where a number, `true`, `false` or `null` ends.
pub(super) fn scalar_end(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let end = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
    let word = part(bytes, at, end);
    let known = matches!(word, b"true" | b"false" | b"null") || is_number(word);
    if known {
        Ok(end)
    } else if end == bytes.len() {
        Err(Stop::Cut)
    } else {
        Err(Stop::Broken)
    }
}

fn is_number(word: &[u8]) -> bool {
    let digits = |at: usize| run(word, at, |byte| byte.is_ascii_digit());
    let whole = usize::from(byte(word, 0) == b'-');
    let mut at = digits(whole);
    if at == whole || (byte(word, whole) == b'0' && at > whole + 1) {
        return false;
    }
    if byte(word, at) == b'.' {
        let start = at + 1;
        at = digits(start);
        if at == start {
            return false;
        }
    }
    if matches!(byte(word, at), b'e' | b'E') {
        let start = at + 1 + usize::from(matches!(byte(word, at + 1), b'-' | b'+'));
        at = digits(start);
        if at == start {
            return false;
        }
    }
    at == word.len()
}

/// Reads JSON and keeps nothing, however deep it is.
pub(super) struct Skip<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Skip<'_> {
    fn next(&mut self) -> Result<u8, Stop> {
        self.at = run(self.bytes, self.at, is_space);
        self.bytes.get(self.at).copied().ok_or(Stop::Cut)
    }

    pub(super) fn value(&mut self) -> Result<(), Stop> {
        let mut objects = Vec::new();
        loop {
            match self.next()? {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    objects.push(open == b'{');
                    if !matches!(self.next()?, b'}' | b']') {
                        self.key(open == b'{')?;
                        continue;
                    }
                }
                b'"' => self.string()?,
                _ => self.at = scalar_end(self.bytes, self.at)?,
            }
            loop {
                let Some(&object) = objects.last() else { return Ok(()) };
                let found = self.next()?;
                self.at += 1;
                match found {
                    b'}' if object => drop(objects.pop()),
                    b']' if !object => drop(objects.pop()),
                    b',' => {
                        self.key(object)?;
                        break;
                    }
                    _ => return Err(Stop::Broken),
                }
            }
        }
    }

    fn key(&mut self, object: bool) -> Result<(), Stop> {
        if !object {
            return Ok(());
        }
        if self.next()? != b'"' {
            return Err(Stop::Broken);
        }
        self.string()?;
        if self.next()? != b':' {
            return Err(Stop::Broken);
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Stop> {
        let (end, closed) = decode::string_end(self.bytes, self.at + 1);
        self.at = end + 1;
        if closed { Ok(()) } else { Err(Stop::Cut) }
    }
}
