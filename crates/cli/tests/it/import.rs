//! `antumbra import …` as a process: from a stand-in for AWS IoT over HTTP, and from tables and exports.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Output;

use serde_json::{Value, json};

use crate::iot_stand_in::{StandIn, get, list, names_page, not_found};
use crate::process::{Home, Running, text};

fn import(stack: &Running, arguments: &[&str]) -> Output {
    let mut all = vec!["import"];
    all.extend(arguments);
    stack.run(&all)
}

/// Imports the shadows of the things in a file from a stand-in for AWS IoT.
fn from_aws(stack: &Running, things: &str, aws: &StandIn, more: &[&str]) -> Output {
    let source = ["aws-iot-shadows", things, "--source-endpoint-url", &aws.url];
    import(stack, &[&source, more].concat())
}

#[track_caller]
fn success(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

#[track_caller]
fn failure(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn shadow(stack: &Running, id: &str, name: &str) -> Value {
    let output = stack.run(&["shadow", "get", id, "--name", name, "--json"]);
    serde_json::from_str(&success(&output)).unwrap()
}

/// Calls DynamoDB without an SDK.
fn dynamodb(stack: &Running, operation: &str, body: &Value) -> Value {
    let address = stack.addresses["dynamodb"].as_str().unwrap();
    let host = address.trim_start_matches("http://");
    let mut connection = TcpStream::connect(host).unwrap();
    let body = body.to_string();
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\n\
         x-amz-target: DynamoDB_20120810.{operation}\r\nx-amz-date: 20260131T120000Z\r\n\
         authorization: AWS4-HMAC-SHA256 Credential=a/20260131/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{response}");
    serde_json::from_str(body).unwrap()
}

/// The stored times of a document's leaves, as text.
fn times(stack: &Running, id: &str, item: &str, attribute: &str) -> String {
    let key = json!({ "PK": { "S": format!("DS#{id}") }, "SK": { "S": item } });
    let request = json!({ "TableName": "antumbra", "Key": key });
    let found = dynamodb(stack, "GetItem", &request);
    let times = found["Item"][attribute]["S"].as_str();
    times.unwrap_or_else(|| panic!("{found}")).to_owned()
}

fn file(home: &Home, name: &str, content: &str) -> String {
    std::fs::write(home.path(name), content).unwrap();
    format!("@{}", home.path(name).display())
}

/// A document as AWS IoT returns it. Its values are of different times.
const LAMP: &str = r#"{
  "state": {
    "desired": {"led": "off"},
    "reported": {"led": "on", "fan": {"mode": "auto", "speed": 12345678901234567890.5}, "colors": ["red", "blue"], "empty": {},
                 "temp": {"value": 21, "timestamp": 1769860000}},
    "delta": {"led": "off"}
  },
  "metadata": {
    "desired": {"led": {"timestamp": 1769860900}},
    "reported": {
      "led": {"timestamp": 1769860800},
      "fan": {"mode": {"timestamp": 1769860700}, "speed": {"timestamp": 1769860800}},
      "colors": [{"timestamp": 1769860600}, {"timestamp": 1769860650}],
      "temp": {"value": {"timestamp": 1769860800}, "timestamp": {"timestamp": 1769860700}}
    }
  },
  "version": 10,
  "timestamp": 1790000000
}"#;

fn simple(led: &str, seconds: i64) -> String {
    let times = json!({ "led": { "timestamp": seconds } });
    json!({ "state": { "reported": { "led": led } }, "metadata": { "reported": times }, "version": 3 })
        .to_string()
}

#[test]
fn shadows_of_aws_iot_are_imported_with_the_times_of_their_values() {
    let home = Home::new(&[]);
    let stack = home.start();
    let aws = StandIn::with_shadows(&[
        ("lamp-1", "", LAMP),
        ("lamp-1", "night", &simple("dim", 1_769_860_500)),
    ]);
    let things = file(&home, "things.txt", "lamp-1\n\n lamp-2 \nlamp-1\n");
    let run = |extra: &[&str]| from_aws(&stack, &things, &aws, extra);
    let expected = "2 shadows to import, 0 unchanged, 1 things without a shadow";
    assert_eq!(success(&run(&["--dry-run"])), expected);
    let missing = stack.run(&["shadow", "get", "lamp-1"]);
    assert_eq!(missing.status.code(), Some(3), "a dry run writes nothing");

    let expected = "2 shadows imported, 0 unchanged, 1 things without a shadow";
    assert_eq!(success(&run(&[])), expected);
    let lamp = shadow(&stack, "lamp-1", "main");
    assert_eq!(lamp["reported"]["version"], 1, "one write: {lamp}");
    let document = &lamp["reported"]["document"];
    assert_eq!(document["fan"]["mode"], "auto");
    assert!(lamp.to_string().contains("\"led\":\"on\""), "{lamp}");
    assert_eq!(document["colors"], json!(["red", "blue"]));
    assert_eq!(lamp["desired"]["document"], json!({ "led": "off" }));
    assert_eq!(lamp["delta"], json!({ "led": "off" }));
    let whole = stack.run(&["shadow", "get", "lamp-1", "--json"]);
    assert!(text(&whole.stdout).contains("12345678901234567890.5"));
    // In the order colors (2 leaves), empty, fan/mode, fan/speed, led, temp (2 leaves), relative to the newest.
    let reported = times(&stack, "lamp-1", "DSR#main", "reportedTimes");
    assert_eq!(reported, "1769860800000000:150s*2,1769860800s,100s,0*4");
    let desired = times(&stack, "lamp-1", "DSD#main", "desiredTimes");
    assert_eq!(desired, "1769860900000000:0");
    let night = times(&stack, "lamp-1", "DSR#night", "reportedTimes");
    assert_eq!(night, "1769860500000000:0");

    let expected = r#"{
  "dryRun": false,
  "empty": 1,
  "imported": 0,
  "unchanged": 2
}"#;
    assert_eq!(
        success(&run(&["--json"])),
        expected,
        "a second run changes nothing"
    );
    assert_eq!(shadow(&stack, "lamp-1", "main")["reported"]["version"], 1);
}

