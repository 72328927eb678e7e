//! Seeded chance: a failed test names its seed, and the seed plays the same run again.

/// A stream of numbers that its seed decides (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The stream of `SEED` in the environment, else of `seed`; printed, so that a failure shows it.
    pub(crate) fn seeded(seed: u64) -> Self {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
        eprintln!("SEED={seed}");
        Self(seed)
    }

    /// A stream of its own, for a thread.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    /// Uniform below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `bound` times.
    pub(crate) fn once_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// A pause of less than so many milliseconds.
    pub(crate) fn pause(&mut self, milliseconds: u64) -> std::time::Duration {
        std::time::Duration::from_micros(self.below(milliseconds * 1000))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
