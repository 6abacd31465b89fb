//! Settings of the functions in `antumbra local`, by variables and options, through every interface.

use std::process::Output;

use serde_json::{Value, json};

use crate::json::call_api;
use crate::process::{Home, Running, antumbra, text, wait_for};

/// Runs a command with the addresses of a stack.
fn run(stack: &Running, words: &[&str]) -> Output {
    let address = |name: &str| stack.addresses[name].as_str().unwrap();
    let mut all = vec![
        "--endpoint-url",
        address("dynamodb"),
        "--aws-url",
        address("aws"),
    ];
    all.extend(words);
    antumbra(&all)
}

fn answer(stack: &Running, words: &[&str]) -> Value {
    let output = run(stack, words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        text(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One item holds both documents, written by the command, a device over MQTT, or the HTTP API.
#[tokio::test]
async fn the_combined_layout_works_through_every_interface() {
    let rule = r#"{"name":"all","send":["new"],"to":{"sqs":{"queue":"changes.fifo"}}}"#;
    let home = Home::new(&[("all.json", rule)]);
    let stack = home.start_with(&["--layout", "combined", "--token", "secret"]);
    let mqtt = stack.addresses["mqtt"].as_str().unwrap();
    let cli = |words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["--layout", "combined", "--json"]);
        answer(&stack, &all)
    };
    let written = cli(&[
        "shadow",
        "report",
        "lamp",
        r#"{"by":"command"}"#,
        "--desire",
        r#"{"fan":1}"#,
    ]);
    assert_eq!(
        written["reported"]["version"], written["desired"]["version"],
        "one item"
    );
    let update = r#"{"state":{"reported":{"device":1},"desired":{"light":2}}}"#;
    let words = [
        "mqtt",
        "publish",
        "shadow/lamp/update",
        update,
        "--mqtt-url",
        mqtt,
    ];
    let accepted = ["--response-topic", "shadow/lamp/update/accepted"];
    let published = antumbra(&[&words[..], &accepted].concat());
    assert!(published.status.success(), "{}", text(&published.stderr));
    let patch = json!({"reported": {"api": true}});
    let (status, body) = call_api(&stack, "secret", "PATCH", "/v1/shadows/lamp", &patch).await;
    assert_eq!(status, 200, "{body}");

    let (_, shadow) = call_api(&stack, "secret", "GET", "/v1/shadows/lamp", &Value::Null).await;
    let reported = json!({"by": "command", "device": 1, "api": true});
    assert_eq!(shadow["reported"]["document"], reported);
    assert_eq!(shadow["desired"]["document"], json!({"fan": 1, "light": 2}));
    assert_eq!(
        cli(&["shadow", "get", "lamp"])["reported"]["document"],
        reported
    );
    // A change of both documents makes two notifications of the same version.
    let versions = wait_for("the notifications", || {
        let found = answer(&stack, &["queues", "show", "changes.fifo", "--json"]);
        let bodies = found["messages"].as_array().unwrap().iter();
        let of = |message: &Value| -> (String, i64) {
            let body: Value = serde_json::from_str(message["body"].as_str().unwrap()).unwrap();
            let state = body["shadow"]["state"].as_str().unwrap().to_owned();
            (state, body["version"].as_i64().unwrap())
        };
        let mut versions: Vec<_> = bodies.map(of).collect();
        versions.sort_by_key(|(state, version)| (*version, state.clone()));
        (versions.len() == 5).then_some(versions)
    });
    let expected = [
        ("desired", 1),
        ("reported", 1),
        ("desired", 2),
        ("reported", 2),
        ("reported", 3),
    ];
    assert_eq!(
        versions,
        expected.map(|(state, version)| (state.to_owned(), version))
    );
}

#[test]
fn variables_and_options_configure_the_functions() {
    let notifications = include_str!("../../../../registrations/inbox-notifications.json");
    let home = Home::new(&[("inbox-notifications.json", notifications)]);
    let printed = std::fs::File::create(home.path("printed")).unwrap();
    let notes = std::fs::File::create(home.path("notes")).unwrap();
    let mut local = home.local();
    local
        .stderr(notes)
        .env("uuidKey", "device")
        .env("SENSOR_ID_PATTERN", "[a-z]+[0-9]")
        .env("TABLE", "elsewhere")
        .args(["--message-id-key", "at.number", "--auto-register", "true"])
        .args(["--data", "scalar", "--shards", "64"])
        .stdout(printed);
    let stack = home.wait(&mut local);
    let printed = wait_for("the banner", || {
        let text = std::fs::read_to_string(home.path("printed")).unwrap();
        text.contains("Stop with").then_some(text)
    });
    let settings = printed.lines().find(|line| line.starts_with("Settings: "));
    let expected = "Settings: AUTO_REGISTER=true, DATA=scalar, SENSOR_ID_PATTERN=[a-z]+[0-9], messageIdKey=at.number, uuidKey=device";
    assert_eq!(settings, Some(expected), "{printed}");
    let notes = std::fs::read_to_string(home.path("notes")).unwrap();
    let note = "the variable TABLE is not used: the local stack sets it itself\n";
    assert_eq!(notes, note);

    let mqtt = stack.addresses["mqtt"].as_str().unwrap();
    let message = r#"{"device":"d1","at":{"number":7}}"#;
    let sent = answer(
        &stack,
        &[
            "messages",
            "send",
            "d1",
            message,
            "--mqtt-url",
            mqtt,
            "--json",
        ],
    );
    let id = sent["messageId"].as_str().unwrap();
    assert!(id.starts_with("0000000007-"), "{sent}");

    for (sensor, value) in [("lock1", "21.5"), ("no_match", "1")] {
        let signal = run(&stack, &["sensors", "signal", sensor, value]);
        assert!(signal.status.success(), "{}", text(&signal.stderr));
    }
    wait_for("the sensor that was registered automatically", || {
        let state = run(&stack, &["sensors", "state", "lock1", "--json"]);
        let state: Value = serde_json::from_slice(&state.stdout).ok()?;
        (state["value"] == json!(21.5)).then_some(())
    });
    wait_for("the signal with another id", || {
        let found = answer(&stack, &["queues", "show", "antumbra-quarantine", "--json"]);
        let messages = found["messages"].as_array().unwrap();
        messages
            .iter()
            .any(|one| one["body"].as_str().unwrap().contains("no_match"))
            .then_some(())
    });
}

#[test]
fn invalid_settings_and_unknown_variables_end_the_start() {
    let fails = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = Home::new(&[]).local();
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let printed = fails(&|command| {
        command.args(["--shards", "many"]).env("DATA", "maybe");
    });
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(
        printed.contains("DATA is \"maybe\"") && printed.contains("SHARDS is \"many\""),
        "{printed}"
    );
    let printed = fails(&|command| {
        command.env("ANTUMBRA_TABEL", "x");
    });
    assert!(
        printed.contains("the variable ANTUMBRA_TABEL is unknown"),
        "{printed}"
    );
    let printed = fails(&|command| {
        command.args(["--table", "x"]);
    });
    assert!(
        printed.contains("--table has no meaning for `antumbra local`"),
        "{printed}"
    );
}

#[test]
fn the_start_prints_json_on_request() {
    let home = Home::new(&[]);
    let printed = std::fs::File::create(home.path("printed")).unwrap();
    let stack = home.wait(home.local().arg("--json").stdout(printed));
    let running = wait_for("the addresses", || {
        let text = std::fs::read_to_string(home.path("printed")).unwrap();
        serde_json::from_str::<Value>(&text).ok()
    });
    assert_eq!(running, stack.addresses);
}

#[test]
fn events_of_a_bus_are_shown() {
    let rule = r#"{"name":"all","send":["new"],"to":{"eventbridge":{"bus":"alerts"}}}"#;
    let home = Home::new(&[("all.json", rule)]);
    let stack = home.start();
    let report = run(
        &stack,
        &[
            "shadow",
            "report",
            "lamp",
            r#"{"n":12345678901234567890.5}"#,
        ],
    );
    assert!(report.status.success(), "{}", text(&report.stderr));
    let event = wait_for("the event", || {
        let page = answer(&stack, &["events", "alerts", "--json"]);
        page["events"].get(0).cloned()
    });
    assert_eq!(event["detail-type"], "Shadow Changed");
    let shown = text(&run(&stack, &["events", "alerts"]).stdout);
    assert!(
        shown.contains("Shadow Changed") && shown.contains("12345678901234567890.5"),
        "{shown}"
    );
    let missing = run(&stack, &["events", "nowhere"]);
    assert_eq!(missing.status.code(), Some(3));
    let printed = text(&missing.stderr);
    assert!(printed.contains("there is no bus nowhere"), "{printed}");
}

/// Commands find the layout and the fields in the table; another layout and a stack with another one are refused.
#[test]
fn the_settings_of_the_table_count() {
    let home = Home::new(&[]);
    let mut stack = home.start_with(&["--layout", "combined"]);
    let report = [
        "shadow",
        "report",
        "lamp",
        r#"{"led":"on"}"#,
        "--desire",
        r#"{"fan":1}"#,
    ];
    let written = answer(&stack, &[&report[..], &["--json"]].concat());
    let versions = [
        &written["reported"]["version"],
        &written["desired"]["version"],
    ];
    assert_eq!(versions[0], versions[1], "one item");
    let refused = run(&stack, &["shadow", "get", "lamp", "--layout", "separate"]);
    assert_eq!(refused.status.code(), Some(2));
    let expected = "the table antumbra has the layout combined, not separate; leave out --layout";
    assert!(
        text(&refused.stderr).contains(expected),
        "{}",
        text(&refused.stderr)
    );
    stack.signal("INT");
    assert!(stack.ended().success());

    let other = home.local().output().unwrap();
    assert!(!other.status.success());
    let expected =
        "the table antumbra has the layout combined, but the layout separate is configured";
    assert!(
        text(&other.stderr).contains(expected),
        "{}",
        text(&other.stderr)
    );
}

#[test]
fn registrations_are_checked_against_the_filters_of_the_streams() {
    let rule =
        r#"{"name":"readings","on":{"key":"^SENSOR#[^#]+#READ#"},"to":{"sqs":{"queue":"a"}}}"#;
    let home = Home::new(&[("readings.json", rule)]);
    let directory = home.path("registrations");
    let check = |more: &[&str]| {
        let words = [
            "registrations",
            "check",
            "--registrations",
            directory.to_str().unwrap(),
        ];
        antumbra(&[&words[..], more].concat())
    };
    let needed: Value = serde_json::from_slice(&check(&["--json"]).stdout).unwrap();
    assert_eq!(needed["streamKinds"], "readings");
    assert!(check(&["--stream-kinds", "readings"]).status.success());
    let refused = check(&["--stream-kinds", "shadows,states,messages"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("registration readings can match readings"));
}
