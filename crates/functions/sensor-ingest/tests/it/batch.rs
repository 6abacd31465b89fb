//! A batch of a standard queue: recorded, quarantined and failed messages.

use std::sync::atomic::Ordering;

use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_sensor_ingest::{AutoRegistration, Rules, UnknownSensorPolicy};
use antumbra_service::sensors::ValueType;
use antumbra_service::sensors::{Connection, Outcome, SensorStore, Value};
use antumbra_testkit::SendReply;
use antumbra_testkit::sensors::sample;
use serde_json::json;

use crate::support::{Home, counts, lock_signal, lock_signals, sqs};

/// Returns the batch item failures of the response.
fn failures(summary: &BatchSummary) -> serde_json::Value {
    let payload = summary.response().unwrap().payload;
    let response: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(response.as_object().unwrap().len(), 1, "{response}");
    response["batchItemFailures"].clone()
}

#[tokio::test]
async fn each_signal_has_an_outcome_and_a_reading() {
    let home = Home::new(&["a", "b"]).await;
    let newer = r#"{"sensor_id":"a","data":1,"ts":"2026-01-31T12:05:00Z","seq":1}"#;
    let older = r#"{"sensor_id":"a","data":0,"ts":"2026-01-31T12:04:00Z","seq":0}"#;
    let event = sqs(&[
        ("m1", 60, &lock_signal("a", 0)),
        ("m2", 61, &lock_signal("b", 1)),
        ("m3", 62, &lock_signal("a", 0)),
        ("m4", 63, newer),
        ("m4", 63, newer),
    ]);
    let late = sqs(&[("m5", 64, older)]);
    let summaries = [home.handle(&event).await, home.handle(&late).await];
    let counts = [
        (Outcome::First, 2),
        (Outcome::Same, 1),
        (Outcome::Changed, 1),
        (Outcome::Stale, 1),
        (Outcome::Duplicate, 1),
    ];
    for (outcome, expected) in counts {
        let count = |summary: &BatchSummary| summary.count(outcome.as_str());
        let counts: usize = summaries.iter().map(count).sum();
        assert_eq!(counts, expected, "{outcome:?}");
    }
    assert_eq!(failures(&summaries[0]), json!([]));
    let a = home.state("a").await;
    assert_eq!(a.value, Some(Value::whole(1)));
    assert_eq!(
        a.last_seen,
        Some(sample::at(64)),
        "a stale signal is a contact"
    );
    assert_eq!((a.connection, a.sequence()), (Connection::Online, 1));
    assert_eq!(home.readings("a").await, ["1", "0", "0", "0"]);
    assert_eq!(home.readings("b").await, ["1"]);
}

#[tokio::test]
async fn every_transition_within_a_batch_is_seen_in_any_order() {
    let home = Home::new(&["a"]).await;
    // Delivered in the order 7, 4, 1, 8, 5, 2, 9, 6, 3, 0.
    let texts = (0..10).map(|n| (7 + 7 * n) % 10).map(|n| {
        let time = format!("2026-01-31T12:01:0{n}Z");
        let text = json!({"sensor_id": "a", "data": n % 2, "ts": time, "seq": n});
        (format!("m{n}"), text.to_string())
    });
    let texts: Vec<(String, String)> = texts.collect();
    let messages: Vec<_> = texts
        .iter()
        .map(|(id, text)| (&**id, 70, &**text))
        .collect();
    let summary = home.handle(&sqs(&messages)).await;
    assert_eq!(summary.count(Outcome::First.as_str()), 1);
    assert_eq!(summary.count(Outcome::Changed.as_str()), 9);
    let state = home.state("a").await;
    assert_eq!((state.sequence(), state.value), (9, Some(Value::whole(1))));
}

#[tokio::test]
async fn repeated_values_are_no_event_and_no_silence() {
    let home = Home::new(&["a"]).await;
    for minute in 1..=200 {
        let id = format!("m{minute}");
        let event = lock_signals(&[(&id, minute * 60, "a", 1)]);
        home.handle(&event).await;
    }
    let state = home.state("a").await;
    assert_eq!(state.sequence(), 0);
    assert_eq!(state.last_seen, Some(sample::at(200 * 60)));
    assert_eq!(state.since, Some(sample::at(60)));
}

