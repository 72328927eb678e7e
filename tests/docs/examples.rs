//! The files of `examples/`: settings, hooks.json samples, configurations of receivers.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use agy_stand_in::hooks::HookFile;
use fi_hook_to_otlp::config::{self, EnvFile, Settings, Sources};
use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use super::pages;
use super::support::agent::agy_program;
use super::support::sandbox::{PROGRAM, Sandbox};

/// Every settings file, and where it sends to.
pub(crate) const ENV_FILES: &[(&str, &str)] = &[
    ("examples/jaeger/env", "OTLP (http/protobuf) at http://localhost:4318/v1/traces"),
    ("examples/future-agi/env", "Future AGI at http://localhost:4318/tracer/v1/traces"),
    ("examples/phoenix/env", "OTLP (http/protobuf) at http://localhost:6006/v1/traces"),
    ("examples/otel-collector/env", "OTLP (http/protobuf) at https://otel-gateway.example.com:4318/v1/traces"),
];

/// Every sample of hooks.json, how it is printed, where it goes, how many actions `agy` has of it.
const HOOKS: &[(&str, &[&str], &str, usize)] = &[
    ("workspace.json", &[], "work/.agents", 6),
    ("global.json", &["--global"], "home/.gemini/config", 6),
    ("without-pre-tool-use.json", &["--no-pre-tool-use"], "work/.agents", 5),
    ("vendored.json", &["--vendor"], "work/.agents", 6),
];

/// The text of a settings file, with what else there is.
pub(crate) fn resolve(text: &str, others: Sources) -> Settings {
    let file = EnvFile::parse("env".into(), text.as_bytes());
    config::resolve(&Sources { file: Some(file), ..others })
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(pages::path(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn settings_files_are_read_without_a_complaint_and_name_their_destination() {
    let listed = ENV_FILES.iter().map(|(name, _)| *name);
    let there = names_in("examples").into_iter().map(|folder| format!("examples/{folder}/env"));
    let there: BTreeSet<String> = there.filter(|name| pages::path(name).exists()).collect();
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), there);
    for (name, destination) in ENV_FILES {
        let text = fs::read_to_string(pages::path(name)).unwrap();
        // Also with every line that is there to be chosen: `#NAME=value`.
        let chosen: String =
            text.lines().map(|line| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n").collect();
        let chosen: String =
            chosen.lines().filter(|line| is_setting(line)).map(|line| line.to_owned() + "\n").collect();
        let settings = resolve(&text, Sources::default());
        assert_eq!((settings.destination.to_string().as_str(), settings.problems), (*destination, vec![]), "{name}");
        let doubled = |problem: &config::Problem| problem.text.contains("is set before");
        let problems: Vec<_> =
            resolve(&chosen, Sources::default()).problems.into_iter().filter(|problem| !doubled(problem)).collect();
        assert_eq!(problems, [], "{name}, with the lines to choose from");
    }
}

fn is_setting(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

#[test]
fn hooks_samples_are_what_install_prints_and_agy_loads_all_of_it() {
    let listed: BTreeSet<String> = HOOKS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let mut there = names_in("examples/hooks");
    there.remove("README.md");
    assert_eq!(listed, there);
    for (name, options, folder, actions) in HOOKS {
        let sandbox = Sandbox::new();
        let bin = sandbox.home().join(".local/bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(PROGRAM, bin.join("fi-hook-to-otlp")).unwrap();
        let sample = fs::read_to_string(pages::path(&format!("examples/hooks/{name}"))).unwrap();
        let arguments = [&["install", "--print"], *options].concat();
        let printed = sandbox.command(&arguments).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), sample, "{name}");

        assert!(HookFile::parse(&sample).unwrap().notes.is_empty(), "{name}");
        let folder = sandbox.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("hooks.json"), &sample).unwrap();
        let mut agy = Command::new(agy_program());
        sandbox.dress(agy.args(["-p", "/hooks", "--output-format", "json"]));
        let listing: Value = serde_json::from_slice(&agy.output().unwrap().stdout).unwrap();
        let hooks = listing["command"]["data"]["hooks"].as_array().unwrap();
        assert_eq!((hooks.len(), &hooks[0]["name"]), (1, &Value::from("fi-hook-to-otlp")), "{name}");
        assert_eq!(hooks[0]["actions"].as_array().unwrap().len(), *actions, "{name}: {listing}");
    }
}

/// Names under a member of a configuration.
fn members<'a>(yaml: &'a Yaml<'a>, name: &str) -> Vec<(&'a str, &'a Yaml<'a>)> {
    let Some(mapping) = yaml.as_mapping_get(name).and_then(Yaml::as_mapping) else {
        return Vec::new();
    };
    mapping.iter().map(|(name, value)| (name.as_str().unwrap(), value)).collect()
}

fn words<'a>(yaml: &'a Yaml<'a>, name: &str) -> Vec<&'a str> {
    let list = yaml.as_mapping_get(name).and_then(Yaml::as_sequence);
    list.into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn configurations_of_collectors_use_what_they_define() {
    for file in ["examples/jaeger/jaeger.yaml", "examples/otel-collector/gateway.yaml"] {
        let text = fs::read_to_string(pages::path(file)).unwrap();
        let documents = Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let service = documents[0].as_mapping_get("service").unwrap();
        let pipelines = members(service, "pipelines");
        assert!(pipelines.iter().any(|(name, _)| *name == "traces"), "{file}");
        for kind in ["receivers", "processors", "exporters", "extensions"] {
            let defined: BTreeSet<&str> = members(&documents[0], kind).into_iter().map(|(name, _)| name).collect();
            let mut used: BTreeSet<&str> = pipelines.iter().flat_map(|(_, pipeline)| words(pipeline, kind)).collect();
            used.extend(words(service, kind));
            assert_eq!(used, defined, "{file}: {kind}");
        }
    }
    let readme = pages::Page::read("examples/otel-collector/README.md").text;
    let text = fs::read_to_string(pages::path("examples/otel-collector/gateway.yaml")).unwrap();
    for name in text.split("${env:").skip(1).map(|rest| rest.split('}').next().unwrap()) {
        assert!(name == "…" || readme.contains(&format!("-e {name}")), "README does not set {name}");
    }
}
