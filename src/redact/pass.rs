//! Which content of an event goes on, and which digests of it. May not do I/O, and lets nothing by but through
//! [`content`]. Decided in `docs/adr/0041-opt-in-content.md`.

use super::digest::DigestKey;
use super::double;
use super::{Raw, Shape, content};
use crate::event::{Content, Digests, Told, Wanted};

/// What the user allows.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// The kinds of content that go on.
    pub content: Wanted,
    /// With a key, digests of arguments and errors are made, whether these go on or not.
    pub digest_key: Option<DigestKey>,
}

/// What is allowed to go on, redacted; the rest is dropped.
pub(super) fn pass(mut raw: Content<Raw>, allowed: &Allowed) -> Option<Box<Told>> {
    if let Some(decoded) = raw.args.as_ref().and_then(double::decode) {
        raw.args = Some(decoded);
    }
    let pass = |raw: &Option<Raw>, wanted, shape| raw.as_ref().filter(|_| wanted).map(|raw| content(raw, shape));
    let wanted = allowed.content;
    let content = Content {
        args: pass(&raw.args, wanted.args, Shape::Json),
        error: pass(&raw.error, wanted.errors, Shape::Plain),
        prompt: pass(&raw.prompt, wanted.prompts, Shape::Plain),
        output: pass(&raw.output, wanted.outputs, Shape::Plain),
        result: pass(&raw.result, wanted.results, Shape::Json),
    };
    let digests = allowed.digest_key.as_ref().map_or(Digests::NONE, |key| key.digests(&raw));
    Told { content, digests }.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, Event};
    use crate::redact::event;

    #[test]
    fn content_goes_on_only_by_its_own_word() {
        let raw = || Some(Raw::new(b"\"x\"".to_vec(), true));
        let content = Content { args: raw(), error: raw(), prompt: raw(), output: raw(), result: raw() };
        let one = |set: fn(&mut Wanted)| {
            let mut wanted = Wanted::default();
            set(&mut wanted);
            wanted
        };
        for (wanted, expected) in [
            (Wanted::default(), [false; 5]),
            (Wanted::ALL, [true; 5]),
            (one(|wanted| wanted.args = true), [true, false, false, false, false]),
            (one(|wanted| wanted.errors = true), [false, true, false, false, false]),
            (one(|wanted| wanted.prompts = true), [false, false, true, false, false]),
            (one(|wanted| wanted.outputs = true), [false, false, false, true, false]),
            (one(|wanted| wanted.results = true), [false, false, false, false, true]),
        ] {
            let raw =
                Event { told: Told::from(content.clone()).boxed(), ..Event::new("c".into(), Action::SessionStart) };
            let safe = event(raw, &Allowed { content: wanted, digest_key: None });
            let passed = &safe.told().content;
            let there = [&passed.args, &passed.error, &passed.prompt, &passed.output, &passed.result];
            assert_eq!(there.map(Option::is_some), expected, "{wanted:?}");
            assert!(safe.told().digests.is_empty());
        }
    }

    #[test]
    fn debug_of_content_prints_lengths_only() {
        let raw = Raw::new(b"\"hush hush\"".to_vec(), true);
        let content = Content { args: Some(raw.clone()), error: Some(raw), ..Content::none() };
        let raw = Event { told: Told::from(content).boxed(), ..Event::new("c".into(), Action::SessionStart) };
        let before = format!("{raw:?}");
        let safe = event(raw, &Allowed { content: Wanted::ALL, digest_key: Some(DigestKey::new([7; 32])) });
        let after = format!("{safe:?} {:?}", DigestKey::new([7; 32]));
        assert!(before.contains("11 bytes") && !before.contains("hush"), "{before}");
        assert!(after.contains("Text(") && !after.contains("hush") && !after.contains("7, 7"), "{after}");
    }
}
