//! A record that kills every sender must not stop the others: the names of the files that are being folded stand in a
//! file while they are. A sender that finds such a file takes half as many at a time, so that a few deaths find the record.
//! A death is no proof, since senders are killed from outside, too: after three over one file alone it waits while the
//! others go on, and it is set aside only when senders died over it alone six times, minutes apart.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::spool::dir::ProfileDir;

/// Deaths over one file alone after which it waits for others.
const DEATHS_IN_A_ROW: u32 = 3;
/// Deaths over one file alone before it is set aside.
const MOST_DEATHS: u32 = 6;
/// The first wait; each further one is four times as long.
const PAUSE_NS: u64 = 10 * 1_000_000_000;

/// How often senders died over a file alone, and when the last of them began with it (CLOCK_REALTIME).
#[derive(Debug, Clone, Copy, Default)]
struct Deaths {
    alone: u32,
    last_ns: u64,
}

impl Deaths {
    fn wait(self, now_ns: u64) -> Option<Duration> {
        let further = self.alone.checked_sub(DEATHS_IN_A_ROW)?;
        let pause = PAUSE_NS.saturating_mul(4u64.saturating_pow(further));
        // A clock that was set back must not make it wait for longer.
        let waited = now_ns.checked_sub(self.last_ns)?;
        pause.checked_sub(waited).filter(|left| *left > 0).map(Duration::from_nanos)
    }
}

/// Files that a sender died over. One that was among others has no deaths of its own.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    deaths: BTreeMap<String, Deaths>,
    /// Most files of a round while there are suspects.
    most: usize,
}

/// What has to wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Others are ready as soon as this round is over.
    pub(super) more: bool,
    /// When the next suspect is tried again.
    pub(super) next: Option<Duration>,
}

impl Suspects {
    /// What an earlier sender was folding when it died.
    pub(super) fn left_behind(dir: &ProfileDir) -> Self {
        let Ok(text) = fs::read_to_string(place(dir)) else {
            return Self::default();
        };
        let mut lines = text.lines();
        // Less than the one that died had taken: also so that a round is over before whoever kills comes again.
        let most = lines.next().and_then(|size| size.parse().ok()).unwrap_or(0usize) / 2;
        let entries = lines.filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let deaths = Deaths { alone: words.next()?.parse().ok()?, last_ns: words.next()?.parse().ok()? };
            Some((words.next()?.to_owned(), deaths))
        });
        Self { deaths: entries.collect(), most: most.max(1) }
    }

    /// Leaves only a few files for this round while there are suspects among `names`, and none that has to wait.
    pub(super) fn isolate(&mut self, names: &mut Vec<String>, now_ns: u64) -> Waiting {
        if self.deaths.is_empty() {
            return Waiting::default();
        }
        let there: HashSet<&String> = names.iter().collect();
        self.deaths.retain(|name, _| there.contains(name));
        let waits: BTreeMap<_, _> =
            self.deaths.iter().filter_map(|(name, deaths)| Some((name, deaths.wait(now_ns)?))).collect();
        names.retain(|name| !waits.contains_key(name));
        let next = waits.values().min().copied();
        let ready = names.len();
        if self.deaths.len() > waits.len() {
            names.truncate(self.most);
        }
        Waiting { more: names.len() < ready, next }
    }

    /// Somebody asks for what is there: nothing waits any longer.
    pub(super) fn hurry(&mut self) {
        self.deaths.values_mut().for_each(|deaths| deaths.last_ns = 0);
    }

    /// Notes what is about to be folded. True if that is one file that was the death of too many senders.
    pub(super) fn begin(&mut self, dir: &ProfileDir, names: &[String], now_ns: u64) -> bool {
        let alone = match names {
            [name] => self.deaths.get_mut(name),
            _ => None,
        };
        if let Some(deaths) = alone {
            if deaths.alone >= MOST_DEATHS {
                return true;
            }
            deaths.alone += 1;
            deaths.last_ns = now_ns;
        }
        let mut noted = self.deaths.clone();
        for name in names {
            noted.entry(name.clone()).or_default();
        }
        note(dir, names.len(), &noted);
        false
    }

    /// The round over these files is over, and nobody died.
    pub(super) fn end(&mut self, dir: &ProfileDir, names: &[String]) {
        self.deaths.retain(|name, _| !names.contains(name));
        note(dir, self.most * 2, &self.deaths);
    }
}

