//! What README, docs and examples say is true: their commands run, their samples are what the program reads and writes.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a failure here is a failed test")]

#[path = "docs/commands.rs"]
mod commands;
#[path = "docs/examples.rs"]
mod examples;
#[cfg(feature = "e2e")]
#[path = "docs/gateway.rs"]
mod gateway;
#[path = "docs/outline.rs"]
mod outline;
#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/privacy.rs"]
mod privacy;
mod support;

use std::collections::BTreeSet;
use std::fs;

use fi_hook_to_otlp::config::{SETTINGS, Sources};
use pages::{Fence, Page};
use support::sandbox::Sandbox;

#[test]
fn every_block_says_what_it_is() {
    for page in pages::checked() {
        for fence in page.fences() {
            let known = ["sh", "text", "dotenv"].contains(&fence.language.as_str());
            assert!(known, "{}:{}: {:?}", page.name, fence.line, fence.language);
        }
    }
}

#[test]
fn settings_in_blocks_are_what_the_program_reads_without_a_complaint() {
    for page in pages::checked() {
        for Fence { text, line, .. } in page.fences().into_iter().filter(|fence| fence.language == "dotenv") {
            let settings = examples::resolve(&text, Sources::default());
            assert_eq!(settings.problems, [], "{}:{line}", page.name);
        }
    }
}

#[test]
fn every_setting_that_is_named_exists() {
    let known: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let samples = examples::ENV_FILES.iter().map(|(name, _)| Page::read(name));
    for page in pages::checked().into_iter().chain(samples) {
        for word in page.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            let ours = ["FI_", "OTEL_"].iter().any(|prefix| word.starts_with(prefix)) || word.ends_with("_PROXY");
            // `OTEL_*` speaks of all of them.
            if ours && !word.ends_with('_') {
                assert!(known.contains(word), "{}: there is no setting {word}", page.name);
            }
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages::all() {
        broken.extend(page.broken_links().into_iter().map(|link| format!("{}: {link}", page.name)));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_subcommand_is_described() {
    let sandbox = Sandbox::new();
    let help = String::from_utf8(sandbox.command(&["--help"]).output().unwrap().stdout).unwrap();
    let listed = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"demo"), "{help}");
    let pages: String = pages::checked().into_iter().map(|page| page.text).collect();
    for name in names.into_iter().filter(|name| *name != "help") {
        let said = [format!("`{name}"), format!("fi-hook-to-otlp {name}"), format!("fi-hook-to-otlp` {name}")];
        assert!(said.iter().any(|said| pages.contains(said)), "nothing describes `{name}`");
    }
}

#[test]
fn answers_are_named_as_the_program_names_them() {
    let page = Page::read("docs/troubleshooting.md").text;
    let table = page.split_once("| answer | cause | remedy |").unwrap().1.split_once("\n## ").unwrap().0;
    let names: Vec<&str> = table
        .lines()
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).collect::<Vec<_>>())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    let source = fs::read_to_string(pages::path("src/export/classify.rs")).unwrap();
    for name in names {
        assert!(source.contains(&format!("\"{name}\"")), "no answer is called {name}");
    }
}

#[test]
fn readme_is_short_and_its_test_command_can_be_found() {
    let readme = Page::read("README.md");
    assert!(readme.text.lines().count() <= 200);
    for (marker, command) in
        [("test command", "cargo test --workspace --locked"), ("demo command", "cargo run --release --locked -- demo")]
    {
        let block = readme.text.split_once(&format!("<!-- {marker} -->\n")).unwrap().1;
        assert!(block.starts_with(&format!("```sh\n{command}\n```\n")), "{marker}");
    }
    assert!(fs::read_to_string(pages::path(".ci/run")).unwrap().contains("<!-- demo command -->"));
}

#[test]
fn what_readme_says_of_content_is_so() {
    let readme = Page::read("README.md").text;
    assert!(readme.contains("By default no content is captured"), "README's part on content is old");
    for (settings, expected) in [
        ("", false),
        ("FI_HOOK_DIGEST=1\n", false),
        ("FI_HOOK_CAPTURE_CONTENT=errors,prompts\n", false),
        ("FI_HOOK_CAPTURE_CONTENT=args\n", true),
    ] {
        let sandbox = Sandbox::new();
        sandbox.settings(settings);
        assert!(sandbox.command(&["demo"]).output().unwrap().status.success());
        let all = sandbox.files().into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>();
        // A word of an argument in the recording.
        let captured = all.windows(17).any(|window| window == b"cargo test parser");
        assert_eq!(captured, expected, "{settings}");
    }
}
