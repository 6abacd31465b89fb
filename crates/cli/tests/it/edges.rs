//! Allowed dependencies between crates, read from the manifests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns the names in a crate's `[dependencies]`.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]"
            && let Some((dependency, _)) = line.split_once(['.', ' ', '='])
            && !dependency.is_empty()
        {
            found.insert(dependency.to_owned());
        }
    }
    let has_section = manifest.contains("\n[dependencies]\n");
    assert_eq!(has_section, !found.is_empty(), "{name}");
    found
}

fn sources(directory: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

const ALL: [&str; 28] = [
    "cli",
    "console",
    "cost",
    "database",
    "deployment",
    "dynamodb",
    "functions/history-writer",
    "functions/http-api",
    "functions/liveness-sweep",
    "functions/message-ingest",
    "functions/message-requests",
    "functions/sensor-ingest",
    "functions/shadow-requests",
    "functions/stream-listener",
    "functions/webhook-deliver",
    "fuzz",
    "lambda-kit",
    "local",
    "memory",
    "notify",
    "publish",
    "queues",
    "registration",
    "service",
    "shadow",
    "simulation",
    "testkit",
    "wire",
];

#[test]
fn every_crate_is_checked() {
    let mut found: Vec<String> = Vec::new();
    for directory in ["", "functions"] {
        for entry in std::fs::read_dir(crates().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.join("Cargo.toml").exists() {
                found.push(
                    path.strip_prefix(crates())
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    found.sort();
    assert_eq!(found, ALL);
}

/// Counts the blocks of Rust in the comments of a file.
fn examples(text: &str) -> usize {
    let comments = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches('/'));
    let fences =
        comments.filter_map(|line| line.trim_start_matches('!').trim().strip_prefix("```"));
    // Every second fence ends a block.
    let languages = fences.step_by(2);
    let is_rust = |language: &&str| ["", "rust", "no_run", "should_panic"].contains(language);
    languages.filter(is_rust).count()
}

/// Empty test programs take time to link, so manifests switch them off; then no test may be there that never runs.
#[test]
fn crates_that_switch_tests_off_have_none() {
    for name in ALL {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let switched_off = |section: &str, setting: &str| {
            let mut sections = manifest.split("\n[");
            sections.any(|text| text.starts_with(section) && text.contains(setting))
        };
        let no_unit_tests = switched_off("lib]", "\ntest = false");
        let no_programs_tests = switched_off("[bin]", "\ntest = false");
        let no_examples = switched_off("lib]", "\ndoctest = false");
        let source = crates().join(name).join("src");
        sources(&source, &mut |path, text| {
            let relative = path.strip_prefix(&source).unwrap();
            let is_program = relative.starts_with("main.rs") || relative.starts_with("bin");
            // Macros of contract suites contain tests of the crates that call them.
            let has_attribute = text.contains("#[test]") || text.contains("#[tokio::test");
            let is_suite = text.contains("#[macro_export]");
            let has_tests = text.contains("#[cfg(test)]") || (has_attribute && !is_suite);
            let unseen = if is_program {
                no_programs_tests
            } else {
                no_unit_tests
            };
            assert!(!(has_tests && unseen), "{}", path.display());
            let has_example = examples(text) > 0;
            assert!(!(has_example && no_examples), "{}", path.display());
        });
    }
}

#[test]
fn pure_crates_do_no_io() {
    let inner = ["antumbra-shadow", "antumbra-registration"];
    for (name, allowed) in [
        ("shadow", &inner[..0]),
        ("registration", &inner[..1]),
        ("wire", &inner[..]),
    ] {
        for dependency in dependencies(name) {
            let ours = dependency.starts_with("antumbra-");
            assert!(
                !ours || allowed.contains(&dependency.as_str()),
                "{name} uses {dependency}"
            );
            let io_crates = [
                "tokio", "futures", "aws", "hyper", "tracing", "lambda", "fastrand", "rand",
            ];
            // Event types are data, without a client of AWS.
            let is_data = dependency == "aws_lambda_events";
            assert!(
                is_data || !io_crates.iter().any(|word| dependency.starts_with(word)),
                "{name} uses {dependency}"
            );
        }
        sources(&crates().join(name).join("src"), &mut |path, text| {
            for word in ["std::env", "SystemTime::now", "Instant::now", "async fn"] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        });
    }
}

#[test]
fn service_does_not_depend_on_aws() {
    let found = dependencies("service");
    let aws = |name: &String| name.starts_with("aws") || name.starts_with("lambda");
    assert!(!found.iter().any(aws), "{found:?}");
    let ours: Vec<_> = found
        .iter()
        .filter(|name| name.starts_with("antumbra-"))
        .collect();
    assert_eq!(ours, ["antumbra-shadow", "antumbra-wire"]);
}

#[test]
fn only_the_dynamodb_crate_uses_the_dynamodb_sdk() {
    for name in ALL
        .iter()
        .filter(|name| !["dynamodb", "testkit"].contains(name))
    {
        let found = dependencies(name);
        assert!(!found.contains("aws-sdk-dynamodb"), "{name}");
    }
}

#[test]
fn only_lambda_kit_and_cli_read_the_environment() {
    for name in ALL
        .iter()
        .filter(|name| !["lambda-kit", "cli", "testkit"].contains(name))
    {
        sources(&crates().join(name).join("src"), &mut |path, text| {
            assert!(!text.contains("std::env::var"), "{}", path.display());
        });
    }
}

#[test]
fn testkit_is_a_dev_dependency_only() {
    for name in ALL {
        assert!(!dependencies(name).contains("antumbra-testkit"), "{name}");
    }
}

/// The text of a log line is its member `message`; a field of that name would write the member twice.
#[test]
fn no_log_field_is_called_message() {
    let mut statements = 0;
    sources(&crates(), &mut |path, text| {
        for level in ["error", "warn", "info", "debug", "trace"] {
            for call in text.split(&format!("tracing::{level}!(")).skip(1) {
                let call = call.split(");").next().unwrap();
                // Every second piece is within quotes.
                let fields: String = call.split('"').step_by(2).collect();
                for field in fields.split(',') {
                    let name = field.split('=').next().unwrap().trim();
                    let name = name.trim_start_matches(['%', '?']);
                    assert_ne!(name, "message", "{}: {call}", path.display());
                }
                statements += 1;
            }
        }
    });
    assert!(statements > 50);
}
