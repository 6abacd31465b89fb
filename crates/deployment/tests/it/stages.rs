//! Several deployments share an account and a region, and a deployment cannot lose its tables by a change of its name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::template::{Resource, Stack, text};

/// Properties that are names in the account, by type of resource.
const NAMES: [(&str, &[&str]); 15] = [
    ("AWS::DynamoDB::Table", &["TableName"]),
    ("AWS::SQS::Queue", &["QueueName"]),
    ("AWS::Serverless::Function", &["FunctionName"]),
    ("AWS::Serverless::LayerVersion", &["LayerName"]),
    ("AWS::Logs::LogGroup", &["LogGroupName"]),
    ("AWS::IAM::Role", &["RoleName"]),
    ("AWS::IAM::RolePolicy", &[]),
    ("AWS::IoT::TopicRule", &["RuleName"]),
    ("AWS::IoT::Policy", &["PolicyName"]),
    ("AWS::Events::Rule", &["Name"]),
    ("AWS::SNS::Topic", &["TopicName"]),
    ("AWS::SNS::TopicPolicy", &[]),
    ("AWS::CloudWatch::Alarm", &["AlarmName"]),
    ("AWS::CloudWatch::Dashboard", &["DashboardName"]),
    ("AWS::ApiGatewayV2::Api", &["Name"]),
];

/// Types without names of their own: they belong to another resource. CloudFormation names the bucket.
const UNNAMED: [&str; 7] = [
    "AWS::S3::Bucket",
    "AWS::Lambda::Permission",
    "AWS::Lambda::EventSourceMapping",
    "AWS::ApiGatewayV2::Authorizer",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::ApiGatewayV2::Stage",
];

/// Deploys everything that can be deployed.
fn stage(name: &str, prefix: &str) -> Vec<Resource> {
    let given = [
        ("Name", name),
        ("TopicPrefix", prefix),
        ("Profile", "prod"),
        ("AlarmEmail", "ops@example.com"),
        ("Canary", "Canary10Percent5Minutes"),
        ("SweepGroups", "16"),
    ];
    Stack::deploy(&given).resources()
}

/// Names in the account, and topics to which something is subscribed or published, with the resource.
fn names(resources: &[Resource]) -> BTreeMap<(String, String), String> {
    let mut names = BTreeMap::new();
    for resource in resources {
        let kind = &resource.kind;
        if UNNAMED.contains(&&kind[..]) {
            continue;
        }
        let of_kind = NAMES.iter().find(|(of, _)| of == kind);
        let (_, properties) = of_kind.unwrap_or_else(|| panic!("{kind} may have a name"));
        for property in *properties {
            if let Some(name) = resource.properties.get(property) {
                let twice = names.insert((kind.clone(), text(name)), resource.id.clone());
                assert_eq!(twice, None, "{kind} {name}");
            }
        }
        if let Some(schedule) = resource.properties.pointer("/Events/Sweep/Properties/Name") {
            names.insert(("schedule".to_owned(), text(schedule)), resource.id.clone());
        }
        if let Some(sql) = resource.properties.pointer("/TopicRulePayload/Sql") {
            let (_, filter) = sql.as_str().unwrap().split_once(" FROM ").unwrap();
            names.insert(
                ("topic filter".to_owned(), filter.to_owned()),
                resource.id.clone(),
            );
        }
    }
    names
}

/// Texts anywhere in a value.
fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

#[test]
fn two_stages_in_one_account_and_region_share_no_name() {
    let (one, other) = (
        names(&stage("dev", "dev/")),
        names(&stage("dev-2", "dev-2/")),
    );
    assert!(one.len() > 100, "{}", one.len());
    assert_eq!(one.len(), other.len());
    for (name, id) in &one {
        assert!(!other.contains_key(name), "{id}: {name:?}");
    }
    // Rules have no dashes.
    assert!(other.contains_key(&("AWS::IoT::TopicRule".into(), "dev_2_message_get".into())));
}

/// A role, policy, rule, alarm or dashboard that names a resource or a topic of the other stage would reach it.
#[test]
fn a_stage_names_no_resource_and_no_topic_of_another() {
    let resources = stage("stage-one", "prefix-one/");
    let mut found = BTreeSet::new();
    for resource in &resources {
        texts(&resource.properties, &mut found);
    }
    for text in &found {
        assert!(
            !text.contains("antumbra-") && !text.contains("antumbra_"),
            "{text}"
        );
        for first in ["request/", "response/", "notification/", "shadow/"] {
            for (at, _) in text.match_indices(first) {
                assert!(text[..at].ends_with("prefix-one/"), "{text}");
            }
        }
    }
}

#[test]
fn topics_have_no_prefix_by_default() {
    let resources = Stack::deploy(&[]).resources();
    let names = names(&resources);
    assert!(names.contains_key(&("topic filter".into(), "'shadow/+/update'".into())));
    assert!(names.contains_key(&(
        "AWS::IoT::TopicRule".into(),
        "antumbra_shadow_update".into()
    )));
}

