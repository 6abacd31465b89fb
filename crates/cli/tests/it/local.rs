//! `antumbra local` as a process: start, end and start errors.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::process::{Home, antumbra, command, text, wait_for};

/// Runs a command that must fail with this exit code and one line on standard error.
fn fails(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with("error: "), "{printed}");
    assert_eq!(text(&output.stdout), "");
    printed
}

#[test]
fn signals_end_the_stack_and_remove_the_ready_file() {
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
fn a_signal_ends_the_stack_during_long_polling() {
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
    let mut printed = String::new();
    let mut stdout = process.stdout.take().unwrap();
    stdout.read_to_string(&mut printed).unwrap();
    assert!(printed.starts_with("Antumbra is up."), "{printed}");
    let (_, next) = printed.split_once("Try in another terminal:\n\n").unwrap();
    let commands: Vec<&str> = next.lines().take_while(|line| !line.is_empty()).collect();
    let parts = ["shadow report lamp-7", "shadow get lamp-7", "curl -H"];
    assert_eq!(commands.len(), parts.len(), "{next}");
    assert!(
        commands
            .iter()
            .zip(parts)
            .all(|(line, part)| line.contains(part)),
        "{next}"
    );
}

#[test]
fn an_error_names_the_port_in_use_and_its_option() {
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
            "error: port {port} for {service} is in use; stop the process that uses it, or choose another port with {option}\n"
        );
        assert_eq!(fails(&mut local, 6), expected);
    }
}

#[test]
fn a_data_directory_has_one_process_until_it_ends() {
    let home = Home::new(&[]);
    let mut first = home.start();
    let mut second = command();
    second
        .args(["local", "--dynamodb-port", "0", "--aws-port", "0"])
        .args(["--mqtt-port", "0", "--http-port", "0", "--data-dir"])
        .arg(home.path("data"))
        .arg("--registrations")
        .arg(home.path("registrations"));
    let printed = fails(&mut second, 6);
    let process = format!("another stack (process {})", first.process.id());
    assert!(printed.contains(&process), "{printed}");
    first.process.kill().unwrap();
    first.ended();
    assert!(
        home.path("ready.json").exists(),
        "a killed process cannot remove it"
    );
    let mut third = home.start();
    third.signal("TERM");
    assert!(third.ended().success());
}

#[test]
fn an_error_names_an_impossible_data_directory() {
    let home = Home::new(&[]);
    std::fs::write(home.path("data"), "a file").unwrap();
    let printed = fails(&mut home.local(), 6);
    assert!(printed.contains("data directory"), "{printed}");
    assert!(printed.contains("File exists"), "{printed}");
    assert!(!home.path("ready.json").exists());
}

#[test]
fn damaged_files_are_named_and_not_changed() {
    for (name, content) in [
        ("dynamodb.sqlite", "this was never a database, ".repeat(400)),
        ("stream-positions.json", "{\"stream-listener\":".to_owned()),
    ] {
        let home = Home::new(&[]);
        std::fs::create_dir(home.path("data")).unwrap();
        let file = home.path("data").join(name);
        std::fs::write(&file, &content).unwrap();
        let printed = fails(&mut home.local(), 6);
        assert!(printed.contains(&file.display().to_string()), "{printed}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
}

#[test]
fn a_truncated_database_is_named() {
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
    let printed = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.contains("dynamodb.sqlite"), "{printed}");
}

#[test]
fn invalid_or_missing_registrations_prevent_the_start() {
    let home = Home::new(&[("bad.json", r#"{"name":"bad","to":{"sqs":{}}}"#)]);
    let printed = fails(&mut home.local(), 2);
    assert!(
        printed.contains("bad.json: /to/sqs: has no queue"),
        "{printed}"
    );
    let folder = home.path("registrations");
    let checked = antumbra(&[
        "registrations",
        "check",
        "--registrations",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(checked.status.code(), Some(2));

    let home = Home::new(&[("cut.json", r#"{"name":"#)]);
    let printed = fails(&mut home.local(), 2);
    assert!(printed.contains("cut.json"), "{printed}");

    let home = Home::new(&[]);
    std::fs::remove_dir(home.path("registrations")).unwrap();
    let printed = fails(&mut home.local(), 2);
    assert!(printed.contains("registrations"), "{printed}");
    assert!(printed.contains("No such file"), "{printed}");
}

#[test]
fn an_unwritable_ready_file_prevents_the_start() {
    let home = Home::new(&[]);
    let mut local = command();
    local.args(["local", "--memory", "--registrations"]);
    local.arg(home.path("registrations"));
    local
        .arg("--ready-file")
        .arg(home.path("nowhere/ready.json"));
    let printed = fails(&mut local, 2);
    assert!(printed.contains("nowhere/ready.json"), "{printed}");
}

#[test]
fn a_wrong_endpoint_is_reported_in_one_line() {
    let report = ["shadow", "report", "lamp", "{}", "--retries", "0"];
    let report_to = |endpoint: &str| {
        let mut command = command();
        command.args(["--endpoint-url", endpoint]).args(report);
        command
    };
    let unused = "http://127.0.0.1:9";
    let printed = fails(&mut report_to(unused), 6);
    assert!(
        printed.contains("nothing listens at http://127.0.0.1:9"),
        "{printed}"
    );
    assert!(printed.contains("antumbra local"), "{printed}");

    // Other services listen there: the hint to start the stack would be wrong.
    let home = Home::new(&[]);
    let running = home.start();
    let queues = running.addresses["aws"].as_str().unwrap();
    let broker = running.addresses["mqtt"].as_str().unwrap();
    let broker = broker.replace("mqtt://", "http://");
    for endpoint in [queues, &broker] {
        let output = report_to(endpoint).output().unwrap();
        let printed = text(&output.stderr);
        assert!(output.status.code() > Some(1), "{endpoint}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{endpoint}: {printed}");
        assert!(!printed.contains("antumbra local"), "{endpoint}: {printed}");
    }

    for nonsense in ["nonsense", "ftp://127.0.0.1", "127.0.0.1:8000", "http://"] {
        let output = report_to(nonsense).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{nonsense}");
        let printed = text(&output.stderr);
        assert!(printed.contains("must start with http://"), "{printed}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
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
