//! Deliveries: recipients, order, signatures.

use std::time::Duration;

use antumbra_local::stack::Webhooks;
use antumbra_publish::webhook::sign;
use antumbra_service::clients::{ClientPatch, ClientState, Mode};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{Delays, HistoryQuery, Policy, Status, Subject};
use antumbra_service::sensors::{CheckOutcome, LivenessIndex as _};

use super::endpoint::Reply::{RetryAfter, Status as Respond};
use super::home::{Home, immediate_retries};

#[tokio::test]
async fn a_change_is_posted_with_a_signature_to_every_linked_client() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (every, secret) = home.client("every", Mode::Every).await;
    let (latest, _) = home.client("latest", Mode::Latest).await;
    home.client("stranger", Mode::Every).await;
    home.clients.link(&every, &door).await.unwrap();
    home.clients.link(&latest, &door).await.unwrap();
    home.signal(&door, 1).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&latest, &[Status::Delivered]).await;
    let records = home.wait_for_statuses(&every, &[Status::Delivered]).await;
    let seen = home.endpoints.seen("every");
    assert_eq!(seen.len(), 1);
    let (body, attempt) = (&seen[0].body, &records[0].attempts[0]);
    assert_eq!(body["id"], seen[0].id.as_str());
    assert_eq!(body["id"], records[0].delivery.id.to_string());
    assert_eq!(
        (&body["type"], &body["version"]),
        (&"state.changed".into(), &1.into())
    );
    assert_eq!(body["sequence"], 1);
    assert_eq!(body["client"]["name"], "The every");
    assert_eq!(body["sensor"]["id"], "door-7");
    assert_eq!(
        (&body["data"]["previous"], &body["data"]["current"]),
        (&0.into(), &1.into())
    );
    assert!(body["data"]["since"].is_string());
    assert_eq!(
        (attempt.number, attempt.status, &attempt.error),
        (1, Some(204), &None)
    );
    let seconds: i64 = seen[0].timestamp.parse().unwrap();
    let signature = sign(&[&secret], &seen[0].id, seconds, &seen[0].text).unwrap();
    assert_eq!(seen[0].signature, signature);
    assert_eq!(home.endpoints.seen("latest").len(), 1);
    assert!(home.endpoints.seen("stranger").is_empty());
    // The history of the sensor contains both deliveries.
    let query = HistoryQuery::of(Subject::Sensor(door));
    let page = home.redeliveries.list(&query, None).await.unwrap();
    assert_eq!(page.rows.len(), 2);
    home.stop().await;
}

