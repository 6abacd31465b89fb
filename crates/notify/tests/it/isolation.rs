//! Undeliverable notifications go to their queue with a reason and do not delay others.

use antumbra_service::notifications::ChannelLimits;
use antumbra_testkit::{SQS_LIMITS, SendReply};
use serde_json::{Value, json};

use crate::channels::{Bench, Fakes, assert_done};
use crate::stream::{ARN, Record, event, event_id, sequence_number, without};

fn to_queue(name: &str) -> Value {
    json!({ "name": name, "to": { "sqs": { "queue": name } } })
}

fn limits(message_bytes: usize) -> ChannelLimits {
    ChannelLimits {
        message_bytes,
        ..SQS_LIMITS
    }
}

/// Four changes each of five devices.
fn changes() -> Vec<Record> {
    let change = |n: u64| Record::small(&format!("device-{}", n % 5), n);
    (0..20).map(change).collect()
}

#[tokio::test]
async fn a_missing_queue_and_a_forbidden_topic_delay_no_other_target() {
    let topic = "arn:aws:sns:eu-west-1:123456789012:forbidden";
    let bench = Bench::new(&[
        to_queue("missing"),
        json!({ "name": "forbidden", "to": { "sns": { "topic": topic } } }),
        to_queue("fine"),
    ]);
    bench.at("sqs missing").deny("QueueDoesNotExist");
    bench.at("sns forbidden").deny("AccessDenied");

    let summary = bench.handle_records(&changes()).await;
    assert_eq!(
        (summary.sent, summary.undeliverable, summary.retried),
        (20, 40, 0)
    );
    assert_eq!(summary.resume_at, None, "the shard goes on");
    let in_order = (0..5).flat_map(|device| (0..4).map(move |n| device + 5 * n + 1));
    let mut by_device = bench.at("sqs fine").json();
    by_device.sort_by_key(|body| body["key"].to_string());
    let versions = by_device
        .iter()
        .map(|body| body["version"].as_u64().unwrap());
    assert!(versions.eq(in_order));

    let undeliverable = bench.undeliverable();
    let reasons = [
        ("missing", "QueueDoesNotExist"),
        ("forbidden", "AccessDenied"),
    ];
    for (registration, reason) in reasons {
        let mut its = undeliverable.clone();
        its.retain(|body| body["registration"] == registration);
        assert_eq!(its.len(), 20, "{registration}");
        for body in its {
            assert_eq!(body["reason"], reason);
            assert_eq!(body["notification"]["registration"], registration);
            assert_eq!(body["notification"]["key"], body["key"]);
            let sequence = body["notification"]["version"].as_u64().unwrap() - 1;
            let at = &body["record"]["sequenceNumber"];
            assert_eq!(*at, sequence_number(sequence));
        }
    }
}

#[tokio::test]
async fn one_rejected_message_does_not_affect_its_batch() {
    let bench = Bench::new(&[to_queue("a")]);
    bench
        .at("sqs a")
        .reply_to_key("device-3", SendReply::deny("InvalidMessageContents"));
    let summary = bench.handle_records(&changes()).await;
    assert_done(&summary, 16, 4);
    let keys = bench.fakes.undeliverable.json_at("/key");
    assert_eq!(keys, ["DS#device-3#DSR#main"; 4]);
}

#[tokio::test]
async fn a_record_that_does_not_decode_is_undeliverable_by_its_position() {
    let bench = Bench::new(&[to_queue("a")]);
    let mut records: Vec<Value> = changes().iter().map(Record::json).collect();
    records[7]["dynamodb"]["NewImage"]["reported"] = json!({ "M": { "n": { "N": "seven" } } });
    let summary = bench.handle(&event(records)).await;
    assert_eq!((summary.records, summary.matched), (20, 19));
    assert_done(&summary, 19, 1);
    let undeliverable = bench.undeliverable();
    let reason = undeliverable[0]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the record cannot be decoded: "),
        "{reason}"
    );
    assert_eq!(undeliverable[0]["record"]["eventId"], event_id(7));
    assert_eq!(
        undeliverable[0]["record"]["sequenceNumber"],
        sequence_number(7)
    );
}

#[tokio::test]
async fn malformed_records_without_a_matching_registration_are_ignored() {
    let bench = Bench::new(&[
        json!({ "name": "a", "on": { "key": "^DS#other" }, "to": { "sqs": { "queue": "a" } } }),
    ]);
    let mut record = Record::small("lamp", 1).json();
    record["dynamodb"]["NewImage"]["reported"] = json!({ "N": "seven" });
    let summary = bench.handle(&event([record])).await;
    assert_eq!(
        (summary.records, summary.undeliverable, summary.resume_at),
        (1, 0, None)
    );
}

