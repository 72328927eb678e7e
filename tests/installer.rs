//! `installer/install.sh` with a given program and with a build, and agy on the folder afterwards.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use agy_stand_in::hooks::HookFile;
use agy_stand_in::report::ToolResult;
use agy_stand_in::script::{Conversation, Script, Tool, Turn};
use support::program::{copy_program, write_program};
use support::receiver::Receiver;
use support::sandbox::{PROGRAM, Sandbox};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/installer/install.sh");

fn installer(sandbox: &Sandbox, script: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = Command::new(script.as_ref());
    command.args(arguments);
    sandbox.dress(&mut command);
    command
}

#[track_caller]
fn run(mut command: Command, code: i32) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(code), "{command:?}\n{out}\n{err}");
    (out, err)
}

fn events(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join(".agents/hooks.json")).unwrap();
    HookFile::parse(&text).unwrap().hooks.remove(0).actions.len()
}

fn installed(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/bin/fi-hook-to-otlp")
}

#[test]
fn agy_started_on_the_folder_afterwards_produces_a_trace() {
    let sandbox = Sandbox::new();
    let receiver = Receiver::start();
    sandbox.settings(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", receiver.url()));
    let work = sandbox.work();
    // From another folder; the sandbox's own path has spaces.
    let mut command = installer(&sandbox, SCRIPT, &["--binary", PROGRAM, work.to_str().unwrap()]);
    command.current_dir("/");
    let (out, _) = run(command, 0);
    assert!(out.starts_with("installed    ") && out.contains("OTLP (http/protobuf) at "), "{out}");
    assert_eq!(events(&work), 6);

    let turn = Turn::prompt("list").tool(Tool::run_command("ls", ".")).answer();
    let run = sandbox.agy().run(&Script::of(Conversation::new().turn(turn))).unwrap();
    assert!(run.status.success(), "{}", run.stderr);
    assert_eq!(run.report.tools.first().unwrap().result, ToolResult::Ran);
    assert_eq!(run.report.faults().count(), 0);
    // Session, turn, two model calls, the tool.
    let mut names: Vec<_> = receiver.wait_for_spans(5).into_iter().map(|span| span.name).collect();
    names.sort();
    assert_eq!(names, ["Antigravity session", "Antigravity turn", "Model call", "Model call", "run_command"]);
}

#[test]
fn paths_may_be_odd_and_flags_are_passed_on() {
    let sandbox = Sandbox::new();
    let odd = sandbox.path().join("a \"b\" 'c' $d");
    let project = odd.join("project");
    fs::create_dir_all(&project).unwrap();
    let given = odd.join("given program");
    copy_program(PROGRAM.as_ref(), &given);
    fs::set_permissions(&given, fs::Permissions::from_mode(0o644)).unwrap();
    let bin = odd.join("bin");
    let mut command = installer(
        &sandbox,
        SCRIPT,
        &["--bin-dir", bin.to_str().unwrap(), "project", "--no-pre-tool-use", "--binary=given program"],
    );
    command.current_dir(&odd);
    run(command, 0);
    assert_eq!(events(&project), 5);
    assert_eq!(fs::metadata(bin.join("fi-hook-to-otlp")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_dir(&bin).unwrap().count(), 1, "nothing is left beside");
    assert!(!installed(&sandbox).exists());

    fs::set_permissions(&given, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(project.join(".agents")).unwrap();
    let mut command = installer(&sandbox, SCRIPT, &["--vendor", "--binary", "./given program"]);
    command.current_dir(&odd);
    run(command, 0);
    assert!(odd.join(".agents/fi-hook-to-otlp/fi-hook-to-otlp").is_file() && !installed(&sandbox).exists());

    run(installer(&sandbox, SCRIPT, &["--global", "--binary", PROGRAM]), 0);
    assert!(sandbox.home().join(".gemini/config/hooks.json").is_file() && installed(&sandbox).is_file());
}

#[test]
fn a_second_run_replaces_the_program_and_nothing_else() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(installed(&sandbox).parent().unwrap()).unwrap();
    fs::write(installed(&sandbox), "an older one").unwrap();
    let program = installed(&sandbox);
    for begins in ["installed", "already installed"] {
        let (out, _) = run(installer(&sandbox, SCRIPT, &["--binary", PROGRAM]), 0);
        assert!(out.starts_with(begins), "{out}");
        assert_eq!(fs::metadata(&program).unwrap().len(), fs::metadata(PROGRAM).unwrap().len());
    }
    let file = sandbox.work().join(".agents/hooks.json");
    fs::write(&file, "{\"a\":{}}").unwrap();
    let (out, err) = run(installer(&sandbox, SCRIPT, &["--binary", PROGRAM]), 1);
    assert!(out.contains("\"fi-hook-to-otlp\": {") && err.contains("left as it is"), "{out}{err}");
    assert_eq!(fs::read(&file).unwrap(), b"{\"a\":{}}");
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("other"), "#!/bin/sh\necho other 1.0\n").unwrap();
    for (arguments, code, why) in [
        (&["--binary", "missing"][..], 1, "there is no ./missing"),
        (&["--binary", "other"], 1, "does not run here as fi-hook-to-otlp"),
        (&["--binary", PROGRAM, "--bin-dir", "bin"], 1, "give an absolute path"),
        (&["--bin-dir"], 2, "needs a value"),
        (&["--binary="], 2, "needs a value"),
        (&[], 1, "no cargo here"),
    ] {
        let (_, err) = run(installer(&sandbox, SCRIPT, arguments), code);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
    let mut command = installer(&sandbox, SCRIPT, &["--binary", PROGRAM]);
    command.env_remove("HOME");
    assert!(run(command, 1).1.contains("HOME is not set"));
    run(installer(&sandbox, SCRIPT, &["--dry-run", "--binary", PROGRAM]), 0);
    let left = sandbox.files();
    assert!(left.is_empty() && !sandbox.work().join(".agents").exists(), "{left:?}");
}

/// A copy of the sources' outline with tools that pretend to build.
struct Workshop {
    sandbox: Sandbox,
    script: PathBuf,
    tools: PathBuf,
}

impl Workshop {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let tree = sandbox.path().join("source tree");
        let tools = sandbox.path().join("tools");
        for folder in [&tree.join("installer"), &tools] {
            fs::create_dir_all(folder).unwrap();
        }
        let script = tree.join("installer/install.sh");
        copy_program(SCRIPT.as_ref(), &script);
        for tool in ["cat", "chmod", "cp", "dirname", "mkdir", "mv", "rm", "sed", "sh", "env"] {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(found.iter().find(|path| path.exists()).unwrap(), tools.join(tool)).unwrap();
        }
        let workshop = Self { sandbox, script, tools };
        let sysroot = workshop.sysroot();
        workshop.tool(
            "rustc",
            &format!(
                "case $1 in -vV) echo 'host: x86_64-unknown-linux-gnu' ;; *) echo '{}' ;; esac",
                sysroot.display()
            ),
        );
        // Notes how it was called, and leaves the program where cargo would.
        workshop.tool(
            "cargo",
            &format!(
                r#"echo "$PWD: $* RUSTFLAGS=${{RUSTFLAGS-unset}}" >> '{}'
                out=target/release
                case "$*" in *"--target x86_64-unknown-linux-musl"*) out=target/x86_64-unknown-linux-musl/release ;; esac
                mkdir -p "$out" && cp '{PROGRAM}' "$out/fi-hook-to-otlp""#,
                workshop.log().display()
            ),
        );
        workshop
    }

    fn sysroot(&self) -> PathBuf {
        self.sandbox.path().join("sysroot")
    }

    fn log(&self) -> PathBuf {
        self.sandbox.path().join("cargo.log")
    }

    fn tool(&self, name: &str, text: &str) {
        let path = self.tools.join(name);
        write_program(&path, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the installer to its end; what it said, and how cargo was called.
    fn install(&self) -> (String, String) {
        let mut command = installer(&self.sandbox, &self.script, &[]);
        command.env("PATH", &self.tools).env("RUSTFLAGS", "-C debuginfo=2");
        let (_, err) = run(command, 0);
        assert_eq!(events(&self.sandbox.work()), 6);
        (err, fs::read_to_string(self.log()).unwrap())
    }
}

#[test]
fn a_static_build_is_made_where_it_is_possible() {
    let workshop = Workshop::new();
    fs::create_dir_all(workshop.sysroot().join("lib/rustlib/x86_64-unknown-linux-musl/lib")).unwrap();
    workshop.tool("musl-gcc", "exit 0");
    let (err, log) = workshop.install();
    assert!(!err.contains("dynamic"), "{err}");
    assert_eq!(log.lines().count(), 1, "{log}");
    let tree = workshop.sandbox.path().join("source tree");
    assert!(log.starts_with(&format!("{}: build --release --locked ", tree.display())), "{log}");
    assert!(log.contains("--target x86_64-unknown-linux-musl") && log.contains("RUSTFLAGS=unset"), "{log}");
}

#[test]
fn without_the_static_tools_the_build_is_dynamic_and_its_cost_is_said() {
    let workshop = Workshop::new();
    let (err, log) = workshop.install();
    assert!(err.contains("every hook then takes 3 to 4 times as long to start"), "{err}");
    assert!(log.lines().count() == 1 && !log.contains("musl") && log.contains("RUSTFLAGS=unset"), "{log}");

    // rustup brings the target without a question, but there is no C compiler.
    workshop.tool("rustup", &format!("echo \"rustup $*\" >> '{}'", workshop.log().display()));
    let (err, log) = workshop.install();
    assert!(err.contains("3 to 4 times"), "{err}");
    assert!(log.contains("rustup target add x86_64-unknown-linux-musl"), "{log}");
}
