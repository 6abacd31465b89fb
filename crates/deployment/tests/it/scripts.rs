//! Runs the scripts of a deployment with stand-ins for the AWS CLI and the SAM CLI (`tests/stubs`), in a copy of the files
//! that they need. Needs bash; without it the tests pass and say so.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tools that only have to exist.
const TOOLS: [&str; 3] = ["cargo", "cargo-lambda", "zig"];
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A copy of the scripts and templates, and the state of a pretended account.
struct Sandbox {
    home: PathBuf,
}

/// Outcome of a script.
struct Run {
    succeeded: bool,
    output: String,
    /// Calls of the AWS CLI and the SAM CLI, a line each.
    calls: Vec<String>,
}

fn bash_is_missing() -> bool {
    let missing = Command::new("bash").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: bash is not installed");
    }
    missing
}

fn copy(from: &Path, to: &Path) {
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

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Sandbox {
    fn new() -> Sandbox {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("antumbra-scripts-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&home);
        for directory in ["scripts", "infra", "registrations"] {
            copy(&Path::new(ROOT).join(directory), &home.join(directory));
        }
        std::fs::copy(Path::new(ROOT).join("Cargo.toml"), home.join("Cargo.toml")).unwrap();
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

    fn state(&self, name: &str, content: &str) -> &Sandbox {
        std::fs::write(self.home.join("state").join(name), content).unwrap();
        self
    }

    fn has(&self, name: &str) -> bool {
        self.home.join("state").join(name).exists()
    }

    /// Runs a command line of bash, and returns its output and the calls since the last one.
    fn run(&self, line: &str) -> Run {
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
    fn succeeded(self) -> Run {
        assert!(self.succeeded, "{}", self.output);
        self
    }

    /// Fails with this text, before anything was built or changed.
    fn refused(self, text: &str) {
        assert!(!self.succeeded, "{}", self.output);
        assert!(self.output.contains(text), "{}", self.output);
        for call in &self.calls {
            let changes = call.starts_with("sam build")
                || call.starts_with("sam deploy")
                || call.contains(" delete-")
                || call.contains(" update-");
            assert!(!changes, "{call}");
        }
    }

    fn calls_of(&self, start: &str) -> Vec<&str> {
        let calls = self.calls.iter().map(String::as_str);
        calls.filter(|call| call.starts_with(start)).collect()
    }

    /// The value of a parameter of `sam deploy` for a stack, in its last call.
    fn parameter(&self, stack: &str, name: &str) -> Option<String> {
        let stack = format!("--stack-name {stack} ");
        let deployed = self.calls_of("sam deploy");
        let call = deployed.iter().rfind(|call| call.contains(&stack))?;
        let (_, rest) = call.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    }
}

#[test]
fn a_first_deployment_makes_the_data_stack_protects_it_and_then_deploys_the_rest() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = sandbox.run("scripts/deploy --yes").succeeded();
    let steps: Vec<&str> = run
        .calls
        .iter()
        .filter(|call| {
            call.starts_with("sam") && !call.contains("--version") || call.starts_with("smoke")
        })
        .map(String::as_str)
        .collect();
    let [build, data, protect, rest, smoke] = &steps[..] else {
        panic!("{steps:#?}");
    };
    assert!(
        build.starts_with("sam build") && build.ends_with("Architecture=arm64"),
        "{build}"
    );
    let is_data =
        |call: &str| call.contains("--template-file data.yaml --stack-name antumbra-data");
    assert!(
        is_data(data) && data.contains("DeletionProtection=\"false\""),
        "{data}"
    );
    assert!(
        is_data(protect) && protect.contains("DeletionProtection=\"true\""),
        "{protect}"
    );
    assert!(
        rest.contains("--stack-name antumbra --no-confirm-changeset"),
        "{rest}"
    );
    assert_eq!(*smoke, "smoke antumbra");
    let endpoint = Some("abc123-ats.iot.us-east-1.amazonaws.com".to_owned());
    assert_eq!(run.parameter("antumbra", "IotEndpoint"), endpoint);
    // Without --yes the change sets are shown and confirmed.
    let run = sandbox.run("scripts/deploy --no-smoke").succeeded();
    let asked = run.calls_of("sam deploy");
    let asked = asked
        .iter()
        .filter(|call| call.contains(" --confirm-changeset"));
    assert_eq!(asked.count(), 2);
    assert!(run.calls_of("smoke").is_empty());
}

#[test]
fn the_architecture_is_built_checked_deployed_and_kept() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    // The build is for another architecture than the deployment.
    sandbox.state("machine", "arm64");
    let run = sandbox.run("scripts/deploy --yes Architecture=x86_64");
    assert!(!run.succeeded);
    assert!(
        run.output
            .contains("is for arm64, but Architecture is x86_64"),
        "{}",
        run.output
    );
    assert!(run.calls_of("sam deploy").is_empty());
    std::fs::remove_file(sandbox.home.join("state/machine")).unwrap();
    let built = |run: &Run| {
        run.calls_of("sam build")[0]
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    let run = sandbox
        .run("scripts/deploy --yes Architecture=x86_64")
        .succeeded();
    assert_eq!(built(&run), "Architecture=x86_64");
    assert_eq!(
        run.parameter("antumbra", "Architecture"),
        Some("x86_64".to_owned())
    );
    // Without the parameter the deployed one counts, in the build too.
    let run = sandbox.run("scripts/deploy --yes").succeeded();
    assert_eq!(built(&run), "Architecture=x86_64");
    // An environment of samconfig.toml has parameters of its own.
    let samconfig = sandbox.home.join("infra/samconfig.toml");
    let mut text = std::fs::read_to_string(&samconfig).unwrap();
    text += "\n[prod.deploy.parameters]\nparameter_overrides = \"Name=prod TopicPrefix=prod/ Architecture=x86_64\"\n";
    std::fs::write(&samconfig, text).unwrap();
    let run = sandbox
        .run("scripts/deploy --yes --config-env prod")
        .succeeded();
    assert_eq!(built(&run), "Architecture=x86_64");
    assert_eq!(
        run.parameter("prod", "TopicPrefix"),
        Some("prod/".to_owned())
    );
    assert_eq!(run.parameter("prod-data", "Name"), Some("prod".to_owned()));
}

#[test]
fn the_architecture_of_an_executable_is_read_from_its_header() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    let header = |machine: u16| {
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
        header.extend(machine.to_le_bytes());
        header.resize(64, 0);
        header
    };
    let machines = [
        (header(62), "x86_64"),
        (header(183), "arm64"),
        (header(40), "ELF machine 2800"),
        (b"#!/bin/sh".to_vec(), "not an ELF file"),
        (Vec::new(), "not an ELF file"),
    ];
    for (content, machine) in machines {
        std::fs::write(sandbox.home.join("file"), content).unwrap();
        let run = sandbox.run(". scripts/lib/deploy.sh && elf_machine file");
        assert_eq!(run.output.trim(), machine);
    }
}

#[test]
fn a_failed_first_deployment_can_be_repeated() {
    if bash_is_missing() {
        return;
    }
    for failing in ["antumbra-data", "antumbra"] {
        let sandbox = Sandbox::new();
        sandbox.state(&format!("fails-{failing}"), "");
        let run = sandbox.run("scripts/deploy --yes");
        assert!(!run.succeeded, "{}", run.output);
        let run = sandbox.run("scripts/deploy --yes").succeeded();
        let deleted = run.calls_of("aws cloudformation delete-stack");
        assert_eq!(
            deleted,
            [format!(
                "aws cloudformation delete-stack --stack-name {failing}"
            )]
        );
    }
}

#[test]
fn requirements_are_checked_before_anything_changes() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.state("sam-version", "1.99.3");
    sandbox
        .run("scripts/deploy --yes")
        .refused("SAM CLI 1.99.3 is too old");
    sandbox.state("sam-version", "1.160.0");
    sandbox.state("no-credentials", "");
    sandbox
        .run("scripts/deploy --yes")
        .refused("Unable to locate credentials");
    std::fs::remove_file(sandbox.home.join("state/no-credentials")).unwrap();
    sandbox.state("no-region", "");
    sandbox.run("scripts/deploy --yes").refused("no region");
    std::fs::remove_file(sandbox.home.join("state/no-region")).unwrap();
    sandbox
        .run("scripts/deploy --yes Name=Not_a_name")
        .refused("Name is Not_a_name");
    sandbox
        .run("scripts/deploy --yes Architecture=riscv")
        .refused("not arm64 or x86_64");
    sandbox
        .run("scripts/deploy --yes --config-env none")
        .refused("no section for none");
    sandbox.state("limits", "10\t10\n");
    let low = sandbox.run("scripts/deploy --check").succeeded();
    assert!(
        low.output.contains("allows 10 concurrent executions"),
        "{}",
        low.output
    );
    sandbox
        .run("scripts/deploy --yes ReservedConcurrency=5")
        .refused("ReservedConcurrency=5");
    sandbox.state("limits", "1000\t1000\n");
    sandbox
        .run("scripts/deploy --check ReservedConcurrency=5")
        .succeeded();
    sandbox.state("table-antumbra-messages", "");
    let left = sandbox.run("scripts/deploy --yes");
    assert!(
        left.output.contains("scripts/restore antumbra --adopt"),
        "{}",
        left.output
    );
    left.refused("table antumbra-messages");
    sandbox.state("rule-other_stage_shadow_update", "");
    let taken = sandbox.run("scripts/deploy --yes Name=other-stage");
    taken.refused("AWS IoT rule other_stage_shadow_update");
    std::fs::remove_file(sandbox.home.join("bin/cargo-lambda")).unwrap();
    sandbox
        .run("scripts/deploy --yes")
        .refused("cargo-lambda: pip install cargo-lambda");
}

/// SAM publishes new versions of functions for another hash.
#[test]
fn a_changed_parameter_or_registration_or_function_changes_the_hash_and_nothing_else_does() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    let hash = |line: &str| {
        let run = sandbox.run(line).succeeded();
        run.parameter("antumbra", "CodeHash").unwrap()
    };
    let first = hash("scripts/deploy --yes --no-smoke SweepEvery='5 minutes'");
    assert_eq!(first.len(), 64);
    let same = hash("scripts/deploy --yes --no-smoke");
    assert_eq!(same, first);
    let parameter = hash("scripts/deploy --yes --no-smoke LogLevel=debug");
    assert_ne!(parameter, first);
    assert_eq!(hash("scripts/deploy --yes --no-smoke"), parameter);
    let registration = sandbox.home.join("registrations/shadow-delta.json");
    let text = std::fs::read_to_string(&registration).unwrap();
    std::fs::write(&registration, text.replace("The delta", "A delta")).unwrap();
    let registration = hash("scripts/deploy --yes --no-smoke");
    assert_ne!(registration, parameter);
    assert_ne!(
        hash("scripts/deploy --yes --no-smoke Architecture=x86_64"),
        registration
    );
}

