//! The copy of the files that the scripts run in, with stand-ins for the tools that they call.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tools that only have to exist.
pub(super) const TOOLS: [&str; 3] = ["cargo", "cargo-lambda", "zig"];
pub(super) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A copy of the scripts and templates, and the state of a pretended account.
pub(super) struct Sandbox {
    pub(super) home: PathBuf,
}

/// Outcome of a script.
pub(super) struct Run {
    pub(super) succeeded: bool,
    pub(super) output: String,
    /// Calls of the AWS CLI and the SAM CLI, a line each.
    pub(super) calls: Vec<String>,
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == ".aws-sam" || entry.file_name() == "events" => {}
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

pub(super) fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Sandbox {
    pub(super) fn new() -> Sandbox {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("antumbra-scripts-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&home);
        for directory in ["scripts", "infra", "registrations"] {
            copy(&Path::new(ROOT).join(directory), &home.join(directory));
        }
        std::fs::copy(Path::new(ROOT).join("Cargo.toml"), home.join("Cargo.toml")).unwrap();
        std::fs::create_dir(home.join("docs")).unwrap();
        let costs = Path::new("docs").join("costs.md");
        std::fs::copy(Path::new(ROOT).join(&costs), home.join(&costs)).unwrap();
        let stubs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs");
        copy(&stubs, &home.join("bin"));
        for tool in TOOLS {
            write_program(&home.join("bin").join(tool), "#!/bin/bash\n");
        }
        let rustup = "#!/bin/bash\necho aarch64-unknown-linux-gnu\necho x86_64-unknown-linux-gnu\n";
        write_program(&home.join("bin/rustup"), rustup);
        write_program(
            &home.join("scripts/smoke"),
            "#!/bin/bash\necho smoke \"$@\" >>\"$STATE/calls\"\n",
        );
        std::fs::create_dir(home.join("state")).unwrap();
        Sandbox { home }
    }

    pub(super) fn state(&self, name: &str, content: &str) -> &Sandbox {
        std::fs::write(self.home.join("state").join(name), content).unwrap();
        self
    }

    /// The tables of a deployment exist.
    pub(super) fn tables(&self) -> &Sandbox {
        for suffix in ["", "-messages", "-secrets", "-history"] {
            self.state(&format!("table-antumbra{suffix}"), "");
        }
        self
    }

    pub(super) fn forget(&self, name: &str) {
        std::fs::remove_file(self.home.join("state").join(name)).unwrap();
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.home.join("state").join(name).exists()
    }

    /// Runs a command line of bash, and returns its output and the calls since the last one.
    pub(super) fn run(&self, line: &str) -> Run {
        let calls = self.home.join("state/calls");
        let _ = std::fs::remove_file(&calls);
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1; {line}")])
            .current_dir(&self.home)
            .env_clear()
            .env("PATH", format!("{}/bin:/usr/bin:/bin", self.home.display()))
            .env("HOME", &self.home)
            .env("STATE", self.home.join("state"))
            .output()
            .unwrap();
        let calls = std::fs::read_to_string(&calls).unwrap_or_default();
        Run {
            succeeded: output.status.success(),
            output: String::from_utf8(output.stdout).unwrap(),
            calls: calls.lines().map(str::to_owned).collect(),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

impl Run {
    pub(super) fn succeeded(self) -> Run {
        assert!(self.succeeded, "{}", self.output);
        self
    }

    #[track_caller]
    pub(super) fn says(&self, text: &str) {
        assert!(self.output.contains(text), "{}", self.output);
    }

    /// Fails with this text, before anything was built or changed.
    pub(super) fn refused(self, text: &str) {
        assert!(!self.succeeded, "{}", self.output);
        self.says(text);
        for call in &self.calls {
            let changes = call.starts_with("sam build")
                || call.starts_with("sam deploy")
                || call.contains(" delete-")
                || call.contains(" update-");
            assert!(!changes, "{call}");
        }
    }

    pub(super) fn calls_of(&self, start: &str) -> Vec<&str> {
        let calls = self.calls.iter().map(String::as_str);
        calls.filter(|call| call.starts_with(start)).collect()
    }

    /// The value of a parameter of `sam deploy` for a stack, in its last call.
    pub(super) fn parameter(&self, stack: &str, name: &str) -> Option<String> {
        let stack = format!("--stack-name {stack} ");
        let deployed = self.calls_of("sam deploy");
        let call = deployed.iter().rfind(|call| call.contains(&stack))?;
        let (_, rest) = call.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    }
}
