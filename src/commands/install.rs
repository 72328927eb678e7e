//! `install` and `uninstall`: agy's hooks.json of one folder, or of the user, and words on what to do next.
//! Decided in `docs/adr/0030-install-leaves-files-alone.md`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use directories::BaseDirs;

use crate::config::{self, sources};
use crate::hosts::antigravity::registration::{MEMBER, PROGRAM, Registration, ShellWord};
use crate::install::apply;
use crate::install::plan::{self, Installation, Removal};

pub use crate::hosts::antigravity::registration::PreToolUse;

/// What was asked for.
#[derive(Debug)]
pub struct Wish {
    /// The folder agy is started in; None means the current one.
    pub folder: Option<PathBuf>,
    /// All folders of this user instead.
    pub global: bool,
    /// Copy this program beside hooks.json and register that.
    pub vendor: bool,
    /// The folder of the program to register; None means `~/.local/bin`.
    pub bin_dir: Option<PathBuf>,
    /// What becomes of PreToolUse.
    pub pre_tool_use: PreToolUse,
    /// Print the hooks.json and do nothing.
    pub print: bool,
    /// Say what would be done and do nothing.
    pub dry_run: bool,
}

/// Registers us.
///
/// # Errors
/// When the program is not where it would be registered, a hooks.json of somebody else is there, or the disk refuses.
pub fn install(wish: &Wish) -> anyhow::Result<()> {
    let listed = hooks_file(wish.folder.as_deref(), wish.global)?;
    let program = Program::find(wish, &listed)?;
    let registration = Registration::new(&program.word, wish.pre_tool_use);
    let mut out = std::io::stdout().lock();
    if wish.print {
        return Ok(write!(out, "{}", registration.file_text())?);
    }
    let file = apply::target(&listed)?;
    let planned = plan::install(apply::read(&file)?.as_deref(), &registration);
    if let Installation::LeaveAlone(reason) = &planned {
        writeln!(out, "{}", registration.member_text().trim_end())?;
        out.flush()?;
        bail!(
            "{} is left as it is, because {reason}: make the member \"{MEMBER}\" in it read as printed above, then run \
             this again",
            file.display()
        );
    }
    if wish.dry_run {
        return rehearse(&mut out, &planned, &file, &program);
    }
    program.put_in_place()?;
    match planned {
        Installation::Create(text) => {
            apply::create(&file, text.as_bytes())?;
            let written = apply::read(&file)?;
            let kept = matches!(plan::install(written.as_deref(), &registration), Installation::Keep);
            ensure!(kept, "{} does not hold what was written: run this again", file.display());
            writeln!(out, "installed    {}", file.display())?;
        }
        Installation::Keep | Installation::LeaveAlone(_) => {
            writeln!(out, "already installed, nothing changed: {}", file.display())?;
        }
    }
    next_steps(&mut out, wish, &program)
}

/// Takes our registration back from a hooks.json that holds nothing else.
///
/// # Errors
/// When others have hooks in it, it cannot be read, or the disk refuses.
pub fn uninstall(folder: Option<&Path>, global: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let listed = hooks_file(folder, global)?;
    let file = apply::target(&listed)?;
    match plan::uninstall(apply::read(&file)?.as_deref()) {
        Removal::Nothing => writeln!(out, "not installed: nothing of ours in {}", file.display())?,
        Removal::RemoveFile => {
            // First the registration: a registered program must be there for as long as agy may run it.
            apply::remove(&file)?;
            writeln!(out, "removed      {}", file.display())?;
        }
        Removal::LeaveAlone(reason) => bail!(
            "{} is left as it is, because {reason}: remove the member \"{MEMBER}\" from it by hand",
            file.display()
        ),
    }
    let vendored = vendored(&listed);
    if vendored.is_file() {
        apply::remove(&vendored)?;
        writeln!(out, "removed      {}", vendored.display())?;
        // Only if it is empty; somebody may keep other files there.
        let _ = vendored.parent().map(std::fs::remove_dir);
    }
    Ok(())
}