#[test]
fn undeploying_detaches_device_policies_and_shows_what_stays() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox
        .state("attached", "")
        .state("table-antumbra", "")
        .state("table-antumbra-messages", "");
    sandbox.state("queue-antumbra-inbound", "");
    let refused = sandbox.run("echo n | scripts/undeploy antumbra");
    assert!(
        refused
            .calls_of("aws cloudformation delete-stack")
            .is_empty()
    );
    let run = sandbox.run("scripts/undeploy antumbra --yes").succeeded();
    let changes: Vec<&String> = run
        .calls
        .iter()
        .filter(|call| call.contains("detach") || call.contains("delete-stack"))
        .collect();
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert_eq!(
        changes[0],
        "aws iot detach-policy --policy-name policy-1 --target cert-1"
    );
    assert_eq!(
        changes[4],
        "aws cloudformation delete-stack --stack-name antumbra"
    );
    let stays = "table antumbra: 12 items, 2.000 GB, about $0.50 a month for storage and $0.40";
    assert!(run.output.contains(stays), "{}", run.output);
    assert!(
        run.output.contains("queue antumbra-inbound: 3 messages"),
        "{}",
        run.output
    );
    assert!(sandbox.has("stack-antumbra-data") && sandbox.has("table-antumbra"));
    let wrong = sandbox.run("echo prod | scripts/undeploy antumbra --delete-data");
    assert!(
        !wrong.succeeded && sandbox.has("table-antumbra"),
        "{}",
        wrong.output
    );
    sandbox
        .run("echo antumbra | scripts/undeploy antumbra --delete-data")
        .succeeded();
    for gone in [
        "stack-antumbra-data",
        "table-antumbra",
        "table-antumbra-messages",
        "queue-antumbra-inbound",
    ] {
        assert!(!sandbox.has(gone), "{gone}");
    }
}

