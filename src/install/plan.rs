//! What to do about a hooks.json, from what is in it. Pure.
//! Decided in `docs/adr/0030-install-leaves-files-alone.md`.

use crate::hosts::antigravity::hooks_file::{Fault, HooksFile, Unreadable};
use crate::hosts::antigravity::registration::Registration;

/// What installing means.
#[derive(Debug)]
pub enum Installation {
    /// There is no file: write one with this text.
    Create(String),
    /// It holds exactly our registration already.
    Keep,
    /// It is left alone.
    LeaveAlone(Reason),
}

/// What uninstalling means.
#[derive(Debug)]
pub enum Removal {
    /// Nothing of ours is there.
    Nothing,
    /// The file holds our registration alone: remove it.
    RemoveFile,
    /// It is left alone.
    LeaveAlone(Reason),
}

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// Nobody can tell what it says.
    #[error(transparent)]
    Unreadable(Unreadable),
    /// Nothing of ours is in it.
    #[error("it was written by somebody else")]
    Others,
    /// Other hooks beside ours.
    #[error("it holds other hooks, too")]
    OursAndOthers,
    /// Our name with another content.
    #[error("it registers fi-hook-to-otlp with other options, or was written by another version")]
    OtherRegistration,
    /// agy drops the file, or a part of it.
    #[error("agy does not accept it: {0}")]
    Faulty(Fault),
}

/// Plans the installation of `registration` into a file with the bytes `current`; None when there is no file.
#[must_use]
pub fn install(current: Option<&[u8]>, registration: &Registration) -> Installation {
    let Some(current) = current else {
        return create(registration.file_text());
    };
    let file = match HooksFile::parse(current) {
        Ok(file) => file,
        Err(unreadable) => return Installation::LeaveAlone(Reason::Unreadable(unreadable)),
    };
    // A mistake anywhere in the file silences our hook as well, so it is said even if ours is right.
    if let Err(fault) = file.check() {
        return Installation::LeaveAlone(Reason::Faulty(fault));
    }
    match file.ours() {
        Some(ours) if *ours == registration.value() => Installation::Keep,
        Some(_) => Installation::LeaveAlone(Reason::OtherRegistration),
        None => Installation::LeaveAlone(Reason::Others),
    }
}

/// The file as agy will read it: a bug here would silence every hook in it.
fn create(text: String) -> Installation {
    match HooksFile::parse(text.as_bytes()).map(|file| file.check()) {
        Ok(Ok(())) => Installation::Create(text),
        Ok(Err(fault)) => Installation::LeaveAlone(Reason::Faulty(fault)),
        Err(unreadable) => Installation::LeaveAlone(Reason::Unreadable(unreadable)),
    }
}

/// Plans the removal of our registration, whatever its options, from a file with the bytes `current`.
#[must_use]
pub fn uninstall(current: Option<&[u8]>) -> Removal {
    let Some(current) = current else {
        return Removal::Nothing;
    };
    match HooksFile::parse(current) {
        Err(unreadable) => Removal::LeaveAlone(Reason::Unreadable(unreadable)),
        Ok(file) if file.is_ours_alone() => Removal::RemoveFile,
        Ok(file) if file.ours().is_some() => Removal::LeaveAlone(Reason::OursAndOthers),
        Ok(_) => Removal::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::antigravity::registration::{PreToolUse, ShellWord};

    fn registration(pre_tool_use: PreToolUse) -> Registration {
        Registration::new(&ShellWord::of_path("/opt/bin/fi-hook-to-otlp", None).unwrap(), pre_tool_use)
    }

    fn beside(member: &str) -> String {
        format!("{{\n\"fi-hook-to-otlp\": {},\n{member}\n}}", registration(PreToolUse::NoReply).value())
    }

    #[test]
    fn only_a_missing_file_is_written() {
        let ours = registration(PreToolUse::NoReply);
        let verdict = |current: Option<&str>| match install(current.map(str::as_bytes), &ours) {
            Installation::Create(text) => {
                assert_eq!(text, ours.file_text());
                "create".to_owned()
            }
            Installation::Keep => "keep".to_owned(),
            Installation::LeaveAlone(reason) => reason.to_string(),
        };
        let text = ours.file_text();
        for (current, expected) in [
            (None, "create"),
            (Some(text.as_str()), "keep"),
            (Some(&text.replace('\n', "\r\n")), "keep"),
            (Some(&beside(r#""other":{"Stop":[{"command":"x"}]}"#)), "keep"),
            (Some(&beside(r#""version":1"#)), "agy does not accept it: version is not a map of events"),
            (Some("{}"), "it was written by somebody else"),
            (Some(r#"{"other":{}}"#), "it was written by somebody else"),
            (
                Some(&registration(PreToolUse::Unregistered).file_text()),
                "it registers fi-hook-to-otlp with other options, or was written by another version",
            ),
            (Some("[]"), "it is not a JSON object of named hooks"),
            (Some(""), "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ] {
            assert_eq!(verdict(current), expected, "{current:?}");
        }
    }

    #[test]
    fn only_a_file_of_ours_alone_is_removed() {
        let verdict = |current: Option<&str>| match uninstall(current.map(str::as_bytes)) {
            Removal::Nothing => "nothing".to_owned(),
            Removal::RemoveFile => "remove".to_owned(),
            Removal::LeaveAlone(reason) => reason.to_string(),
        };
        for (current, expected) in [
            (None, "nothing"),
            (Some("{}"), "nothing"),
            (Some(r#"{"other":{}}"#), "nothing"),
            (Some(registration(PreToolUse::NoReply).file_text().as_str()), "remove"),
            (Some(r#"{"fi-hook-to-otlp":{"enabled":false}}"#), "remove"),
            (Some(&beside(r#""other":{}"#)), "it holds other hooks, too"),
            (Some("{,}"), "it is not JSON: key must be a string at line 1 column 2"),
        ] {
            assert_eq!(verdict(current), expected, "{current:?}");
        }
    }
}
