//! Runs the commands of the pages, block by block, each page from its top in a HOME of its own that has been set up for
//! Jaeger. Receivers stand where the pages say that a back end listens; what takes a build is played by a `cargo` that
//! hands over what is built already. What cannot be run is in one table, with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::pages::{self, Page};
use super::support::agent::agy_program;
use super::support::program::write_program;
use super::support::receiver::Receiver;
use super::support::sandbox::{PROGRAM, Sandbox};

const DOCKER: &str = "needs Docker; the configuration is validated by `tests/docs/gateway.rs`";
const CI: &str = "it is a step of `.ci/run`";

/// Lines that are not run, and why.
const NOT_RUN: &[(&str, &str)] = &[
    (".ci/run", "it runs this test"),
    ("cargo test --workspace --locked", "it runs this test"),
    ("cargo fmt --all --check", CI),
    ("cargo clippy --workspace --all-targets -- -D warnings", CI),
    ("cargo build --release --locked", CI),
    ("cargo build --release --locked --target x86_64-unknown-linux-musl", CI),
    ("tests/e2e/run.sh target/x86_64-unknown-linux-musl/release/fi-hook-to-otlp", CI),
    ("COLLECTOR_BIN=$(tests/e2e/jaeger/build.sh) cargo test --locked --features e2e --test docs", CI),
    ("SOAK_SECONDS=180 cargo test --locked --features faults", CI),
    ("CUTS=all cargo test --locked --test redaction", CI),
    ("fuzz/run.sh 60", CI),
    ("fuzz/run.sh 1200 redaction", CI),
    ("INSTA_UPDATE=always cargo test --test sessions", "changes the checkout"),
    ("UPDATE_DOCS=1 cargo test --test settings", "changes the checkout"),
    ("UPDATE_DOCS=1 cargo test --lib semconv", "changes the checkout"),
    ("cargo bench --bench hook --target x86_64-unknown-linux-musl", "takes minutes and a quiet machine"),
    ("docs/picture.sh", "needs Chromium and 900 MB of Python packages"),
    (
        "python3 -m venv ~/phoenix && ~/phoenix/bin/pip install arize-phoenix && PHOENIX_HOST=127.0.0.1 ~/phoenix/bin/phoenix serve",
        "900 MB of Python packages; docs/picture.sh does it",
    ),
];

/// Starts of lines that are not run, and why.
const NOT_RUN_STARTS: &[(&str, &str)] = &[("docker run --rm ", DOCKER)];

struct World {
    sandbox: Sandbox,
    http: Receiver,
    grpc: Receiver,
}

impl World {
    fn new() -> Self {
        let world = Self { sandbox: Sandbox::new(), http: Receiver::start(), grpc: Receiver::start_grpc() };
        world.check_out();
        let local = world.sandbox.home().join(".local/bin");
        for folder in [&local, &world.bin()] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(PROGRAM, local.join("fi-hook-to-otlp")).unwrap();
        symlink(agy_program(), world.bin().join("agy")).unwrap();
        world.tool("cargo", &CARGO.replace("PROGRAM", PROGRAM).replace("AGY", agy_program().to_str().unwrap()));
        world.tool("rustc", "case $1 in -vV) echo 'host: x86_64-unknown-linux-gnu' ;; *) echo /nonexistent ;; esac");
        world.sandbox.settings(&fs::read_to_string(world.checkout().join("examples/jaeger/env")).unwrap());
        world
    }

    fn checkout(&self) -> PathBuf {
        self.sandbox.path().join("checkout")
    }

    fn bin(&self) -> PathBuf {
        self.sandbox.path().join("bin")
    }

    /// What the pages speak of, with the ports of the receivers.
    fn check_out(&self) {
        for folder in ["installer", "examples"] {
            self.copy(Path::new(folder));
        }
    }

