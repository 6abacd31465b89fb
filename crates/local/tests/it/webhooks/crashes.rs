//! Whatever dies between a state and a client's endpoint, the client gets it, under one id, and the history
//! tells what is so.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use antumbra_service::clients::{ClientId, Mode};
use antumbra_service::deliveries::{DeliveryRecord, Status};
use antumbra_service::sensors::SensorId;

use super::endpoint::Reply::Status as Says;
use super::endpoint::Seen;
use super::fate::{Fate, Mortal, Point};
use super::home::{Home, hasty};

/// A stack whose functions may die, a client in this mode, and a sensor that it is linked to.
async fn mortal(fate: &Fate, mode: Mode) -> (Home, ClientId, SensorId) {
    let functions = Mortal::new(fate.clone());
    let home = Home::start_wrapped(hasty(), functions.wrap()).await;
    functions.begin(&home, &hasty());
    let door = home.sensor("door-7").await;
    let (client, _) = home.client("watch", mode).await;
    home.clients.link(&client, &door).await.unwrap();
    (home, client, door)
}

/// Every request had the id of the one delivery that there is.
fn one_id(seen: &[Seen], records: &[DeliveryRecord]) {
    assert_eq!(records.len(), 1);
    let id = records[0].delivery.id.to_string();
    assert!(!seen.is_empty() && seen.iter().all(|seen| seen.id == id));
}

fn turns(record: &DeliveryRecord) -> Vec<(u32, Option<u16>, bool)> {
    let cut_off = |error: &Option<String>| error.as_ref().is_some_and(|e| e.contains("cut off"));
    let attempts = record.attempts.iter();
    attempts
        .map(|attempt| (attempt.turn, attempt.status, cut_off(&attempt.error)))
        .collect()
}

#[tokio::test]
async fn after_the_state_was_written() {
    for mode in [Mode::Every, Mode::Latest] {
        let fate = Fate::at(Point::ListenerCalled, 2);
        let (home, client, door) = mortal(&fate, mode).await;
        home.say(&door, 1).await;
        let records = home.comes_to(&client, &[Status::Delivered]).await;
        let seen = home.endpoints.seen("watch");
        one_id(&seen, &records);
        assert_eq!(seen.len(), 1);
        assert_eq!(fate.deaths()[&Point::ListenerCalled], 2);
        home.stack.stop().await;
    }
}

#[tokio::test]
async fn after_it_was_queued() {
    for mode in [Mode::Every, Mode::Latest] {
        let fate = Fate::at(Point::ListenerDone, 2);
        let (home, client, door) = mortal(&fate, mode).await;
        home.say(&door, 1).await;
        let records = home.comes_to(&client, &[Status::Delivered]).await;
        // Queued once more for each death: a FIFO queue knows it again, of any other the history does.
        let seen = home.endpoints.seen("watch");
        one_id(&seen, &records);
        assert_eq!(fate.deaths()[&Point::ListenerDone], 2);
        home.stack.stop().await;
    }
}

#[tokio::test]
async fn after_the_request_and_before_it_was_recorded() {
    for mode in [Mode::Every, Mode::Latest] {
        let fate = Fate::at(Point::Posted, 1);
        let (home, client, door) = mortal(&fate, mode).await;
        home.say(&door, 1).await;
        let records = home.comes_to(&client, &[Status::Delivered]).await;
        let seen = home.endpoints.seen("watch");
        one_id(&seen, &records);
        assert_eq!(seen.len(), 2, "at least once, here twice");
        assert_eq!(
            turns(&records[0]),
            [(1, None, true), (2, Some(204), false)],
            "of the first turn no more is known than that"
        );
        home.stack.stop().await;
    }
}

#[tokio::test]
async fn after_it_was_recorded_it_is_not_sent_again() {
    for (point, times) in [(Point::Recorded, 2), (Point::TurnDone, 3)] {
        let fate = Fate::at(point, times);
        let (home, client, door) = mortal(&fate, Mode::Every).await;
        home.say(&door, 1).await;
        home.say(&door, 0).await;
        // The second waits until the first is out of the queue.
        let records = home.comes_to(&client, &[Status::Delivered; 2]).await;
        assert_eq!(turns(&records[0]), [(1, Some(204), false)]);
        assert_eq!(home.endpoints.seen("watch").len(), 2);
        assert_eq!(fate.deaths()[&point], times);
        home.stack.stop().await;
    }
}