#[tokio::test]
async fn lost_and_restored_are_posted_in_sequence() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    let later = SystemClock.now().after(Duration::from_secs(3700));
    assert_eq!(
        home.sensors.check(&door, later).await,
        Ok(CheckOutcome::Lost)
    );
    home.signal(&door, 1).await;
    let delivered = [Status::Delivered; 3];
    home.wait_for_statuses(&client, &delivered).await;
    let received: Vec<(String, u64)> = home
        .endpoints
        .seen("watch")
        .iter()
        .map(|seen| {
            (
                seen.body["type"].as_str().unwrap().to_owned(),
                seen.body["sequence"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = ["connection.lost", "connection.restored", "state.changed"];
    let expected: Vec<(String, u64)> = expected.map(str::to_owned).into_iter().zip(1..).collect();
    assert_eq!(received, expected);
    let seen = home.endpoints.seen("watch");
    assert_eq!(seen[0].body["data"]["threshold_seconds"], 3600);
    assert_eq!(seen[0].body["data"]["last_state"], 0);
    assert_eq!(seen[1].body["data"]["state_changed"], true);
    home.stop().await;
}

#[tokio::test]
async fn mode_every_delivers_in_order() {
    let home = Home::start(immediate_retries()).await;
    let (door, gate) = (home.sensor("door-7").await, home.sensor("gate-1").await);
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.clients.link(&client, &gate).await.unwrap();
    home.endpoints
        .next("watch", &[Respond(500), Respond(500), Respond(500)]);
    home.signal(&door, 1).await;
    home.endpoints.wait("watch", 1).await;
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.signal(&gate, 1).await;
    home.wait_for_statuses(&client, &[Status::Delivered; 4])
        .await;
    let of_door: Vec<u64> = home
        .endpoints
        .seen("watch")
        .iter()
        .filter(|seen| seen.body["sensor"]["id"] == "door-7")
        .map(|seen| seen.body["sequence"].as_u64().unwrap())
        .collect();
    let mut sorted = of_door.clone();
    sorted.sort_unstable();
    assert_eq!(of_door, sorted);
    assert_eq!(of_door.last(), Some(&3));
    home.stop().await;
}

#[tokio::test]
async fn mode_latest_drops_superseded_deliveries() {
    let slow = Webhooks {
        policy: Policy {
            delays: Delays {
                curve: antumbra_service::deliveries::Curve::Logarithmic,
                first: Duration::from_secs(1),
                ..Delays::default()
            },
            ..immediate_retries().policy
        },
        ..immediate_retries()
    };
    let home = Home::start(slow).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints.next("watch", &[Respond(500)]);
    home.signal(&door, 1).await;
    home.endpoints.wait("watch", 1).await;
    home.signal(&door, 0).await;
    let records = home
        .wait_for_statuses(&client, &[Status::Superseded, Status::Delivered])
        .await;
    assert_eq!(records[0].attempts.len(), 1);
    assert_eq!(home.endpoints.seen("watch").len(), 2);
    // A manual redelivery is sent although it is superseded.
    home.redeliveries
        .redeliver(&records[0].delivery.id)
        .await
        .unwrap();
    home.wait_for_statuses(&client, &[Status::Delivered; 2])
        .await;
    home.stop().await;
}

#[tokio::test]
async fn both_secrets_sign_during_rotation() {
    let home = Home::start(immediate_retries()).await;
    let (client, old) = home.client("watch", Mode::Latest).await;
    let hour = Duration::from_secs(3600);
    let rotated = home.clients.rotate_secret(&client, hour, None).await;
    let new = rotated.unwrap().secret;
    home.redeliveries.test(&client).await.unwrap();
    let seen = home.endpoints.wait("watch", 1).await;
    let seconds: i64 = seen[0].timestamp.parse().unwrap();
    let both = sign(&[&new, &old], &seen[0].id, seconds, &seen[0].text).unwrap();
    assert_eq!(seen[0].signature, both);
    assert_eq!(seen[0].body["type"], "client.test");
    let rotated = home
        .clients
        .rotate_secret(&client, Duration::ZERO, None)
        .await;
    let last = rotated.unwrap().secret;
    home.redeliveries.test(&client).await.unwrap();
    let seen = home.endpoints.wait("watch", 2).await;
    let seconds: i64 = seen[1].timestamp.parse().unwrap();
    let one = sign(&[&last], &seen[1].id, seconds, &seen[1].text).unwrap();
    assert_eq!(seen[1].signature, one);
    home.stop().await;
}

#[tokio::test]
async fn a_gone_endpoint_disables_its_client_and_held_deliveries_are_released_in_order() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints.next("watch", &[Respond(410)]);
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held]).await;
    let gone = home.clients.get(&client).await.unwrap();
    let ClientState::Disabled { reason, .. } = gone.state else {
        panic!("{gone:?}");
    };
    assert!(reason.contains("410"), "{reason}");
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held; 3]).await;
    assert_eq!(home.endpoints.seen("watch").len(), 1);
    let released = home.redeliveries.enable(&client).await.unwrap();
    assert_eq!((released.queued, released.finished), (3, true));
    home.wait_for_statuses(&client, &[Status::Delivered; 3])
        .await;
    let seen = home.endpoints.seen("watch");
    let sequences: Vec<u64> = seen
        .iter()
        .map(|seen| seen.body["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(sequences, [1, 1, 2, 3]);
    // A redelivery has the same id.
    assert_eq!(seen[0].id, seen[1].id);
    assert_eq!(
        home.clients.get(&client).await.unwrap().state,
        ClientState::Enabled
    );
    home.stop().await;
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    home.clients.link(&client, &door).await.unwrap();
    home.endpoints
        .next("watch", &[RetryAfter(429, 2), RetryAfter(503, 1)]);
    home.signal(&door, 1).await;
    let records = home.wait_for_statuses(&client, &[Status::Delivered]).await;
    let statuses: Vec<_> = records[0]
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(statuses, [Some(429), Some(503), Some(204)]);
    let seen = home.endpoints.seen("watch");
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(1900));
    assert!(seen[2].at - seen[1].at >= Duration::from_millis(900));
    home.stop().await;
}

#[tokio::test]
async fn every_attempt_reads_url_and_link_again() {
    let home = Home::start(immediate_retries()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    let (other, _) = home.client("other", Mode::Latest).await;
    home.clients.link(&client, &door).await.unwrap();
    home.clients.link(&other, &door).await.unwrap();
    let hold = [RetryAfter(503, 2)];
    home.endpoints.next("watch", &hold);
    home.endpoints.next("other", &hold);
    home.signal(&door, 1).await;
    home.endpoints.wait("watch", 1).await;
    home.endpoints.wait("other", 1).await;
    let moved = ClientPatch {
        url: Some(home.endpoints.url("moved")),
        ..ClientPatch::default()
    };
    home.clients.update(&client, moved, None).await.unwrap();
    home.clients.unlink(&other, &door).await.unwrap();
    home.endpoints.wait("moved", 1).await;
    home.wait_for_statuses(&client, &[Status::Delivered]).await;
    home.wait_for_statuses(&other, &[Status::Skipped]).await;
    assert_eq!(home.endpoints.seen("watch").len(), 1);
    assert_eq!(home.endpoints.seen("other").len(), 1);
    home.stop().await;
}
