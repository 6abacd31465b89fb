//! `antumbra` as a process, and a running stack.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antumbra"));
    // Variables of the tests, and of the user's command.
    let own = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in own.filter(|name| name.starts_with("ANTUMBRA_")) {
        command.env_remove(name);
    }
    command
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_REGION", "us-east-1")
        .env("XDG_STATE_HOME", state_directory());
    command
}

/// State directory of this test run, so that stacks of the user are neither found nor hidden.
fn state_directory() -> &'static Path {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| tempfile::tempdir().unwrap())
        .path()
}

pub(crate) fn antumbra(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Polls until there is a result; the timeout is longer than a working stack needs.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if let Some(result) = poll() {
            return result;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

/// A directory for a stack: its data, its registrations, its ready file.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new(registrations: &[(&str, &str)]) -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        std::fs::create_dir(home.path("registrations")).unwrap();
        for (name, rule) in registrations {
            let file = home.path("registrations").join(name);
            std::fs::write(file, rule).unwrap();
        }
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `antumbra local` on free ports, not yet started.
    pub(crate) fn local(&self) -> Command {
        let mut command = self.on_free_ports();
        command
            .args([Path::new("--data-dir"), &self.path("data")])
            .args([Path::new("--registrations"), &self.path("registrations")]);
        command
    }

    fn on_free_ports(&self) -> Command {
        let mut command = command();
        command
            .arg("local")
            .args(["--dynamodb-port", "0", "--aws-port", "0"])
            .args(["--mqtt-port", "0", "--http-port", "0"])
            .args([Path::new("--ready-file"), &self.path("ready.json")]);
        command
    }

    /// Starts `antumbra local` and waits until it is up.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, arguments: &[&str]) -> Running {
        self.wait(self.local().args(arguments).stdout(Stdio::null()))
    }

    /// Starts `antumbra local --memory` with other registrations; returns what it prints too.
    pub(crate) fn start_in_memory(&self, registrations: &Path) -> (Running, String) {
        let printed = std::fs::File::create(self.path("welcome")).unwrap();
        let mut command = self.on_free_ports();
        command
            .arg("--memory")
            .args([Path::new("--registrations"), registrations]);
        let running = self.wait(command.stdout(printed));
        let welcome = wait_for("the banner", || {
            let text = std::fs::read_to_string(self.path("welcome")).unwrap();
            text.ends_with("Stop with Ctrl-C.\n").then_some(text)
        });
        (running, welcome)
    }

    pub(crate) fn wait(&self, command: &mut Command) -> Running {
        let mut process = command.spawn().unwrap();
        let addresses = wait_for("the start", || {
            assert!(
                process.try_wait().unwrap().is_none(),
                "it ended while starting"
            );
            let bytes = std::fs::read(self.path("ready.json")).ok()?;
            let ready: Value = serde_json::from_slice(&bytes).unwrap();
            // Not what a killed one has left behind.
            (ready["process"] == process.id()).then_some(ready)
        });
        Running { process, addresses }
    }
}

/// A running `antumbra local`, killed when dropped.
pub(crate) struct Running {
    pub(crate) process: Child,
    pub(crate) addresses: Value,
}

impl Running {
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let endpoint = self.addresses["dynamodb"].as_str().unwrap();
        let mut all = vec!["--endpoint-url", endpoint];
        all.extend(arguments);
        antumbra(&all)
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the end", || self.process.try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A stack with one registration, running for as long as this lives.
pub(crate) struct Local {
    // Before its home: the process ends before its files do.
    running: Running,
    _home: Home,
}

impl Local {
    pub(crate) fn start() -> Local {
        let rule = r#"{"name":"all","to":{"sqs":{"queue":"changes.fifo"}}}"#;
        let home = Home::new(&[("all.json", rule)]);
        Local {
            running: home.start(),
            _home: home,
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.running.run(arguments)
    }
}
