//! Counted attempts, waiting outside of the queue, and clients that come back.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbDeliveries, MAIN};
use antumbra_local::clients::sdk_config;
use antumbra_service::clients::Mode;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{Delays, DeliveryStore as _, Policy, Status};
use antumbra_service::sensors::{Generation, RegisteredSensor, SensorStore as _};
use futures_util::future::join;

use super::endpoint::Reply::{RetryAfter, Status as Respond};
use super::home::{Home, immediate, sequences};
use crate::support::{eventually, sensor};

#[tokio::test]
async fn an_open_circuit_costs_no_attempt_and_a_redelivery_probes_at_once() {
    let second = Duration::from_secs(1);
    let home = Home::start(Policy {
        max_attempts: 2,
        open_after: 2,
        open_first: second,
        open_longest: second,
        probe: 600 * second,
        ..immediate()
    })
    .await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    home.reply(&[Respond(500); 6]);
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
    // From now on the circuit is open for longer than the test waits.
    let store = DynamoDbDeliveries::connect(
        &sdk_config(home.services.stack.addresses().dynamodb),
        MAIN.name,
    );
    let now = SystemClock.now();
    let open = Some(now.after(600 * second));
    store.record_failure(&client, 1, open, now).await.unwrap();
    home.redeliver(&records[0]).await;
    let redelivered = home.requests(7).await;
    assert_eq!(redelivered[6].id, records[0].delivery.id.to_string());
    home.stop().await;
}

#[tokio::test]
async fn mode_latest_sends_only_the_newest_after_a_release() {
    let (home, client, door) = Home::linked(Mode::Latest, immediate()).await;
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
    let (home, client, door) = Home::linked(
        Mode::Every,
        Policy {
            max_attempts: 1000,
            ..immediate()
        },
    )
    .await;
    // It fails until the sensor is registered again.
    home.reply(&[RetryAfter(503, 1); 1000]);
    home.signal(&door, 1).await;
    let first = home.requests(1).await[0].clone();
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
    home.wait_for_statuses(&client, &[Status::Skipped]).await;
    let before = home.endpoints.seen("watch").len();
    home.endpoints.clear("watch");
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Skipped, Status::Delivered])
        .await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(seen.len(), before + 1);
    assert_eq!(seen[before].body["sequence"], 1);
    let generation = |body: &serde_json::Value| body["sensor"]["generation"].clone();
    assert_ne!(generation(&seen[before].body), generation(&first.body));
    home.stop().await;
}

#[tokio::test]
async fn a_client_that_fails_for_too_long_is_disabled_and_loses_nothing() {
    let (home, client, door) = Home::linked(
        Mode::Every,
        Policy {
            disable_after: Duration::ZERO,
            // The next attempt is after the client was disabled.
            delays: Delays {
                first: Duration::from_secs(1),
                ..Delays::default()
            },
            ..immediate()
        },
    )
    .await;
    home.reply(&[Respond(500)]);
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held]).await;
    home.assert_disabled(&client, "no delivery succeeded since")
        .await;
    home.redeliveries.enable(&client).await.unwrap();
    home.wait_for_statuses(&client, &[Status::Delivered]).await;
    home.stop().await;
}

#[tokio::test]
async fn a_wait_is_spent_in_the_due_index_and_keeps_the_order() {
    let (home, client, door) = Home::linked(Mode::Every, immediate()).await;
    home.reply(&[RetryAfter(503, 5)]);
    home.signal(&door, 1).await;
    home.requests(1).await;
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    let waiting = [Status::Failed, Status::Pending, Status::Pending];
    home.wait_for_statuses(&client, &waiting).await;
    // None of them waits in the queue, hidden or not.
    eventually("empty queue", async || {
        let counts = home.queue_counts("antumbra-deliveries.fifo").await;
        (counts == [0, 0, 0]).then_some(())
    })
    .await;
    let first = home.endpoints.seen("watch")[0].at;
    eventually("three deliveries", async || {
        home.services.stack.sweep().await.unwrap();
        let seen = home.endpoints.seen("watch");
        (seen.len() >= 4).then_some(())
    })
    .await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(sequences(&seen), [1, 1, 2, 3]);
    assert!(seen[1].at - first >= Duration::from_secs(5));
    home.wait_for_statuses(&client, &[Status::Delivered; 3])
        .await;
    home.stop().await;
}

/// The schedule, which runs every five minutes in small deployments, is only a safeguard.
#[tokio::test]
async fn a_wait_of_seconds_ends_without_the_schedule() {
    join(wait_in_mode(Mode::Every), wait_in_mode(Mode::Latest)).await;
}

async fn wait_in_mode(mode: Mode) {
    let (home, client, door) = Home::linked(mode, immediate()).await;
    home.reply(&[RetryAfter(503, 4)]);
    home.signal(&door, 1).await;
    home.requests(1).await;
    home.signal(&door, 0).await;
    let (settled, sent): (_, &[u64]) = match mode {
        Mode::Every => (Status::Delivered, &[1, 1, 2]),
        Mode::Latest => (Status::Superseded, &[1, 2]),
    };
    let settled = [settled, Status::Delivered];
    home.wait_for_statuses(&client, &settled).await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(sequences(&seen), sent);
    if mode == Mode::Every {
        assert!(seen[1].at - seen[0].at >= Duration::from_secs(4));
    }
    home.stop().await;
}