#[test]
fn a_restore_uses_the_new_tables_first_and_then_imports_them() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox
        .state("table-antumbra", "")
        .state("table-antumbra-messages", "");
    let time = "2026-11-17T08:00:00Z";
    let run = sandbox
        .run(&format!("scripts/restore antumbra --to {time} --yes"))
        .succeeded();
    let restored = run.calls_of("aws dynamodb restore-table-to-point-in-time");
    assert_eq!(restored.len(), 2);
    assert!(
        restored[0].contains("--source-table-name antumbra --target-table-name antumbra-r20"),
        "{restored:?}"
    );
    assert!(
        restored
            .iter()
            .all(|call| call.ends_with(&format!("--restore-date-time {time}")))
    );
    for setting in [
        "update-table",
        "update-time-to-live",
        "update-continuous-backups",
    ] {
        assert_eq!(
            run.calls_of(&format!("aws dynamodb {setting} ")).len(),
            2,
            "{setting}"
        );
    }
    let changes: Vec<&String> = run
        .calls
        .iter()
        .filter(|call| call.contains("update-stack") || call.contains("create-change-set"))
        .collect();
    let expected = [
        (
            "--stack-name antumbra ",
            "ParameterKey=TableStreamArn,ParameterValue=arn:aws:dynamodb",
        ),
        (
            "--stack-name antumbra-data ",
            "ParameterKey=Restore,ParameterValue=detach",
        ),
        ("--stack-name antumbra-data ", "--change-set-type IMPORT"),
        (
            "--stack-name antumbra-data ",
            "ParameterKey=Restore,ParameterValue=off",
        ),
        (
            "--stack-name antumbra ",
            "ParameterKey=TableStreamArn,ParameterValue= ",
        ),
    ];
    assert_eq!(changes.len(), expected.len(), "{changes:#?}");
    for (change, (stack, part)) in changes.iter().zip(expected) {
        assert!(
            change.contains(stack) && format!("{change} ").contains(part),
            "{change}"
        );
    }
    // The versions of the functions get the new variables.
    for change in [changes[0], changes[4]] {
        assert!(
            change.contains("ParameterKey=CodeHash,ParameterValue="),
            "{change}"
        );
    }
    // The next deployment keeps the restored tables.
    let run = sandbox.run("scripts/deploy --yes").succeeded();
    let suffix = run.parameter("antumbra", "TableSuffix").unwrap();
    assert!(suffix.starts_with("-r20"), "{suffix}");
    assert_eq!(run.parameter("antumbra-data", "TableSuffix"), Some(suffix));
    assert_eq!(
        run.parameter("antumbra-data", "Restore")
            .as_deref()
            .unwrap_or("off"),
        "off"
    );
}