#[tokio::test]
async fn a_notification_too_large_even_without_its_parts_is_undeliverable() {
    let fakes = Fakes::default();
    fakes.at("sqs small").set_limits(limits(1000));
    let bench = Bench::on(fakes, &[to_queue("small"), to_queue("large")]);
    let mut records = changes();
    let long = "long ".repeat(200);
    records[4].new.as_mut().unwrap()["clientToken"] = json!(long);
    let summary = bench.handle_records(&records).await;
    assert_done(&summary, 39, 1);
    assert_eq!(bench.at("sqs large").accepted().len(), 20);
    // Those after it arrive.
    let mut of_device = bench.at("sqs small").json();
    of_device.retain(|body| body["shadow"]["id"] == "device-4");
    let versions: Vec<_> = of_device.iter().map(|body| &body["version"]).collect();
    assert_eq!(versions, [10, 15, 20]);

    let undeliverable = &bench.undeliverable()[0];
    assert_eq!(undeliverable["registration"], "small");
    assert_eq!(undeliverable["key"], "DS#device-4#DSR#main");
    let reason = undeliverable["reason"].as_str().unwrap();
    assert!(reason.contains("the limit is "), "{reason}");
    assert_eq!(
        undeliverable["record"],
        json!({ "stream": ARN, "eventId": event_id(4), "sequenceNumber": sequence_number(4) })
    );
}

#[tokio::test]
async fn a_topic_that_cannot_be_made_is_undeliverable_with_the_notification() {
    let bench = Bench::new(&[
        json!({ "name": "all", "on": { "key": "." }, "to": { "mqtt": { "topic": "changes/${id}" } } }),
    ]);
    let mut sensor = Record::new("SENSOR#1", "STATE", 1);
    sensor.new = Some(json!({ "n": 1 }));
    let long = "long ".repeat(60);
    let records = [
        Record::small("lamp", 0),
        sensor,
        Record::small(&long, 2),
        Record::small("fan", 3),
    ];
    let summary = bench.handle_records(&records).await;
    assert_done(&summary, 2, 2);
    let sent = bench.at("mqtt").accepted();
    let topics = sent.iter().map(|message| message.topic.as_deref());
    assert!(topics.eq([Some("changes/lamp"), Some("changes/fan")]));
    let long_key = format!("DS#{long}#DSR#main");
    let undeliverable = bench.undeliverable();
    for (body, (key, reason)) in undeliverable.iter().zip([
        ("SENSOR#1#STATE", "the topic needs the id of a shadow"),
        (&long_key, "the topic has 308 bytes, the limit is 256"),
    ]) {
        assert_eq!(
            (&body["notification"]["key"], &body["key"]),
            (&json!(key), &json!(key))
        );
        let actual = body["reason"].as_str().unwrap();
        assert!(actual.starts_with(reason), "{body}");
    }
}

#[tokio::test]
async fn a_record_without_the_image_it_needs_is_undeliverable() {
    let bench = Bench::new(&[to_queue("a")]);
    let lamp = |sequence| Record::small("lamp", sequence);
    let keys_only = without(&lamp(0), &["OldImage", "NewImage"]);
    let new_only = without(&lamp(1), &["OldImage"]);
    let summary = bench
        .handle(&event([keys_only, new_only, lamp(2).json()]))
        .await;
    assert_done(&summary, 1, 2);
    for body in bench.undeliverable() {
        assert_eq!(body["reason"], "the record has no old image");
        assert_eq!(body["key"], "DS#lamp#DSR#main");
    }
}

#[tokio::test]
async fn failures_of_the_undeliverable_queue_are_reported_and_sent_the_next_time() {
    let bench = Bench::new(&[to_queue("missing"), to_queue("fine")]);
    bench
        .at("sqs missing")
        .reply_to_key("device-2", SendReply::deny("QueueDoesNotExist"));
    bench.fakes.undeliverable.reply(|_| SendReply::Throttle);
    let records = changes();
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.sent, summary.undeliverable), (36, 0));
    assert_eq!(summary.resume_at, Some(sequence_number(2)));
    let tried = bench.fakes.undeliverable.calls().remove(0).into_iter();
    let tried: Vec<String> = tried.map(|message| message.id).collect();

    bench.fakes.undeliverable.reply(|_| SendReply::Accept);
    let summary = bench.handle_records(&records[2..]).await;
    assert_eq!((summary.undeliverable, summary.resume_at), (4, None));
    // The same ids, however often.
    assert_eq!(bench.fakes.undeliverable.ids(), tried);
}

#[tokio::test]
async fn no_record_is_lost_if_the_undeliverable_queue_rejects_messages() {
    let bench = Bench::new(&[to_queue("missing"), to_queue("fine")]);
    bench.at("sqs missing").deny("QueueDoesNotExist");
    bench.fakes.undeliverable.deny("QueueDoesNotExist");
    let summary = bench.handle_records(&changes()).await;
    assert_eq!((summary.sent, summary.undeliverable), (20, 0));
    assert_eq!(summary.resume_at, Some(sequence_number(0)));
}

