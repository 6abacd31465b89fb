//! Bodies of notifications, and their attributes and options.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_service::notifications::{ChannelLimits, Message};
use antumbra_testkit::SQS_LIMITS;
use serde_json::{Value, json};

use crate::channels::{Bench, Fakes, body};
use crate::stream::Record;

/// A rule that sends everything to a queue.
fn whole(parts: &[&str]) -> Value {
    json!({ "name": "whole", "send": parts, "to": { "sqs": { "queue": "a" } } })
}

async fn sent(rule: Value, records: &[Record]) -> Vec<Value> {
    let bench = Bench::new(&[rule]);
    let summary = bench.handle_records(records).await;
    assert_eq!((summary.undeliverable, summary.resume_at), (0, None));
    bench.at("sqs a").json()
}

/// A change of one small field of a large document.
fn large() -> Record {
    let document = |n: u32| json!({ "n": n, "text": "x".repeat(3000) });
    Record::reported("lamp", 4, document(1), document(2))
}

async fn within(message_bytes: usize, parts: &[&str]) -> Message {
    let fakes = Fakes::default();
    fakes.at("sqs a").set_limits(ChannelLimits {
        message_bytes,
        ..SQS_LIMITS
    });
    let bench = Bench::on(fakes, &[whole(parts)]);
    bench.handle_records(&[large()]).await;
    bench.at("sqs a").accepted().pop().unwrap()
}

#[tokio::test]
async fn old_then_new_then_diff_are_left_out_where_they_do_not_fit() {
    let diff = json!({ "added": {}, "removed": {},
                       "updated": { "/n": { "old": 1, "new": 2 } } });
    let all = &["old", "new", "diff"][..];
    for (limit, parts, kept, truncated) in [
        (10_000, all, all, None),
        (5_000, all, &["new", "diff"], Some(json!(["old"]))),
        (2_000, all, &["diff"], Some(json!(["old", "new"]))),
        (5_000, &["new", "diff"], &["new", "diff"], None),
        (2_000, &["new", "diff"], &["diff"], Some(json!(["new"]))),
        (2_000, &["old"], &[], Some(json!(["old"]))),
        (5_000, &["old", "new"], &["new"], Some(json!(["old"]))),
    ] {
        let message = within(limit, parts).await;
        let body = body(&message);
        let has = all.iter().filter(|part| body.get(part).is_some());
        assert!(has.eq(kept), "{limit} {parts:?}");
        let left_out = body.get("truncated");
        assert_eq!(left_out, truncated.as_ref(), "{limit} {parts:?}");
        assert_eq!(
            (&body["version"], &body["previousVersion"]),
            (&json!(5), &json!(4))
        );
        if kept.contains(&"diff") {
            assert_eq!(body["diff"], diff);
        }
    }
}

/// The limit holds for the body with its attributes, and is used to its last byte.
#[tokio::test]
async fn the_limit_is_exact() {
    let all = ["old", "new", "diff"];
    let whole = within(10_000, &all).await;
    let bytes = whole.bytes();
    assert_eq!(within(bytes, &all).await, whole);
    let shorter = within(bytes - 1, &all).await;
    assert_eq!(body(&shorter)["truncated"], json!(["old"]));
    assert!(shorter.bytes() < bytes);
    let short = within(shorter.bytes() - 1, &all).await;
    assert_eq!(body(&short)["truncated"], json!(["old", "new"]));
    let shortest = within(short.bytes() - 1, &all).await;
    assert_eq!(body(&shortest)["truncated"], json!(["old", "new", "diff"]));
    assert_eq!(body(&shortest).get("diff"), None);
    assert!(shortest.bytes() < short.bytes());
}

