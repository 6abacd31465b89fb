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
//! - `text`: a picture
//!
//! Ids, secrets, times and durations may differ from the page (`expected.rs`). `UPDATE_DOCS=1` writes the actual
//! output into the pages.

mod expected;
mod page;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use expected::Expected;
use page::{Block, Command, Page};
use shell::{Background, Shell};

/// Blocks that cannot run in a test: builds, deployments and other programs.
const NOT_RUN: usize = 8;

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
    http_api: "docs/http-api.md",
    shadows_over_mqtt: "docs/shadows-over-mqtt.md",
    limits: "docs/limits.md",
    local_stack: "docs/local-stack.md",
}

/// Runs the blocks of a page in order, in one shell.
fn run(file: &str) {
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
                    check(&shell, &mut expected, &mut page, command, shell::PATIENCE);
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
        let found = repeat(shell::PATIENCE, || {
            let output = process.output();
            (expected.accepts(&command.output, &output), output)
        });
        settle(&mut page, command, found);
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
    settle(page, command, found);
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

fn settle(page: &mut Page, command: &Command, (accepted, output): (bool, String)) {
    if !accepted {
        page.differs(command, &output);
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
fn every_block_says_how_it_is_tested() {
    let mut not_run = 0;
    for file in documents() {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        for Block { info, .. } in Page::read(&file).blocks {
            match info.as_str() {
                "console" | "console eventually" | "console background" | "json" => {
                    assert!(PAGES.contains(&name.as_str()), "{name} is not run");
                }
                "console not-run" => not_run += 1,
                "rust" => assert_eq!(name, "docs/sdk.md"),
                "text" => {}
                _ => panic!("{name}: a block is marked {info:?}"),
            }
        }
    }
    assert_eq!(not_run, NOT_RUN);
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

#[test]
fn the_readme_stays_short() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150);
}
