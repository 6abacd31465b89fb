//! The files of `registrations/`: registrations, schema and all examples of the README.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use antumbra_registration::{Registrations, explain};
use serde_json::{Value, json};

use crate::support::{Given, schema};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registrations")
}

fn environment(name: &str) -> Option<String> {
    match name {
        "ALERTS_QUEUE_URL" => {
            Some("https://sqs.eu-west-1.amazonaws.com/123456789012/alerts".to_owned())
        }
        "STAGE" => Some("test".to_owned()),
        _ => None,
    }
}

/// Names and texts of the deployed registrations.
fn deployed() -> Vec<(String, String)> {
    files_of("")
}

/// Names and texts of the deployed registrations and the examples.
fn files() -> Vec<(String, String)> {
    let mut files = files_of("examples/");
    files.extend(deployed());
    files.sort();
    files
}

fn files_of(directory: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder().join(directory)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".json") && name != "registration.schema.json" {
            files.push((
                format!("{directory}{name}"),
                fs::read_to_string(path).unwrap(),
            ));
        }
    }
    files.sort();
    files
}

fn validates(text: &str) -> bool {
    jsonschema::validator_for(&schema())
        .unwrap()
        .is_valid(&serde_json::from_str(text).unwrap())
}

/// The fields that the reader reports in its error for an unknown field.
fn fields_read(file: Value, object: &str) -> BTreeSet<String> {
    let mut file = file;
    file.pointer_mut(object).unwrap()["unknown"] = Value::Null;
    let errors = Registrations::load([("r.json", file.to_string())], &|_| None).unwrap_err();
    let prefix = format!("{object}/unknown");
    let mut problems = errors.problems.into_iter();
    let problem = problems.find(|problem| problem.field == prefix).unwrap();
    let (_, fields) = problem
        .reason
        .split_once("the fields are ")
        .unwrap_or_default();
    let fields = fields.split(", ").filter(|field| !field.is_empty());
    fields.map(str::to_owned).collect()
}

