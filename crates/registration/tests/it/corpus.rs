//! The corpus in `testdata/`: name, registration, change and expected result.

use std::fs;
use std::path::Path;

use antumbra_registration::explain;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::{Given, load};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    on: Box<RawValue>,
    change: Given,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    Matches(bool),
    /// The registration does not match, for this reason.
    Because(String),
}

fn cases() -> Vec<(String, Case)> {
    let mut cases = Vec::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let found: Vec<Case> = serde_json::from_str(&text)
            .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        cases.extend(
            found
                .into_iter()
                .map(|case| (format!("{file}: {}", case.name), case)),
        );
    }
    assert!(cases.len() >= 370, "only {} cases were found", cases.len());
    cases
}

#[test]
fn each_case_has_the_expected_result() {
    let mut wrong = Vec::new();
    for (name, case) in cases() {
        let registrations = load([case.on.get()]);
        let matched = !case.change.planned(&registrations).is_empty();
        let unmet = case
            .change
            .with(|change, _| explain(&registrations, change).remove(0).unmet);
        let expected = matches!(case.expect, Expect::Matches(true));
        if matched != expected || unmet.is_none() != expected {
            wrong.push(format!(
                "{name}: expected {expected}, planned {matched}, explained {unmet:?}"
            ));
        }
        if let Expect::Because(because) = &case.expect {
            let actual = unmet.unwrap_or_default();
            if actual != *because {
                wrong.push(format!(
                    "{name}:\n  expected {because}\n  actual   {actual}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every registration that loads is valid according to the schema, so that editors accept it.
#[test]
fn each_case_validates() {
    let validator = jsonschema::validator_for(&crate::support::schema()).unwrap();
    for (name, case) in cases() {
        let text = format!(
            r#"{{"name":"r","on":{},"to":{{"clients":{{}}}}}}"#,
            case.on.get()
        );
        let value = serde_json::from_str(&text).unwrap();
        assert!(
            validator.is_valid(&value),
            "{name}: {:?}",
            validator.validate(&value).err()
        );
    }
}

/// All registrations together match the same as each alone: this tests the key index and shared patterns.
#[test]
fn all_cases_together_match_the_same() {
    let cases = cases();
    let together = load(cases.iter().map(|(_, case)| case.on.get()));
    let alone: Vec<_> = cases
        .iter()
        .map(|(_, case)| load([case.on.get()]))
        .collect();
    for (name, case) in &cases {
        let found = case.change.planned(&together);
        let expected: Vec<usize> = (0..alone.len())
            .filter(|at| !case.change.planned(&alone[*at]).is_empty())
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}
