//! Who may depend on whom. The manifests are read as text: what they do not name cannot be used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// What a crate's `[dependencies]` name.
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
    assert!(!found.is_empty(), "{name} names no dependencies");
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

const ALL: [&str; 23] = [
    "cli",
    "deployment",
    "dynamodb",
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
    "registration",
    "service",
    "shadow",
    "simulation",
    "testkit",
    "wire",
];

#[test]
fn every_crate_is_looked_at() {
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

#[test]
fn the_pure_crates_know_nothing_of_the_world() {
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
            let worldly = [
                "tokio", "futures", "aws", "hyper", "tracing", "lambda", "fastrand", "rand",
            ];
            // Event types are data, without a client of AWS.
            let is_data = dependency == "aws_lambda_events";
            assert!(
                is_data || !worldly.iter().any(|word| dependency.starts_with(word)),
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
fn the_use_cases_know_no_aws() {
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
fn the_dynamodb_sdk_is_one_crates_business() {
    for name in ALL
        .iter()
        .filter(|name| !["dynamodb", "testkit"].contains(name))
    {
        let found = dependencies(name);
        assert!(!found.contains("aws-sdk-dynamodb"), "{name}");
    }
}

#[test]
fn the_environment_is_read_in_two_places() {
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
fn the_testkit_is_for_tests() {
    for name in ALL {
        assert!(!dependencies(name).contains("antumbra-testkit"), "{name}");
    }
}
