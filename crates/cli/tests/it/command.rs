//! `antumbra` as a process: output and exit codes.

use std::path::Path;

use serde_json::Value;

use crate::process::{Local, antumbra, command, text};

#[test]
fn shadows_are_managed_from_the_command_line() {
    let local = Local::start();
    let on = r#"{"led":{"value":"on","timestamp":1769860800}}"#;
    let first = local.run(&["shadow", "report", "Lamp#ü", on]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(
        text(&first.stdout),
        "Lamp#ü/main  reported version 1, written\n  added  /led  {\"timestamp\":1769860800,\"value\":\"on\"}\n"
    );

    let off = r#"{"led":{"value":"off","timestamp":1769860700}}"#;
    let late = local.run(&["shadow", "report", "Lamp#ü", off, "--json"]);
    let late: Value = serde_json::from_slice(&late.stdout).unwrap();
    assert_eq!(late["written"], false);
    assert_eq!(late["version"], 1);
    assert_eq!(late["verdicts"][0]["verdict"], "kept: stale");

    let watt = r#"{"watt":12345678901234567890.5}"#;
    let desired = local.run(&["shadow", "desire", "Lamp#ü", watt]);
    assert!(desired.status.success());
    let delta = local.run(&["shadow", "get", "Lamp#ü", "--part", "delta", "--json"]);
    assert!(text(&delta.stdout).contains("12345678901234567890.5"));

    for (line, member, count) in [
        ("shadow list --json", "shadows", 1),
        ("shadow list --prefix Lamp# --json", "shadows", 1),
        ("shadow list --prefix Fan --json", "shadows", 0),
        ("shadow list Lamp#ü --json", "documents", 2),
    ] {
        let list = local.run(&line.split(' ').collect::<Vec<_>>());
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        assert_eq!(list[member].as_array().map(Vec::len), Some(count), "{line}");
        let id = &list[member][0]["id"];
        assert!(id == "Lamp#ü" || count == 0, "{list}");
    }

    assert!(local.run(&["shadow", "delete", "Lamp#ü"]).status.success());
    let gone = local.run(&["shadow", "get", "Lamp#ü"]);
    assert_eq!(gone.status.code(), Some(3));
    let error = text(&gone.stderr);
    assert!(
        error.starts_with("error: the shadow Lamp#ü/main does not exist; "),
        "{error}"
    );
}

#[test]
fn errors_have_exit_codes_by_kind() {
    let local = Local::start();
    let code = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        local.run(&arguments).status.code()
    };
    for (line, expected) in [
        ("shadow get nobody", 3),
        ("shadow report lamp [1]", 2),
        ("shadow report  {}", 2),
        ("shadow report lamp {} --mode Sideways", 2),
        ("shadow report lamp {} --expected 5", 4),
        ("shadow report lamp @/no/such/file", 2),
    ] {
        assert_eq!(code(line), Some(expected), "{line}");
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
    for (n, expected) in [0, 0, 0, 0, 5].into_iter().enumerate() {
        let part = large.replace("\"a\"", &format!("\"a{n}\""));
        let reported = code(&format!("shadow report lamp {part}"));
        assert_eq!(reported, Some(expected), "part {n}");
    }
}

#[test]
fn shipped_registrations_are_valid_and_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("registrations");
    let folder = folder.to_str().unwrap();
    let checked = antumbra(&["registrations", "check", "--registrations", folder]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("basement-lights"));

    let schema = antumbra(&["registrations", "schema"]);
    let printed: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let committed: Value = serde_json::from_slice(
        &std::fs::read(root.join("registrations/registration.schema.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(printed, committed);

    let directory = tempfile::tempdir().unwrap();
    let event = directory.path().join("event.json");
    let record = r#"{"Records":[{"eventID":"1","eventName":"INSERT","dynamodb":{"SequenceNumber":"1",
        "Keys":{"PK":{"S":"DS#My House#Basement#Lamp"},"SK":{"S":"DSR#main"}},
        "NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}}}]}"#;
    std::fs::write(&event, record).unwrap();
    let explained = antumbra(&[
        "registrations",
        "explain",
        event.to_str().unwrap(),
        "--registrations",
        folder,
        "--json",
    ]);
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let verdicts = explained["records"][0]["registrations"].as_array().unwrap();
    let of = |name: &str| {
        verdicts
            .iter()
            .find(|verdict| verdict["name"] == name)
            .unwrap()
    };
    assert!(of("basement-lights").get("unmet").is_none());
    assert!(
        of("freezer-too-warm")["unmet"]
            .as_str()
            .unwrap()
            .starts_with("on.key")
    );
}

/// Without region and credentials, and without a broker.
#[test]
fn errors_are_one_line_for_people() {
    for (line, expected) in [
        ("queues show x", "credentials"),
        ("sensors signal door-7 1 --region eu-west-1", "credentials"),
        (
            "messages query t --iot-endpoint a.invalid --region eu-west-1",
            "credentials",
        ),
        (
            "mqtt subscribe a --mqtt-url mqtt://127.0.0.1:1",
            "Connection refused",
        ),
    ] {
        let mut command = command();
        command.env_clear().env("AWS_EC2_METADATA_DISABLED", "true");
        let output = command.args(line.split(' ')).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{errors}");
        assert!(
            errors.starts_with("error: ") && errors.contains(expected),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
        let debug = ["Some(", "Error {", "Failure", "\\n"];
        assert!(!debug.iter().any(|mark| errors.contains(mark)), "{errors}");
    }
}

#[test]
fn the_bill_of_a_fleet_is_printed_by_service() {
    let cost = antumbra(&["cost", "--devices", "10000", "--json"]);
    let cost: Value = serde_json::from_slice(&cost.stdout).unwrap();
    let services = cost["services"].as_array().unwrap();
    let sum: f64 = services
        .iter()
        .map(|line| line["dollars"].as_f64().unwrap())
        .sum();
    let total = cost["totalDollars"].as_f64().unwrap();
    assert!(total > 1_000.0 && (sum - total).abs() < 0.05, "{cost}");
    assert!(cost["deviceShadowDollars"].as_f64().unwrap() > 1_000.0);
    let invalid = antumbra(&["cost", "--devices=-1"]);
    assert_eq!(invalid.status.code(), Some(2));
    let error = text(&invalid.stderr);
    assert_eq!(error, "error: devices must be a number of at least 0\n");
}

#[test]
fn examples_are_loaded_by_the_command_and_not_by_a_deployed_listener() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registrations");
    let names = |loaded: antumbra_registration::Registrations| -> Vec<String> {
        let names = loaded
            .iter()
            .map(|(_, registration)| registration.name.to_string());
        names.collect()
    };
    let deployed = names(antumbra_notify::files::load(&directory, &|_| None).unwrap());
    assert!(!deployed.iter().any(|name| name == "basement-lights"));
    let folder = directory.to_str().unwrap();
    let checked = antumbra(&[
        "registrations",
        "check",
        "--registrations",
        folder,
        "--json",
    ]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let found = checked["registrations"].as_array().unwrap().iter();
    let files: Vec<&str> = found.map(|one| one["file"].as_str().unwrap()).collect();
    assert!(
        files.contains(&"examples/basement-lights.json"),
        "{files:?}"
    );
    assert!(files.contains(&"shadow-delta.json"), "{files:?}");
}

/// A server that is another one than expected: the error says so, and does not ask to start the local stack.
#[test]
fn a_response_of_another_service_is_named() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", server.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 16 * 1024]);
            let _ = std::io::Read::read(&mut stream, &mut request);
            let response = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
            let _ = std::io::Write::write_all(&mut stream, response.as_bytes());
        }
    });
    let refused = |arguments: &[&str]| {
        let done = antumbra(arguments);
        (done.status.code(), text(&done.stderr))
    };
    assert_eq!(
        refused(&["--endpoint-url", &endpoint, "shadow", "get", "lamp"]),
        (
            Some(6),
            format!(
                "error: unavailable: GetItem: the response, with HTTP status 200, is not one of DynamoDB at {endpoint}; correct --endpoint-url\n"
            )
        )
    );
    assert_eq!(
        refused(&["--aws-url", &endpoint, "queues", "show", "antumbra-quarantine"]),
        (
            Some(6),
            "error: SQS: the response, with HTTP status 200, is not one of SQS; correct --aws-url\n".to_owned()
        )
    );
}
