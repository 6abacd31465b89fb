//! Credentials of AWS profiles.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};

use crate::process::{Home, Running, command, text};

/// Runs a command with a profile whose credentials come from a program, and with nothing else.
fn with_process(home: &Home, stack: &Running, script: &str, arguments: &[&str]) -> Output {
    let program = home.path("credentials.sh");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = format!(
        "[profile fleet]\nregion = eu-west-1\ncredential_process = {} --for fleet\n",
        program.display()
    );
    std::fs::write(home.path("config"), config).unwrap();
    command()
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env_remove("AWS_REGION")
        .env("AWS_CONFIG_FILE", home.path("config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", home.path("none"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .args([
            "--endpoint-url",
            stack.addresses["dynamodb"].as_str().unwrap(),
        ])
        .args(["--aws-url", stack.addresses["aws"].as_str().unwrap()])
        .args(["--profile", "fleet"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_profile_may_take_its_credentials_from_a_process() {
    let home = Home::new(&[]);
    let stack = home.start();
    let used = home.path("used");
    let keys = json!({ "Version": 1, "AccessKeyId": "PROCESSKEY", "SecretAccessKey": "secret", "SessionToken": "token" });
    let script = format!("echo \"$@\" >> '{}'\necho '{keys}'", used.display());
    let report = ["shadow", "report", "lamp", r#"{"led":"on"}"#];
    let output = with_process(&home, &stack, &script, &report);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        std::fs::read_to_string(&used)
            .unwrap()
            .starts_with("--for fleet\n")
    );
    let output = with_process(&home, &stack, &script, &["doctor", "--json"]);
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = checks["checks"].as_array().unwrap().iter();
    let credentials = checks.find(|check| check["name"] == "credentials").unwrap();
    assert_eq!(credentials["detail"], "PROCESSKEY in eu-west-1");

    for script in ["echo locked >&2; exit 3", "echo nonsense"] {
        let output = with_process(&home, &stack, script, &report);
        assert_eq!(output.status.code(), Some(6));
        let error = text(&output.stderr);
        assert!(
            error.starts_with("error: the AWS credentials cannot be loaded: "),
            "{error}"
        );
        assert!(error.ends_with("; check the profile\n"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
