//! `antumbra local` as a process: how it comes up, how it ends, and what it says when it cannot.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::process::{Home, antumbra, command, text, wait_for};

/// Runs to the end, which must be a failure of this exit code, told in one line on standard error.
fn refused(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: "), "{said}");
    assert_eq!(text(&output.stdout), "");
    said
}

#[test]
fn signals_end_it_cleanly_and_take_the_ready_file_along() {
    for signal in ["INT", "TERM"] {
        let home = Home::new(&[]);
        let mut running = home.start();
        running.signal(signal);
        assert_eq!(running.ended().code(), Some(0), "{signal}");
        assert!(!home.path("ready.json").exists(), "{signal}");
        assert!(home.path("data/dynamodb.sqlite").exists());
    }
}

#[test]
fn a_signal_ends_it_while_messages_are_polled_for() {
    let home = Home::new(&[]);
    let mut process = home.local().stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the start", || {
        home.path("ready.json").exists().then_some(())
    });
    let id = process.id().to_string();
    let begin = std::time::Instant::now();
    Command::new("kill")
        .args(["-s", "TERM", &id])
        .status()
        .unwrap();
    let status = wait_for("the end", || process.try_wait().unwrap());
    assert!(status.success());
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    let mut said = String::new();
    let mut stdout = process.stdout.take().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("Antumbra is up."), "{said}");
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (option, service) in [
        ("--dynamodb-port", "DynamoDB"),
        ("--aws-port", "SQS and SNS"),
        ("--mqtt-port", "MQTT"),
        ("--http-port", "HTTP"),
    ] {
        let home = Home::new(&[]);
        let mut all: Vec<String> = Vec::new();
        for other in [
            "--dynamodb-port",
            "--aws-port",
            "--mqtt-port",
            "--http-port",
        ] {
            let value = if other == option { port.as_str() } else { "0" };
            all.extend([other.to_owned(), value.to_owned()]);
        }
        let mut local = command();
        local.args(["local", "--memory"]).args(all);
        local.arg("--registrations").arg(home.path("registrations"));
        let expected = format!(
            "error: port {port} for {service} is already in use: stop what uses it, or choose another with {option}\n"
        );
        assert_eq!(refused(&mut local, 6), expected);
    }
}

#[test]
fn a_second_start_on_the_same_data_is_refused_and_a_kill_frees_it() {
    let home = Home::new(&[]);
    let mut first = home.start();
    let mut second = command();
    second
        .args(["local", "--dynamodb-port", "0", "--aws-port", "0"])
        .args(["--mqtt-port", "0", "--http-port", "0", "--data-dir"])
        .arg(home.path("data"))
        .arg("--registrations")
        .arg(home.path("registrations"));
    let said = refused(&mut second, 6);
    let process = format!("another stack (process {})", first.process.id());
    assert!(said.contains(&process), "{said}");
    first.process.kill().unwrap();
    first.ended();
    assert!(home.path("ready.json").exists(), "nobody could remove it");
    let mut third = home.start();
    third.signal("TERM");
    assert!(third.ended().success());
}

#[test]
fn a_data_directory_that_cannot_be_is_named() {
    let home = Home::new(&[]);
    std::fs::write(home.path("data"), "a file").unwrap();
    let said = refused(&mut home.local(), 6);
    assert!(said.contains("data directory"), "{said}");
    assert!(said.contains("File exists"), "{said}");
    assert!(!home.path("ready.json").exists());
}

#[test]
fn damaged_files_are_named_and_left_alone() {
    for (name, content) in [
        ("dynamodb.sqlite", "this was never a database, ".repeat(400)),
        ("stream-positions.json", "{\"stream-listener\":".to_owned()),
    ] {
        let home = Home::new(&[]);
        std::fs::create_dir(home.path("data")).unwrap();
        let file = home.path("data").join(name);
        std::fs::write(&file, &content).unwrap();
        let said = refused(&mut home.local(), 6);
        assert!(said.contains(&file.display().to_string()), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_database_cut_short_is_named() {
    let home = Home::new(&[]);
    let mut first = home.start();
    let written = first.run(&["shadow", "report", "lamp", r#"{"on":true}"#]);
    assert!(written.status.success());
    first.signal("TERM");
    assert!(first.ended().success());
    let file = home.path("data/dynamodb.sqlite");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..5000]).unwrap();
    let output = home.local().output().unwrap();
    let said = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("dynamodb.sqlite"), "{said}");
}

#[test]
fn registrations_that_are_wrong_or_missing_refuse_the_start() {
    let home = Home::new(&[("bad.json", r#"{"name":"bad","to":{"sqs":{}}}"#)]);
    let said = refused(&mut home.local(), 2);
    assert!(said.contains("bad.json: /to/sqs: has no queue"), "{said}");
    let folder = home.path("registrations");
    let checked = antumbra(&[
        "registrations",
        "check",
        "--registrations",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(checked.status.code(), Some(2));

    let home = Home::new(&[("cut.json", r#"{"name":"#)]);
    let said = refused(&mut home.local(), 2);
    assert!(said.contains("cut.json"), "{said}");

    let home = Home::new(&[]);
    std::fs::remove_dir(home.path("registrations")).unwrap();
    let said = refused(&mut home.local(), 2);
    assert!(said.contains("registrations"), "{said}");
    assert!(said.contains("No such file"), "{said}");
}

#[test]
fn a_ready_file_that_cannot_be_written_is_named_before_anything_starts() {
    let home = Home::new(&[]);
    let mut local = command();
    local.args(["local", "--memory", "--registrations"]);
    local.arg(home.path("registrations"));
    local
        .arg("--ready-file")
        .arg(home.path("nowhere/ready.json"));
    let said = refused(&mut local, 2);
    assert!(said.contains("nowhere/ready.json"), "{said}");
}

#[test]
fn an_endpoint_that_is_wrong_is_said_in_one_line() {
    let report = ["shadow", "report", "lamp", "{}", "--retries", "0"];
    let asking = |endpoint: &str| {
        let mut command = command();
        command.args(["--endpoint-url", endpoint]).args(report);
        command
    };
    let nobody = "http://127.0.0.1:9";
    let said = refused(&mut asking(nobody), 6);
    assert!(said.contains("asking http://127.0.0.1:9"), "{said}");
    assert!(said.contains("antumbra local"), "{said}");

    // Others answer there: queues, and a broker.
    let home = Home::new(&[]);
    let running = home.start();
    let queues = running.addresses["aws"].as_str().unwrap();
    let broker = running.addresses["mqtt"].as_str().unwrap();
    let broker = broker.replace("mqtt://", "http://");
    for endpoint in [queues, &broker] {
        let output = asking(endpoint).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() > Some(1), "{endpoint}: {said}");
        assert_eq!(said.lines().count(), 1, "{endpoint}: {said}");
    }

    for nonsense in ["nonsense", "ftp://127.0.0.1", "127.0.0.1:8000", "http://"] {
        let output = asking(nonsense).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{nonsense}");
        let said = text(&output.stderr);
        assert!(said.contains("begins with http://"), "{said}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut process = command()
        .args(["registrations", "schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}
