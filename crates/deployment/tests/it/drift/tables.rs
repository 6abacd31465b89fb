//! Tables and queues are those of the code and the local stack.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_dynamodb::{HISTORY, Index, MAIN, MESSAGES, SECRETS, Scalar, TableDefinition};
use antumbra_local::queues::definitions::QUEUES;
use antumbra_local::queues::queue_arn;
use serde_json::{Value, json};

use crate::template::{Resource, Stack, text};

fn of_kind(kind: &str) -> Vec<Resource> {
    let resources = Stack::deploy(&[]).resources();
    resources.into_iter().filter(|of| of.kind == kind).collect()
}

fn keys(partition: &str, sort: &str) -> Value {
    json!([
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ])
}

fn index(index: &Index<'_>) -> Value {
    json!({
        "IndexName": index.name,
        "KeySchema": keys(index.partition_key, index.sort_key.0),
        "Projection": {"ProjectionType": if index.whole { "ALL" } else { "KEYS_ONLY" }},
    })
}

/// A table as a resource.
fn expected(table: &TableDefinition<'_>) -> Value {
    let letter = |scalar| match scalar {
        Scalar::Text => "S",
        Scalar::Number => "N",
    };
    let mut attributes: BTreeMap<&str, &str> = BTreeMap::new();
    attributes.extend([(table.partition_key, "S"), (table.sort_key, "S")]);
    for index in table.indexes {
        attributes.insert(index.partition_key, "S");
        attributes.insert(index.sort_key.0, letter(index.sort_key.1));
    }
    let attributes = attributes.into_iter();
    let attributes: Vec<Value> = attributes
        .map(|(name, letter)| json!({"AttributeName": name, "AttributeType": letter}))
        .collect();
    let local = |index: &&Index<'_>| index.partition_key == table.partition_key;
    let (local, global): (Vec<_>, Vec<_>) = table.indexes.iter().partition(local);
    let mut expected = json!({
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes,
        "KeySchema": keys(table.partition_key, table.sort_key),
        "DeletionProtectionEnabled": "false",
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true},
    });
    for (name, indexes) in [
        ("LocalSecondaryIndexes", local),
        ("GlobalSecondaryIndexes", global),
    ] {
        if !indexes.is_empty() {
            expected[name] = indexes.into_iter().map(index).collect();
        }
    }
    if table.streamed {
        expected["StreamSpecification"] = json!({"StreamViewType": "NEW_AND_OLD_IMAGES"});
    }
    if let Some(attribute) = table.expiry {
        let expiry = json!({"AttributeName": attribute, "Enabled": true});
        expected["TimeToLiveSpecification"] = expiry;
    }
    expected
}

#[test]
fn tables_are_those_of_the_code() {
    let mut deployed = BTreeSet::new();
    for mut table in of_kind("AWS::DynamoDB::Table") {
        let name = text(&table.properties["TableName"]);
        let of_code = [MAIN, MESSAGES, HISTORY, SECRETS]
            .into_iter()
            .find(|of| of.name == name);
        let of_code = of_code.unwrap_or_else(|| panic!("the code has no table {name}"));
        let attributes = table.properties["AttributeDefinitions"].as_array_mut();
        attributes
            .unwrap()
            .sort_by_key(|of| text(&of["AttributeName"]));
        assert_eq!(table.properties, expected(&of_code), "{name}");
        assert_eq!(
            table.attributes["DeletionPolicy"], "RetainExceptOnCreate",
            "{name}"
        );
        assert_eq!(table.attributes["UpdateReplacePolicy"], "Retain", "{name}");
        deployed.insert(name);
    }
    assert_eq!(deployed.len(), 4, "{deployed:?}");
}

#[test]
fn queues_are_those_of_the_local_stack() {
    let queues = of_kind("AWS::SQS::Queue");
    let names: BTreeSet<String> = queues
        .iter()
        .map(|queue| text(&queue.properties["QueueName"]))
        .collect();
    let of_code: BTreeSet<String> = QUEUES.iter().map(|queue| queue.name.to_owned()).collect();
    assert_eq!(names, of_code);
    for queue in queues {
        let properties = &queue.properties;
        let name = text(&properties["QueueName"]);
        let of_code = QUEUES.iter().find(|of| of.name == name).unwrap();
        assert_eq!(
            properties["VisibilityTimeout"], of_code.visibility_seconds,
            "{name}"
        );
        let dead_letters = of_code.dead_letters.map_or(Value::Null, |(target, attempts)| {
            json!({"deadLetterTargetArn": queue_arn(target), "maxReceiveCount": attempts})
        });
        assert_eq!(properties["RedrivePolicy"], dead_letters, "{name}");
        let fifo = name.ends_with(".fifo");
        assert_eq!(properties["FifoQueue"] == true, fifo, "{name}");
        assert_eq!(properties["SqsManagedSseEnabled"], true, "{name}");
        assert_eq!(
            queue.attributes["DeletionPolicy"], "RetainExceptOnCreate",
            "{name}"
        );

        // A dead-letter queue accepts messages only from its sources, and keeps them longer.
        let from = QUEUES.iter().filter(|from| {
            let target = from.dead_letters.map(|(target, _)| target);
            target == Some(of_code.name)
        });
        let from: Vec<Value> = from.map(|from| json!(queue_arn(from.name))).collect();
        match from.is_empty() {
            true => assert_eq!(properties["RedriveAllowPolicy"], Value::Null, "{name}"),
            false => {
                let allowed = &properties["RedriveAllowPolicy"]["sourceQueueArns"];
                assert_eq!(*allowed, Value::Array(from), "{name}");
                assert_eq!(properties["MessageRetentionPeriod"], 1_209_600, "{name}");
            }
        }
    }
}