#[test]
fn the_schema_has_the_fields_that_are_read() {
    let schema = schema();
    let in_schema = |object: &Value| -> BTreeSet<String> {
        let properties = object["properties"].as_object();
        properties
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    let file = json!({ "name": "r", "on": {}, "to": { "clients": {} } });
    assert_eq!(in_schema(&schema), fields_read(file.clone(), ""));
    assert_eq!(
        in_schema(&schema["$defs"]["On"]),
        fields_read(file.clone(), "/on")
    );
    let leaf = json!({ "name": "r", "on": { "leaf": { "path": "/a" } }, "to": { "clients": {} } });
    assert_eq!(
        in_schema(&schema["$defs"]["Leaf"]),
        fields_read(leaf, "/on/leaf")
    );
    let kinds = fields_read(file, "/to");
    let targets = schema["$defs"]["Target"]["oneOf"].as_array().unwrap();
    let mut described = BTreeSet::new();
    for target in targets {
        let kind = target["required"][0].as_str().unwrap();
        let definition = target["properties"][kind]["$ref"].as_str().unwrap();
        let definition = schema.pointer(&definition[1..]).unwrap();
        let file = json!({ "name": "r", "to": { kind: {} } });
        let read = fields_read(file, &format!("/to/{kind}"));
        assert_eq!(in_schema(definition), read, "{kind}");
        assert_eq!(definition["additionalProperties"], false, "{kind}");
        described.insert(kind.to_owned());
    }
    assert_eq!(described, kinds);
}

/// A file with this value in one of its fields, for the reader and for the schema.
fn with_field(file: &Value, object: &str, field: &str, value: &Value) -> Value {
    let mut file = file.clone();
    file.pointer_mut(object).unwrap()[field] = value.clone();
    file
}

/// Values of every type, and on both sides of every limit.
fn probes() -> Vec<Value> {
    let mut probes = vec![
        json!(null),
        json!(true),
        json!([]),
        json!({}),
        json!(["insert", "insert"]),
        json!(["old", "diff"]),
        json!(["update"]),
        json!([1]),
        json!({"a": "b"}),
        json!({"a": 1}),
        json!({"a": ""}),
        json!({"a b": "b"}),
        json!({"AWS.a": "b"}),
        json!({"a.": "b"}),
        json!({"a..b": "b"}),
        json!({"new": {"a": [1]}}),
        json!({"sqs": {"queue": "q"}}),
        json!({"state": "reported"}),
        json!({"path": "/a"}),
        json!(["added", "acknowledged"]),
        json!([{"numeric": [">", 1]}, null]),
        json!({"a": [1], "$or": [{"b": [2]}, {"c": {"d": [3]}}]}),
    ];
    probes.extend([-1.0, 0.5].map(|number| json!(number)));
    probes.extend([0, 1, 2, 900, 901].map(|number| json!(number)));
    let words = [
        "",
        " x",
        "x ",
        "x.",
        ".x",
        "å",
        "a\nb",
        "insert",
        "reported",
        "both",
        "value",
        "any",
        "key",
        "notification",
        "shadow-delta",
        "^DS#",
        "/a",
        "/",
        "a/b",
        "/a*/**/*b*c",
        "/***",
        "/a**",
        "/**/**",
        "/**/**a",
        "/~0~1",
        "/~",
        "/~2",
        "/\\*\\\\",
        "/\\a",
    ];
    probes.extend(words.map(|word| json!(word)));
    for limit in [100, 128, 256, 1024, 2048] {
        probes.extend([limit, limit + 1].map(|length| json!("x".repeat(length))));
        probes
            .extend([limit, limit + 1].map(|length| json!(format!("/{}", "x".repeat(length - 1)))));
        probes.extend([limit, limit + 1].map(|length| json!({"x".repeat(length): "b"})));
    }
    for count in [6, 7] {
        let attributes = (0..count).map(|n| (format!("a{n}"), json!("b")));
        probes.push(Value::Object(attributes.collect()));
    }
    probes
}

/// The reader and the schema accept the same values. Addresses have a syntax that only the reader checks.
#[test]
fn the_schema_has_the_types_and_limits_that_are_read() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let topic = "arn:aws:sns:eu-west-1:123456789012:t";
    let targets = [
        ("sqs", "queue", "q"),
        ("sns", "topic", topic),
        ("mqtt", "topic", "t"),
        ("eventbridge", "bus", "b"),
    ];
    let plain = json!({ "name": "r", "on": {}, "to": { "clients": {} } });
    let mut objects = vec![(plain.clone(), String::new()), (plain, "/on".to_owned())];
    let leaf = json!({ "name": "r", "on": { "leaf": { "path": "/a" } }, "to": { "clients": {} } });
    objects.push((leaf, "/on/leaf".to_owned()));
    for (kind, address, valid) in targets {
        let file = json!({ "name": "r", "to": { kind: { address: valid } } });
        objects.push((file, format!("/to/{kind}")));
    }
    let (mut differences, mut compared) = (Vec::new(), 0);
    for (file, object) in objects {
        for field in fields_read(file.clone(), &object) {
            let is_address = targets
                .iter()
                .any(|(kind, address, _)| object == format!("/to/{kind}") && field == *address);
            for value in probes()
                .iter()
                .filter(|value| !(is_address && value.is_string()))
            {
                let file = with_field(&file, &object, &field, value);
                let read = Registrations::load([("r.json", file.to_string())], &|_| None);
                if read.is_ok() != validator.is_valid(&file) {
                    let reader = read.map_or("rejects", |_| "accepts");
                    differences.push(format!("{object}/{field}: the reader {reader} {value}"));
                }
                compared += 1;
            }
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    assert!(compared > 500, "{compared}");
}

/// All files load together with an empty environment, so that a deployment starts without configuration.
#[test]
fn all_files_load_and_validate() {
    let files = files();
    assert!(files.len() >= 6);
    for (name, text) in &files {
        assert!(validates(text), "{name}");
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let (directory, schema) = match name.strip_prefix("examples/") {
            Some(_) => ("examples/", "../registration.schema.json"),
            None => ("", "./registration.schema.json"),
        };
        let expected = format!("{directory}{}.json", value["name"].as_str().unwrap());
        assert_eq!(*name, expected);
        assert_eq!(value["$schema"], schema, "{name}");
        assert!(value["description"].is_string(), "{name}");
    }
    Registrations::load(files, &|_| None).unwrap_or_else(|errors| panic!("{errors}"));
}

/// A deployment sends what the product needs, and nothing to targets that only an example has.
#[test]
fn deployed_registrations_are_those_of_the_product() {
    let deployed: Vec<String> = deployed().into_iter().map(|(name, _)| name).collect();
    let product = [
        "inbox-notifications.json",
        "sensor-clients.json",
        "shadow-delta.json",
        "shadow-documents.json",
    ];
    assert_eq!(deployed, product);
}

/// A fenced block: its info string and its text.
struct Block {
    kind: String,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block {
                kind: kind.to_owned(),
                text: text.join("\n"),
            });
        }
    }
    blocks
}