#[tokio::test]
async fn one_bad_signal_in_ten_is_quarantined() {
    let ids: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    let home = Home::new(&names).await;
    let mut texts: Vec<String> = names.iter().map(|id| lock_signal(id, 1)).collect();
    texts[4] = r#"{"sensor_id": "s4", "data": "open"}"#.to_owned();
    let messages = names.iter().zip(&texts);
    let messages: Vec<_> = messages.map(|(id, text)| (*id, 60, &**text)).collect();
    let summary = home.handle(&sqs(&messages)).await;
    assert_eq!(
        counts(&summary, [Outcome::First.as_str(), "quarantined"]),
        [9, 1]
    );
    assert_eq!(failures(&summary), json!([]));
    let (text, reason, detail) = home.quarantine.quarantined().remove(0);
    assert_eq!(text, texts[4], "as it was sent");
    assert_eq!(reason, "Invalid");
    assert_eq!(detail, "data is \"open\", expected 0 or 1");
    assert_eq!(home.state("s4").await.connection, Connection::Never);
}

#[tokio::test]
async fn invalid_and_unknown_sensors_are_quarantined() {
    let rules = Rules {
        ids: Some("[A-Za-z0-9]{1,16}".parse().unwrap()),
        ..Rules::default()
    };
    let home = Home::with(&["a-b"], rules, |_| UnknownSensorPolicy::Quarantine).await;
    let event = sqs(&[
        ("m1", 60, &lock_signal("nobody", 1)),
        ("m2", 60, &lock_signal("no body", 1)),
        ("m3", 60, &lock_signal("a-b", 1)),
        ("m4", 60, "gibberish"),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!((summary.count("quarantined"), summary.failed.len()), (4, 0));
    let mut quarantined = home.quarantine.quarantined();
    // Signals come after messages that cannot be parsed.
    quarantined.rotate_right(1);
    let quarantined = quarantined
        .iter()
        .map(|(_, reason, detail)| format!("{reason}: {detail}"));
    let quarantined: Vec<_> = quarantined.collect();
    let expected = [
        "UnknownSensor: no sensor has the id nobody",
        "Invalid: the sensor id may not hold ' '",
        "Invalid: the sensor id does not match [A-Za-z0-9]{1,16}",
    ];
    assert_eq!(quarantined[..3], expected);
    assert!(quarantined[3].starts_with("NotJson: "));
}

#[tokio::test]
async fn unknown_sensors_are_registered_if_configured() {
    let registration = AutoRegistration::new("Brno/depot/0/yard", "lock", 600).unwrap();
    let admission =
        |sensors: &antumbra_testkit::sensors::MemorySensors| UnknownSensorPolicy::AutoRegister {
            sensors: sensors.clone(),
            registration,
        };
    let home = Home::with(&["a"], Rules::default(), admission).await;
    let event = lock_signals(&[
        ("m1", 60, "new", 1),
        ("m2", 61, "new", 0),
        ("m3", 61, "a", 0),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!(
        counts(&summary, ["registered", Outcome::First.as_str()]),
        [1, 2]
    );
    let sensor = home.sensors.get(&sample::id("new")).await.unwrap().sensor;
    assert_eq!(
        sensor.location.unwrap().to_string(),
        "Brno / depot / 0 / yard"
    );
    assert_eq!(sensor.sensor_type.as_str(), "lock");
    assert_eq!(home.state("new").await.sequence(), 1);
    assert!(home.quarantine.quarantined().is_empty());
    let again = home.handle(&lock_signals(&[("m4", 62, "new", 1)])).await;
    assert_eq!(again.count("registered"), 0);
}

#[tokio::test]
async fn other_scalars_are_accepted_if_configured() {
    let rules = Rules {
        allowed: ValueType::Scalar,
        ..Rules::default()
    };
    let home = Home::with(&["t"], rules, |_| UnknownSensorPolicy::Quarantine).await;
    let long = format!(r#"{{"sensor_id":"t","data":"{}"}}"#, "x".repeat(1025));
    let event = sqs(&[
        ("m1", 60, r#"{"sensor_id":"t","data":21.50}"#),
        ("m2", 61, r#"{"sensor_id":"t","data":"ajar"}"#),
        ("m3", 62, r#"{"sensor_id":"t","data":true}"#),
        ("m4", 63, &long),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!(
        counts(&summary, [Outcome::Changed.as_str(), "quarantined"]),
        [2, 1]
    );
    assert_eq!(home.readings("t").await, ["true", "\"ajar\"", "21.5"]);
    assert_eq!(
        home.quarantine.quarantined()[0].2,
        "the value has 1025 bytes, the limit is 1024"
    );
}

#[tokio::test]
async fn only_failed_messages_and_those_behind_them_are_reported() {
    let home = Home::new(&["a", "busy", "b"]).await;
    let event = lock_signals(&[
        ("m1", 60, "a", 0),
        ("m2", 60, "busy", 1),
        ("m3", 61, "b", 0),
        ("m4", 61, "busy", 0),
    ]);
    let summary = home.handle(&event).await;
    let failed = json!([{"itemIdentifier": "m2"}, {"itemIdentifier": "m4"}]);
    assert_eq!(failures(&summary), failed);
    assert_eq!(summary.count(Outcome::First.as_str()), 2);
    home.well.store(true, Ordering::SeqCst);
    let again = home.handle(&event).await;
    assert_eq!(failures(&again), json!([]));
    assert_eq!(again.count(Outcome::Duplicate.as_str()), 2);
    assert_eq!(
        home.state("busy").await.sequence(),
        1,
        "both values were seen, in order"
    );
}

#[tokio::test]
async fn a_redelivery_completes_a_crash_between_state_and_reading() {
    let home = Home::new(&["mute"]).await;
    let event = lock_signals(&[("m1", 60, "mute", 0), ("m2", 61, "mute", 1)]);
    let summary = home.handle(&event).await;
    assert_eq!(summary.failed, ["m1", "m2"]);
    assert_eq!(summary.count(Outcome::First.as_str()), 0);
    home.well.store(true, Ordering::SeqCst);
    let again = home.handle(&event).await;
    assert!(again.failed.is_empty());
    assert_eq!(home.readings("mute").await, ["1", "0"]);
    assert_eq!(
        home.state("mute").await.sequence(),
        1,
        "nothing counted twice"
    );
}

#[tokio::test]
async fn unstorable_messages_are_quarantined() {
    let home = Home::new(&["odd"]).await;
    let summary = home.handle(&lock_signals(&[("m1", 60, "odd", 0)])).await;
    assert_eq!((summary.failed.len(), summary.count("quarantined")), (0, 1));
    let (_, reason, detail) = home.quarantine.quarantined().remove(0);
    assert_eq!(
        (reason.as_str(), detail.as_str()),
        ("Unstorable", "invalid: too odd")
    );
}

#[tokio::test]
async fn rejected_messages_fail_while_the_quarantine_is_closed() {
    let home = Home::new(&["a"]).await;
    home.quarantine.reply(|_| SendReply::Throttle);
    let event = sqs(&[("m1", 60, "gibberish"), ("m2", 60, &lock_signal("a", 0))]);
    let summary = home.handle(&event).await;
    assert_eq!(summary.failed, ["m1"]);
    assert_eq!(
        counts(&summary, ["quarantined", Outcome::First.as_str()]),
        [0, 1]
    );
    home.quarantine.reply(|_| SendReply::Accept);
    assert!(home.handle(&event).await.failed.is_empty());
    assert_eq!(home.quarantine.quarantined().len(), 1);
}

#[tokio::test]
async fn an_invalid_event_fails_as_a_whole() {
    let home = Home::new(&[]).await;
    let deadline = sample::at(700);
    for event in [
        "",
        "{}",
        "null",
        r#"{"Records":[{"body":"x"}]}"#,
        r#"{"rmqMessagesByQueue":7}"#,
    ] {
        let failed = home.ingest.process_batch(event.as_bytes(), deadline).await;
        assert!(failed.is_err(), "{event}");
    }
    let summary = home.handle(&json!({"Records": []})).await;
    assert_eq!(failures(&summary), json!([]));
}
