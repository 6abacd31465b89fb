//! `antumbra` as a process: what it prints, and how it ends.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn antumbra(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_antumbra"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A running `antumbra local` on free ports.
struct Local {
    process: Child,
    addresses: Value,
    _directory: tempfile::TempDir,
}

impl Local {
    fn start() -> Local {
        let directory = tempfile::tempdir().unwrap();
        let registrations = directory.path().join("registrations");
        std::fs::create_dir(&registrations).unwrap();
        let rule = r#"{"name":"all","to":{"sqs":{"queue":"changes.fifo"}}}"#;
        std::fs::write(registrations.join("all.json"), rule).unwrap();
        let ready = directory.path().join("ready.json");
        let process = Command::new(env!("CARGO_BIN_EXE_antumbra"))
            .args([
                "local",
                "--dynamodb-port",
                "0",
                "--aws-port",
                "0",
                "--mqtt-port",
                "0",
            ])
            .args([Path::new("--data-dir"), &directory.path().join("data")])
            .args([Path::new("--registrations"), &registrations])
            .args([Path::new("--ready-file"), &ready])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let addresses = wait_for(&ready);
        Local {
            process,
            addresses,
            _directory: directory,
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let endpoint = self.addresses["dynamodb"].as_str().unwrap();
        let mut all = vec!["--endpoint-url", endpoint, "--region", "us-east-1"];
        all.extend(arguments);
        Command::new(env!("CARGO_BIN_EXE_antumbra"))
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .args(all)
            .output()
            .unwrap()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The file's JSON, as soon as it is whole.
fn wait_for(path: &Path) -> Value {
    let patience = Instant::now() + Duration::from_secs(60);
    while Instant::now() < patience {
        if let Some(value) = std::fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        {
            return value;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the stack did not come up");
}

#[test]
fn shadows_from_the_terminal() {
    let local = Local::start();
    let first = local.run(&[
        "shadow",
        "report",
        "Lamp#ü",
        r#"{"led":{"value":"on","timestamp":1769860800}}"#,
    ]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(
        text(&first.stdout),
        "Lamp#ü/main  reported version 1, written\n  added  /led  {\"timestamp\":1769860800,\"value\":\"on\"}\n"
    );

    let late = local.run(&[
        "shadow",
        "report",
        "Lamp#ü",
        r#"{"led":{"value":"off","timestamp":1769860700}}"#,
        "--json",
    ]);
    let late: Value = serde_json::from_slice(&late.stdout).unwrap();
    assert_eq!(
        (&late["written"], &late["version"]),
        (&Value::from(false), &Value::from(1))
    );
    assert_eq!(late["verdicts"][0]["verdict"], "kept: stale");

    let wish = local.run(&[
        "shadow",
        "desire",
        "Lamp#ü",
        r#"{"watt":12345678901234567890.5}"#,
    ]);
    assert!(wish.status.success());
    let delta = local.run(&["shadow", "get", "Lamp#ü", "--part", "delta", "--json"]);
    assert!(
        text(&delta.stdout).contains("12345678901234567890.5"),
        "every digit is kept"
    );

    let list = local.run(&["shadow", "list", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list["documents"].as_array().unwrap().len(), 2);

    assert!(local.run(&["shadow", "delete", "Lamp#ü"]).status.success());
    let gone = local.run(&["shadow", "get", "Lamp#ü"]);
    assert_eq!(gone.status.code(), Some(3));
    assert_eq!(text(&gone.stderr), "error: not found (1 attempt)\n");
}

#[test]
fn failures_have_their_own_exit_codes() {
    let local = Local::start();
    let code = |arguments: &[&str]| local.run(arguments).status.code();
    assert_eq!(code(&["shadow", "get", "nobody"]), Some(3));
    assert_eq!(code(&["shadow", "report", "lamp", "[1]"]), Some(2));
    assert_eq!(code(&["shadow", "report", "", "{}"]), Some(2));
    assert_eq!(
        code(&["shadow", "report", "lamp", "{}", "--mode", "Sideways"]),
        Some(2)
    );
    assert_eq!(
        code(&["shadow", "report", "lamp", "{}", "--expected", "5"]),
        Some(4)
    );
    assert_eq!(
        code(&["shadow", "report", "lamp", "@/no/such/file"]),
        Some(2)
    );
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
    let parts: Vec<String> = (0..5)
        .map(|n| large.replace("\"a\"", &format!("\"a{n}\"")))
        .collect();
    for (position, part) in parts.iter().enumerate() {
        let expected = if position < 4 { Some(0) } else { Some(5) };
        assert_eq!(
            code(&["shadow", "report", "lamp", part]),
            expected,
            "part {position}"
        );
    }
}

#[test]
fn an_endpoint_that_is_not_there_is_said_in_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_antumbra"))
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .args([
            "--endpoint-url",
            "http://127.0.0.1:9",
            "--region",
            "us-east-1",
        ])
        .args(["shadow", "report", "lamp", "{}", "--retries", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert_eq!(
        text(&output.stderr).lines().count(),
        1,
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let directory = tempfile::tempdir().unwrap();
    let registrations = directory.path().to_str().unwrap();
    let output = antumbra(&[
        "local",
        "--memory",
        "--registrations",
        registrations,
        "--dynamodb-port",
        &port,
    ]);
    assert_eq!(output.status.code(), Some(6));
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("port {port} for DynamoDB")),
        "{said}"
    );
}

#[test]
fn a_data_directory_that_is_a_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let registrations = directory.path().to_str().unwrap();
    let output = antumbra(&[
        "local",
        "--data-dir",
        file.to_str().unwrap(),
        "--registrations",
        registrations,
    ]);
    assert_eq!(output.status.code(), Some(6));
    assert!(
        text(&output.stderr).contains("data directory"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_broken_registration_refuses_to_start_and_says_where() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("bad.json"),
        r#"{"name":"bad","to":{"sqs":{"que":"x"}}}"#,
    )
    .unwrap();
    let registrations = directory.path().to_str().unwrap();
    let output = antumbra(&["local", "--memory", "--registrations", registrations]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("bad.json: /to/sqs"),
        "{}",
        text(&output.stderr)
    );
    let checked = antumbra(&["registrations", "check", "--registrations", registrations]);
    assert_eq!(checked.status.code(), Some(2));
}

#[test]
fn shipped_registrations_are_right_and_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("registrations");
    let folder = folder.to_str().unwrap();
    let checked = antumbra(&["registrations", "check", "--registrations", folder]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("basement-lights"));

    let schema = antumbra(&["registrations", "schema"]);
    let printed: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let kept: Value = serde_json::from_slice(
        &std::fs::read(root.join("registrations/registration.schema.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(printed, kept);

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