#[test]
fn an_import_never_replaces_a_newer_value() {
    let home = Home::new(&[]);
    let stack = home.start();
    let things = file(&home, "things.txt", "lamp\n");
    let led_after = |seconds: i64| {
        let aws = StandIn::with_shadows(&[("lamp", "", &simple("imported", seconds))]);
        let output = from_aws(&stack, &things, &aws, &[]);
        success(&output);
        shadow(&stack, "lamp", "main")["reported"]["document"]["led"].clone()
    };
    assert_eq!(led_after(1_769_860_800), "imported");
    let put = |led: &str, microseconds: i64| {
        let times = format!("{microseconds}:0");
        let request = json!({
            "TableName": "antumbra",
            "Key": { "PK": { "S": "DS#lamp" }, "SK": { "S": "DSR#main" } },
            "UpdateExpression": "SET reported = :r, reportedTimes = :t",
            "ExpressionAttributeValues": { ":r": { "M": { "led": { "S": led } } }, ":t": { "S": times } },
        });
        dynamodb(&stack, "UpdateItem", &request);
    };
    // Times of long ago are kept in whole seconds: of the same second, the stored value stays.
    put("device", 1_769_860_801_000_000);
    assert_eq!(led_after(1_769_860_800), "device");
    assert_eq!(led_after(1_769_860_801), "device");
    assert_eq!(led_after(1_769_860_802), "imported");
    // A device that reports to the table while shadows are imported.
    let report = stack.run(&["shadow", "report", "lamp", r#"{"led":"new","fan":1}"#]);
    assert!(report.status.success());
    assert_eq!(led_after(1_769_860_900), "new");
    // A value of a time in the future would block the device.
    let aws = StandIn::with_shadows(&[("lamp", "", &simple("imported", 4_000_000_000))]);
    let output = from_aws(&stack, &things, &aws, &[]);
    let error = failure(&output, 1);
    assert!(
        error.contains("lamp: it has a value of 2096-10-02T07:06:40Z, which is in the future"),
        "{error}"
    );
    // A deleted shadow does not come back.
    assert!(stack.run(&["shadow", "delete", "lamp"]).status.success());
    let aws = StandIn::with_shadows(&[("lamp", "", &simple("imported", 1_769_860_800))]);
    let output = from_aws(&stack, &things, &aws, &[]);
    assert_eq!(success(&output), "0 shadows imported, 1 unchanged");
}

#[test]
fn an_import_continues_after_errors_of_aws() {
    let home = Home::new(&[]);
    let stack = home.start();
    let things = file(
        &home,
        "things.txt",
        "busy\nfine\nmalformed\npaged\nstrange\n",
    );
    let aws = StandIn::start(|path, before| match path {
        // Throttled twice.
        path if path == get("busy", "") && before < 2 => (
            429,
            "ThrottlingException",
            r#"{"message":"Rate exceeded"}"#.to_owned(),
        ),
        path if path == list("busy", "") && before < 1 => (
            503,
            "ServiceUnavailableException",
            r#"{"message":"try again"}"#.to_owned(),
        ),
        path if path == get("busy", "") || path == get("fine", "") => {
            (200, "", simple("on", 1_769_860_800))
        }
        path if path == get("malformed", "") => {
            (200, "", r#"{"state":{"reported":{"led":"#.to_owned())
        }
        path if path == get("strange", "") => (200, "", r#"{"state":{"reported":[1]}}"#.to_owned()),
        // A name that is deleted before it is read, and names on a second page.
        path if path == list("paged", "") => names_page(["gone", "one"].into_iter(), Some("next")),
        path if path == list("paged", "next") => names_page(["two"].into_iter(), None),
        path if path == get("paged", "one") || path == get("paged", "two") => {
            (200, "", simple("on", 1_769_860_800))
        }
        path if path.starts_with("/api/") => names_page([].into_iter(), None),
        _ => not_found(),
    });
    let run = || from_aws(&stack, &things, &aws, &[]);
    let error = failure(&run(), 1);
    let expected = "error: 4 shadows imported, 0 unchanged, 2 cannot be imported; correct them and repeat the import, which changes nothing else";
    assert!(error.ends_with(&format!("{expected}\n")), "{error}");
    assert!(
        error.contains("malformed: the shadow is not a document"),
        "{error}"
    );
    assert!(
        error.contains("strange: its state is not an object"),
        "{error}"
    );
    assert_eq!(
        (aws.calls(&get("busy", "")), aws.calls(&list("busy", ""))),
        (3, 2)
    );
    let again = failure(&run(), 1);
    assert!(
        again.contains("0 shadows imported, 4 unchanged, 2 cannot be imported"),
        "{again}"
    );
}

#[test]
fn an_interrupted_import_continues_where_it_stopped() {
    let home = Home::new(&[]);
    let stack = home.start();
    let names: Vec<String> = (0..40).map(|number| format!("thing-{number:02}")).collect();
    let things = file(&home, "things.txt", &names.join("\n"));
    // The permission is taken away after some things, and given back.
    let aws = StandIn::start(|path, before| match path {
        path if path == get("thing-30", "") && before == 0 => {
            (403, "ForbiddenException", r#"{"message":"no"}"#.to_owned())
        }
        path if path.starts_with("/api/") => names_page([].into_iter(), None),
        _ => (200, "", simple("on", 1_769_860_800)),
    });
    let run = || from_aws(&stack, &things, &aws, &[]);
    let error = failure(&run(), 6);
    // Lines of progress may come before.
    assert_eq!(
        error.lines().last().unwrap(),
        "error: AWS IoT: the credentials may not call GetThingShadow and ListNamedShadowsForThing; choose others with --source-profile"
    );
    let summary = success(&run());
    let imported: usize = summary.split(' ').next().unwrap().parse().unwrap();
    assert!(imported < 40, "{summary}");
    assert_eq!(
        summary,
        format!("{imported} shadows imported, {} unchanged", 40 - imported)
    );
    for name in ["thing-00", "thing-30", "thing-39"] {
        assert_eq!(
            shadow(&stack, name, "main")["reported"]["version"],
            1,
            "{name}"
        );
    }
}

#[test]
fn an_unnamed_shadow_gets_a_name_that_no_other_has() {
    let home = Home::new(&[]);
    let stack = home.start();
    let things = file(&home, "things.txt", "lamp\n");
    let aws = StandIn::with_shadows(&[
        ("lamp", "", &simple("unnamed", 1_769_860_800)),
        ("lamp", "main", &simple("named", 1_769_860_800)),
    ]);
    let error = failure(&from_aws(&stack, &things, &aws, &[]), 1);
    assert!(
        error.contains("lamp: the thing has a shadow named main; give the unnamed one another name with --unnamed"),
        "{error}"
    );
    let renamed = from_aws(&stack, &things, &aws, &["--unnamed", "classic"]);
    assert_eq!(success(&renamed), "1 shadows imported, 1 unchanged");
    let named = shadow(&stack, "lamp", "main");
    assert_eq!(named["reported"]["document"]["led"], "named");
    assert_eq!(
        shadow(&stack, "lamp", "classic")["reported"]["document"]["led"],
        "unnamed"
    );
}

/// Items as the Go library stores them: separate documents, a combined one, and an item of another program.
fn go_items() -> Vec<Value> {
    let item = |id: &str, sort: &str, rest: Value| {
        let mut item = json!({
            "PK": { "S": id }, "SK": { "S": sort }, "Version": { "N": "7" },
            "TimeStamp": { "N": "1769860800123456789" }, "ClientToken": { "S": "" },
        });
        item.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        item
    };
    let indoor = json!({ "M": {
        "TimeStamp": { "S": "2026-01-31T11:59:58.5+01:00" }, "Value": { "N": "12345678901234567890.5" },
    }});
    let reported = json!({ "M": {
        "Name": { "S": "hub" }, "Sensors": { "M": { "indoor": indoor } }, "Raw": { "B": "AQI=" },
        "Tags": { "SS": ["a", "b"] }, "Levels": { "NS": ["1", "2"] }, "Off": { "BOOL": false }, "Nothing": { "NULL": true },
        "List": { "L": [{ "N": "1" }, { "S": "x" }] },
    }});
    // Acknowledged: the library leaves a zero value.
    let zero =
        json!({ "M": { "TimeStamp": { "S": "0001-01-01T00:00:00Z" }, "Value": { "NULL": true } } });
    let open =
        json!({ "M": { "TimeStamp": { "S": "2026-01-31T12:00:00Z" }, "Value": { "N": "22" } } });
    let desired = json!({ "M": { "Sensors": { "M": { "indoor": zero, "outdoor": open } } } });
    vec![
        item(
            "DS#My House#Basement",
            "DSR#homeHub",
            json!({ "Reported": reported, "Desired": { "NULL": true }, "ClientToken": { "S": "job-12" } }),
        ),
        item(
            "DS#My House#Basement",
            "DSD#homeHub",
            json!({ "Desired": desired, "Reported": { "NULL": true } }),
        ),
        item(
            "DS#lamp",
            "DSC#main",
            json!({ "Reported": { "M": { "Led": { "S": "on" } } }, "Desired": { "M": { "Led": { "S": "off" } } } }),
        ),
        item("OTHER#1", "X", json!({})),
    ]
}

/// Checks what `go_items` become.
fn check_go_shadows(stack: &Running) {
    let hub = shadow(stack, "My House#Basement", "homeHub");
    assert_eq!(hub["reported"]["version"], 1);
    assert_eq!(hub["reported"]["clientToken"], "job-12");
    let reported = &hub["reported"]["document"];
    assert_eq!(
        reported["Sensors"]["indoor"]["timestamp"],
        "2026-01-31T11:59:58.5+01:00"
    );
    assert_eq!(
        (
            &reported["Raw"],
            &reported["Tags"],
            &reported["Levels"],
            &reported["Off"],
            &reported["List"]
        ),
        (
            &json!("AQI="),
            &json!(["a", "b"]),
            &json!([1, 2]),
            &json!(false),
            &json!([1, "x"])
        )
    );
    assert_eq!(reported.get("Nothing"), None);
    let whole = stack.run(&[
        "shadow",
        "get",
        "My House#Basement",
        "--name",
        "homeHub",
        "--json",
    ]);
    assert!(text(&whole.stdout).contains("12345678901234567890.5"));
    let open = json!({ "outdoor": { "timestamp": "2026-01-31T12:00:00Z", "Value": 22 } });
    assert_eq!(hub["desired"]["document"], json!({ "Sensors": open }));
    let lamp = shadow(stack, "lamp", "main");
    assert_eq!(lamp["reported"]["document"], json!({ "Led": "on" }));
    assert_eq!(lamp["desired"]["document"], json!({ "Led": "off" }));
    assert_eq!(
        times(stack, "lamp", "DSR#main", "reportedTimes"),
        "1769860800000000:0"
    );
}

#[test]
fn a_table_of_godeviceshadow_is_imported() {
    let home = Home::new(&[]);
    let stack = home.start();
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let table = json!({
        "TableName": "devices", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [key("PK", "HASH"), key("SK", "RANGE")],
        "AttributeDefinitions": [attribute("PK"), attribute("SK")],
    });
    dynamodb(&stack, "CreateTable", &table);
    for item in go_items() {
        dynamodb(
            &stack,
            "PutItem",
            &json!({ "TableName": "devices", "Item": item }),
        );
    }
    let endpoint = stack.addresses["dynamodb"].as_str().unwrap();
    let run = |extra: &[&str]| {
        let mut arguments = vec!["godeviceshadow", "--source-endpoint-url", endpoint];
        arguments.extend(extra);
        import(&stack, &arguments)
    };
    let from = ["--from-table", "devices"];
    let expected = "3 items to import, 0 unchanged, 1 not of a shadow";
    assert_eq!(
        success(&run(&[&from[..], &["--dry-run"]].concat())),
        expected
    );
    assert_eq!(
        success(&run(&from)),
        "3 items imported, 0 unchanged, 1 not of a shadow"
    );
    check_go_shadows(&stack);
    assert_eq!(
        success(&run(&from)),
        "0 items imported, 3 unchanged, 1 not of a shadow"
    );

    let error = failure(&run(&["--from-table", "antumbra"]), 2);
    assert_eq!(
        error,
        "error: the source is the table itself; import into another one with --table\n"
    );
    let error = failure(&run(&["--from-table", "nope"]), 6);
    let expected = format!(
        "error: the table nope does not exist at {endpoint}; name another with --from-table"
    );
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn exports_of_godeviceshadow_are_imported() {
    let lines: Vec<String> = go_items()
        .into_iter()
        .map(|item| json!({ "Item": item }).to_string())
        .collect();
    let scanned = json!({ "Items": go_items(), "Count": 4, "ScannedCount": 4 }).to_string();
    for export in [lines.join("\n"), scanned] {
        let home = Home::new(&[]);
        let stack = home.start();
        let export = file(&home, "export.json", &export);
        let output = import(&stack, &["godeviceshadow", &export]);
        assert_eq!(
            success(&output),
            "3 items imported, 0 unchanged, 1 not of a shadow"
        );
        check_go_shadows(&stack);
    }
}

#[test]
fn fields_of_a_go_model_are_renamed() {
    let home = Home::new(&[]);
    let stack = home.start();
    let item = json!({
        "PK": { "S": "DS#a" }, "SK": { "S": "DSR#" }, "TimeStamp": { "N": "1769860800000000000" },
        "Reported": { "M": { "Temp": { "M": { "UpdatedAt": { "S": "2026-01-31T12:00:00Z" }, "Val": { "N": "1" } } } } },
    });
    let broken = json!({ "PK": { "S": "DS#b" }, "SK": { "S": "DSR#x" }, "Reported": { "M": {} } });
    let export = file(&home, "export.json", &format!("{item}\n{broken}"));
    let output = import(
        &stack,
        &[
            "godeviceshadow",
            &export,
            "--timestamp-fields",
            "UpdatedAt",
            "--rename",
            "Val=value",
            "--rename",
            "Temp=temp",
        ],
    );
    let error = failure(&output, 1);
    assert!(
        error.contains("DS#b DSR#x: it has no TimeStamp in nanoseconds"),
        "{error}"
    );
    assert!(
        error.contains("1 items imported, 0 unchanged, 1 cannot be imported"),
        "{error}"
    );
    let temp = json!({ "temp": { "timestamp": "2026-01-31T12:00:00Z", "value": 1 } });
    assert_eq!(shadow(&stack, "a", "main")["reported"]["document"], temp);

    for (content, reason) in [("{", "the export is not JSON"), ("7", "0 items imported")] {
        let export = file(&home, "bad.json", content);
        let output = import(&stack, &["godeviceshadow", &export]);
        let printed = text(&output.stderr) + &text(&output.stdout);
        assert!(printed.contains(reason), "{printed}");
    }
}
