//! Deliveries: recipients, order, signatures.

use std::time::Duration;

use antumbra_service::clients::{ClientPatch, ClientState, Mode};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{Curve, Delays, HistoryQuery, Policy, Status, Subject};
use antumbra_service::sensors::{CheckOutcome, LivenessIndex as _};

use super::endpoint::Reply::{RetryAfter, Status as Respond};
use super::home::{Home, immediate, sequences};

#[tokio::test]
async fn a_change_is_posted_with_a_signature_to_every_linked_client() {
    let home = Home::start(immediate()).await;
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
    assert_eq!(body["type"], "state.changed");
    assert_eq!(
        (&body["version"], &body["sequence"]),
        (&1.into(), &1.into())
    );
    assert_eq!(body["client"]["name"], "The every");
    assert_eq!(body["sensor"]["id"], "door-7");
    assert_eq!(body["data"]["previous"], 0);
    assert_eq!(body["data"]["current"], 1);
    assert!(body["data"]["since"].is_string());
    assert_eq!(
        (attempt.number, attempt.status, &attempt.error),
        (1, Some(204), &None)
    );
    seen[0].assert_signed(&[&secret]);
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
    let (home, client, door) = Home::linked(Mode::Every, immediate()).await;
    let later = SystemClock.now().after(Duration::from_secs(3700));
    let checked = home.sensors.check(&door, later).await;
    assert_eq!(checked, Ok(CheckOutcome::Lost));
    home.signal(&door, 1).await;
    let delivered = [Status::Delivered; 3];
    home.wait_for_statuses(&client, &delivered).await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(sequences(&seen), [1, 2, 3]);
    let types: Vec<_> = seen.iter().map(|seen| &seen.body["type"]).collect();
    assert_eq!(
        types,
        ["connection.lost", "connection.restored", "state.changed"]
    );
    assert_eq!(seen[0].body["data"]["thresholdSeconds"], 3600);
    assert_eq!(seen[0].body["data"]["lastState"], 0);
    assert_eq!(seen[1].body["data"]["stateChanged"], true);
    home.stop().await;
}

#[tokio::test]
async fn mode_every_delivers_in_order() {
    let home = Home::start(immediate()).await;
    let (door, gate) = (home.sensor("door-7").await, home.sensor("gate-1").await);
    let (client, _) = home.client("watch", Mode::Every).await;
    home.clients.link(&client, &door).await.unwrap();
    home.clients.link(&client, &gate).await.unwrap();
    home.reply(&[Respond(500), Respond(500), Respond(500)]);
    home.signal(&door, 1).await;
    home.requests(1).await;
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.signal(&gate, 1).await;
    home.wait_for_statuses(&client, &[Status::Delivered; 4])
        .await;
    let mut seen = home.endpoints.seen("watch");
    seen.retain(|seen| seen.body["sensor"]["id"] == "door-7");
    let of_door = sequences(&seen);
    assert!(of_door.is_sorted(), "{of_door:?}");
    assert_eq!(of_door.last(), Some(&3));
    home.stop().await;
}

#[tokio::test]
async fn mode_latest_drops_superseded_deliveries() {
    let slow = Policy {
        delays: Delays {
            curve: Curve::Logarithmic,
            first: Duration::from_secs(1),
            ..Delays::default()
        },
        ..immediate()
    };
    let (home, client, door) = Home::linked(Mode::Latest, slow).await;
    home.reply(&[Respond(500)]);
    home.signal(&door, 1).await;
    home.requests(1).await;
    home.signal(&door, 0).await;
    let records = home
        .wait_for_statuses(&client, &[Status::Superseded, Status::Delivered])
        .await;
    assert_eq!(records[0].attempts.len(), 1);
    assert_eq!(home.endpoints.seen("watch").len(), 2);
    // A manual redelivery is sent although it is superseded.
    home.redeliver(&records[0]).await;
    home.wait_for_statuses(&client, &[Status::Delivered; 2])
        .await;
    home.stop().await;
}

#[tokio::test]
async fn both_secrets_sign_during_rotation() {
    let home = Home::start(immediate()).await;
    let (client, old) = home.client("watch", Mode::Latest).await;
    let hour = Duration::from_secs(3600);
    let rotated = home.clients.rotate_secret(&client, hour, None).await;
    let new = rotated.unwrap().secret;
    home.redeliveries.test(&client).await.unwrap();
    let seen = home.requests(1).await;
    seen[0].assert_signed(&[&new, &old]);
    assert_eq!(seen[0].body["type"], "client.test");
    let rotated = home.clients.rotate_secret(&client, Duration::ZERO, None);
    let last = rotated.await.unwrap().secret;
    home.redeliveries.test(&client).await.unwrap();
    home.requests(2).await[1].assert_signed(&[&last]);
    home.stop().await;
}

#[tokio::test]
async fn a_gone_endpoint_disables_its_client_and_held_deliveries_are_released_in_order() {
    let (home, client, door) = Home::linked(Mode::Every, immediate()).await;
    home.reply(&[Respond(410)]);
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held]).await;
    home.assert_disabled(&client, "410").await;
    home.signal(&door, 0).await;
    home.signal(&door, 1).await;
    home.wait_for_statuses(&client, &[Status::Held; 3]).await;
    assert_eq!(home.endpoints.seen("watch").len(), 1);
    let mut queued = 0;
    // Each call releases for half a second, in which a busy machine may not release all.
    loop {
        let released = home.redeliveries.enable(&client).await.unwrap();
        queued += released.queued;
        if released.finished {
            break;
        }
    }
    assert_eq!(queued, 3);
    home.wait_for_statuses(&client, &[Status::Delivered; 3])
        .await;
    let seen = home.endpoints.seen("watch");
    assert_eq!(sequences(&seen), [1, 1, 2, 3]);
    // A redelivery has the same id.
    assert_eq!(seen[0].id, seen[1].id);
    let state = home.clients.get(&client).await.unwrap().state;
    assert_eq!(state, ClientState::Enabled);
    home.stop().await;
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let (home, client, door) = Home::linked(Mode::Latest, immediate()).await;
    home.reply(&[RetryAfter(429, 2), RetryAfter(503, 1)]);
    home.signal(&door, 1).await;
    let records = home.wait_for_statuses(&client, &[Status::Delivered]).await;
    let statuses = records[0].attempts.iter().map(|attempt| attempt.status);
    assert!(statuses.eq([Some(429), Some(503), Some(204)]));
    let seen = home.endpoints.seen("watch");
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(1900));
    assert!(seen[2].at - seen[1].at >= Duration::from_millis(900));
    home.stop().await;
}

#[tokio::test]
async fn every_attempt_reads_url_and_link_again() {
    let home = Home::start(immediate()).await;
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", Mode::Latest).await;
    let (other, _) = home.client("other", Mode::Latest).await;
    home.clients.link(&client, &door).await.unwrap();
    home.clients.link(&other, &door).await.unwrap();
    let hold = [RetryAfter(503, 2)];
    home.reply(&hold);
    home.endpoints.next("other", &hold);
    home.signal(&door, 1).await;
    home.requests(1).await;
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
