//! Trace and span ids, derived from what a span stands for: the same events always give the same ids, so a replay is
//! harmless and a parent's id is known before the parent closes. Pure; random ids nowhere.
//! Decided in `docs/adr/0004-derived-ids.md`.

use sha2::{Digest, Sha256};

use crate::span::{Role, SpanId, TraceId};

/// The trace of a conversation: the 16 bytes of its id when that is a UUID, else the first 16 of its SHA-256.
#[must_use]
pub fn trace_id(conversation: &str) -> TraceId {
    uuid(conversation).unwrap_or_else(|| {
        let digest: [u8; 32] = Sha256::digest(conversation.as_bytes()).into();
        TraceId(never_zero(first(&digest)))
    })
}

/// The span of the `index`-th part of its kind in a conversation, which began at `start_ns` (nanoseconds since 1970).
#[must_use]
pub fn span_id(conversation: &str, role: Role, index: i64, start_ns: u64) -> SpanId {
    let mut hash = Sha256::new();
    // The length goes first, so that no conversation id can imitate another one's remaining fields.
    hash.update((conversation.len() as u64).to_be_bytes());
    hash.update(conversation.as_bytes());
    hash.update([role_byte(role)]);
    hash.update(index.to_be_bytes());
    hash.update(start_ns.to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    SpanId(never_zero(first(&digest)))
}

/// Reads a W3C `traceparent` header; None unless trace and span are valid and not zero.
#[must_use]
pub fn parse_traceparent(text: &str) -> Option<(TraceId, SpanId)> {
    let mut fields = text.trim().split('-');
    let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let lower_hex = |field: &str| field.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let framed = version.len() == 2 && flags.len() == 2 && [version, trace, span, flags].into_iter().all(lower_hex);
    // Version ff is forbidden; 00 has exactly four fields, later ones may add more.
    if !framed || version == "ff" || (version == "00" && fields.next().is_some()) {
        return None;
    }
    Some((TraceId::from_hex(trace)?, SpanId::from_hex(span)?))
}

/// The bytes of a UUID in its canonical form or without hyphens; None for anything else and for the nil UUID.
fn uuid(text: &str) -> Option<TraceId> {
    let hyphens_fit = match text.len() {
        32 => !text.contains('-'),
        36 => text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == matches!(at, 8 | 13 | 18 | 23)),
        _ => false,
    };
    hyphens_fit.then(|| TraceId::from_hex(&text.replace('-', ""))).flatten()
}

/// A fixed number per role: part of the hashed bytes, so never to be changed.
const fn role_byte(role: Role) -> u8 {
    match role {
        Role::Session => 1,
        Role::Turn => 2,
        Role::ModelCall => 3,
        Role::Tool => 4,
    }
}

fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(digest).for_each(|(byte, from)| *byte = *from);
    bytes
}

/// OTLP forbids an id of zeros; a hash is one with probability 2⁻⁶⁴, and then becomes 1.
fn never_zero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if bytes.iter().all(|byte| *byte == 0)
        && let Some(last) = bytes.last_mut()
    {
        *last = 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_its_own_trace_id() {
        let cases = [
            ("7c1d0a52-3b0e-4f65-9a53-2f1c8e0b9d11", "7c1d0a523b0e4f659a532f1c8e0b9d11"),
            ("7C1D0A52-3B0E-4F65-9A53-2F1C8E0B9D11", "7c1d0a523b0e4f659a532f1c8e0b9d11"),
            ("7c1d0a523b0e4f659a532f1c8e0b9d11", "7c1d0a523b0e4f659a532f1c8e0b9d11"),
        ];
        for (conversation, trace) in cases {
            assert_eq!(trace_id(conversation).to_string(), trace, "{conversation}");
        }
    }

    #[test]
    fn any_other_conversation_id_is_hashed() {
        assert_eq!(trace_id("abc").to_string(), "ba7816bf8f01cfea414140de5dae2223");
        for odd in ["", "00000000-0000-0000-0000-000000000000", "7c1d0a52-3b0e-4f65-9a532-f1c8e0b9d11", "é"] {
            assert_ne!(trace_id(odd).0, [0; 16], "{odd}");
        }
    }

    #[test]
    fn span_ids_differ_by_each_of_their_fields() {
        let base = span_id("c", Role::Turn, 1, 7);
        assert_eq!(base, span_id("c", Role::Turn, 1, 7));
        let others = [
            span_id("d", Role::Turn, 1, 7),
            span_id("c", Role::Tool, 1, 7),
            span_id("c", Role::Turn, 2, 7),
            span_id("c", Role::Turn, 1, 8),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    #[test]
    fn an_id_of_zeros_is_never_given() {
        assert_eq!(never_zero([0; 8]), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(never_zero([0, 2]), [0, 2]);
    }

    #[test]
    fn traceparents() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let cases = [
            (format!("00-{trace}-{span}-01"), true),
            (format!(" 00-{trace}-{span}-00 "), true),
            (format!("cc-{trace}-{span}-01-what-later-versions-add"), true),
            (format!("00-{trace}-{span}-01-more"), false),
            (format!("ff-{trace}-{span}-01"), false),
            (format!("00-{}-{span}-01", trace.to_uppercase()), false),
            (format!("00-{}-{span}-01", "0".repeat(32)), false),
            (format!("00-{trace}-{}-01", "0".repeat(16)), false),
            (format!("00-{trace}-{span}"), false),
            (String::new(), false),
        ];
        for (text, valid) in cases {
            assert_eq!(parse_traceparent(&text).is_some(), valid, "{text}");
        }
    }
}
