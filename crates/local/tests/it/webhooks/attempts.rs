//! Counted attempts, waiting outside of the queue, and clients that come back.

use std::time::Duration;

use antumbra_local::stack::Webhooks;
use antumbra_service::clients::{ClientState, Mode};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{Policy, Status};
use antumbra_service::sensors::{Generation, RegisteredSensor, SensorStore as _};

use super::endpoint::Reply::{RetryAfter, Status as Respond};
use super::home::{Home, immediate_retries};
use crate::support::{eventually, sensor};

fn with(policy: Policy) -> Webhooks {
    Webhooks {
        policy,
        ..immediate_retries()
    }
}

#[tokio::test]
async fn an_open_circuit_costs_no_attempt_and_a_redelivery_probes_at_once() {
    let second = Duration::from_secs(1);
    let home = Home::start(with(Policy {
        max_attempts: 2,
        open_after: 2,
        open_first: second,
        open_longest: second,
        probe: 600 * second,
        ..immediate_retries().policy
    }))
    .await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    home.endpoints.next("watch", &[Respond(500); 6]);
    for n in 0..3 {
        let door = home.sensor(&format!("door-{n}")).await;
        home.clients.link(&client, &door).await.unwrap();
        home.signal(&door, 1).await;
    }
    let records = home.wait_for_statuses(&client, &[Status::Dead; 3]).await;
    assert!(records.iter().all(|record| record.attempts.len() == 2));
    assert_eq!(home.endpoints.seen("watch").len(), 6);
    let circuit = home.clients.get(&client).await.unwrap().circuit;
    assert!(circuit.open_until.is_some() && circuit.failing_since.is_some());
    home.redeliveries
        .redeliver(&records[0].delivery.id)
        .await
        .unwrap();
    let redelivered = home.endpoints.wait("watch", 7).await;
    assert_eq!(redelivered[6].id, records[0].delivery.id.to_string());
    home.stop().await;
}

#[tokio::test]
async fn mode_latest_sends_only_the_newest_after_a_release() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    home.clients.link(&client, &door).await.unwrap();
    home.clients.disable(&client, "maintenance").await.unwrap();
    for value in [1, 0, 1, 0, 1] {
        home.signal(&door, value).await;
    }
    eventually("a held delivery", async || {
        let history = home.history(&client).await;
        let held = |status| history.iter().filter(|one| one.status == status).count();
        (held(Status::Held) + held(Status::Superseded) == 5).then_some(())
    })
    .await;
    home.redeliveries.enable(&client).await.unwrap();
    let mut expected = [Status::Superseded; 5];
    expected[4] = Status::Delivered;
    home.wait_for_statuses(&client, &expected).await;
    assert_eq!(home.endpoints.seen("watch").len(), 1);
    home.stop().await;
}

#[tokio::test]
async fn deliveries_of_a_former_registration_are_skipped() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints.next("watch", &[RetryAfter(503, 2)]);
    home.signal(&door, 1).await;
    let first = home.endpoints.wait("watch", 1).await[0].clone();
    let registered = home.sensors.get(&door).await.unwrap();
    home.sensors
        .unregister(&registered, SystemClock.now())
        .await
        .unwrap();
    let again = RegisteredSensor {
        generation: Generation::unique(SystemClock.now()),
        ..sensor("door-7", SystemClock.now())
    };
    home.sensors.register(&again).await.unwrap();
    home.clients.link(&client, &door).await.unwrap();
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Skipped, Status::Delivered])
        .await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].body["sequence"], 1);
    let generation = |body: &serde_json::Value| body["sensor"]["generation"].clone();
    assert_ne!(generation(&seen[1].body), generation(&first.body));
    home.stop().await;
}

#[tokio::test]
async fn a_client_that_fails_for_too_long_is_disabled_and_loses_nothing() {
    let home = Home::start(with(Policy {
        disable_after: Duration::ZERO,
        ..immediate_retries().policy
    }))
    .await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints.next("watch", &[Respond(500)]);
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held]).await;
    let disabled = home.clients.get(&client).await.unwrap();
    let ClientState::Disabled { reason, .. } = disabled.state else {
        panic!("{disabled:?}");
    };
    assert!(reason.contains("no delivery succeeded since"), "{reason}");
    home.redeliveries.enable(&client).await.unwrap();
    home.wait_for_statuses(&client, &[Status::Delivered]).await;
    home.stop().await;
}

#[tokio::test]
async fn a_long_wait_is_spent_in_the_due_index_and_keeps_the_order() {
    let home = Home::start(with(Policy {
        longest_hidden: Duration::ZERO,
        ..immediate_retries().policy
    }))
    .await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints.next("watch", &[RetryAfter(503, 1)]);
    home.signal(&door, 1).await;
    home.endpoints.wait("watch", 1).await;
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    let waiting = [Status::Failed, Status::Pending, Status::Pending];
    home.wait_for_statuses(&client, &waiting).await;
    eventually("empty queue", async || {
        let url = home.services.stack.queue_url("antumbra-deliveries.fifo");
        let request = home.services.sqs.get_queue_attributes().queue_url(url);
        let all = request.attribute_names("All".into()).send().await.unwrap();
        let attributes = all.attributes.unwrap_or_default();
        let count = |name: &str| attributes.get(&name.into()).cloned().unwrap_or_default();
        let visible = count("ApproximateNumberOfMessages");
        let hidden = count("ApproximateNumberOfMessagesNotVisible");
        (visible == "0" && hidden == "0").then_some(())
    })
    .await;
    let first = home.endpoints.seen("watch")[0].at;
    eventually("three deliveries", async || {
        home.services.stack.sweep().await.unwrap();
        let seen = home.endpoints.seen("watch");
        (seen.len() == 4).then_some(())
    })
    .await;
    let seen = home.endpoints.seen("watch");
    let sequences: Vec<u64> = seen
        .iter()
        .map(|seen| seen.body["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, [1, 1, 2, 3]);
    assert!(seen[1].at - first >= Duration::from_secs(1));
    home.wait_for_statuses(&client, &[Status::Delivered; 3])
        .await;
    home.stop().await;
}