#[test]
fn what_a_deleted_data_stack_left_can_be_taken_over() {
    if bash_is_missing() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox
        .state("table-antumbra", "")
        .state("table-antumbra-messages", "");
    let queues = antumbra_local::queues::definitions::QUEUES;
    for queue in &queues[1..] {
        sandbox.state(&format!("queue-{}", queue.name), "");
    }
    let missing = sandbox.run("scripts/restore antumbra --adopt --yes");
    missing.refused(&format!("queue {}", queues[0].name));
    sandbox.state(&format!("queue-{}", queues[0].name), "");
    let run = sandbox
        .run("scripts/restore antumbra --adopt --yes")
        .succeeded();
    let [import] = &run.calls_of("aws cloudformation create-change-set")[..] else {
        panic!("{:?}", run.calls);
    };
    assert_eq!(
        import
            .matches("\"ResourceType\":\"AWS::SQS::Queue\"")
            .count(),
        queues.len()
    );
    assert_eq!(
        import
            .matches("\"ResourceType\":\"AWS::DynamoDB::Table\"")
            .count(),
        2
    );
    for queue in queues {
        assert!(import.contains(&format!("/{}\"", queue.name)), "{import}");
    }
    sandbox.run("scripts/deploy --yes").succeeded();
}

#[test]
fn a_package_deploys_without_rust() {
    if bash_is_missing() || Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox
        .run("cd infra && sam build Architecture=x86_64")
        .succeeded();
    let built = "--built infra/.aws-sam/build";
    let wrong = sandbox.run(&format!("scripts/package --architecture arm64 {built} one"));
    wrong.refused("is for x86_64, but Architecture is arm64");
    for directory in ["one", "two"] {
        let line = format!("scripts/package --architecture x86_64 {built} {directory}");
        sandbox.run(&line).succeeded();
    }
    let sums = |directory: &str| {
        let path = sandbox.home.join(directory).join("SHA256SUMS");
        std::fs::read_to_string(path).unwrap()
    };
    assert_eq!(sums("one"), sums("two"));
    assert!(sums("one").matches(".zip").count() == 12);
    for tool in TOOLS {
        std::fs::remove_file(sandbox.home.join("bin").join(tool)).unwrap();
    }
    sandbox
        .run("scripts/deploy --yes --packaged one")
        .refused("one is for x86_64");
    let run = sandbox
        .run("scripts/deploy --yes --packaged one Architecture=x86_64")
        .succeeded();
    assert!(run.calls_of("sam build").is_empty());
    let deployed = run.calls_of("sam deploy");
    assert!(
        deployed.last().unwrap().contains("/one/template.yaml"),
        "{deployed:?}"
    );
    assert_eq!(run.parameter("antumbra", "CodeHash").unwrap().len(), 64);
}