/// CloudFormation would replace every table by an empty one. DynamoDB accepts no spaces in a name, so the update fails.
#[test]
fn another_name_cannot_replace_the_tables_of_a_data_stack() {
    let tables = |stack: &Stack| {
        let resources = stack.resources().into_iter();
        let tables = resources.filter(|of| of.kind == "AWS::DynamoDB::Table");
        tables
            .map(|of| text(&of.properties["TableName"]))
            .collect::<BTreeSet<_>>()
    };
    let own = Stack::deploy(&[("Name", "dev")]);
    assert_eq!(
        tables(&own),
        ["dev", "dev-history", "dev-messages", "dev-secrets"]
            .map(str::to_owned)
            .into()
    );
    let renamed = Stack::deploy_data_as("dev-data", &[("Name", "prod")]);
    let names = tables(&renamed);
    assert_eq!(names.len(), 4);
    for name in names {
        assert_eq!(
            name.split(',').next(),
            Some("the stack must be named Name-data")
        );
    }
}

/// A table or queue whose creation failed is deleted, so that the deployment can be repeated; later nothing deletes it.
#[test]
fn data_is_kept_except_after_a_failed_creation() {
    let data = Stack::deploy_data_as("antumbra-data", &[]).resources();
    assert_eq!(data.len(), 15);
    for resource in data {
        let attributes = &resource.attributes;
        assert_eq!(
            attributes["DeletionPolicy"], "RetainExceptOnCreate",
            "{}",
            resource.id
        );
        assert_eq!(
            attributes["UpdateReplacePolicy"], "Retain",
            "{}",
            resource.id
        );
        if resource.kind == "AWS::DynamoDB::Table" {
            // A failed creation could not delete a protected table; scripts/deploy protects it afterwards.
            assert_eq!(resource.properties["DeletionProtectionEnabled"], "false");
            let recovery = &resource.properties["PointInTimeRecoverySpecification"];
            assert_eq!(*recovery, json!({"PointInTimeRecoveryEnabled": true}));
        }
    }
    let protected = Stack::deploy_data_as("antumbra-data", &[("DeletionProtection", "true")]);
    let tables = protected.resources().into_iter();
    let mut tables = tables.filter(|of| of.kind == "AWS::DynamoDB::Table");
    assert!(tables.all(|of| of.properties["DeletionProtectionEnabled"] == "true"));
    // Everything else can be created again.
    let kept = Stack::deploy(&[]).resources().into_iter();
    let kept = kept.filter(|of| of.attributes.get("DeletionPolicy").is_some());
    assert_eq!(kept.count(), 15);
}

/// The steps of scripts/restore: the tables leave the stack, return with another name, and are exported again.
#[test]
fn restored_tables_replace_the_old_ones_in_steps() {
    let suffix = ("TableSuffix", "-r1");
    let kinds = |given: &[(&str, &str)]| {
        let data = Stack::deploy_data_as("antumbra-data", given);
        let resources = data.resources().into_iter();
        let tables = resources.filter(|of| of.kind == "AWS::DynamoDB::Table");
        let tables = tables.map(|of| text(&of.properties["TableName"]));
        let (mut tables, mut exports) = (tables.collect::<BTreeSet<_>>(), data.exports());
        // The history stays as it is.
        assert!(tables.remove("antumbra-history") && exports.remove("antumbra-failed-history"));
        (tables, exports)
    };
    let old = ["antumbra-messages-stream", "antumbra-table-stream"];
    let new = ["antumbra-r1-messages-stream", "antumbra-r1-table-stream"];
    let none: [&str; 0] = [];
    let restored = ["antumbra-r1", "antumbra-r1-messages", "antumbra-r1-secrets"];
    let (tables, exports) = kinds(&[]);
    assert_eq!((tables.len(), exports), (3, old.map(str::to_owned).into()));
    let (tables, exports) = kinds(&[("Restore", "detach")]);
    assert_eq!((tables.len(), exports.len()), (0, none.len()));
    let (tables, exports) = kinds(&[("Restore", "import"), suffix]);
    assert_eq!(
        (tables, exports.len()),
        (restored.map(str::to_owned).into(), 0)
    );
    let (tables, exports) = kinds(&[suffix]);
    assert_eq!(tables, restored.map(str::to_owned).into());
    assert_eq!(exports, new.map(str::to_owned).into());

    // A stack of existing tables and queues creates its bucket later.
    let adopted = Stack::deploy_data_as("antumbra-data", &[("Restore", "adopt")]);
    assert!(adopted.exports().is_empty());
    let resources = adopted.resources();
    assert_eq!(resources.len(), 14);
    assert!(resources.iter().all(|of| of.kind != "AWS::S3::Bucket"));

    // Meanwhile the functions use the restored tables by the ARNs of their streams.
    let given = [
        suffix,
        ("Restore", "detach"),
        (
            "TableStreamArn",
            "arn:aws:dynamodb:us-east-1:000000000000:table/antumbra-r1/stream/1",
        ),
        (
            "MessagesTableStreamArn",
            "arn:aws:dynamodb:us-east-1:000000000000:table/antumbra-r1-messages/stream/1",
        ),
    ];
    let functions = super::functions::functions(&Stack::deploy(&given));
    for function in functions.values() {
        let inbox = function.name.starts_with("message-");
        let expected = if inbox { restored[1] } else { restored[0] };
        if let Some(table) = function.environment.get("TABLE") {
            assert_eq!(table, expected, "{}", function.name);
        }
    }
}