#[tokio::test]
async fn a_body_has_every_field() {
    let (old, new) = (
        json!({ "n": 1, "gone": true }),
        json!({ "n": 2, "come": true }),
    );
    let record = Record::reported("My House#Basement#lamp", 4, old.clone(), new.clone());
    let bodies = sent(whole(&["old", "new", "diff"]), &[record]).await;
    let id = bodies[0]["id"].clone();
    assert_eq!(id.as_str().map(str::len), Some(32));
    assert_eq!(
        bodies,
        [json!({
            "id": id,
            "registration": "whole",
            "key": "DS#My House#Basement#lamp#DSR#main",
            "shadow": { "id": "My House#Basement#lamp", "name": "main", "state": "reported" },
            "operation": "modify",
            "version": 5, "previousVersion": 4,
            "timestamp": 1_731_700_000_000_000_005_u64, "clientToken": "token-5",
            "old": old, "new": new,
            "diff": {
                "added": { "/come": true },
                "updated": { "/n": { "old": 1, "new": 2 } },
                "removed": { "/gone": true },
            },
        })]
    );
}

#[tokio::test]
async fn inserts_and_removals_have_one_document() {
    let mut insert = Record::small("lamp", 0);
    insert.old = None;
    let mut remove = Record::small("lamp", 1);
    remove.new = None;
    let mut expire = Record::small("lamp", 2);
    (expire.new, expire.expired) = (None, true);
    let bodies = sent(whole(&["old", "new"]), &[insert, remove, expire]).await;
    let names = [
        "operation",
        "old",
        "new",
        "version",
        "previousVersion",
        "expired",
    ];
    let seen = bodies
        .iter()
        .map(|body| json!(names.map(|name| body.get(name))));
    let expected = [
        json!(["insert", null, { "n": 1 }, 1, null, null]),
        json!(["remove", { "n": 1 }, null, 1, 1, null]),
        json!(["remove", { "n": 2 }, null, 2, 2, true]),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

/// Only the DynamoDB service itself expires items; its name alone in the identity is not enough.
#[tokio::test]
async fn a_removal_by_another_principal_is_not_an_expiry() {
    let bench = Bench::new(&[whole(&["old"])]);
    for identity in [
        json!(null),
        json!({ "type": "Root", "principalId": "dynamodb.amazonaws.com" }),
        json!({ "type": "Service", "principalId": "replication.dynamodb.amazonaws.com" }),
        json!("dynamodb.amazonaws.com"),
    ] {
        let mut record = Record::small("lamp", 1);
        record.new = None;
        let mut record = record.json();
        record["userIdentity"] = identity;
        bench.handle(&crate::stream::event([record])).await;
    }
    let expired = bench.at("sqs a").json_at("/expired");
    assert_eq!(expired, vec![Value::Null; 4]);
}

#[tokio::test]
async fn a_combined_item_is_notified_by_changed_document() {
    // Documents of the item before and after; `-` stands for no document.
    let item = |version: u64, documents: &str| {
        let mut item = json!({ "version": version, "timestamp": 1 });
        for (name, n) in ["reported", "desired"]
            .into_iter()
            .zip(documents.split(' '))
        {
            if n != "-" {
                item[name] = json!({ "n": n });
            }
        }
        (documents != "none").then_some(item)
    };
    for (old, new, expected) in [
        ("a a", "b a", &["reported"][..]),
        ("a a", "a b", &["desired"]),
        ("a a", "b b", &["reported", "desired"]),
        ("a a", "a a", &[]),
        ("a -", "a b", &["desired"]),
        ("a b", "- b", &["reported"]),
        ("none", "a -", &["reported"]),
        ("none", "a b", &["reported", "desired"]),
        ("- b", "none", &["desired"]),
    ] {
        let (old, new) = (item(1, old), item(2, new));
        let record = Record {
            old: old.clone(),
            new: new.clone(),
            ..Record::new("DS#lamp", "DSC#main", 7)
        };
        let bodies = sent(whole(&["old", "new"]), &[record]).await;
        let states = bodies
            .iter()
            .map(|body| body["shadow"]["state"].as_str().unwrap());
        let states: Vec<_> = states.collect();
        assert_eq!(states, expected, "{old:?} {new:?}");
        for (body, state) in bodies.iter().zip(states) {
            let of = |item: &Option<Value>| item.as_ref().and_then(|item| item.get(state)).cloned();
            assert_eq!(body.get("old").cloned(), of(&old));
            assert_eq!(body.get("new").cloned(), of(&new));
        }
        let ids: BTreeSet<_> = bodies.iter().map(|body| body["id"].to_string()).collect();
        assert_eq!(ids.len(), expected.len(), "an id each");
    }
}

#[tokio::test]
async fn items_other_than_shadows_are_sent_unchanged() {
    let mut record = Record::new("SENSOR#cellar", "STATE", 3);
    record.old = Some(json!({ "state": "OK" }));
    record.new = Some(json!({ "state": "LOST", "version": 9 }));
    let rule = json!({ "name": "whole", "on": { "key": "^SENSOR#" }, "send": ["old", "new", "diff"],
                       "to": { "sqs": { "queue": "a" } } });
    let bodies = sent(rule, &[record]).await;
    let (keys, id) = (("SENSOR#cellar", "STATE"), bodies[0]["id"].clone());
    assert_eq!(
        bodies,
        [json!({
            "id": id, "registration": "whole", "key": "SENSOR#cellar#STATE", "operation": "modify",
            "old": { "PK": keys.0, "SK": keys.1, "state": "OK" },
            "new": { "PK": keys.0, "SK": keys.1, "state": "LOST", "version": 9 },
            "diff": { "added": { "/version": 9 }, "removed": {},
                      "updated": { "/state": { "old": "OK", "new": "LOST" } } },
        })]
    );
}

#[tokio::test]
async fn numbers_keep_every_digit() {
    let mut record = Record::small("lamp", 1).json();
    let digits = "-12345678901234567890.123456789012345678";
    record["dynamodb"]["NewImage"]["reported"] = json!({ "M": { "n": { "N": digits } } });
    let bench = Bench::new(&[whole(&["new", "diff"])]);
    bench.handle(&crate::stream::event([record])).await;
    let text = &bench.at("sqs a").accepted()[0].body;
    assert_eq!(text.matches(digits).count(), 2, "{text}");
}

#[tokio::test]
async fn each_target_gets_its_attributes_and_options() {
    let topic = "arn:aws:sns:eu-west-1:123456789012:alarms.fifo";
    let bench = Bench::new(&[
        json!({ "name": "q", "to": { "sqs": { "queue": "a", "delaySeconds": 5, "attributes": { "severity": "high" } } } }),
        json!({ "name": "t", "to": { "sns": { "topic": topic, "subject": "Alarm", "attributes": { "a": "b" } } } }),
        json!({ "name": "m", "to": { "mqtt": { "topic": "x/${state}/${operation}/${id}/${name}", "qos": 0 } } }),
        json!({ "name": "e", "to": { "eventbridge": { "bus": "audit", "detailType": "Lamp Changed" } } }),
        json!({ "name": "s", "on": { "key": "^SENSOR#" }, "to": { "sqs": { "queue": "a" } } }),
    ]);
    let mut sensor = Record::new("SENSOR#1", "STATE", 2);
    sensor.new = Some(json!({ "n": 1 }));
    bench
        .handle_records(&[Record::small("house/1", 1), sensor])
        .await;
    let only = |address: &str| bench.at(address).accepted().swap_remove(0);
    let assert_attributes = |message: &Message, expected: &[(&str, &str)]| {
        let attributes = message.attributes.iter();
        let attributes = attributes.map(|(name, value)| (&**name, &**value));
        let expected: BTreeMap<_, _> = expected.iter().copied().collect();
        assert_eq!(attributes.collect::<BTreeMap<_, _>>(), expected);
    };
    let common = [
        ("state", "reported"),
        ("operation", "modify"),
        ("shadow", "house/1"),
    ];
    let queue = only("sqs a");
    assert_eq!(queue.delay_seconds, Some(5));
    let own = [("registration", "q"), ("severity", "high")];
    assert_attributes(&queue, &[&own[..], &common[..]].concat());
    let alarms = only("sns alarms.fifo");
    assert_eq!(alarms.subject.as_deref(), Some("Alarm"));
    let own = [("registration", "t"), ("a", "b")];
    assert_attributes(&alarms, &[&own[..], &common[..]].concat());
    let mqtt = only("mqtt");
    let topic = "x/reported/modify/house%2F1/main";
    assert_eq!((mqtt.topic.as_deref(), mqtt.qos), (Some(topic), 0));
    let audit = only("eventbridge audit");
    assert_eq!(audit.detail_type.as_deref(), Some("Lamp Changed"));
    let sensor = bench.at("sqs a").accepted().swap_remove(1);
    assert_attributes(&sensor, &[("registration", "s"), ("operation", "insert")]);
    // Group and deduplication id of FIFO queues and topics are made of these two.
    for message in [queue, alarms, mqtt] {
        assert_eq!(message.key, "DS#house/1#DSR#main");
        assert_eq!(body(&message)["id"], message.id.as_str());
    }
}

#[tokio::test]
async fn ids_are_stable_and_unique_per_registration_and_change() {
    let rule = |name: &str| json!({ "name": name, "to": { "sqs": { "queue": "a" } } });
    let ids = async |names: [&str; 2], records: &[Record]| {
        let bench = Bench::new(&names.map(rule));
        bench.handle_records(records).await;
        BTreeSet::from_iter(bench.at("sqs a").ids())
    };
    let records = [("a", 1), ("a", 2), ("b", 3)].map(|(id, sequence)| Record::small(id, sequence));
    let first = ids(["x", "y"], &records).await;
    assert_eq!(first.len(), 6);
    // In another order, after a restart; and in another batch.
    assert_eq!(ids(["y", "x"], &records).await, first);
    assert!(ids(["x", "y"], &records[1..]).await.is_subset(&first));
    assert!(ids(["z", "w"], &records).await.is_disjoint(&first));
}

#[tokio::test]
async fn disabled_registrations_and_changes_of_timestamps_only_send_nothing() {
    let mut off = whole(&["diff"]);
    off["enabled"] = json!(false);
    let value =
        json!({ "name": "value", "on": { "changes": "value" }, "to": { "sqs": { "queue": "a" } } });
    let bench = Bench::new(&[off, value]);
    let document =
        |n: u32, timestamp: u64| json!({ "temp": { "value": n, "timestamp": timestamp } });
    let summary = bench
        .handle_records(&[
            Record::reported("lamp", 1, document(1, 1), document(1, 2)),
            Record::reported("lamp", 2, document(1, 2), document(2, 3)),
        ])
        .await;
    assert_eq!((summary.records, summary.matched, summary.sent), (2, 1, 1));
    assert_eq!(bench.at("sqs a").json_at("/version"), [3]);
}

#[tokio::test]
async fn a_first_report_that_is_too_large_for_its_target_arrives_without_its_content() {
    let fakes = Fakes::default();
    fakes.at("sqs a").set_limits(ChannelLimits {
        message_bytes: 256 * 1024,
        ..SQS_LIMITS
    });
    let bench = Bench::on(fakes, &[whole(&["new", "diff"])]);
    let mut record = large();
    record.old = None;
    record.new = Some(json!({ "version": 1, "reported": { "text": "x".repeat(300_000) } }));
    let summary = bench.handle_records(&[record]).await;
    assert_eq!((summary.sent, summary.undeliverable), (1, 0));
    let body = &bench.at("sqs a").json()[0];
    assert_eq!(body["truncated"], json!(["new", "diff"]));
    assert_eq!(body["version"], 1);
}
