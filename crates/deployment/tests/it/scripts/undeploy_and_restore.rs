//! Removal of a deployment, restore of its tables, and take-over of what a deleted stack left.

use super::sandbox::Sandbox;

#[test]
fn undeploying_detaches_device_policies_and_shows_what_stays() {
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox.state("attached", "").tables();
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
    run.says(stays);
    run.says("queue antumbra-inbound: 3 messages");
    assert!(sandbox.has("stack-antumbra-data") && sandbox.has("table-antumbra"));
    let wrong = sandbox.run("echo prod | scripts/undeploy antumbra --delete-data");
    assert!(
        !wrong.succeeded && sandbox.has("table-antumbra"),
        "{}",
        wrong.output
    );
    let deleted = sandbox
        .run("echo antumbra | scripts/undeploy antumbra --delete-data")
        .succeeded();
    assert_eq!(
        deleted.calls_of("aws s3 rb"),
        ["aws s3 rb s3://failed-history --force"]
    );
    for gone in [
        "stack-antumbra-data",
        "table-antumbra",
        "table-antumbra-messages",
        "table-antumbra-secrets",
        "table-antumbra-history",
        "queue-antumbra-inbound",
    ] {
        assert!(!sandbox.has(gone), "{gone}");
    }
}

#[test]
fn a_restore_uses_the_new_tables_first_and_then_imports_them() {
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox.tables();
    let time = "2026-11-17T08:00:00Z";
    let run = sandbox
        .run(&format!("scripts/restore antumbra --to {time} --yes"))
        .succeeded();
    let restored = run.calls_of("aws dynamodb restore-table-to-point-in-time");
    // The history stays as it is.
    assert_eq!(restored.len(), 3);
    assert!(
        restored[0].contains("--source-table-name antumbra --target-table-name antumbra-r20"),
        "{restored:?}"
    );
    assert!(
        restored
            .iter()
            .all(|call| call.ends_with(&format!("--restore-date-time {time}")))
    );
    // Secrets have no stream and do not expire.
    for (setting, tables) in [
        ("update-table", 2),
        ("update-time-to-live", 2),
        ("update-continuous-backups", 3),
    ] {
        assert_eq!(
            run.calls_of(&format!("aws dynamodb {setting} ")).len(),
            tables,
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
fn a_restore_that_stopped_continues_where_it_was() {
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox
        .state("table-antumbra", "")
        .state("table-antumbra-messages", "")
        .state("table-antumbra-secrets", "");
    // The import is refused when the tables have left the data stack.
    sandbox.state("refuse-imports", "");
    let stopped = sandbox.run("scripts/restore antumbra --to latest --yes");
    assert!(!stopped.succeeded, "{}", stopped.output);
    stopped.says("was refused");
    let (_, rest) = stopped.output.split_once("with the suffix ").unwrap();
    let suffix = rest.split_whitespace().next().unwrap().to_owned();
    sandbox.forget("refuse-imports");
    let resume = format!("scripts/restore antumbra --resume {suffix} --yes");
    let resumed = sandbox.run(&resume).succeeded();
    for repeated in [
        "restore-table-to-point-in-time",
        "update-table ",
        "update-time-to-live",
    ] {
        let calls = resumed.calls_of(&format!("aws dynamodb {repeated}"));
        assert_eq!(calls, [""; 0], "{repeated}");
    }
    let imports = resumed.calls_of("aws cloudformation execute-change-set");
    assert_eq!(imports.len(), 1, "{:?}", resumed.calls);
    resumed.says("delete-table --table-name antumbra\n");
    // Repeated once more, it changes nothing, and names no table to delete: those in use are the only ones it knows.
    let repeated = sandbox.run(&resume).succeeded();
    assert!(
        !repeated.output.contains("delete-table"),
        "{}",
        repeated.output
    );
    assert!(
        repeated
            .calls_of("aws cloudformation execute-change-set")
            .is_empty()
    );
}

#[test]
fn tables_that_were_not_restored_yet_are_restored_by_the_resumed_run() {
    let sandbox = Sandbox::new();
    sandbox.run("scripts/deploy --yes").succeeded();
    sandbox
        .state("table-antumbra", "")
        .state("table-antumbra-messages", "")
        .state("table-antumbra-secrets", "")
        .state("table-antumbra-r20261117080000", "stream\n");
    let resume = "scripts/restore antumbra --resume -r20261117080000 --yes";
    let missing = sandbox.run(resume);
    assert!(!missing.succeeded, "{}", missing.output);
    let text = "antumbra-r20261117080000-messages was not restored yet: add --to with the time";
    missing.says(text);
    let run = sandbox.run(&format!("{resume} --to latest")).succeeded();
    for (call, count) in [
        ("restore-table-to-point-in-time", 2),
        ("update-table ", 1),
        ("update-time-to-live", 2),
        ("update-continuous-backups", 3),
    ] {
        let calls = run.calls_of(&format!("aws dynamodb {call}"));
        assert_eq!(calls.len(), count, "{call}: {calls:?}");
    }
}

#[test]
fn what_a_deleted_data_stack_left_can_be_taken_over() {
    let sandbox = Sandbox::new();
    sandbox.tables();
    let queues = antumbra_local::queues::definitions::QUEUES;
    for queue in &queues[1..] {
        sandbox.state(&format!("queue-{}", queue.name), "");
    }
    let missing = sandbox.run("scripts/restore antumbra --adopt --yes");
    missing.refused(&format!("queue {}", queues[0].name));
    sandbox.state(&format!("queue-{}", queues[0].name), "");
    // A refused import leaves an empty stack.
    sandbox
        .state("stack-antumbra-data", "REVIEW_IN_PROGRESS")
        .state("parameters-antumbra-data", "");
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
        4
    );
    for queue in queues {
        assert!(import.contains(&format!("/{}\"", queue.name)), "{import}");
    }
    // An import cannot add outputs, so the update after it does.
    let [update] = &run.calls_of("aws cloudformation update-stack")[..] else {
        panic!("{:?}", run.calls);
    };
    assert!(
        update.contains("--template-body file://infra/data.yaml"),
        "{update}"
    );
    sandbox.run("scripts/deploy --yes").succeeded();
}
