//! `antumbra shadow watch` and `antumbra changes follow` as processes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::process::{Home, Running, command, text, wait_for};

/// A running watch, killed when dropped.
struct Watch {
    process: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watch {
    /// Starts a watch; changes after this returns are shown.
    fn start(stack: &Running, arguments: &[&str]) -> Watch {
        Watch::run(stack, &["shadow", "watch"], arguments)
    }

    fn run(stack: &Running, command_words: &[&str], arguments: &[&str]) -> Watch {
        let endpoint = stack.addresses["dynamodb"].as_str().unwrap();
        let mut process = command()
            .args(["--endpoint-url", endpoint])
            .args(command_words)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        errors.read_line(&mut ready).unwrap();
        assert!(ready.starts_with("watching antumbra"), "{ready}");
        let (send, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                if send.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Watch { process, lines }
    }

    fn line(&self) -> String {
        let timeout = std::time::Duration::from_secs(60);
        self.lines.recv_timeout(timeout).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn ended(&mut self) -> Option<i32> {
        wait_for("the end", || self.process.try_wait().unwrap()).code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn done(stack: &Running, arguments: &[&str]) {
    let output = stack.run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Waits until a shadow's changes are in the change feed, which follows its history.
fn recorded(stack: &Running, id: &str) {
    let mut first = Watch::run(
        stack,
        &["changes", "follow"],
        &["--since", "1h", "--prefix", id, "--count", "1"],
    );
    assert_eq!(first.ended(), Some(0));
}

#[test]
fn changes_are_printed_as_they_happen() {
    let home = Home::new(&[]);
    let stack = home.start();
    done(&stack, &["shadow", "report", "lamp", r#"{"before":1}"#]);
    recorded(&stack, "lamp");
    let mut all = Watch::start(&stack, &["--json", "--count", "4"]);
    let lamp = Watch::start(&stack, &["lamp", "--name", "main"]);

    let number = r#"{"n":12345678901234567890.5}"#;
    done(&stack, &["shadow", "report", "Lampe#ü", number]);
    let first = all.line();
    assert!(first.contains(r#""new":12345678901234567890.5"#), "{first}");
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        (&first["id"], &first["name"], &first["operation"]),
        (&json!("Lampe#ü"), &json!("main"), &json!("insert"))
    );

    done(&stack, &["shadow", "desire", "lamp", r#"{"led":"on"}"#]);
    assert_eq!(
        all.json()["changes"],
        json!([{"state": "desired", "path": "/led", "new": "on"}])
    );
    done(&stack, &["shadow", "report", "lamp", r#"{"before":2}"#]);
    let second = all.json();
    assert_eq!(
        (&second["changes"], &second["version"]),
        (
            &json!([{"state": "reported", "path": "/before", "old": 1, "new": 2}]),
            &json!(2)
        )
    );
    done(&stack, &["shadow", "delete", "lamp", "--part", "reported"]);
    assert_eq!(all.json()["operation"], "remove");
    assert_eq!(all.ended(), Some(0), "--count 4");

    // Neither changes of other devices nor earlier changes are shown.
    let without_time = |line: String| line.split_once("  ").unwrap().1.to_owned();
    let created = without_time(lamp.line());
    assert_eq!(created, "lamp/main  desired version 1, created");
    assert_eq!(lamp.line(), r#"  desired  added  /led  "on""#);
    assert_eq!(without_time(lamp.line()), "lamp/main  reported version 2");
    assert_eq!(lamp.line(), "  reported  updated  /before  1 -> 2");
    let gone = without_time(lamp.line());
    assert!(gone.ends_with(", deleted"), "{gone}");

    // The feed has all of them, from any time on, and patterns select.
    let pattern = r#"{"old":{"before":[2]},"operation":["remove"]}"#;
    let arguments = ["--since", "1h", "--pattern", pattern, "--count", "1"];
    let follow = Watch::run(&stack, &["changes", "follow"], &arguments);
    let removed = without_time(follow.line());
    assert_eq!(removed, "lamp/main  reported version 2, deleted");
    let wrong = stack.run(&["changes", "follow", "--pattern", r#"{"led":["on"]}"#]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}

#[test]
fn a_watch_ends_on_a_signal_a_closed_pipe_and_a_stopped_stack() {
    let home = Home::new(&[]);
    let mut stack = home.start();
    let mut interrupted = Watch::start(&stack, &[]);
    let id = interrupted.process.id().to_string();
    Command::new("kill")
        .args(["-s", "INT", &id])
        .status()
        .unwrap();
    assert_eq!(interrupted.ended(), Some(0));

    let mut unread = command()
        .args([
            "--endpoint-url",
            stack.addresses["dynamodb"].as_str().unwrap(),
        ])
        .args(["shadow", "watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(unread.stdout.take());
    let mut ready = String::new();
    let mut errors = BufReader::new(unread.stderr.take().unwrap());
    errors.read_line(&mut ready).unwrap();
    done(&stack, &["shadow", "report", "lamp", "{}"]);
    let status = wait_for("the end", || unread.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));

    let mut left = Watch::start(&stack, &[]);
    stack.signal("TERM");
    stack.ended();
    assert_eq!(left.ended(), Some(6));

    let stopped = stack.run(&["shadow", "watch"]);
    assert_eq!(stopped.status.code(), Some(6));
    let errors = text(&stopped.stderr);
    assert!(errors.contains("start `antumbra local`"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
