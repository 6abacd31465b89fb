//! Runs the documentation: every console block of the README and of `docs/` against a local stack of its own.
//!
//! The info string of a fence says how a block is tested:
//!
//! - `console`: each line after `$ ` runs in bash; the lines below it are its output
//! - `console eventually`: the same, repeated until the output is as written; for commands that only read
//! - `console background`: one command that runs until the end of the page
//! - `console not-run`: shown only
//! - `json`: must parse
//! - `rust`: a doc test of `antumbra-dynamodb`
//! - `text`: shown only
//!
//! Ids, secrets, times and durations may differ from the page (`expected.rs`). `UPDATE_DOCS=1` writes the actual
//! output into the pages.

mod expected;
mod page;
mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use expected::Expected;
use page::{Block, Command, Page};
use shell::{Background, Shell};

/// Blocks that no test runs: page, start of the block, and why it cannot run here. Everything else is run.
const SHOWN_ONLY: &[(&str, &str, &str)] = &[
    ("ARCHITECTURE.md", " report, desire ", "a picture"),
    (
        "CONTRIBUTING.md",
        "$ cargo run",
        "builds; CI runs these commands",
    ),
    (
        "README.md",
        "$ cargo run -- local ",
        "builds; CI runs these commands",
    ),
    (
        "README.md",
        "$ pip install",
        "deploys to AWS; scripts/check-infra runs it with an emulator",
    ),
    (
        "docs/building.md",
        "$ cargo run",
        "builds; CI runs these commands",
    ),
    (
        "docs/console.md",
        "$ antumbra console",
        "needs a deployment on AWS",
    ),
    (
        "docs/deploy.md",
        "$ pip install",
        "deploys to AWS; scripts/check-infra runs it with an emulator",
    ),
    (
        "docs/local-stack.md",
        "$ export AWS_",
        "needs the AWS CLI; scripts/check-clients runs such commands",
    ),
    (
        "docs/local-stack.md",
        "$ uuidKey=",
        "starts another stack; tested in settings.rs",
    ),
    (
        "docs/local-stack.md",
        "$ antumbra events",
        "needs a registration with a bus; tested in settings.rs",
    ),
    (
        "docs/local-stack.md",
        "$ cargo run --features rabbitmq",
        "needs a broker; scripts/check-rabbitmq has one",
    ),
    (
        "docs/local-stack.md",
        "registrations reloaded",
        "printed by a stack whose files change; tested in stacks.rs",
    ),
    (
        "docs/migrating.md",
        "$ aws iot list-things",
        "needs an AWS account",
    ),
    (
        "docs/migrating.md",
        "$ antumbra import godeviceshadow --from",
        "needs a table of the library; import.rs has one",
    ),
    (
        "docs/sdk.md",
        "$ cargo run -p antumbra-service",
        "builds; `cargo test` compiles the example",
    ),
    (
        "docs/testing.md",
        "$ cargo test",
        "builds; CI runs these commands",
    ),
    (
        "docs/testing.md",
        "$ cargo run --release",
        "takes minutes; scripts/check-simulation runs it",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

macro_rules! pages {
    ($($name:ident: $file:literal,)*) => {
        const PAGES: &[&str] = &[$($file),*];
        $(#[test]
        fn $name() {
            run($file);
        })*
    };
}

pages! {
    readme: "README.md",
    merge_rules: "docs/merge-rules.md",
    registrations: "docs/registrations.md",
    inbox: "docs/inbox.md",
    sensors: "docs/sensors.md",
    deliveries: "docs/deliveries.md",
    access: "docs/access.md",
    http_api: "docs/http-api.md",
    shadows_over_mqtt: "docs/shadows-over-mqtt.md",
    history: "docs/history.md",
    limits: "docs/limits.md",
    local_stack: "docs/local-stack.md",
    costs: "docs/costs.md",
    migrating: "docs/migrating.md",
}

fn is_installed(program: &str) -> bool {
    let version = std::process::Command::new(program)
        .arg("--version")
        .output();
    version.is_ok()
}

/// Runs the blocks of a page in order, in one shell.
fn run(file: &str) {
    let missing = ["bash", "curl"]
        .into_iter()
        .find(|program| !is_installed(program));
    if let Some(program) = missing {
        eprintln!("{file} was not run: {program} is not installed");
        return;
    }
    let mut page = Page::read(&root().join(file));
    let shell = Shell::start(&root());
    let mut expected = Expected::default();
    let mut background = Vec::new();
    for block in page.blocks.clone() {
        match block.info.as_str() {
            "console" => {
                for command in &block.commands {
                    check(&shell, &mut expected, &mut page, command, Duration::ZERO);
                }
            }
            "console eventually" => {
                for command in &block.commands {
                    check(&shell, &mut expected, &mut page, command, shell::TIMEOUT);
                }
            }
            "console background" => {
                let [command] = &block.commands[..] else {
                    panic!("{file}: a background block has one command");
                };
                let line = expected.translate(&command.line);
                background.push((Background::start(&shell, &line), command.clone()));
            }
            "json" => {
                let parsed = serde_json::from_str::<Value>(&block.text);
                assert!(parsed.is_ok(), "{file}: {parsed:?}\n{}", block.text);
            }
            _ => {}
        }
    }
    for (process, command) in &background {
        let found = repeat(shell::TIMEOUT, || {
            let output = process.output();
            (expected.accepts(&command.output, &output), output)
        });
        settle(&expected, &mut page, command, found);
    }
    page.finish();
}

fn check(
    shell: &Shell,
    expected: &mut Expected,
    page: &mut Page,
    command: &Command,
    patience: Duration,
) {
    let line = expected.translate(&command.line);
    let found = repeat(patience, || {
        let output = shell.run(&line);
        (expected.accepts(&command.output, &output), output)
    });
    settle(expected, page, command, found);
}

/// Tries until the output is as expected or time is up, and returns the last attempt.
fn repeat(patience: Duration, mut attempt: impl FnMut() -> (bool, String)) -> (bool, String) {
    let end = Instant::now() + patience;
    loop {
        let (accepted, output) = attempt();
        if accepted || Instant::now() >= end {
            return (accepted, output);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn settle(
    expected: &Expected,
    page: &mut Page,
    command: &Command,
    (accepted, output): (bool, String),
) {
    if !accepted {
        page.differs(command, &expected.restore(&output));
    }
}

fn documents() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ] {
        files.push(root().join(name));
    }
    files.sort();
    files
}

#[test]
fn every_block_is_run_or_cannot_be() {
    let mut unused: BTreeSet<_> = SHOWN_ONLY
        .iter()
        .map(|(page, start, _)| (*page, *start))
        .collect();
    for file in documents() {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        for Block { info, text, .. } in Page::read(&file).blocks {
            match info.as_str() {
                "console" | "console eventually" | "console background" | "json" => {
                    assert!(PAGES.contains(&name.as_str()), "{name} is not run");
                }
                "rust" => assert_eq!(name, "docs/sdk.md"),
                // Run by the tests of registrations: text is the reason why something does not match.
                "json registration" | "json matches" | "json unmatched" => {
                    assert_eq!(name, "docs/registrations.md");
                }
                "text" if name == "docs/registrations.md" => {}
                "console not-run" | "text" => {
                    let mut shown = SHOWN_ONLY.iter();
                    let shown =
                        shown.find(|(page, start, _)| *page == name && text.starts_with(start));
                    let (page, start, _) =
                        shown.unwrap_or_else(|| panic!("{name} does not run {text}"));
                    unused.remove(&(*page, *start));
                }
                _ => panic!("{name}: a block is marked {info:?}"),
            }
        }
    }
    assert!(unused.is_empty(), "no such blocks: {unused:?}");
}

#[test]
fn links_lead_to_files_and_headings() {
    for file in documents() {
        let text = std::fs::read_to_string(&file).unwrap();
        for target in page::links(&text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            assert!(to.exists(), "{}: no file {target}", file.display());
            let found = anchor.is_empty()
                || page::anchors(&std::fs::read_to_string(&to).unwrap()).any(|a| a == anchor);
            assert!(found, "{}: no heading {target}", file.display());
        }
    }
}

#[test]
fn the_api_page_lists_every_route() {
    let page = std::fs::read_to_string(root().join("docs/http-api.md")).unwrap();
    let api = root().join("crates/functions/http-api/openapi.json");
    let api: Value = serde_json::from_str(&std::fs::read_to_string(api).unwrap()).unwrap();
    let documented: BTreeSet<(String, String)> = page
        .lines()
        .filter_map(|line| {
            line.strip_prefix("| `/")?
                .strip_suffix(" |")?
                .split_once("` | ")
        })
        .flat_map(|(path, methods)| {
            methods
                .split(", ")
                .map(move |method| (format!("/{path}"), method.to_owned()))
        })
        .collect();
    let paths = api["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| (path.clone(), method.to_uppercase()))
    });
    assert_eq!(documented, routes.collect());
}

/// Paths below `crates/` that ARCHITECTURE.md and CONTRIBUTING.md name. `<kind>` stands for any.
#[test]
fn named_files_exist() {
    let path = Regex::new(r"`((?:crates/)?[a-z-]+/(?:[a-z-]+/)?(?:src|tests)/[^`]*)`").unwrap();
    let mut named = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for found in path.captures_iter(&text) {
            let file = found[1].trim_start_matches("crates/");
            let file = file.split('<').next().unwrap();
            assert!(root().join("crates").join(file).exists(), "{page}: {file}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn the_code_map_lists_every_crate() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let listed =
            text.contains(&format!("| `{name}` |")) || text.contains(&format!("| `{name}/*` |"));
        assert!(listed, "{name}");
    }
}

/// Variables that the configuration page lists for a function.
fn documented_variables(function: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let heading = format!("## {function}\n");
    let section = page.split(&heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| {
        row.split(" | ")
            .next()
            .unwrap()
            .split('`')
            .skip(1)
            .step_by(2)
    });
    names.map(str::to_owned).collect()
}

#[test]
fn the_configuration_page_lists_every_variable() {
    let everywhere = documented_variables("Every function");
    let mut by_section: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (function, read) in antumbra_local::stack::variables() {
        assert!(everywhere.is_subset(&read), "{function}");
        let section = match function {
            "message-get" | "message-query" | "message-next" | "message-delete"
            | "message-send" => "message-requests",
            other => other,
        };
        let read = read.difference(&everywhere).cloned();
        by_section.entry(section).or_default().extend(read);
    }
    for (section, read) in by_section {
        assert_eq!(documented_variables(section), read, "{section}");
    }
}

#[test]
fn the_readme_stays_short() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150);
}