/// macOS has bash 3.2, and `pip install awscli` installs version 1 of the AWS CLI.
#[test]
fn scripts_use_nothing_that_old_shells_and_the_old_aws_cli_lack() {
    let names = [
        "deploy",
        "undeploy",
        "restore",
        "package",
        "smoke",
        "lib/deploy.sh",
    ];
    for name in names {
        let text = std::fs::read_to_string(Path::new(ROOT).join("scripts").join(name)).unwrap();
        let code: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .collect();
        for line in &code {
            for newer in [
                "mapfile",
                "readarray",
                "declare -A",
                "local -A",
                "|&",
                "&>>",
                ",,}",
                "^^}",
                "coproc",
                "printf -v",
            ] {
                assert!(!line.contains(newer), "{name}: {line}");
            }
            // An empty array is unset in bash 3.2.
            let unguarded = line.replace("${jobs[@]+\"${jobs[@]}\"}", "");
            let unguarded = unguarded.replace("\"${credentials[@]}\"", "");
            assert!(
                !unguarded.contains("\"${") || !unguarded.contains("[@]}\""),
                "{name}: {line}"
            );
        }
    }
    let documents = ["infra/RUNBOOK.md", "README.md", "docs/deploy.md"];
    let documents =
        documents.map(|name| std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap());
    for text in documents {
        for newer in ["logs tail", "export-credentials", "aws sso "] {
            assert!(!text.contains(newer), "{newer}");
        }
    }
}
