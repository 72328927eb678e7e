//! Counts the bytes the engine looks at, in tests alone: what hostile input costs is a number there, and not a time.
//! May not be anything outside of tests; decided in `docs/adr/0040-redaction-engine.md`.

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes that so many bytes were looked at.
#[inline]
pub(super) fn look(bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// How many bytes `work` looks at.
#[cfg(test)]
pub(super) fn count(work: impl FnOnce()) -> usize {
    let before = LOOKED_AT.get();
    work();
    LOOKED_AT.get() - before
}
