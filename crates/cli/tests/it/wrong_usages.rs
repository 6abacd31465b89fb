//! Wrong usages, as data: each ends in one line that says what is wrong and what to do, soon, and as JSON on request.

use std::collections::BTreeMap;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::process::{Home, Running, command, text};

/// Maximum time of a wrong usage. A machine that is busy gets more than one try.
const TIME: Duration = Duration::from_secs(2);
const TRIES: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Usage {
    name: String,
    arguments: Vec<String>,
    /// AWS configuration: `configured`, `empty`, `noRegion` or `unknownProfile`.
    environment: String,
    /// The argument parser notices it.
    #[serde(default)]
    parsing: bool,
    exit_code: i32,
    expect: String,
}

struct Place {
    home: Home,
    stack: Running,
}

impl Place {
    fn new() -> Place {
        let rule = r#"{"name":"all","to":{"sqs":{"queue":"changes.fifo"}}}"#;
        let home = Home::new(&[("all.json", rule)]);
        std::fs::create_dir(home.path("elsewhere")).unwrap();
        let stack = home.start();
        Place { home, stack }
    }

    /// Addresses and paths that the data names.
    fn filled(&self, text: &str) -> String {
        let address = |name: &str| self.stack.addresses[name].as_str().unwrap().to_owned();
        let aws = address("aws");
        text.replace("{dynamodb}", &address("dynamodb"))
            .replace("{awsHost}", aws.trim_start_matches("http://"))
            .replace("{aws}", &aws)
            .replace("{mqtt}", &address("mqtt"))
            .replace(
                "{registrations}",
                self.home.path("registrations").to_str().unwrap(),
            )
    }

    fn run(&self, usage: &Usage, json: bool) -> (Output, Duration) {
        let mut command = command();
        command
            .env_clear()
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HOME", self.home.path("elsewhere"))
            .env("XDG_STATE_HOME", self.home.path("elsewhere"))
            .current_dir(self.home.path("elsewhere"))
            .stdin(Stdio::null())
            .args(usage.arguments.iter().map(|one| self.filled(one)));
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let region = [("AWS_REGION", "us-east-1")];
        let profile = [("AWS_PROFILE", "nope")];
        let environment: Vec<_> = match usage.environment.as_str() {
            "empty" => Vec::new(),
            "noRegion" => keys.to_vec(),
            "configured" => [&keys[..], &region].concat(),
            "unknownProfile" => [&keys[..], &region, &profile].concat(),
            other => panic!("{other}"),
        };
        command.envs(environment.into_iter().collect::<BTreeMap<_, _>>());
        if json {
            command.arg("--json");
        }
        let start = Instant::now();
        (command.output().unwrap(), start.elapsed())
    }
}

#[test]
fn wrong_usages_end_in_one_line_that_says_what_to_do() {
    let usages: Vec<Usage> =
        serde_json::from_str(include_str!("../../testdata/wrong-usages.json")).unwrap();
    assert!(usages.len() >= 60, "{}", usages.len());
    let parsing = usages.iter().filter(|usage| usage.parsing).count();
    assert!(parsing <= 15, "{parsing}");
    let place = Place::new();
    let mut wrong = Vec::new();
    for usage in &usages {
        let expected = place.filled(&usage.expect);
        let mut fastest = TIME;
        for try_number in 1..=TRIES {
            let (output, time) = place.run(usage, false);
            fastest = if try_number == 1 {
                time
            } else {
                fastest.min(time)
            };
            let printed = text(&output.stderr);
            if printed != format!("error: {expected}\n") || !output.stdout.is_empty() {
                wrong.push(format!("{}: {printed}", usage.name));
            }
            if output.status.code() != Some(usage.exit_code) {
                wrong.push(format!("{}: exit code {:?}", usage.name, output.status));
            }
            if fastest < TIME {
                break;
            }
        }
        if fastest >= TIME {
            wrong.push(format!("{}: took {fastest:?}", usage.name));
        }
        for debug in ["Some(", "Error {", "Failure", "\\n", "Err("] {
            if usage.expect.contains(debug) {
                wrong.push(format!("{}: prints {debug}", usage.name));
            }
        }
        let (output, _) = place.run(usage, true);
        let json: Value = serde_json::from_slice(&output.stderr).unwrap_or_default();
        if json["error"] != expected || json["exitCode"] != usage.exit_code {
            wrong.push(format!("{} as JSON: {}", usage.name, text(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_doctor_says_how_to_fix_what_is_wrong() {
    let place = Place::new();
    let address = |name: &str| place.stack.addresses[name].as_str().unwrap().to_owned();
    let (dynamodb, aws, mqtt) = (address("dynamodb"), address("aws"), address("mqtt"));
    let run = |extra: &[&str]| {
        let mut doctor = command();
        doctor
            .args(["--endpoint-url", &dynamodb, "--aws-url", &aws, "doctor"])
            .args(["--mqtt-url", &mqtt, "--json", "--registrations"])
            .arg(place.home.path("registrations"))
            .args(extra);
        let output = doctor.output().unwrap();
        let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = checks["checks"].as_array().unwrap().clone();
        let failed: Vec<String> = checks
            .iter()
            .filter(|check| check["status"] != "ok")
            .map(|check| format!("{}: {}", check["name"], check["detail"]))
            .collect();
        (output.status.code(), checks.len(), failed)
    };
    assert_eq!(run(&[]), (Some(0), 9, Vec::new()));
    let (code, _, failed) = run(&["--table", "nope"]);
    assert_eq!(code, Some(1));
    // The names of queues follow from that of the table.
    let expected = [
        format!(
            "\"tables\": \"the table nope does not exist at {dynamodb}; name another with --table, deploy the stack, or use --local\""
        ),
        "\"queues\": \"the queue nope-inbound does not exist\"".to_owned(),
    ];
    assert_eq!(failed, expected);
    let (code, _, failed) = run(&["--profile", "nope"]);
    assert_eq!((code, failed.len()), (Some(1), 6));
    assert!(
        failed[0].contains("the AWS profile nope does not exist"),
        "{failed:?}"
    );
}
