//! Decodes the strings of a payload. No I/O.

/// Decodes a JSON string that may be cut anywhere and may hold invalid UTF-8: what cannot be read becomes U+FFFD, an
/// escape or character that is cut at the end is left out.
pub(super) fn unescape(raw: &[u8]) -> String {
    let raw = raw.utf8_chunks().fold(String::with_capacity(raw.len()), |mut text, chunk| {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    });
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => text.extend(unicode(&mut chars)),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

/// Reads what follows `\u`: four hex digits, and a second escape for the upper planes.
fn unicode(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = hex4(chars)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    let mut ahead = chars.clone();
    if ahead.next() == Some('\\')
        && ahead.next() == Some('u')
        && let Some(second) = hex4(&mut ahead)
        && (0xdc00..0xe000).contains(&second)
    {
        *chars = ahead;
        return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
    }
    Some(char::REPLACEMENT_CHARACTER)
}

fn hex4(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |value, _| Some(value * 16 + chars.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_and_broken_text_are_decoded_leniently() {
        for (raw, expected) in [
            (&br#"a\"b\\c\n\u00e9\ud83d\ude00"#[..], "a\"b\\c\né😀"),
            (br"lone \ud83d surrogate", "lone \u{fffd} surrogate"),
            (br"cut \u00", "cut "),
            (b"cut \\", "cut "),
            (b"raw \xff\xfe bytes \xc3\xa9", "raw \u{fffd}\u{fffd} bytes é"),
        ] {
            assert_eq!(unescape(raw), expected);
        }
    }
}
