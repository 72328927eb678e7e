//! Builds the automata of `src/redact/rules.rs`, so that the hook compiles no pattern: that takes it 0.2 to 100 ms.
//! Decided in `docs/adr/0040-redaction-engine.md`. Gives the linker `hook.ld`, which says what a hook runs.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use regex_automata::MatchKind;
use regex_automata::dfa::{StartKind, dense};
use regex_automata::util::syntax;

#[expect(dead_code, unreachable_pub, reason = "the program needs the rest of it")]
#[path = "src/redact/rules.rs"]
mod rules;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/redact/rules.rs");
    let folder = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let big_endian = env::var("CARGO_CFG_TARGET_ENDIAN")? == "big";
    let mut list = vec!["&[".to_owned()];
    for rule in rules::RULES {
        let bytes =
            automaton(rule.pattern, big_endian).map_err(|error| format!("the pattern of {}: {error}", rule.name))?;
        fs::write(Path::new(&folder).join(rule.name), bytes)?;
        list.push(format!("    include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{}\")),", rule.name));
    }
    list.push("]".to_owned());
    fs::write(Path::new(&folder).join("automata.rs"), list.join("\n"))?;
    order()
}

/// Puts the code of a hook side by side (`docs/performance.md`). In the static build alone: its linkers know the script.
fn order() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=hook.ld");
    if env::var("CARGO_CFG_TARGET_ENV")? == "musl" {
        let folder = env::var("CARGO_MANIFEST_DIR")?;
        println!("cargo::rustc-link-arg-bins=-T{folder}/hook.ld");
    }
    Ok(())
}

/// A pattern as bytes that the program searches with as they are.
fn automaton(pattern: &str, big_endian: bool) -> Result<Vec<u8>, String> {
    let config = dense::Config::new().start_kind(StartKind::Anchored).match_kind(MatchKind::All).accelerate(false);
    let dense = dense::Builder::new()
        .configure(config.minimize(true))
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build(pattern)
        .map_err(|error| error.to_string())?;
    let sparse = dense.to_sparse().map_err(|error| error.to_string())?;
    Ok(if big_endian { sparse.to_bytes_big_endian() } else { sparse.to_bytes_little_endian() })
}
