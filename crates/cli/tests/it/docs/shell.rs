//! A shell for one page, with a local stack of its own behind the addresses that the pages name.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::iot_stand_in::StandIn;
use crate::process::{Home, Running, command, wait_for};

/// Timeout of a command.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Marks the end of a command's output.
const END: &str = "-- end of output --";

pub(crate) struct Shell {
    bash: Child,
    input: Mutex<ChildStdin>,
    lines: Receiver<String>,
    /// Addresses on the pages, and those of this stack.
    addresses: Vec<(String, String)>,
    environment: Vec<(OsString, OsString)>,
    welcome: String,
    // Fields are dropped in order: the stack ends before its files go.
    _stack: Running,
    home: Home,
}

impl Shell {
    pub(crate) fn start(root: &Path) -> Shell {
        let home = Home::new(&[]);
        let (stack, welcome) = home.start_in_memory(&root.join("registrations"));
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_antumbra"), home.path("antumbra")).unwrap();
        let url = |service: &str| stack.addresses[service].as_str().unwrap().to_owned();
        let host = |service: &str| url(service).split_once("//").unwrap().1.to_owned();
        let receiver = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let addresses = [
            ("127.0.0.1:8000", host("dynamodb")),
            ("127.0.0.1:4566", host("aws")),
            ("127.0.0.1:1883", host("mqtt")),
            ("127.0.0.1:8080", host("http")),
            ("127.0.0.1:9000", receiver.to_string()),
            ("--port 9000", format!("--port {}", receiver.port())),
        ];
        let path = std::env::var("PATH").unwrap();
        let environment = [
            ("PATH", format!("{}:{path}", home.path("").display())),
            ("ANTUMBRA_ENDPOINT_URL", url("dynamodb")),
            ("ANTUMBRA_AWS_URL", url("aws")),
            ("ANTUMBRA_MQTT_URL", url("mqtt")),
            ("WEBHOOK_ALLOW", "http://127.0.0.1".to_owned()),
            ("TOKEN", token(&welcome)),
            ("AWS_ENDPOINT_URL_IOT_DATA_PLANE", aws_iot().url),
        ];
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile"]).current_dir(root);
        let environment: Vec<_> = environment
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let credentials = command();
        let credentials = credentials
            .get_envs()
            .filter_map(|(name, value)| Some((name.into(), value?.into())));
        let environment: Vec<(OsString, OsString)> =
            environment.into_iter().chain(credentials).collect();
        shell.envs(environment.clone());
        let mut bash = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(bash.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                if send.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Shell {
            input: Mutex::new(bash.stdin.take().unwrap()),
            bash,
            lines,
            addresses: addresses
                .map(|(page, actual)| (page.to_owned(), actual))
                .into(),
            environment,
            welcome,
            _stack: stack,
            home,
        }
    }

    /// Runs a command and returns its output, as the page would show it.
    pub(crate) fn run(&self, line: &str) -> String {
        if line.starts_with("alias antumbra=") {
            return String::new();
        }
        if line.starts_with("cargo run -- local") {
            return self.on_page(&self.welcome);
        }
        let line = self.actual(line);
        let mut input = self.input.lock().unwrap();
        writeln!(
            input,
            "{{ {line}\n}} 2>&1 </dev/null; printf '\\n%s\\n' '{END}'"
        )
        .unwrap();
        let mut output = String::new();
        loop {
            let next = self.lines.recv_timeout(TIMEOUT);
            let next = next.unwrap_or_else(|_| panic!("no end of {line}:\n{output}"));
            if next == END {
                return self.on_page(output.trim_end());
            }
            output += &next;
            output.push('\n');
        }
    }

    fn actual(&self, text: &str) -> String {
        let replace = |text: String, (page, actual): &(String, String)| text.replace(page, actual);
        self.addresses.iter().fold(text.to_owned(), replace)
    }

    fn on_page(&self, text: &str) -> String {
        let replace = |text: String, (page, actual): &(String, String)| text.replace(actual, page);
        self.addresses.iter().fold(text.to_owned(), replace)
    }
}

/// AWS IoT, which shadows are imported from.
fn aws_iot() -> StandIn {
    let unnamed = r#"{
        "state": {"desired": {"mode": "eco"}, "reported": {"mode": "comfort", "temp": 58}},
        "metadata": {"desired": {"mode": {"timestamp": 1769860920}},
                     "reported": {"mode": {"timestamp": 1769860800}, "temp": {"timestamp": 1769860860}}},
        "version": 12}"#;
    let night = r#"{"state": {"reported": {"from": 22}}, "metadata": {"reported": {"from": {"timestamp": 1769860800}}}}"#;
    StandIn::with_shadows(&[("boiler-1", "", unnamed), ("boiler-1", "night", night)])
}

/// The bearer token, as the stack prints it.
fn token(welcome: &str) -> String {
    let rest = welcome.split_once("bearer token ").unwrap().1;
    rest.split_whitespace().next().unwrap().to_owned()
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

/// A command that runs until it is dropped.
pub(crate) struct Background {
    process: Child,
    output: Arc<Mutex<Vec<u8>>>,
    addresses: Vec<(String, String)>,
}

impl Background {
    /// Returns once the command has printed its first line.
    pub(crate) fn start(shell: &Shell, line: &str) -> Background {
        let mut process = Command::new("bash")
            .args(["-c", &format!("exec {} 2>&1", shell.actual(line))])
            .current_dir(shell.home.path(""))
            .envs(shell.environment.clone())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = process.stdout.take().unwrap();
        let copy = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                copy.lock().unwrap().extend(&bytes[..count]);
            }
        });
        wait_for("the first line", || {
            output.lock().unwrap().contains(&b'\n').then_some(())
        });
        Background {
            process,
            output,
            addresses: shell.addresses.clone(),
        }
    }

    pub(crate) fn output(&self) -> String {
        let bytes = self.output.lock().unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let replace = |text: String, (page, actual): &(String, String)| text.replace(actual, page);
        self.addresses.iter().fold(text, replace)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