    fn copy(&self, folder: &Path) {
        fs::create_dir_all(self.checkout().join(folder)).unwrap();
        for entry in fs::read_dir(pages::path(folder.to_str().unwrap())).unwrap().map(Result::unwrap) {
            let name = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.copy(&name);
            } else {
                let target = self.checkout().join(&name);
                write_program(&target, self.here(&fs::read_to_string(entry.path()).unwrap()));
                fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
            }
        }
    }

    /// A text with the receivers' ports in the place of those of back ends.
    fn here(&self, text: &str) -> String {
        let (http, grpc) = (format!("localhost:{}", self.http.port()), format!("localhost:{}", self.grpc.port()));
        text.replace("localhost:4318", &http).replace("localhost:6006", &http).replace("localhost:4317", &grpc)
    }

    fn tool(&self, name: &str, text: &str) {
        let path = self.bin().join(name);
        write_program(&path, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a block as a shell would that ends at the first failure.
    #[track_caller]
    fn run(&self, script: &str, place: &str) {
        let mut shell = Command::new("timeout");
        shell.args(["120", "sh", "-eu", "-c", &self.here(script)]);
        self.sandbox.dress(&mut shell);
        let bin = self.bin();
        shell.env("PATH", format!("{}/.local/bin:{}:/usr/bin:/bin", self.sandbox.home().display(), bin.display()));
        let output = shell.current_dir(self.checkout()).stdin(std::process::Stdio::null()).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{place}: {}\n{script}\n{out}\n{err}", output.status);
    }
}

/// Hands over what is built already, and nothing else.
const CARGO: &str = r#"
case "$*" in
    "run --release --locked -- "*) shift 4; exec 'PROGRAM' "$@" ;;
    "run --quiet --package agy-stand-in -- "*) shift 5; exec 'AGY' "$@" ;;
    "build --release --locked --bin fi-hook-to-otlp --target-dir "*)
        mkdir -p target/release && ln -sf 'PROGRAM' target/release/fi-hook-to-otlp ;;
    *) echo "no such build here: cargo $*" >&2; exit 64 ;;
esac"#;

/// The lines of a block, with continued ones joined.
fn lines(text: &str) -> Vec<String> {
    text.replace("\\\n", "").lines().map(str::to_owned).filter(|line| !line.trim().is_empty()).collect()
}

fn exemption(line: &str) -> Option<&'static str> {
    let whole = NOT_RUN.iter().find(|(known, _)| *known == line);
    whole.or_else(|| NOT_RUN_STARTS.iter().find(|(start, _)| line.starts_with(start))).map(|(known, _)| *known)
}

/// Runs a page from its top; returns the exemptions that it took.
fn run(page: &Page) -> BTreeSet<&'static str> {
    let mut taken = BTreeSet::new();
    let mut world = None;
    for fence in page.fences().into_iter().filter(|fence| fence.language == "sh") {
        let (exempt, kept): (Vec<_>, Vec<_>) =
            lines(&fence.text).into_iter().partition(|line| exemption(line).is_some());
        taken.extend(exempt.iter().filter_map(|line| exemption(line)));
        if !kept.is_empty() {
            let world = world.get_or_insert_with(World::new);
            world.run(&kept.join("\n"), &format!("{}:{}", page.name, fence.line));
        }
    }
    taken
}

#[test]
fn every_command_runs_or_has_a_reason_not_to() {
    let pages = pages::checked();
    let taken: BTreeSet<&str> = std::thread::scope(|scope| {
        let running: Vec<_> = pages.iter().map(|page| scope.spawn(|| run(page))).collect();
        running.into_iter().flat_map(|page| page.join().unwrap()).collect()
    });
    let known: BTreeSet<&str> = NOT_RUN.iter().chain(NOT_RUN_STARTS).map(|(line, _)| *line).collect();
    assert_eq!(taken, known, "a line that is not run any more stands in the table");
}

#[test]
fn commands_that_are_not_run_name_tests_and_scripts_that_exist() {
    for (line, _) in NOT_RUN {
        let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "()$".contains(c)).collect();
        for pair in words.windows(2) {
            match pair {
                ["--test", name] => assert!(pages::path(&format!("tests/{name}.rs")).exists(), "{line}"),
                ["--bench", name] => assert!(pages::path(&format!("benches/{name}.rs")).exists(), "{line}"),
                _ => {}
            }
        }
        // The end-to-end tests come with a change of their own.
        for script in words.iter().filter(|word| word.ends_with(".sh") && !word.ends_with("e2e/run.sh")) {
            assert!(pages::path(script).exists(), "{line}: {script}");
        }
    }
}
