//! A record that kills every sender must not stop the others: the names of the files that are being folded stand in a
//! file while they are. A sender that finds such a file takes those one by one, and sets aside what it died over thrice.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::spool::dir::ProfileDir;

/// Deaths over one file alone before it is set aside.
const MOST_TRIES: u32 = 3;

/// Files that a sender died over. One that was among others has zero tries.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    tries: BTreeMap<String, u32>,
}

impl Suspects {
    /// What an earlier sender was folding when it died.
    pub(super) fn left_behind(dir: &ProfileDir) -> Self {
        let Ok(text) = fs::read_to_string(place(dir)) else {
            return Self::default();
        };
        let entries = text.lines().filter_map(|line| {
            let (tries, name) = line.split_once(' ')?;
            Some((name.to_owned(), tries.parse().ok()?))
        });
        Self { tries: entries.collect() }
    }

    /// Leaves only one file for this round while there are suspects among `names`; true if others have to wait for it.
    pub(super) fn isolate(&mut self, names: &mut Vec<String>) -> bool {
        self.tries.retain(|name, _| names.contains(name));
        let Some(first) = self.tries.keys().next() else {
            return false;
        };
        // In order of names: what comes before a suspect goes first, then the suspect alone.
        let before = names.iter().take_while(|name| *name < first).count();
        let most = names.len();
        names.truncate(before.max(1));
        names.len() < most
    }

    /// Notes what is about to be folded. True if that is one file that was the death of too many senders.
    pub(super) fn begin(&mut self, dir: &ProfileDir, names: &[String]) -> bool {
        let alone = match names {
            [name] => self.tries.get_mut(name),
            _ => None,
        };
        if let Some(tries) = alone {
            if *tries >= MOST_TRIES {
                return true;
            }
            *tries += 1;
        }
        let mut lines = self.tries.clone();
        for name in names {
            lines.entry(name.clone()).or_insert(0);
        }
        let lines: Vec<_> = lines.iter().map(|(name, tries)| format!("{tries} {name}")).collect();
        // Without the note a death is not told apart, which is no reason not to fold.
        let _ = fs::write(place(dir), lines.join("\n"));
        false
    }

    /// The round is over, and nobody died.
    pub(super) fn end(&mut self, dir: &ProfileDir) {
        let _ = fs::remove_file(place(dir));
    }
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

    #[test]
    fn a_deadly_file_is_found_and_set_aside_and_the_others_are_folded() {
        let (_base, dir) = folder();
        let mut inbox = names("a b c d");
        let (mut folded, mut deaths) = (Vec::new(), 0);
        'senders: loop {
            let mut suspects = Suspects::left_behind(&dir);
            while !inbox.is_empty() {
                let mut round = inbox.clone();
                suspects.isolate(&mut round);
                if suspects.begin(&dir, &round) {
                    assert_eq!(round, ["c"]);
                    inbox.retain(|name| name != "c");
                    continue;
                }
                if round.contains(&"c".to_owned()) {
                    deaths += 1;
                    assert!(deaths < 10);
                    continue 'senders;
                }
                suspects.end(&dir);
                inbox.retain(|name| !round.contains(name));
                folded.extend(round);
            }
            break;
        }
        assert_eq!((folded, deaths), (names("a b d"), 4));
    }

    #[test]
    fn without_deaths_nothing_is_taken_apart() {
        let (_base, dir) = folder();
        for _ in 0..5 {
            let mut suspects = Suspects::left_behind(&dir);
            let mut round = names("a b c");
            assert!(!suspects.isolate(&mut round));
            assert!(!suspects.begin(&dir, &round));
            assert_eq!(round.len(), 3);
            suspects.end(&dir);
        }
    }
}
