//! `antumbra sensors …` as a process.

use serde_json::{Value, json};

use crate::process::{Home, Running, text, wait_for};

fn stdout(running: &Running, arguments: &[&str]) -> String {
    let output = running.run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn json_of(running: &Running, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    serde_json::from_str(&stdout(running, &all)).unwrap()
}

#[test]
fn sensors_are_managed_from_the_command_line() {
    let home = Home::new(&[]);
    let stack = home.start();
    let registered = stdout(
        &stack,
        &[
            "sensors", "register", "gas:1", "Poznań", "A#1", "-1", "13", "--type", "gas",
        ],
    );
    assert_eq!(
        registered,
        "gas:1  version 1\nlocation  Poznań / A#1 / -1 / 13\ntype      gas\nsilence   lost after 3600 s\n"
    );
    stdout(
        &stack,
        &["sensors", "register", "gas:2", "Poznań", "A#1", "2", "13"],
    );
    stdout(
        &stack,
        &["sensors", "register", "gas:3", "Poznań", "A#1", "21", "13"],
    );
    let floor = stdout(&stack, &["sensors", "in", "Poznań", "A#1", "2"]);
    assert_eq!(floor, "gas:2  Poznań / A#1 / 2 / 13  NEVER\n");

    let moved = json_of(&stack, &["sensors", "move", "gas:2", "Łódź", "B", "3", "4"]);
    assert_eq!(
        (&moved["version"], &moved["location"]["city"]),
        (&json!(2), &json!("Łódź"))
    );
    let update = [
        "sensors",
        "update",
        "gas:2",
        "--silence",
        "60",
        "--address",
        "ul. Półwiejska 42",
    ];
    assert_eq!(json_of(&stack, &update)["silenceAfterSeconds"], 60);
    let nowhere = stdout(&stack, &["sensors", "in", "Poznań", "A#1", "2"]);
    assert_eq!(nowhere, "no sensors\n");

    let at = "2026-01-31T12:00:00+01:00";
    for (value, time) in [
        ("12345678901234567890.5", at),
        ("-1", "2026-01-31T10:00:00Z"),
    ] {
        let read = [
            "sensors", "read", "gas:1", value, "--unit", "ppm", "--time", time,
        ];
        stdout(&stack, &read);
    }
    let latest = stdout(&stack, &["sensors", "latest", "gas:1"]);
    let readings = "2026-01-31T11:00:00Z  12345678901234567890.5  ppm\n2026-01-31T10:00:00Z  -1                      ppm\n";
    assert!(latest.ends_with(readings), "{latest}");
    let (from, to) = ("2026-01-31T10:00:00Z", "2026-01-31T11:00:00Z");
    let between = json_of(&stack, &["sensors", "between", "gas:1", from, to]);
    let reading = json!({"time": "2026-01-31T10:00:00Z", "unit": "ppm", "value": -1});
    assert_eq!(between["readings"], json!([reading]));

    let state = json_of(&stack, &["sensors", "state", "gas:1"]);
    assert_eq!(
        (
            &state["connection"],
            &state["measuredAt"],
            &state["sequence"]
        ),
        (&json!("ONLINE"), &json!("2026-01-31T11:00:00Z"), &json!(0))
    );
    let shown = json_of(&stack, &["sensors", "show", "gas:1"]);
    assert_eq!(shown["sensor"]["type"], "gas");

    let pages = ["sensors", "in", "Poznań", "--limit", "1"];
    let page = json_of(&stack, &pages);
    let cursor = page["nextCursor"].as_str().unwrap();
    let mut rest = pages.to_vec();
    rest.extend(["--cursor", cursor]);
    let rest = json_of(&stack, &rest);
    assert_eq!(page["sensors"][0]["id"], "gas:1");
    assert_eq!(rest["sensors"][0]["id"], "gas:3");
    // A full page can be the last one: the next page is empty.
    let mut last = pages.to_vec();
    last.extend(["--cursor", rest["nextCursor"].as_str().unwrap()]);
    let last = json_of(&stack, &last);
    assert_eq!(
        (&last["sensors"], &last["nextCursor"]),
        (&json!([]), &Value::Null)
    );

    assert_eq!(
        stdout(&stack, &["sensors", "unregister", "gas:1"]),
        "gas:1  unregistered\n"
    );
    assert_eq!(
        stdout(&stack, &["sensors", "purge"]),
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
    let shown = json_of(&stack, &["sensors", "in", "Łódź"]);
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
    assert_eq!(
        json_of(&stack, &["sensors", "show", "gas:51"])["sensor"]["type"],
        "gas"
    );
}

#[test]
fn a_signal_becomes_the_state_of_its_sensor() {
    let home = Home::new(&[]);
    let stack = home.start_with(&["--data", "scalar"]);
    let aws = stack.addresses["aws"].as_str().unwrap();
    stdout(
        &stack,
        &["sensors", "register", "door-7", "Poznań", "A", "2", "13"],
    );
    let time = "2026-01-31T12:00:00Z";
    let signal = [
        "sensors",
        "signal",
        "door-7",
        "-1.50",
        "--time",
        time,
        "--aws-url",
        aws,
    ];
    assert_eq!(
        stdout(&stack, &signal),
        "door-7  -1.5 sent to antumbra-signals\n"
    );
    let value = wait_for("the state", || {
        let state = json_of(&stack, &["sensors", "state", "door-7"]);
        (state["connection"] == "ONLINE").then_some(state["value"].clone())
    });
    assert_eq!(value, json!(-1.5));

    for (arguments, code, message) in [
        (
            &["a b", "1"][..],
            2,
            "error: the sensor id may not hold ' '",
        ),
        (
            &["door-7", "1", "--queue", "nowhere"],
            3,
            "error: the queue nowhere does not exist",
        ),
        (
            &["door-7", "1", "--aws-url", "http://127.0.0.1:9"],
            6,
            "error: nothing listens at http://127.0.0.1:9; start `antumbra local`, or correct --aws-url",
        ),
    ] {
        let mut all = vec!["sensors", "signal"];
        all.extend(arguments);
        if !arguments.contains(&"--aws-url") {
            all.extend(["--aws-url", aws]);
        }
        let output = stack.run(&all);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.starts_with(message), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn sensor_errors_have_exit_codes_by_kind() {
    let home = Home::new(&[]);
    let stack = home.start();
    let failed = |arguments: &[&str]| {
        let output = stack.run(arguments);
        let errors = text(&output.stderr);
        (output.status.code().unwrap(), errors.trim_end().to_owned())
    };
    stdout(&stack, &["sensors", "register", "s", "a", "b", "c", "d"]);
    for (arguments, code, message) in [
        (
            &["register", "s", "a", "b", "c", "e"][..],
            4,
            "error: already registered",
        ),
        (
            &["show", "nobody"],
            3,
            "error: the sensor nobody does not exist",
        ),
        (
            &["latest", "nobody"],
            3,
            "error: the sensor nobody does not exist",
        ),
        (
            &["read", "nobody", "1"],
            3,
            "error: the sensor nobody does not exist",
        ),
        (
            &["unregister", "nobody"],
            3,
            "error: the sensor nobody does not exist",
        ),
        (
            &["unregister", "s", "--expected", "7"],
            4,
            "error: version 7 expected, 1 stored",
        ),
        (
            &["register", "a b", "a", "b", "c", "d"],
            2,
            "error: the sensor id may not hold ' '",
        ),
        (
            &["register", "x", "", "b", "c", "d"],
            2,
            "error: the city is empty",
        ),
        (
            &["in", "a", "--cursor", "zz"],
            2,
            "error: invalid: the cursor is malformed",
        ),
        (
            &["update", "s", "--silence", "0"],
            2,
            "error: the silence in seconds is 0, it must be between 1 and 31622400",
        ),
    ] {
        let mut all = vec!["sensors"];
        all.extend(arguments);
        let (actual, error) = failed(&all);
        assert_eq!(actual, code, "{arguments:?}: {error}");
        assert!(error.starts_with(message), "{arguments:?}: {error}");
    }
    let (code, error) = failed(&["sensors", "between", "s", "yesterday", "today"]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("expected a time such as 2026-01-31T12:00:00Z"),
        "{error}"
    );
}
