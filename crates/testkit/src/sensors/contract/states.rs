//! Laws of `StateStore`.

use antumbra_service::sensors::{
    Connection, EventDetail, Outcome, ReadingTime, SensorEvent, Sequence, Signal, State, Value,
};

use super::Store;
use crate::sensors::sample::{at, id, numbered, record, registered, signal, state};

/// Records a signal and returns the outcome and the events.
async fn step<S: Store>(store: &S, signal: &Signal) -> (Outcome, Vec<&'static str>, State) {
    let old = store.state(signal.sensor()).await.unwrap();
    let outcome = record(store, signal).await;
    let new = store.state(signal.sensor()).await.unwrap();
    let events = SensorEvent::between(Some(&old), &new);
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    let expected: Vec<u64> = (old.sequence() + 1..=new.sequence()).collect();
    assert_eq!(numbers, expected, "numbers without a gap");
    let names = events.iter().map(|event| event.event_type().as_str());
    (outcome, names.collect(), new)
}

pub async fn the_first_signal_is_a_baseline<S: Store>(store: S) {
    registered(&store, "s").await;
    let (outcome, events, state) = step(&store, &signal("s", 1, 10, 11)).await;
    assert_eq!((outcome, events), (Outcome::First, vec![]));
    assert_eq!(state.value, Some(Value::whole(1)));
    assert_eq!(
        state.moment,
        Some(ReadingTime::new(at(10), Sequence::Number(0)).unwrap())
    );
    assert_eq!(
        (state.last_seen, state.deadline),
        (Some(at(11)), at(11 + 3600))
    );
    assert_eq!(
        (state.connection, state.sequence()),
        (Connection::Online, 0)
    );
}

pub async fn an_unchanged_value_updates_only_the_contact<S: Store>(store: S) {
    registered(&store, "s").await;
    step(&store, &signal("s", 1, 1, 1)).await;
    for n in 2..30 {
        let (outcome, events, state) = step(&store, &signal("s", 1, n, n)).await;
        assert_eq!((outcome, events), (Outcome::Same, vec![]));
        assert_eq!(state.last_seen, Some(at(n)));
    }
}

pub async fn a_different_value_is_a_change<S: Store>(store: S) {
    registered(&store, "s").await;
    step(&store, &signal("s", 1, 1, 1)).await;
    for n in 2..10 {
        let old = state(&store, "s").await;
        let sent = signal("s", n % 2, n, n);
        let (outcome, events, new) = step(&store, &sent).await;
        assert_eq!((outcome, events), (Outcome::Changed, vec!["state.changed"]));
        let event = SensorEvent::between(Some(&old), &new).remove(0);
        let detail = EventDetail::StateChanged {
            previous: Value::whole((n + 1) % 2),
            current: Value::whole(n % 2),
            since: at(n),
        };
        assert_eq!((event.detail, event.occurred_at), (detail, at(n)));
        assert_eq!(event.sequence, n as u64 - 1);
    }
}

pub async fn a_late_signal_is_stale_but_counts_as_contact<S: Store>(store: S) {
    registered(&store, "s").await;
    step(&store, &signal("s", 1, 10, 10)).await;
    let (outcome, events, state) = step(&store, &signal("s", 0, 9, 20)).await;
    assert_eq!((outcome, events), (Outcome::Stale, vec![]));
    assert_eq!(state.value, Some(Value::whole(1)));
    assert_eq!(
        (state.last_seen, state.deadline),
        (Some(at(20)), at(20 + 3600))
    );
    let (outcome, _, again) = step(&store, &signal("s", 0, 8, 15)).await;
    assert_eq!(
        (outcome, again),
        (Outcome::Stale, state),
        "neither newer nor later"
    );
}

pub async fn a_newer_value_sent_earlier_does_not_move_the_contact_back<S: Store>(store: S) {
    registered(&store, "s").await;
    step(&store, &signal("s", 1, 10, 100)).await;
    let (outcome, events, state) = step(&store, &signal("s", 0, 20, 90)).await;
    assert_eq!((outcome, events), (Outcome::Changed, vec!["state.changed"]));
    assert_eq!(state.value, Some(Value::whole(0)));
    assert_eq!(
        (state.last_seen, state.deadline),
        (Some(at(100)), at(100 + 3600))
    );
}

