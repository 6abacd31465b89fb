//! Compares templates with the code: functions, variables, tables, queues and event sources.

mod environment;
mod filters;
mod sources;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::functions::{functions, in_code};
use super::template::{Stack, text};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Binaries of the function crates: directory of the crate and name of the binary.
fn binaries() -> BTreeSet<(String, String)> {
    let mut binaries = BTreeSet::new();
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten();
    for entry in entries(&workspace().join("crates/functions")) {
        let folder = entry.unwrap().path();
        let krate = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if folder.join("src/main.rs").exists() {
            binaries.insert((krate.clone(), format!("antumbra-{krate}")));
        }
        for binary in entries(&folder.join("src/bin")) {
            let binary = binary.unwrap().path();
            let name = binary.file_stem().unwrap().to_str().unwrap();
            binaries.insert((krate.clone(), name.to_owned()));
        }
    }
    assert!(binaries.len() > 10);
    binaries
}

#[test]
fn every_binary_is_a_function_and_every_function_a_binary() {
    let functions = functions(&Stack::deploy(&[]));
    let deployed: BTreeSet<(String, String)> = functions
        .values()
        .map(|function| {
            let code = text(&function.properties["CodeUri"]);
            let code = code.strip_prefix("../crates/functions/").unwrap();
            assert_eq!(function.build["BuildMethod"], "rust-cargolambda");
            let binary = text(&function.build["BuildProperties"]["Binary"]);
            assert_eq!(binary, format!("antumbra-{}", function.name));
            (code.to_owned(), binary)
        })
        .collect();
    assert_eq!(deployed, binaries());
    assert_eq!(functions.into_keys().collect::<BTreeSet<_>>(), in_code());
}

#[test]
fn functions_are_small_and_their_logs_expire_and_have_no_line_for_each_invocation() {
    for (profile, days) in [("dev", 7), ("prod", 30)] {
        let root = Stack::deploy(&[("Profile", profile)]);
        for (name, function) in functions(&root) {
            let properties = &function.properties;
            assert_eq!(properties["Runtime"], "provided.al2023", "{name}");
            let memory = properties["MemorySize"].as_u64().unwrap();
            assert!((128..=256).contains(&memory), "{name} has {memory} MB");
            assert_eq!(properties["Tracing"], "PassThrough", "{name}");
            assert_eq!(properties["Architectures"][0], "arm64", "{name}");
            let logs = &properties["LoggingConfig"];
            assert_eq!(logs["LogFormat"], "JSON", "{name}");
            assert_eq!(logs["SystemLogLevel"], "WARN", "{name}");
        }
        for resource in root.resources() {
            if resource.kind == "AWS::Logs::LogGroup" {
                assert_eq!(resource.properties["RetentionInDays"], days, "{resource:?}");
            }
        }
    }
    let traced = functions(&Stack::deploy(&[("Tracing", "on")]));
    assert!(
        traced
            .values()
            .all(|of| of.properties["Tracing"] == "Active")
    );
}

#[test]
fn readings_messages_and_deliveries_expire_unless_configured_otherwise() {
    let retention = |given: &[(&str, &str)]| {
        let functions = functions(&Stack::deploy(given));
        let variable = |function: &str, name: &str| functions[function].environment[name].clone();
        [
            variable("sensor-ingest", "RETENTION"),
            variable("http-api", "RETENTION"),
            variable("message-ingest", "MESSAGE_RETENTION_DAYS"),
            variable("webhook-deliver", "DELIVERY_RETENTION_DAYS"),
        ]
    };
    assert_eq!(retention(&[]), ["*=30", "*=30", "30", "7"]);
    let prod = ("Profile", "prod");
    assert_eq!(retention(&[prod]), ["*=365", "*=365", "365", "30"]);
    let own = [
        ("ReadingRetention", "lock=5"),
        ("MessageRetentionDays", "0"),
    ];
    assert_eq!(retention(&own), ["lock=5", "lock=5", "0", "7"]);
}

#[test]
fn concurrency_is_reserved_only_if_asked_for() {
    let reserved = |given: &[(&str, &str)]| {
        let functions = functions(&Stack::deploy(given)).into_values();
        let reserving =
            functions.filter(|of| of.properties.get("ReservedConcurrentExecutions").is_some());
        reserving.map(|of| of.name).collect::<Vec<_>>()
    };
    assert!(reserved(&[]).is_empty());
    let waited_for = ["http-api", "shadow-requests", "stream-listener"];
    assert_eq!(reserved(&[("ReservedConcurrency", "5")]), waited_for);
}
