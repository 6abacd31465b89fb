//! Finding running stacks, and taking over changed registrations while one runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Home, command, text, wait_for};

/// A state directory of its own, with directories for stacks and for everything else.
struct User(tempfile::TempDir);

impl User {
    fn new() -> User {
        User(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn command(&self) -> Command {
        let mut command = command();
        command
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .current_dir(self.path("elsewhere"));
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("state/antumbra/{name}.json"))
    }

    /// Starts a stack of this name in memory; returns it and the file with what it prints.
    fn start(&self, name: &str) -> (std::process::Child, PathBuf) {
        let printed = self.path("printed").join(name);
        let mut local = self.command();
        local
            .args(["local", "--memory", "--name", name])
            .args(["--dynamodb-port", "0", "--aws-port", "0"])
            .args(["--mqtt-port", "0", "--http-port", "0"])
            .stdout(std::fs::File::create(&printed).unwrap());
        let process = local.spawn().unwrap();
        wait_for("the start", || {
            let banner = std::fs::read_to_string(&printed).unwrap();
            banner.contains("Stop with Ctrl-C").then_some(())
        });
        (process, printed)
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command().args(arguments).output().unwrap();
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), printed)
    }
}

#[test]
fn stacks_are_found_by_name_from_any_directory() {
    let user = User::new();
    let (mut barn, printed) = user.start("barn");
    let banner = std::fs::read_to_string(printed).unwrap();
    assert!(
        banner.contains("4 built-in registrations, because there is no directory registrations"),
        "{banner}"
    );
    assert!(
        banner.contains("--local=barn shadow get lamp-7"),
        "{banner}"
    );
    // A single stack needs no name.
    let report = ["--local", "shadow", "report", "lamp", r#"{"on":true}"#];
    assert_eq!(user.run(&report).0, Some(0));

    let (mut attic, _) = user.start("attic");
    let (code, printed) = user.run(&report);
    assert_eq!(code, Some(6));
    assert_eq!(
        printed,
        "error: several stacks are running; choose one with --local=attic or --local=barn\n"
    );
    let get = |stack: &str| {
        user.run(&[&format!("--local={stack}"), "shadow", "get", "lamp"])
            .0
    };
    assert_eq!((get("barn"), get("attic")), (Some(0), Some(3)));
    // Other services of the stack are found too.
    let query = user.run(&["--local=barn", "messages", "query", "nobody"]);
    assert!(query.1.contains("No messages available"), "{}", query.1);
    let show = user.run(&["--local=barn", "queues", "show", "antumbra-quarantine"]);
    assert_eq!(show.0, Some(0), "{}", show.1);

    // The file is private, and holds what a script needs.
    let file: Value = serde_json::from_slice(&std::fs::read(user.file("barn")).unwrap()).unwrap();
    for name in [
        "dynamodb", "aws", "mqtt", "http", "token", "region", "version",
    ] {
        assert!(file[name].is_string(), "{name}: {file}");
    }
    assert_eq!(file["process"], barn.id());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&user.file("barn")), 0o600);
        assert_eq!(mode(user.file("barn").parent().unwrap()), 0o700);
    }

    // A killed stack leaves a file that counts for nothing.
    barn.kill().unwrap();
    barn.wait().unwrap();
    assert!(user.file("barn").exists());
    let (code, printed) = user.run(&["--local=barn", "shadow", "get", "lamp"]);
    let expected = "error: no stack named barn is running; use --local=attic\n";
    assert_eq!((code, printed.as_str()), (Some(6), expected));
    assert!(!user.file("barn").exists());
    attic.kill().unwrap();
    attic.wait().unwrap();
    let (code, printed) = user.run(&["--local=barn", "shadow", "get", "lamp"]);
    assert_eq!(code, Some(6));
    assert!(
        printed.contains("start `antumbra local --name barn`"),
        "{printed}"
    );
}

#[test]
fn a_second_stack_of_a_name_starts_and_is_not_found_by_it() {
    let user = User::new();
    let (mut first, _) = user.start("default");
    let (mut second, printed) = user.start("default");
    let banner = std::fs::read_to_string(printed).unwrap();
    assert!(
        banner.contains("--endpoint-url http://127.0.0.1:"),
        "{banner}"
    );
    let file: Value =
        serde_json::from_slice(&std::fs::read(user.file("default")).unwrap()).unwrap();
    assert_eq!(file["process"], first.id());
    for process in [&mut second, &mut first] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

fn rule(name: &str) -> String {
    format!(r#"{{"name":"{name}","to":{{"sqs":{{"queue":"{name}"}}}}}}"#)
}

#[cfg(unix)]
#[test]
fn changed_registrations_are_taken_over_while_the_stack_runs() {
    let home = Home::new(&[("first.json", &rule("first"))]);
    let out = home.path("out");
    let mut local = home.local();
    let printed = std::fs::File::create(&out).unwrap();
    local.stdout(printed.try_clone().unwrap()).stderr(printed);
    let running = home.wait(local.stdin(Stdio::null()));
    let write = |name: &str, text: &str| {
        let draft = home.path("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, home.path("registrations").join(name)).unwrap();
    };
    let wait_for_line = |line: &str| {
        wait_for(line, || {
            let printed = std::fs::read_to_string(&out).unwrap();
            let last = printed.lines().last().map(str::to_owned);
            last.filter(|last| last == line)
        })
    };
    let aws = running.addresses["aws"].as_str().unwrap().to_owned();
    let messages = |queue: &str| {
        let shown = running.run(&["--aws-url", &aws, "--json", "queues", "show", queue]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["messages"].as_array().unwrap().len()
    };
    let report = |n: u32| {
        let report = running.run(&["shadow", "report", "lamp", &format!(r#"{{"n":{n}}}"#)]);
        assert!(report.status.success());
    };

    write("second.json", &rule("second"));
    wait_for_line("registrations reloaded: added second; 2 registrations");
    report(1);
    wait_for("the message", || (messages("second") == 1).then_some(()));

    // One error keeps all files out.
    write("bad.json", r#"{"name":"bad"}"#);
    write("first.json", &rule("third"));
    wait_for_line("error: the registrations in force stay: bad.json: has no to");
    report(2);
    wait_for("the message", || (messages("first") == 2).then_some(()));

    std::fs::remove_file(home.path("registrations/bad.json")).unwrap();
    wait_for_line("registrations reloaded: added third; removed first; 2 registrations");
    write(
        "second.json",
        &rule("second").replace("}}}", "}},\"send\":[\"new\"]}"),
    );
    wait_for_line("registrations reloaded: changed second; 2 registrations");
    report(3);
    wait_for("the message", || (messages("third") == 1).then_some(()));
    assert_eq!(messages("first"), 2);

    running.signal("HUP");
    wait_for_line("registrations reloaded: nothing changed; 2 registrations");
}