pub async fn a_duplicate_signal_is_recorded_once<S: Store>(store: S) {
    registered(&store, "s").await;
    let first = signal("s", 1, 1, 1);
    let second = signal("s", 0, 2, 2);
    step(&store, &first).await;
    let (_, _, after) = step(&store, &second).await;
    for _ in 0..3 {
        let (outcome, events, state) = step(&store, &second).await;
        assert_eq!(
            (outcome, events, &state),
            (Outcome::Duplicate, vec![], &after)
        );
        let (outcome, _, state) = step(&store, &first).await;
        assert_eq!((outcome, state), (Outcome::Stale, after.clone()));
    }
    // A repetition by the device is a duplicate that counts as contact.
    let (outcome, events, state) = step(&store, &signal("s", 0, 2, 50)).await;
    assert_eq!((outcome, events), (Outcome::Duplicate, vec![]));
    assert_eq!(state.last_seen, Some(at(50)));
}

pub async fn a_signal_of_an_unknown_sensor_is_not_recorded<S: Store>(store: S) {
    registered(&store, "sensor-1").await;
    assert_eq!(store.record(&signal("sensor", 1, 1, 1)).await, Ok(None));
    assert!(
        store.state(&id("sensor")).await.is_err(),
        "nothing is made of it"
    );
}

pub async fn a_state_records_since_when_it_holds<S: Store>(store: S) {
    registered(&store, "s").await;
    for (value, time, since) in [
        (1, 1, 1),
        (1, 2, 1),
        (0, 3, 3),
        (0, 4, 3),
        (1, 5, 5),
        (1, 6, 5),
    ] {
        let (_, _, state) = step(&store, &signal("s", value, time, time)).await;
        assert_eq!(state.since, Some(at(since)), "{value} at {time}");
    }
    let signal_at = |value: Value, time: i64| {
        Signal::new(id("s"), value, Some(at(time)), Some(0), at(time), "-").unwrap()
    };
    for (value, time, since) in [
        (Value::Boolean(true), 7, Some(7)),
        (Value::Boolean(true), 8, Some(7)),
        (Value::whole(1), 9, Some(9)),
        (Value::whole(2), 10, None),
        (Value::whole(2), 11, None),
        (Value::whole(1), 12, Some(12)),
        (Value::Boolean(false), 13, Some(13)),
        (Value::Boolean(true), 14, Some(14)),
    ] {
        let (_, _, state) = step(&store, &signal_at(value, time)).await;
        assert_eq!(state.since, since.map(at), "at {time}");
    }
}

pub async fn non_binary_values_are_counted<S: Store>(store: S) {
    registered(&store, "s").await;
    let values = [
        Value::whole(1),
        Value::Boolean(true),
        Value::text("1").unwrap(),
        Value::text("a.b #c[0]:d").unwrap(),
        Value::text("").unwrap(),
        Value::text("x".repeat(1024)).unwrap(),
        Value::number("-0.00000000000000000001").unwrap(),
        Value::number("99999999999999999999999999999999999999").unwrap(),
    ];
    for (n, value) in (1..).zip(&values) {
        for (second, expected) in [(0, n > 1), (1, false)] {
            let time = at(2 * n + second);
            let signal = Signal::new(id("s"), value.clone(), Some(time), None, time, "m").unwrap();
            let (outcome, events, state) = step(&store, &signal).await;
            assert_eq!(outcome == Outcome::Changed, expected, "{value}");
            assert_eq!(events.len(), usize::from(expected));
            assert_eq!(state.value.as_ref(), Some(value));
        }
    }
}

pub async fn signals_of_one_millisecond_are_one_write_each<S: Store>(store: S) {
    registered(&store, "s").await;
    for n in 0..5 {
        let signal = numbered("s", n % 2, 1, n as u64, 1);
        let (outcome, events, _) = step(&store, &signal).await;
        assert_eq!(outcome == Outcome::Changed, n > 0);
        assert_eq!(events.len(), usize::from(n > 0));
    }
}

pub async fn readings_of_signals_are_stored_once<S: Store>(store: S) {
    let sensor = registered(&store, "s").await;
    let signals = [
        signal("s", 1, 1, 1),
        signal("s", 0, 3, 3),
        signal("s", 1, 2, 4),
        signal("s", 0, 3, 3),
    ];
    let mut readings = Vec::new();
    for signal in &signals {
        let recorded = store.record(signal).await.unwrap().unwrap();
        assert_eq!(recorded.owner.generation, sensor.generation);
        readings.push(signal.reading(recorded.owner));
    }
    for _ in 0..2 {
        let saved = store.save_readings(&readings).await;
        assert_eq!(saved, vec![Ok(()); 4]);
    }
    assert!(store.save_readings(&[]).await.is_empty());
    let (_, latest) = store.latest(&id("s"), 10).await.unwrap();
    let values: Vec<String> = latest
        .iter()
        .map(|reading| reading.value.to_string())
        .collect();
    assert_eq!(values, ["0", "1", "1"], "stale ones too, duplicates once");
}
