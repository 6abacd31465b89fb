//! `antumbra sensors …` as a process.

use std::process::Output;

use serde_json::{Value, json};

use crate::process::{Home, Running, text, wait_for};

/// Runs `antumbra sensors` with these arguments, separated by spaces; `_` is a space in an argument.
fn run(running: &Running, line: &str) -> Output {
    let arguments: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
    let arguments = arguments.iter().map(String::as_str);
    running.run(&["sensors"].into_iter().chain(arguments).collect::<Vec<_>>())
}

fn stdout(running: &Running, line: &str) -> String {
    let output = run(running, line);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn json_of(running: &Running, line: &str) -> Value {
    serde_json::from_str(&stdout(running, &format!("{line} --json"))).unwrap()
}

#[test]
fn sensors_are_managed_from_the_command_line() {
    let home = Home::new(&[]);
    let stack = home.start();
    let registered = stdout(&stack, "register gas:1 Poznań A#1 -1 13 --type gas");
    assert_eq!(
        registered,
        "gas:1  version 1\nlocation  Poznań / A#1 / -1 / 13\ntype      gas\nsilence   lost after 3600 s\n"
    );
    stdout(&stack, "register gas:2 Poznań A#1 2 13");
    stdout(&stack, "register gas:3 Poznań A#1 21 13");
    let floor = stdout(&stack, "in Poznań A#1 2");
    assert_eq!(floor, "gas:2  Poznań / A#1 / 2 / 13  NEVER\n");

    let moved = json_of(&stack, "move gas:2 Łódź B 3 4");
    assert_eq!(
        (&moved["version"], &moved["location"]["city"]),
        (&json!(2), &json!("Łódź"))
    );
    let update = "update gas:2 --silence 60 --address ul._Półwiejska_42";
    assert_eq!(json_of(&stack, update)["silenceAfterSeconds"], 60);
    let nowhere = stdout(&stack, "in Poznań A#1 2");
    assert_eq!(nowhere, "no sensors\n");

    let at = "2026-01-31T12:00:00+01:00";
    for (value, time) in [
        ("12345678901234567890.5", at),
        ("-1", "2026-01-31T10:00:00Z"),
    ] {
        stdout(
            &stack,
            &format!("read gas:1 {value} --unit ppm --time {time}"),
        );
    }
    let latest = stdout(&stack, "latest gas:1");
    let readings = "2026-01-31T11:00:00Z  12345678901234567890.5  ppm\n2026-01-31T10:00:00Z  -1                      ppm\n";
    assert!(latest.ends_with(readings), "{latest}");
    let (from, to) = ("2026-01-31T10:00:00Z", "2026-01-31T11:00:00Z");
    let between = json_of(&stack, &format!("between gas:1 {from} {to}"));
    let reading = json!({"time": "2026-01-31T10:00:00Z", "unit": "ppm", "value": -1});
    assert_eq!(between["readings"], json!([reading]));
    let to = "2026-01-31T12:00:00Z";
    for (order, expected) in [("", [10, 11]), ("--newest-first", [11, 10])] {
        let line = format!("between gas:1 {from} {to} {order}");
        let between = json_of(&stack, line.trim_end());
        let times = expected.map(|hour| format!("2026-01-31T{hour}:00:00Z"));
        let readings = between["readings"].as_array().unwrap().iter();
        let found: Vec<&str> = readings.map(|one| one["time"].as_str().unwrap()).collect();
        assert_eq!(found, times, "{line}");
    }

    let state = json_of(&stack, "state gas:1");
    assert_eq!(
        (
            &state["connection"],
            &state["measuredAt"],
            &state["sequence"]
        ),
        (&json!("ONLINE"), &json!("2026-01-31T11:00:00Z"), &json!(0))
    );
    let shown = json_of(&stack, "show gas:1");
    assert_eq!(shown["sensor"]["type"], "gas");

    let pages = "in Poznań --limit 1";
    let page = json_of(&stack, pages);
    assert_eq!(page["sensors"][0]["id"], "gas:1");
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = json_of(&stack, &format!("{pages} --cursor {cursor}"));
    // A full page can be the last one.
    assert_eq!(
        (&rest["sensors"][0]["id"], &rest["nextCursor"]),
        (&json!("gas:3"), &Value::Null)
    );

    assert_eq!(stdout(&stack, "unregister gas:1"), "gas:1  unregistered\n");
    assert_eq!(
        stdout(&stack, "purge"),
        "readings of 0 unregistered sensors purged\n"
    );
}

#[test]
fn sensors_are_imported_from_a_file() {
    let home = Home::new(&[]);
    let stack = home.start();
    let line = |at: usize| {
        let place =
            json!({ "city": "Łódź", "building": "B", "floor": "-1", "room": at.to_string() });
        json!({ "id": format!("gas:{at}"), "location": place, "type": "gas" }).to_string()
    };
    let file = home.path("sensors.jsonl");
    let import = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let argument = format!("@{}", file.display());
        stack.run(&["sensors", "import", &argument])
    };
    let lines: Vec<String> = (0..50).map(line).collect();
    let all = lines.join("\n\n");
    for _ in 0..2 {
        let done = import(&all);
        assert_eq!(text(&done.stdout), "50 sensors are registered\n");
        assert_eq!(done.status.code(), Some(0));
    }
    // The output of `sensors in --json` can be imported.
    let shown = json_of(&stack, "in Łódź");
    let rows = shown["sensors"].as_array().unwrap();
    assert_eq!(rows.len(), 50);
    let again: Vec<String> = rows.iter().map(Value::to_string).collect();
    assert_eq!(
        text(&import(&again.join("\n")).stdout),
        "50 sensors are registered\n"
    );

    let bad = [
        &line(50),
        "{",
        r#"{"id":"x","location":{"city":"","building":"b","floor":"c","room":"d"}}"#,
        r#"{"id":"x","location":{"city":"a","building":"b","floor":"c","room":"d"},"silence":3}"#,
        &line(1).replace("gas\"", "lock\""),
        &line(51),
    ];
    let done = import(&bad.join("\n"));
    let errors = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{errors}");
    for part in [
        "line 2: EOF while parsing",
        "line 3: the city is empty",
        "line 4: unknown field `silence`",
        "line 5: already registered",
        "error: 4 of 6 lines are invalid; the others are registered",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
    assert_eq!(json_of(&stack, "show gas:51")["sensor"]["type"], "gas");
}

#[test]
fn a_signal_becomes_the_state_of_its_sensor() {
    let home = Home::new(&[]);
    let stack = home.start_with(&["--data", "scalar"]);
    let aws = stack.addresses["aws"].as_str().unwrap();
    stdout(&stack, "register door-7 Poznań A 2 13");
    let time = "2026-01-31T12:00:00Z";
    let signal = format!("signal door-7 -1.50 --time {time} --aws-url {aws}");
    let sent = stdout(&stack, &signal);
    assert_eq!(sent, "door-7  -1.5 sent to antumbra-signals\n");
    let value = wait_for("the state", || {
        let state = json_of(&stack, "state door-7");
        (state["connection"] == "ONLINE").then_some(state["value"].clone())
    });
    assert_eq!(value, json!(-1.5));

    let url = format!("--aws-url {aws}");
    let nowhere = "--aws-url http://127.0.0.1:9";
    let refused =
        "nothing listens at http://127.0.0.1:9; start `antumbra local`, or correct --aws-url";
    for (arguments, url, code, message) in [
        ("a_b 1", &*url, 2, "the sensor id may not hold ' '"),
        (
            "door-7 1 --queue nowhere",
            &url,
            3,
            "the queue nowhere does not exist",
        ),
        ("door-7 1", nowhere, 6, refused),
    ] {
        let output = run(&stack, &format!("signal {arguments} {url}"));
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.starts_with(&format!("error: {message}")), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn sensor_errors_have_exit_codes_by_kind() {
    let home = Home::new(&[]);
    let stack = home.start();
    let failed = |line: &str| {
        let output = run(&stack, line);
        let errors = text(&output.stderr);
        (output.status.code().unwrap(), errors.trim_end().to_owned())
    };
    stdout(&stack, "register s a b c d");
    let silence = "the silence in seconds is 0, it must be between 1 and 31622400";
    for (line, code, message) in [
        ("register s a b c e", 4, "already registered"),
        ("show nobody", 3, "the sensor nobody does not exist"),
        ("latest nobody", 3, "the sensor nobody does not exist"),
        ("read nobody 1", 3, "the sensor nobody does not exist"),
        ("unregister nobody", 3, "the sensor nobody does not exist"),
        (
            "unregister s --expected 7",
            4,
            "version 7 expected, 1 stored",
        ),
        ("register a_b a b c d", 2, "the sensor id may not hold ' '"),
        ("register x  b c d", 2, "the city is empty"),
        ("in a --cursor zz", 2, "invalid: the cursor is malformed"),
        ("update s --silence 0", 2, silence),
    ] {
        let (actual, error) = failed(line);
        assert_eq!(actual, code, "{line}: {error}");
        assert!(
            error.starts_with(&format!("error: {message}")),
            "{line}: {error}"
        );
    }
    let (code, error) = failed("between s yesterday today");
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("expected a time such as 2026-01-31T12:00:00Z"),
        "{error}"
    );
}

#[test]
fn short_silences_and_unknown_sensors_are_warned_of() {
    let home = Home::new(&[]);
    let stack = home.start();
    let registered = run(&stack, "register door-7 --silence 5");
    assert!(registered.status.success());
    assert_eq!(
        text(&registered.stderr),
        "warning: sensors are checked every 60 s, so a silence of 5 s is noticed late\n"
    );
    let aws = stack.addresses["aws"].as_str().unwrap();
    let signal = |sensor: &str| {
        let output = run(&stack, &format!("signal {sensor} 1 --aws-url {aws}"));
        assert!(output.status.success());
        text(&output.stderr)
    };
    assert_eq!(signal("door-7"), "");
    assert_eq!(
        signal("door-8"),
        "warning: door-8 is not registered; unless AUTO_REGISTER is on, the signal ends in antumbra-quarantine\n"
    );
}