/// Writes how many files are being folded, and every suspect with its deaths.
fn note(dir: &ProfileDir, files: usize, deaths: &BTreeMap<String, Deaths>) {
    // Without the note a death is not told apart, which is no reason not to fold.
    if deaths.is_empty() {
        let _ = fs::remove_file(place(dir));
        return;
    }
    let lines = deaths.iter().map(|(name, deaths)| format!("{} {} {name}", deaths.alone, deaths.last_ns));
    let _ = fs::write(place(dir), format!("{files}\n{}", lines.collect::<Vec<_>>().join("\n")));
}

fn place(dir: &ProfileDir) -> PathBuf {
    dir.path().join("spool/folding")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, ProfileDir) {
        let base = tempfile::tempdir().unwrap();
        let dir = ProfileDir::open(base.path(), "p").unwrap();
        dir.make().unwrap();
        (base, dir)
    }

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    const SECOND: u64 = 1_000_000_000;

    /// Plays senders that die over what `deadly` says, one a second; returns what was folded, in order, what was set
    /// aside, and the deaths.
    fn play(files: &str, deadly: impl Fn(&str, u32) -> bool) -> (Vec<String>, Vec<String>, u32) {
        let (_base, dir) = folder();
        let mut inbox = names(files);
        let (mut folded, mut aside, mut deaths, mut now_ns) = (Vec::new(), Vec::new(), 0, SECOND);
        while !inbox.is_empty() && now_ns < 3600 * SECOND {
            now_ns += SECOND;
            let mut suspects = Suspects::left_behind(&dir);
            loop {
                let mut round = inbox.clone();
                suspects.isolate(&mut round, now_ns);
                if round.is_empty() {
                    break;
                }
                if suspects.begin(&dir, &round, now_ns) {
                    aside.extend(round.clone());
                } else if round.iter().any(|name| deadly(name, deaths)) {
                    deaths += 1;
                    break;
                } else {
                    folded.extend(round.clone());
                }
                suspects.end(&dir, &round);
                inbox.retain(|name| !round.contains(name));
            }
        }
        (folded, aside, deaths)
    }

    #[test]
    fn a_deadly_file_lets_the_others_pass_and_is_set_aside_in_the_end() {
        assert_eq!(play("a b c d", |name, _| name == "c"), (names("a b d"), names("c"), 8));
    }

    #[test]
    fn a_file_that_senders_were_only_killed_beside_is_folded_late_but_folded() {
        let killed_five_times = |name: &str, deaths| name == "b" && deaths < 5;
        assert_eq!(play("a b c d", killed_five_times), (names("a c d b"), Vec::new(), 5));
    }

    #[test]
    fn one_deadly_file_of_a_thousand_is_found_in_a_few_deaths() {
        let all: Vec<_> = (0..1000).map(|number| format!("f{number:03}")).collect();
        let (folded, aside, deaths) = play(&all.join(" "), |name, _| name == "f700");
        assert_eq!((folded.len(), aside), (999, names("f700")));
        assert!(deaths <= 16, "{deaths} deaths");
    }

    #[test]
    fn whoever_asks_does_not_wait_and_a_clock_set_back_makes_nobody_wait() {
        let (_base, dir) = folder();
        fs::write(place(&dir), format!("1\n4 {} b", 100 * SECOND)).unwrap();
        let waiting = |suspects: &mut Suspects, now_ns| {
            let mut round = names("a b");
            (suspects.isolate(&mut round, now_ns).next, round)
        };
        let mut suspects = Suspects::left_behind(&dir);
        assert_eq!(waiting(&mut suspects, 101 * SECOND), (Some(Duration::from_secs(39)), names("a")));
        assert_eq!(waiting(&mut suspects, 99 * SECOND), (None, names("a")), "one at a time, in order");
        suspects.hurry();
        let mut round = names("b");
        assert_eq!(suspects.isolate(&mut round, 101 * SECOND), Waiting::default());
        assert_eq!(round, names("b"));
    }

    #[test]
    fn without_deaths_nothing_is_taken_apart() {
        let (_base, dir) = folder();
        for _ in 0..5 {
            let mut suspects = Suspects::left_behind(&dir);
            let mut round = names("a b c");
            assert_eq!(suspects.isolate(&mut round, SECOND), Waiting::default());
            assert!(!suspects.begin(&dir, &round, SECOND));
            assert_eq!(round.len(), 3);
            suspects.end(&dir, &round);
        }
    }
}
