//! Batches with valid and invalid messages, of both kinds of queues.

use std::time::Duration;

use antumbra_testkit::dynamodb::{Call, Reply};
use antumbra_testkit::{SendReply, attribute};
use serde_json::json;

use crate::support::{Bench, counts, event, record, text, throttled};

/// The id that the message of this number gets.
fn stored_id(epoch: u32, queue_id: &str) -> String {
    format!("{epoch:010}-1564669332364-{queue_id}")
}

#[tokio::test]
async fn one_bad_message_in_ten_is_quarantined() {
    let bench = Bench::new().await;
    let bad = "{ not JSON";
    let records = (0..10).map(|number| {
        let text = match number {
            4 => bad.to_owned(),
            _ => text("lamp", number),
        };
        record(&format!("m-{number}"), &text, None)
    });
    let summary = bench.handle(&event(records)).await;
    assert_eq!(
        counts(&summary, ["messages", "stored", "quarantined"]),
        [10, 9, 1]
    );
    assert_eq!(summary.failed, [""; 0]);
    assert_eq!(bench.ids("lamp").await.len(), 9);
    assert_eq!(
        bench.quarantined(),
        [("NotJson".to_owned(), bad.to_owned())]
    );
    assert_eq!(bench.quarantine.accepted()[0].id, "m-4");
}

#[tokio::test]
async fn a_rejected_message_does_not_stop_its_fifo_group() {
    let bench = Bench::new().await;
    let texts = [text("lamp", 1), "[]".to_owned(), text("lamp", 3)];
    let records = (0..)
        .zip(&texts)
        .map(|(n, text)| record(&format!("m-{n}"), text, Some("g")));
    let summary = bench.handle(&event(records)).await;
    assert_eq!(counts(&summary, ["stored", "quarantined"]), [2, 1]);
    assert_eq!(summary.failed, [""; 0]);
    assert_eq!(
        bench.ids("lamp").await,
        [stored_id(1, "m-0"), stored_id(3, "m-2")]
    );
}

/// Returns whether a call writes the message with this id prefix.
fn writes(call: &Call, prefix: &str) -> bool {
    let id = call.body["Item"]["messageId"]["S"].as_str();
    call.operation == "PutItem" && id.is_some_and(|id| id.starts_with(prefix))
}

#[tokio::test]
async fn a_failure_stops_its_fifo_group_only() {
    let bench = Bench::new().await;
    bench.throttle(|call| writes(call, "0000000002-"));
    let records = [
        record("a-1", &text("lamp", 1), Some("a")),
        record("b-1", &text("door", 1), Some("b")),
        record("a-2", &text("lamp", 2), Some("a")),
        record("a-bad", "nonsense", Some("a")),
        record("a-3", &text("lamp", 3), Some("a")),
        record("b-3", &text("door", 3), Some("b")),
    ];
    let summary = bench
        .handle_within(&event(records.clone()), Duration::from_secs(2))
        .await;
    assert_eq!(summary.failed, ["a-2", "a-bad", "a-3"]);
    assert!(summary.count("retried") > 0);
    assert_eq!(bench.ids("lamp").await, [stored_id(1, "a-1")]);
    assert_eq!(bench.ids("door").await.len(), 2);
    assert_eq!(bench.quarantined(), []);

    // The queue delivers the failed messages again.
    bench.endpoint.script(|_| Reply::Pass);
    let summary = bench
        .handle(&event(records.into_iter().skip(2).take(3)))
        .await;
    assert_eq!(counts(&summary, ["stored", "quarantined"]), [2, 1]);
    assert_eq!(bench.ids("lamp").await.len(), 3);
}

#[tokio::test]
async fn only_failed_messages_of_a_standard_queue_are_reported() {
    let bench = Bench::new().await;
    bench.throttle(|call| writes(call, "0000000002-"));
    let records = (1..=3).map(|n| record(&format!("m-{n}"), &text(&format!("thing-{n}"), n), None));
    let summary = bench
        .handle_within(&event(records), Duration::from_secs(2))
        .await;
    assert_eq!(summary.failed, ["m-2"]);
    assert_eq!(summary.count("stored"), 2);
}

#[tokio::test]
async fn the_same_message_twice_is_stored_once() {
    let bench = Bench::new().await;
    let twice = event([
        record("m", &text("lamp", 1), None),
        record("m", &text("lamp", 1), None),
    ]);
    let summary = bench.handle(&twice).await;
    assert_eq!(counts(&summary, ["stored", "known"]), [1, 1]);
    let summary = bench.handle(&twice).await;
    assert_eq!(counts(&summary, ["stored", "known"]), [0, 2]);
    assert_eq!(bench.ids("lamp").await, [stored_id(1, "m")]);
}

