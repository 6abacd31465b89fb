//! Runs the scripts of a deployment with stand-ins for the AWS CLI and the SAM CLI (`tests/stubs`), in a copy of the files
//! that they need.

mod sandbox;
mod undeploy_and_restore;

use std::path::Path;
use std::process::Command;

use sandbox::{ROOT, Run, Sandbox, TOOLS, write_program};

#[test]
fn a_first_deployment_makes_the_data_stack_protects_it_and_then_deploys_the_rest() {
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
    let sandbox = Sandbox::new();
    // The build is for another architecture than the deployment.
    sandbox.state("machine", "arm64");
    let run = sandbox.run("scripts/deploy --yes Architecture=x86_64");
    assert!(!run.succeeded);
    run.says("is for arm64, but Architecture is x86_64");
    assert!(run.calls_of("sam deploy").is_empty());
    sandbox.forget("machine");
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
    sandbox.forget("no-credentials");
    sandbox.state("no-region", "");
    sandbox.run("scripts/deploy --yes").refused("no region");
    sandbox.forget("no-region");
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
    low.says("allows 10 concurrent executions");
    sandbox
        .run("scripts/deploy --yes ReservedConcurrency=5")
        .refused("ReservedConcurrency=5");
    sandbox.state("limits", "1000\t1000\n");
    sandbox
        .run("scripts/deploy --check ReservedConcurrency=5")
        .succeeded();
    sandbox.state("table-antumbra-messages", "");
    let left = sandbox.run("scripts/deploy --yes");
    left.says("scripts/restore antumbra --adopt");
    left.refused("table antumbra-messages");
    sandbox.state("rule-other_stage_shadow_update", "");
    let taken = sandbox.run("scripts/deploy --yes Name=other-stage");
    taken.refused("AWS IoT rule other_stage_shadow_update");
    std::fs::remove_file(sandbox.home.join("bin/cargo-lambda")).unwrap();
    sandbox
        .run("scripts/deploy --yes")
        .refused("cargo-lambda: pip install cargo-lambda");
}

/// The price is that of the table of costs.
#[test]
fn the_price_of_the_history_is_shown_before_anything_changes() {
    let sandbox = Sandbox::new();
    sandbox.state("limits", "1000\t1000\n");
    let counts = antumbra_cost::Counts::of_this_version().unwrap();
    let price = counts.recorded_change.at(100.0).dollars_per_million();
    for (given, expected) in [
        (
            "",
            format!("== history  30 days; ${price:.2} per million changes"),
        ),
        (
            "HistoryDays=7",
            format!("== history  7 days; ${price:.2} per million"),
        ),
        ("HistoryDays=0", "== history  off".to_owned()),
    ] {
        let run = sandbox.run(&format!("scripts/deploy --check {given}"));
        let output = run.succeeded().output;
        assert!(output.contains(&expected), "{expected}: {output}");
    }
    std::fs::remove_dir_all(sandbox.home.join("docs")).unwrap();
    let output = sandbox.run("scripts/deploy --check").succeeded().output;
    assert!(output.contains("its price is in docs/costs.md"), "{output}");
}

#[test]
fn a_history_that_is_switched_off_keeps_its_table() {
    let sandbox = Sandbox::new();
    let days = |run: &Run| {
        let days = |stack| run.parameter(stack, "HistoryDays").unwrap_or_default();
        (days("antumbra-data"), days("antumbra"))
    };
    for (given, data, functions) in [
        ("HistoryDays=30", "30", "30"),
        // The functions import the bucket's name from the data stack, which is deployed first.
        ("HistoryDays=0", "30", "0"),
        ("", "30", "0"),
        ("HistoryDays=7", "7", "7"),
    ] {
        let run = sandbox.run(&format!("scripts/deploy --yes {given}"));
        let run = run.succeeded();
        assert_eq!(
            days(&run),
            (data.to_owned(), functions.to_owned()),
            "{given}"
        );
    }
    let off = sandbox.run("scripts/deploy --yes HistoryDays=0");
    let text = "== history  off; the table antumbra-history stays, and its changes expire";
    off.says(text);
    let other = Sandbox::new();
    let never = other.run("scripts/deploy --yes HistoryDays=0").succeeded();
    assert_eq!(days(&never), ("0".to_owned(), "0".to_owned()));
}

#[test]
fn settings_that_the_table_cannot_change_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox.state("settings", "separate\ttimestamp\tid\n");
    sandbox
        .run("scripts/deploy --yes LogLevel=debug")
        .succeeded();
    for changed in ["Combined=true", "TimestampFields=ts", "IdField=key"] {
        let run = sandbox.run(&format!("scripts/deploy --yes {changed}"));
        run.refused(
            "the table antumbra has layout, timestamp fields and id field 'separate timestamp id'",
        );
    }
}

#[test]
fn registrations_that_the_filters_leave_out_are_not_deployed() {
    let sandbox = Sandbox::new();
    let check = "#!/bin/bash\necho \"antumbra $*\" >>\"$STATE/calls\"\n[[ \"$*\" != *=* && \"$*\" == *readings* ]]\n";
    write_program(&sandbox.home.join("bin/antumbra"), check);
    let deploy = "ANTUMBRA=antumbra scripts/deploy --yes --no-smoke";
    let run = sandbox.run(deploy);
    let kinds = "--stream-kinds shadows,states,messages";
    assert!(run.calls_of("antumbra registrations check")[0].ends_with(kinds));
    run.refused("the registrations do not fit the parameter StreamKinds");
    let more = format!("{deploy} StreamKinds=shadows,states,readings");
    sandbox.run(&more).succeeded();
}

#[test]
fn the_layer_holds_the_shipped_registrations_and_nothing_else() {
    let make = Command::new("make").arg("--version").output();
    if make.is_err() {
        return;
    }
    let sandbox = Sandbox::new();
    let make = "mkdir layer && make --silent --directory registrations build-Registrations ARTIFACTS_DIR=../layer";
    sandbox.run(make).succeeded();
    let names = |directory: &str| {
        let entries = std::fs::read_dir(sandbox.home.join(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
        names.sort();
        names
    };
    let mut shipped = names("registrations");
    shipped.retain(|name| name != "registration.schema.json");
    assert_eq!(names("layer"), shipped);
    assert!(shipped.len() > 3);
}

/// SAM publishes new versions of functions for another hash.
#[test]
fn a_changed_parameter_or_registration_or_function_changes_the_hash_and_nothing_else_does() {
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
fn a_package_deploys_without_rust() {
    if Command::new("python3").arg("--version").output().is_err() {
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
    assert!(sums("one").matches(".zip").count() == 13);
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
