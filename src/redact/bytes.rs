//! Reading in bytes without running out of them: past the end there is a NUL, which no rule asks for. May not know a
//! rule.

/// The byte there, or NUL past the end.
#[inline]
pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The byte before that place, or NUL at the begin.
#[inline]
pub(super) fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte(bytes, at))
}

/// What lies between, as far as there is any.
pub(super) fn part(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start.min(end)..end.min(bytes.len())).unwrap_or_default()
}

/// Whether `word` stands there, whatever its case. `word` is lower case.
pub(super) fn stands(bytes: &[u8], at: usize, word: &str) -> bool {
    part(bytes, at, at + word.len()).eq_ignore_ascii_case(word.as_bytes())
}

/// Where the bytes end that `belongs` takes, from `at` on.
pub(super) fn run(bytes: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let end = bytes.iter().skip(at).position(|&byte| !belongs(byte)).map_or(bytes.len(), |length| at + length);
    super::steps::look(end.saturating_sub(at) + 1);
    end
}

/// Where the bytes begin that `belongs` takes and that end before `at`, at most `most`.
pub(super) fn run_back(bytes: &[u8], at: usize, most: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let length = part(bytes, 0, at).iter().rev().take(most).take_while(|&&byte| belongs(byte)).count();
    super::steps::look(length + 1);
    at - length
}

/// Letters, digits and `_`.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Blanks within a line.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Blanks and ends of lines.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What strings stand in.
pub(super) const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}
