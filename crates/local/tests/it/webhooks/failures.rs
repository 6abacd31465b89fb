//! Failing endpoints, retries and the recorded attempts.

use std::time::{Duration, Instant};

use antumbra_service::clients::Mode;
use antumbra_service::clock::{Clock as _, SystemClock, time_left};
use antumbra_service::deliveries::{Policy, Status};

use super::endpoint::Reply::{Hang, Slow, Status as Respond};
use super::home::{Home, immediate};
use crate::support::eventually;

#[tokio::test]
async fn failures_are_retried_and_every_attempt_is_recorded() {
    let (home, client, door) = Home::linked(Mode::Latest, immediate()).await;
    home.reply(&[Respond(500), Hang, Respond(301), Respond(404)]);
    home.signal(&door, 1).await;
    let records = home.wait_for_statuses(&client, &[Status::Delivered]).await;
    let attempts = records[0].attempts.iter();
    let received: Vec<_> = attempts
        .map(|a| (a.number, a.status, a.error.as_deref()))
        .collect();
    let redirects = Some("redirects are not followed");
    let hung = Some("no response within 500ms");
    assert_eq!(
        received,
        [
            (1, Some(500), None),
            (2, None, hung),
            (3, Some(301), redirects),
            (4, Some(404), None),
            (5, Some(204), None),
        ]
    );
    let seen = home.endpoints.seen("watch");
    assert!(seen.iter().all(|one| one.id == seen[0].id), "{seen:?}");
    home.stop().await;
}

#[tokio::test]
async fn a_dead_delivery_can_be_redelivered() {
    for (mode, dead) in [
        (Mode::Latest, "antumbra-deliveries-dead"),
        (Mode::Every, "antumbra-deliveries-dead.fifo"),
    ] {
        let (home, client, door) = Home::linked(mode, immediate()).await;
        home.reply(&[Respond(500); 10]);
        home.signal(&door, 1).await;
        let records = home.wait_for_statuses(&client, &[Status::Dead]).await;
        assert_eq!(records[0].attempts.len(), 10);
        let id = &records[0].delivery.id;
        home.services.received(dead, &id.to_string()).await;
        assert_eq!(home.endpoints.seen("watch").len(), 10);
        home.redeliveries.redeliver(id).await.unwrap();
        let records = home.wait_for_statuses(&client, &[Status::Delivered]).await;
        assert_eq!(records[0].attempts.len(), 11);
        assert_eq!(records[0].attempts[10].number, 1);
        let seen = home.endpoints.seen("watch");
        assert_eq!(seen[10].id, seen[0].id);
        home.stop().await;
    }
}

/// A delivery that is recorded as dead is not sent because its message is in the queue again.
#[tokio::test]
async fn a_redriven_dead_letter_is_delivered() {
    for mode in [Mode::Latest, Mode::Every] {
        let (home, client, door) = Home::linked(mode, immediate()).await;
        home.reply(&[Respond(500); 10]);
        home.signal(&door, 1).await;
        home.wait_for_statuses(&client, &[Status::Dead]).await;
        let path = "/v1/queues/dead-letters";
        let letter = eventually("a dead letter", async || {
            home.services.get(path).await["messages"].get(0).cloned()
        })
        .await;
        assert_eq!(letter["route"], "to the client watch", "{letter}");
        let redrive = format!("{path}/redrive");
        let redrive = home
            .services
            .call_api("POST", &redrive, &[], &serde_json::Value::Null);
        let (status, done) = redrive.await;
        assert_eq!(
            (status, &done["results"][0]["outcome"]),
            (200, &"moved".into())
        );
        let records = home.wait_for_statuses(&client, &[Status::Delivered]).await;
        assert_eq!(records[0].attempts.len(), 11);
        let left = home.services.get(path).await;
        assert_eq!(left["messages"], serde_json::json!([]), "{left}");
        home.stop().await;
    }
}

#[tokio::test]
async fn all_deliveries_since_a_time_can_be_redelivered() {
    let (home, client, door) = Home::linked(Mode::Every, immediate()).await;
    home.reply(&[Respond(500); 20]);
    home.signal(&door, 1).await;
    home.signal(&door, 0).await;
    let records = home.wait_for_statuses(&client, &[Status::Dead; 2]).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Dead, Status::Dead, Status::Delivered])
        .await;
    let since = records[0].delivery.id.time();
    let done = home
        .redeliveries
        .redeliver_since(&client, since, false, None);
    let done = done.await.unwrap();
    assert_eq!((done.queued, done.next), (2, None));
    home.wait_for_statuses(&client, &[Status::Delivered; 3])
        .await;
    home.stop().await;
}

/// After a timeout the endpoint gets no request for a while, then a single probe. The others see its result soon.
#[tokio::test]
async fn a_circuit_opens_on_a_time_out_and_closes_on_success() {
    let careful = Policy {
        open_after: 5,
        open_first: Duration::from_secs(2),
        // Nobody waits for this long if the probe ends earlier.
        probe: Duration::from_secs(600),
        ..immediate()
    };
    let home = Home::start(careful).await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    let mut doors = Vec::new();
    for n in 0..8 {
        let door = home.sensor(&format!("door-{n}")).await;
        home.clients.link(&client, &door).await.unwrap();
        doors.push(door);
    }
    // Requests time out after half a second; the slow one must not, also on a busy machine.
    home.reply(&[Hang, Slow(100)]);
    home.signal(&doors[0], 1).await;
    home.requests(1).await;
    let open_until = eventually("an open circuit", async || {
        home.clients.get(&client).await.unwrap().circuit.open_until
    })
    .await;
    let closed_for = time_left(SystemClock.now(), open_until);
    let probe_at = Instant::now() + closed_for;
    for door in &doors[1..] {
        home.signal(door, 1).await;
    }
    home.wait_for_statuses(&client, &[Status::Delivered; 8])
        .await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(seen.len(), 9);
    // There was no request while it was open.
    let early = probe_at.saturating_duration_since(seen[1].at);
    assert!(early < Duration::from_millis(50), "{early:?} too early");
    let circuit = home.clients.get(&client).await.unwrap().circuit;
    assert_eq!((circuit.failures, circuit.open_until), (0, None));
    home.stop().await;
}