/// Lambda reads an empty identifier as a failure of the whole batch, as intended.
#[tokio::test]
async fn an_undeliverable_record_without_a_position_fails_the_batch_if_its_queue_fails() {
    let bench = Bench::new(&[to_queue("a")]);
    bench.fakes.undeliverable.reply(|_| SendReply::Throttle);
    let summary = bench
        .handle(&event([json!({}), Record::small("lamp", 1).json()]))
        .await;
    assert_eq!((summary.records, summary.sent), (2, 1));
    assert_eq!(summary.resume_at.as_deref(), Some(""));
}

#[tokio::test]
async fn the_lowest_of_all_failures_is_reported() {
    for (not_stored, unsent) in [("device-1", "device-3"), ("device-3", "device-1")] {
        let bench = Bench::new(&[to_queue("missing"), to_queue("slow")]);
        bench
            .at("sqs missing")
            .reply_to_key(not_stored, SendReply::deny("QueueDoesNotExist"));
        bench
            .at("sqs slow")
            .reply_to_key(unsent, SendReply::Throttle);
        bench.fakes.undeliverable.reply(|_| SendReply::Throttle);
        let summary = bench.handle_records(&changes()).await;
        assert_eq!(
            summary.resume_at,
            Some(sequence_number(1)),
            "{not_stored} {unsent}"
        );
        assert_eq!(summary.sent, 32);
    }
}

#[tokio::test]
async fn an_undeliverable_notification_that_is_too_large_keeps_its_position() {
    let fakes = Fakes::default();
    fakes.undeliverable.set_limits(limits(1000));
    let bench = Bench::on(fakes, &[to_queue("missing")]);
    bench.at("sqs missing").deny("QueueDoesNotExist");
    let large = json!({ "text": "x".repeat(5000) });
    let summary = bench
        .handle_records(&[Record::reported("lamp", 9, json!({}), large)])
        .await;
    assert_eq!((summary.undeliverable, summary.resume_at), (1, None));
    let undeliverable = &bench.undeliverable()[0];
    assert_eq!(undeliverable.get("notification"), None);
    assert_eq!(undeliverable["reason"], "QueueDoesNotExist");
    assert_eq!(
        undeliverable["record"]["sequenceNumber"],
        sequence_number(9)
    );
}

/// A queue can be configured with a lower size limit than that of SQS, unknown to its channel.
#[tokio::test]
async fn an_undeliverable_notification_that_its_queue_rejects_keeps_its_position() {
    let bench = Bench::new(&[to_queue("missing")]);
    bench.at("sqs missing").deny("QueueDoesNotExist");
    bench
        .fakes
        .undeliverable
        .reply(|message| match message.body.len() {
            0..2000 => SendReply::Accept,
            _ => SendReply::deny("InvalidParameterValue"),
        });
    let mut records = changes();
    let large = json!({ "text": "x".repeat(5000) });
    records[3] = Record::reported("device-3", 3, json!({}), large);
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.undeliverable, summary.resume_at), (20, None));
    let undeliverable = bench.undeliverable();
    let short = undeliverable
        .iter()
        .find(|body| body.get("notification").is_none());
    let short = short.unwrap();
    assert_eq!(short["reason"], "QueueDoesNotExist");
    assert_eq!(short["record"]["sequenceNumber"], sequence_number(3));
}

/// A FIFO queue would drop the second of two messages with the same id.
#[tokio::test]
async fn ids_of_undeliverable_messages_are_unique() {
    let undeliverable_ids = async |records: Vec<Value>| {
        let bench = Bench::new(&[to_queue("missing"), to_queue("gone")]);
        bench.at("sqs missing").deny("QueueDoesNotExist");
        bench.at("sqs gone").deny("QueueDoesNotExist");
        bench.handle(&event(records)).await;
        let mut ids = bench.fakes.undeliverable.ids();
        ids.sort();
        ids
    };
    let broken = |sequence: u64| {
        let mut record = Record::small("lamp", sequence).json();
        record["dynamodb"]["NewImage"]["reported"] = json!({ "N": "seven" });
        record
    };
    let incomplete = |sequence| without(&Record::small("lamp", sequence), &["OldImage"]);
    let refused = |sequence: u64| Record::small("lamp", sequence).json();
    let first = undeliverable_ids(vec![broken(1), incomplete(2), refused(3)]).await;
    let again = undeliverable_ids(vec![refused(0), broken(1), incomplete(2), refused(3)]).await;
    let second = undeliverable_ids(vec![broken(4), incomplete(5), refused(6)]).await;
    assert_eq!((first.len(), again.len(), second.len()), (4, 6, 4));
    assert!(first.iter().all(|id| again.contains(id)), "stable");
    assert!(second.iter().all(|id| !again.contains(id)), "no other's");
    let distinct: std::collections::BTreeSet<_> = again.iter().chain(&second).collect();
    assert_eq!(distinct.len(), 10);
}