#[tokio::test]
async fn in_its_last_turn_it_is_dead_and_told_so() {
    for (point, mode, dead) in [
        (Point::Posted, Mode::Every, "antumbra-deliveries-dead.fifo"),
        (Point::TurnBegun, Mode::Latest, "antumbra-deliveries-dead"),
    ] {
        let mut turn = 0;
        let fate = Fate::new(move |reached| {
            turn += usize::from(reached == point);
            reached == point && turn == 10
        });
        let (home, client, door) = mortal(&fate, mode).await;
        home.endpoints.next("watch", &[Says(500); 10]);
        home.say(&door, 1).await;
        let records = home.comes_to(&client, &[Status::Dead]).await;
        let mut expected: Vec<_> = (1..10).map(|turn| (turn, Some(500), false)).collect();
        expected.push((10, None, true));
        assert_eq!(turns(&records[0]), expected);
        let letter = home.received(dead).await;
        let id = records[0].delivery.id.to_string();
        assert!(letter.contains(&id), "{letter}");
        assert!(home.endpoints.seen("watch").len() <= 10);
        home.stack.stop().await;
    }
}

/// Dies anywhere, as the seed says, but of one delivery not so often that its turns are used up.
fn anywhere(seed: u64) -> Fate {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut left: HashMap<Point, usize> = Point::ALL.map(|point| (point, 4)).into();
    let quiet = Arc::new(Mutex::new(0_usize));
    Fate::new(move |point| {
        // Four of every kind, and never two in a row: with eight changes no delivery has ten.
        let mut quiet = quiet.lock().unwrap();
        let left = left.entry(point).or_default();
        let ends = *left > 0 && *quiet > 1 && random.f64() < 0.3;
        *quiet = if ends { 0 } else { *quiet + 1 };
        *left -= usize::from(ends);
        ends
    })
}

async fn survives(seed: u64) {
    let fate = anywhere(seed);
    let (home, every, door) = mortal(&fate, Mode::Every).await;
    let gate = home.sensor("gate-1").await;
    let (latest, _) = home.client("latest", Mode::Latest).await;
    home.clients.link(&every, &gate).await.unwrap();
    home.clients.link(&latest, &door).await.unwrap();
    home.endpoints.next("watch", &[Says(204), Says(500)]);
    for value in [1, 0, 1, 0] {
        home.say(&door, value).await;
        home.say(&gate, value).await;
    }
    let records = home.comes_to(&every, &[Status::Delivered; 8]).await;
    let settled = async {
        loop {
            let records = home.history(&latest).await;
            let last = records.last().map(|record| record.status);
            if records.len() == 4 && last == Some(Status::Delivered) {
                return records;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let of_latest = crate::support::soon("the latest", settled).await;
    for record in &of_latest {
        let fine = matches!(record.status, Status::Delivered | Status::Superseded);
        assert!(fine, "{record:?}");
    }

    let seen = home.endpoints.seen("watch");
    // What is recorded as delivered was answered so, and no attempt is recorded that was not made.
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for seen in &seen {
        *requests.entry(seen.id.clone()).or_default() += 1;
    }
    assert_eq!(requests.len(), 8, "one id for each change");
    for record in &records {
        let answered = record.attempts.iter().filter(|a| a.status.is_some());
        let made = requests[&record.delivery.id.to_string()];
        assert!((1..=made).contains(&answered.count()), "{record:?}");
    }
    // In order per sensor, however often.
    for sensor in ["door-7", "gate-1"] {
        let of_sensor = seen.iter().filter(|s| s.body["sensor"]["id"] == sensor);
        let order: Vec<u64> = of_sensor
            .map(|seen| seen.body["sequence"].as_u64().unwrap())
            .collect();
        assert!(order.is_sorted(), "{sensor}: {order:?}");
    }
    let deaths: usize = fate.deaths().values().sum();
    assert!(deaths > 5, "{:?}", fate.deaths());
    home.stack.stop().await;
}

#[tokio::test]
async fn wherever_and_however_often_they_die() {
    for seed in 1..=4 {
        survives(seed).await;
    }
}
