//! A target that keeps failing is suspended: its messages wait in the spill queue, in order, and delay no other target.

use std::time::Duration;

use antumbra_service::clock::Clock as _;
use antumbra_service::notifications::suspension::{SPILL_TIME, SuspensionState};
use antumbra_testkit::SendReply;
use antumbra_wire::events::sqs::QueueMessage;
use serde_json::{Value, json};

use crate::channels::{Bench, queue_message};
use crate::stream::{Record, event_of, sequence_number};

fn to_queue(name: &str) -> Value {
    json!({ "name": name, "to": { "sqs": { "queue": name } } })
}

fn bench() -> Bench {
    Bench::new(&[to_queue("sick"), to_queue("fine")]).with_spill()
}

fn state(bench: &Bench) -> Option<SuspensionState> {
    let records = bench.fakes.spill.suspensions.records();
    records.first().map(|record| record.state)
}

fn records(range: std::ops::Range<u64>) -> Vec<Record> {
    let record = |n: u64| Record::small(&format!("device-{}", n % 3), n);
    range.map(record).collect()
}

/// Fails until the target is suspended; returns the number of invocations that failed.
async fn suspend(bench: &Bench, event: &[u8]) -> usize {
    bench.at("sqs sick").reply(|_| SendReply::Throttle);
    for invocation in 0.. {
        if bench.handle(event).await.resume_at.is_none() {
            return invocation;
        }
        assert!(invocation < 10, "the shard is held up");
    }
    unreachable!()
}

#[tokio::test]
async fn a_failing_target_is_suspended_after_five_invocations() {
    let bench = bench();
    let first = event_of(&records(0..6));
    assert_eq!(suspend(&bench, &first).await, 5);
    assert_eq!(state(&bench), Some(SuspensionState::Suspended));
    bench.at("sqs fine").take_accepted();
    let calls = bench.at("sqs sick").calls().len();

    // From now on healthy targets get every message once, and the failing one is left alone.
    let summary = bench.handle_records(&records(6..12)).await;
    assert_eq!((summary.resume_at, summary.spilled), (None, 6));
    assert_eq!((summary.suspended, summary.retried), (1, 0));
    assert_eq!(bench.at("sqs fine").json_at("/version").len(), 6);
    assert_eq!(bench.at("sqs sick").calls().len(), calls);
}

#[tokio::test]
async fn spilled_messages_arrive_in_order_once_the_target_works_and_then_nothing_is_spilled() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..6))).await;
    bench.handle_records(&records(6..9)).await;
    let failed = bench.drain().await;
    assert_eq!((failed.sent, failed.failed.len()), (0, 9), "it still fails");
    let calls = bench.at("sqs sick").calls().len();
    assert_eq!(bench.drain().await.failed.len(), 9);
    assert_eq!(bench.at("sqs sick").calls().len(), calls, "a pause follows");

    bench.clock.advance(Duration::from_secs(31));
    bench.at("sqs sick").reply(|_| SendReply::Accept);
    // A message of a key that waits must not overtake.
    assert_eq!(bench.handle_records(&records(9..10)).await.spilled, 1);
    let drained = bench.drain().await;
    assert_eq!((drained.sent, drained.failed.len()), (10, 0));
    let mut by_device = bench.at("sqs sick").json();
    by_device.sort_by_key(|body| body["key"].to_string());
    let versions: Vec<_> = by_device
        .iter()
        .map(|body| body["version"].clone())
        .collect();
    let expected = [1, 4, 7, 10, 2, 5, 8, 3, 6, 9].map(Value::from);
    assert_eq!(versions, expected);
    assert_eq!(state(&bench), None);
    assert_eq!(bench.fakes.spill.suspensions.marks(), 0);
    let summary = bench.handle_records(&records(10..12)).await;
    assert_eq!(
        (summary.sent, summary.spilled, summary.suspended),
        (4, 0, 0)
    );
}