/// Enables a registration, so that disabled examples can be tested.
fn enabled(text: &str) -> Registrations {
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    value["enabled"] = true.into();
    Registrations::load([("example.json", value.to_string())], &environment)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs the examples of a page; returns the files it shows, and the number of examples.
fn run_examples(page: &str) -> (Vec<String>, usize) {
    let files = files();
    let page = fs::read_to_string(folder().join(page)).unwrap();
    let blocks = blocks(&page);
    let mut current = Registrations::default();
    let (mut shown, mut examples) = (Vec::new(), 0);
    for (at, block) in blocks.iter().enumerate() {
        let stated = || {
            blocks
                .get(at + 1)
                .filter(|next| next.kind == "text")
                .map(|next| next.text.as_str())
                .unwrap()
        };
        match block.kind.strip_prefix("json ") {
            Some("registration") => {
                assert!(validates(&block.text), "{}", block.text);
                current = enabled(&block.text);
            }
            Some("matches") => {
                assert_eq!(
                    Given::parse(&block.text).planned(&current),
                    [0],
                    "{}",
                    block.text
                );
                examples += 1;
            }
            Some("unmatched") => {
                let given = Given::parse(&block.text);
                assert!(given.planned(&current).is_empty(), "{}", block.text);
                let unmet = given
                    .with(|change, _| explain(&current, change).remove(0).unmet)
                    .unwrap();
                assert_eq!(unmet.to_string(), stated());
                examples += 1;
            }
            Some("rejected") => {
                let errors =
                    Registrations::load([("example.json", &block.text)], &environment).unwrap_err();
                assert_eq!(errors.to_string(), stated());
                examples += 1;
            }
            Some(file) => {
                let (_, text) = files.iter().find(|(name, _)| name == file).unwrap();
                assert_eq!(block.text.trim_end(), text.trim_end(), "{file}");
                current = enabled(text);
                shown.push(file.to_owned());
            }
            None => {}
        }
    }
    shown.sort();
    (shown, examples)
}

#[test]
fn readme_examples_have_the_stated_results() {
    let (shown, examples) = run_examples("README.md");
    assert_eq!(
        shown,
        files()
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    );
    assert!(examples >= 20, "{examples}");
}

#[test]
fn examples_of_the_documentation_have_the_stated_results() {
    let (_, examples) = run_examples("../docs/registrations.md");
    assert!(examples >= 4, "{examples}");
}

#[test]
fn rows_of_the_operator_table_have_the_stated_results() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let rows = readme
        .lines()
        .skip_while(|line| *line != "### Tests")
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `"));
    let mut checked = 0;
    for row in rows {
        let (test, rest) = row.split_once("` | ").unwrap();
        let (holds, fails) = rest.split_once(" | ").unwrap();
        let on = format!(r#"{{"pattern":{{"new":{{"v":[{test}]}}}}}}"#);
        let registrations = crate::support::load([on]);
        for (cell, expected) in [(holds, true), (fails.trim_end_matches(" |"), false)] {
            let spans: Vec<&str> = cell.split('`').collect();
            let mut documents: Vec<String> = spans
                .iter()
                .skip(1)
                .step_by(2)
                .map(|value| format!(r#"{{"v":{value}}}"#))
                .collect();
            if spans
                .iter()
                .step_by(2)
                .any(|between| between.contains("absent"))
            {
                documents.push("{}".to_owned());
            }
            for document in documents {
                assert_eq!(
                    !Given::new(&document).planned(&registrations).is_empty(),
                    expected,
                    "{test} on {document}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 80, "only {checked}");
}