#[tokio::test]
async fn a_redelivery_does_not_restore_a_deleted_message() {
    let bench = Bench::new().await;
    let event = event([record("m", &text("lamp", 1), None)]);
    bench.handle(&event).await;
    let id = stored_id(1, "m");
    bench.delete("lamp", &id).await;
    let summary = bench.handle(&event).await;
    assert_eq!((summary.count("known"), summary.failed.len()), (1, 0));
    assert_eq!(bench.ids("lamp").await, [""; 0]);
    assert_eq!(bench.body("lamp", &id).await, None);
}

/// A record of a message that was redriven: SQS gave it another id and another time.
fn redriven(origin: &str) -> serde_json::Value {
    let mut record = record("n", &text("lamp", 1), None);
    record["attributes"]["SentTimestamp"] = "1564700000000".into();
    record["messageAttributes"]["antumbra-origin"] = json!({
        "stringValue": origin, "stringListValues": [], "binaryListValues": [], "dataType": "String",
    });
    record
}

#[tokio::test]
async fn a_redrive_does_not_restore_a_deleted_message() {
    let bench = Bench::new().await;
    bench
        .handle(&event([record("m", &text("lamp", 1), None)]))
        .await;
    let again = event([redriven("1564669332364-m")]);
    let summary = bench.handle(&again).await;
    assert_eq!(counts(&summary, ["stored", "known"]), [0, 1]);
    bench.delete("lamp", &stored_id(1, "m")).await;
    let summary = bench.handle(&again).await;
    assert_eq!(counts(&summary, ["stored", "known"]), [0, 1]);
    assert_eq!(bench.ids("lamp").await, [""; 0]);
}

#[tokio::test]
async fn a_malformed_origin_is_ignored_and_failures_name_the_message_received() {
    let bench = Bench::new().await;
    for origin in [
        "",
        "m",
        "-m",
        "x-m",
        "1564669332364-",
        "1564669332364-a/b",
        "99999999999999999999-m",
    ] {
        let summary = bench.handle(&event([redriven(origin)])).await;
        assert_eq!(summary.failed, [""; 0], "{origin}");
    }
    assert_eq!(bench.ids("lamp").await, ["0000000001-1564700000000-n"]);
    bench.endpoint.script(|_| throttled());
    let failing = event([redriven("1564669332364-other")]);
    let summary = bench.handle_within(&failing, Duration::from_secs(1)).await;
    assert_eq!(summary.failed, ["n"]);
}

#[tokio::test]
async fn a_quarantined_message_keeps_its_origin() {
    let bench = Bench::new().await;
    let mut record = redriven("1564669332364-m");
    record["body"] = "nonsense".into();
    bench.handle(&event([record])).await;
    let quarantined = bench.quarantine.accepted();
    let origin = attribute(&quarantined[0], "antumbra-origin");
    assert_eq!(origin, Some("1564669332364-m"));
}

#[tokio::test]
async fn messages_that_the_quarantine_rejects_fail() {
    let bench = Bench::new().await;
    bench.quarantine.reply(|message| match message.id.as_str() {
        "m-1" => SendReply::deny("no such queue"),
        "m-2" => SendReply::Throttle,
        _ => SendReply::Accept,
    });
    let records = (0..4).map(|n| record(&format!("m-{n}"), "nonsense", None));
    let summary = bench
        .handle_within(&event(records), Duration::from_secs(2))
        .await;
    assert_eq!(summary.failed, ["m-1", "m-2"]);
    assert_eq!(summary.count("quarantined"), 2);
}

#[tokio::test]
async fn a_large_batch_is_stored() {
    let bench = Bench::new().await;
    let records = (0..500).map(|n| {
        let source = format!("thing-{}", n % 25);
        record(&format!("m-{n}"), &text(&source, n), None)
    });
    let summary = bench
        .handle_within(&event(records), Duration::from_secs(60))
        .await;
    assert_eq!(counts(&summary, ["messages", "stored"]), [500, 500]);
    assert_eq!(bench.ids("thing-7").await.len(), 20);
    let none = bench.handle(&event([])).await;
    assert_eq!((none.count("messages"), none.failed.len()), (0, 0));
}