/// Each sees the keys of the other first; the one that clears the last key ends the suspension.
#[tokio::test]
async fn two_invocations_that_drain_the_queue_at_once_end_the_suspension() {
    let bench = bench();
    // Two messages of a key are sent one after the other, so that their invocation ends last.
    suspend(&bench, &event_of(&records(0..4))).await;
    bench.clock.advance(Duration::from_secs(31));
    bench.at("sqs sick").reply(|_| SendReply::Accept);
    let received = bench.fakes.spill.receive(bench.clock.now());
    let is_single = |message: &QueueMessage| message.body.contains("device-1");
    let (one, two): (Vec<_>, Vec<_>) = received.into_iter().partition(is_single);
    let handled = futures_util::join!(bench.handle_spilled(&one), bench.handle_spilled(&two));
    let (one, two) = handled;
    assert_eq!((one.sent, two.sent), (1, 3));
    assert_eq!(bench.fakes.spill.suspensions.marks(), 0);
    assert_eq!(state(&bench), None);
}

/// A single message that its target never accepts keeps only its own key in the queue.
#[tokio::test]
async fn while_one_key_waits_the_others_go_directly() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..3))).await;
    bench.clock.advance(Duration::from_secs(31));
    bench
        .at("sqs sick")
        .reply_to_key("device-1", SendReply::Throttle);
    let drained = bench.drain().await;
    assert_eq!((drained.sent, drained.failed.len()), (2, 1));
    assert_eq!(state(&bench), Some(SuspensionState::Draining));
    let summary = bench.handle_records(&records(3..6)).await;
    assert_eq!((summary.spilled, summary.resume_at), (1, None));
    assert_eq!(bench.at("sqs sick").accepted().len(), 4);
    bench.at("sqs sick").reply(|_| SendReply::Accept);
    assert_eq!(bench.drain().await.sent, 2);
    assert_eq!(state(&bench), None);
}

/// Otherwise an old message would follow newer ones, which went directly to the target.
#[tokio::test]
async fn a_spilled_message_that_was_sent_is_dropped_when_it_is_received_again() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..3))).await;
    let received = bench.fakes.spill.receive(bench.clock.now());
    assert_eq!(received.len(), 3);
    bench.clock.advance(Duration::from_secs(31));
    bench.at("sqs sick").reply(|_| SendReply::Accept);
    assert_eq!(bench.drain().await.sent, 3);
    assert_eq!(bench.handle(&event_of(&records(3..6))).await.spilled, 0);
    let arrived = bench.at("sqs sick").accepted().len();
    *bench.fakes.spill.waiting.lock().unwrap() = received;
    let drained = bench.drain().await;
    assert_eq!((drained.sent, drained.failed.len()), (0, 0));
    assert_eq!(bench.at("sqs sick").accepted().len(), arrived);
}

#[tokio::test]
async fn spilled_messages_are_sent_as_they_would_have_been() {
    let mqtt = json!({ "name": "sick", "to": { "mqtt": { "topic": "t/${id}", "qos": 1 } } });
    let queue = json!({ "name": "sick", "to": { "sqs": { "queue": "sick",
                        "delaySeconds": 7, "attributes": { "team": "a" } } } });
    for (registration, address) in [(mqtt, "mqtt"), (queue, "sqs sick")] {
        let bench = Bench::new(&[registration]).with_spill();
        let event = event_of(&[Record::small("lamp", 1)]);
        bench.at(address).reply(|_| SendReply::Throttle);
        for _ in 0..6 {
            bench.handle(&event).await;
        }
        let tried = bench.at(address).calls()[0][0].clone();
        bench.at(address).reply(|_| SendReply::Accept);
        bench.clock.advance(Duration::from_secs(31));
        bench.drain().await;
        let mut arrived = bench.at(address).accepted();
        assert_eq!(arrived.len(), 1);
        let mut tried = vec![tried];
        for message in tried.iter_mut().chain(&mut arrived) {
            message.attributes.sort();
        }
        assert_eq!(arrived, tried);
    }
}

