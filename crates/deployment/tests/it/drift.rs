//! Compares templates with the code: functions, variables, tables, queues and event sources.

mod environment;
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
fn functions_are_small_and_traced_and_their_logs_expire() {
    let root = Stack::deploy(&[]);
    for (name, function) in functions(&root) {
        let properties = &function.properties;
        assert_eq!(properties["Runtime"], "provided.al2023", "{name}");
        let memory = properties["MemorySize"].as_u64().unwrap();
        assert!((128..=256).contains(&memory), "{name} has {memory} MB");
        assert_eq!(properties["Tracing"], "Active", "{name}");
        assert_eq!(properties["Architectures"][0], "arm64", "{name}");
    }
    for resource in root.resources() {
        if resource.kind == "AWS::Logs::LogGroup" {
            assert!(
                resource.properties["RetentionInDays"].is_u64(),
                "{resource:?}"
            );
        }
    }
}