/// The hooks.json meant, as agy finds it.
fn hooks_file(folder: Option<&Path>, global: bool) -> anyhow::Result<PathBuf> {
    if global {
        return Ok(home()?.join(".gemini/config/hooks.json"));
    }
    let folder = folder.unwrap_or(Path::new("."));
    let found = folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?;
    ensure!(found.is_dir(), "{} is not a folder: name the one agy is started in", folder.display());
    Ok(found.join(".agents/hooks.json"))
}

/// Where `--vendor` puts the program: agy runs hooks in the folder of their hooks.json.
fn vendored(hooks_file: &Path) -> PathBuf {
    hooks_file.with_file_name(MEMBER).join(PROGRAM)
}

fn home() -> anyhow::Result<PathBuf> {
    let dirs = BaseDirs::new().context("no home folder: set HOME")?;
    Ok(dirs.home_dir().to_owned())
}

/// The program that hooks.json names.
struct Program {
    /// Where it is.
    path: PathBuf,
    /// How hooks.json says that.
    word: ShellWord,
    /// Whether it is ours to put there.
    vendor: bool,
}

impl Program {
    fn find(wish: &Wish, hooks_file: &Path) -> anyhow::Result<Self> {
        if wish.vendor {
            return Ok(Self { path: vendored(hooks_file), word: ShellWord::vendored(), vendor: true });
        }
        let folder = match &wish.bin_dir {
            Some(folder) => {
                ensure!(folder.is_absolute(), "--bin-dir {}: give an absolute path", folder.display());
                folder.clone()
            }
            None => home()?.join(".local/bin"),
        };
        let path = folder.join(PROGRAM);
        let text = path.to_str().context("the program's path is not UTF-8: use another --bin-dir")?;
        let home = home().ok();
        let word = ShellWord::of_path(text, home.as_deref().and_then(Path::to_str)).context("--bin-dir")?;
        let program = Self { path, word, vendor: false };
        if !wish.print {
            program.check()?;
        }
        Ok(program)
    }

    fn check(&self) -> anyhow::Result<()> {
        apply::check_program(&self.path).map_err(|error| {
            anyhow::anyhow!(
                "{error}: put this program there (installer/install.sh does), name another folder with --bin-dir, or \
                 use --vendor"
            )
        })
    }

    /// Copies this program, if that was asked for. Before hooks.json names it: never the other way round.
    fn put_in_place(&self) -> anyhow::Result<()> {
        if !self.vendor {
            return Ok(());
        }
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let bytes = std::fs::read(&own).with_context(|| format!("cannot read {}", own.display()))?;
        if apply::read(&self.path)?.is_none_or(|there| there != bytes) {
            apply::replace(&self.path, &bytes, 0o755)?;
        }
        self.check()
    }
}

fn rehearse(out: &mut dyn Write, planned: &Installation, file: &Path, program: &Program) -> anyhow::Result<()> {
    if program.vendor {
        writeln!(out, "would copy this program to {}", program.path.display())?;
    }
    match planned {
        Installation::Create(text) => write!(out, "would write {}:\n{text}", file.display())?,
        Installation::Keep | Installation::LeaveAlone(_) => {
            writeln!(out, "already installed, nothing would change: {}", file.display())?;
        }
    }
    Ok(())
}

fn next_steps(out: &mut dyn Write, wish: &Wish, program: &Program) -> anyhow::Result<()> {
    let settings = config::resolve(&sources::gather());
    let word = if program.vendor {
        ShellWord::of_path(&program.path.to_string_lossy(), home().ok().as_deref().and_then(Path::to_str))?
    } else {
        program.word.clone()
    };
    writeln!(out, "program      {}", program.path.display())?;
    writeln!(out, "destination  {}", settings.destination)?;
    if let Some(file) = sources::settings_file() {
        let there = if file.exists() { "" } else { " (not there yet)" };
        writeln!(out, "settings     {}{there}", file.display())?;
    }
    writeln!(out, "try it       {word} demo")?;
    writeln!(out, "             then start agy anew; {word} show")?;
    if !wish.global {
        writeln!(out, "note         agy reads this file in trusted folders; `install --global` is for all folders")?;
    }
    Ok(())
}