#[tokio::test]
async fn undeliverable_notifications_leave_the_spill_queue() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..3))).await;
    bench.clock.advance(Duration::from_secs(31));
    bench.at("sqs sick").reply(|message| match &message.key {
        key if key.contains("device-1") => SendReply::deny("AccessDenied"),
        _ => SendReply::Throttle,
    });
    let drained = bench.drain().await;
    assert_eq!((drained.undeliverable, drained.failed.len()), (1, 2));
    assert_eq!(bench.undeliverable()[0]["reason"], "AccessDenied");
    assert_eq!(bench.undeliverable()[0]["notification"]["version"], 2);
    assert!(bench.undeliverable()[0].get("spill").is_none());

    bench.clock.advance(SPILL_TIME);
    let given_up = bench.drain().await;
    assert_eq!((given_up.undeliverable, given_up.failed.len()), (2, 0));
    assert_eq!(
        bench.undeliverable()[1]["reason"],
        "the target failed for 4 days"
    );
    assert_eq!(bench.fakes.spill.suspensions.marks(), 0);

    let garbage = [
        "",
        "7",
        "{}",
        "{\"spill\":\"x\"}",
        "{\"reason\":\"a\",\"record\":{},\"spill\":\"x\"}",
    ];
    for (n, body) in garbage.iter().enumerate() {
        let message = queue_message(&n.to_string(), "g", body, bench.clock.now());
        bench.fakes.spill.waiting.lock().unwrap().push(message);
        let drained = bench.drain().await;
        assert_eq!(
            (drained.undeliverable, drained.failed.len()),
            (1, 0),
            "{body}"
        );
    }
}

/// A redrive over HTTP sends undeliverable notifications to the spill queue, as they are.
#[tokio::test]
async fn a_redriven_notification_is_sent_to_the_current_target() {
    let bench = bench();
    bench
        .at("sqs sick")
        .reply(|_| SendReply::deny("no such queue"));
    bench.handle_records(&records(0..1)).await;
    let stored = bench.fakes.undeliverable.take_accepted().remove(0);
    let redrive = || {
        let message = queue_message("m", "m", &stored.body, bench.clock.now());
        bench.fakes.spill.waiting.lock().unwrap().push(message);
    };
    redrive();
    let drained = bench.drain().await;
    assert_eq!((drained.sent, drained.undeliverable), (0, 1));
    assert_eq!(
        bench.fakes.undeliverable.take_accepted()[0].body,
        stored.body
    );
    // Not lost while the target fails, and without a mark it is not taken for one that was sent.
    bench.at("sqs sick").reply(|_| SendReply::Throttle);
    redrive();
    assert_eq!(bench.drain().await.failed, ["m"]);
    bench.at("sqs sick").reply(|_| SendReply::Accept);
    assert_eq!(bench.drain().await.sent, 1);
    let stored: Value = serde_json::from_str(&stored.body).unwrap();
    let arrived = bench.at("sqs sick").json();
    assert_eq!(arrived, [stored["notification"].clone()]);
}

#[tokio::test]
async fn without_the_records_nothing_is_sent_and_nothing_is_lost() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..3))).await;
    bench.at("sqs fine").take_accepted();
    bench.fakes.spill.suspensions.fail(1000);
    let summary = bench.handle_records(&records(3..6)).await;
    assert_eq!(
        (summary.sent, summary.resume_at),
        (0, Some(sequence_number(3)))
    );
    assert!(bench.at("sqs fine").accepted().is_empty());
    assert_eq!(bench.drain().await.failed.len(), 3);
    bench.fakes.spill.suspensions.fail(0);
    assert_eq!(bench.handle_records(&records(3..6)).await.spilled, 3);
}

#[tokio::test]
async fn a_spill_queue_that_fails_holds_up_the_stream() {
    let bench = bench();
    suspend(&bench, &event_of(&records(0..3))).await;
    bench.fakes.spill.channel.reply(|_| SendReply::Throttle);
    let summary = bench.handle_records(&records(3..6)).await;
    assert_eq!(summary.resume_at, Some(sequence_number(3)));
    bench.fakes.spill.channel.reply(|_| SendReply::Accept);
    assert_eq!(bench.handle_records(&records(3..6)).await.resume_at, None);
}
