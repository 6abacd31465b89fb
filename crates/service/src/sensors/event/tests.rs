//! The events of consecutive writes of a state are numbered without gaps.

use antumbra_shadow::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::sensors::id::SensorType;
use crate::sensors::reading_time::{ReadingTime, Sequence, from_milliseconds};

fn fresh() -> State {
    State {
        sensor: SensorId::new("lock").unwrap(),
        generation: Generation::new("g").unwrap(),
        registered_at: time(0),
        address: Address::new("Main St 1").unwrap(),
        sensor_type: SensorType::default(),
        silence_after: SilenceTimeout::default(),
        value: None,
        moment: None,
        since: None,
        last_seen: None,
        deadline: time(3600),
        connection: Connection::Never,
        lost_at: None,
        changes: 0,
        contacts: 0,
        check_at: Some(time(3600)),
    }
}

fn time(seconds: i64) -> Timestamp {
    from_milliseconds(seconds * 1000)
}

/// One write of a state.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A signal with a newer value; `seen` if it is a newer contact too.
    Signal { value: i64, seen: bool },
    /// A signal that is only a newer contact.
    Seen,
    /// A sweep that finds the deadline passed.
    Silence,
    /// A change of the sensor's address.
    Renamed,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_i64, prop::bool::weighted(0.8)).prop_map(|(value, seen)| Step::Signal { value, seen }),
        1 => Just(Step::Seen),
        2 => Just(Step::Silence),
        1 => Just(Step::Renamed),
    ]
}

fn step(old: &State, step: Step, now: i64) -> State {
    let mut new = old.clone();
    let first = old.value.is_none();
    match step {
        Step::Signal { value, seen } => {
            let value = Value::whole(value);
            new.changes += u64::from(old.value.as_ref() != Some(&value));
            new.value = Some(value);
            new.moment = ReadingTime::new(time(now), Sequence::Number(0)).ok();
            if seen || first {
                contact(&mut new, now);
            }
        }
        Step::Seen if first => {}
        Step::Seen => contact(&mut new, now),
        Step::Silence if old.is_awaited() => {
            new.connection = Connection::Lost;
            new.lost_at = Some(time(now));
            new.contacts += 1;
        }
        Step::Silence => {}
        Step::Renamed => new.address = Address::new(now.to_string()).unwrap(),
    }
    new
}

fn contact(state: &mut State, now: i64) {
    state.contacts += u64::from(!state.is_awaited());
    state.connection = Connection::Online;
    state.lost_at = None;
    state.last_seen = Some(time(now));
    state.deadline = time(now + 3600);
}

proptest! {
    #[test]
    fn numbers_have_no_gap_and_losses_and_returns_alternate(
        walk in prop::collection::vec(steps(), 1..60),
    ) {
        let mut state = fresh();
        let mut events: Vec<SensorEvent> = SensorEvent::between(None, &state);
        for (now, next) in (1..).zip(walk) {
            let new = step(&state, next, now);
            let happened = SensorEvent::between(Some(&state), &new);
            prop_assert_eq!(new.sequence() - state.sequence(), happened.len() as u64);
            events.extend(happened);
            state = new;
        }
        for (number, event) in (1..).zip(&events) {
            prop_assert_eq!(event.sequence, number);
        }
        let mut lost = false;
        let mut value = None;
        for event in &events {
            match &event.detail {
                EventDetail::ConnectionLost { .. } | EventDetail::ConnectionNeverSeen { .. } => {
                    prop_assert!(!lost);
                    lost = true;
                }
                EventDetail::ConnectionRestored { .. } => {
                    prop_assert!(lost);
                    lost = false;
                }
                EventDetail::StateChanged { previous, current, .. } => {
                    prop_assert_ne!(previous, current);
                    prop_assert!(value.is_none_or(|value: &Value| value == previous));
                    value = Some(current);
                }
            }
        }
        prop_assert_eq!(lost, state.connection == Connection::Lost);
    }

    /// A stream record that is received twice gives the same events, with the same ids.
    #[test]
    fn the_same_images_give_the_same_events(first in steps(), second in steps()) {
        let old = step(&fresh(), first, 1);
        let new = step(&old, second, 2);
        let ids = || -> Vec<String> { SensorEvent::between(Some(&old), &new).iter().map(SensorEvent::id).collect() };
        prop_assert_eq!(ids(), ids());
    }
}

fn signal(value: i64) -> Step {
    let seen = true;
    Step::Signal { value, seen }
}

#[test]
fn a_sensor_registered_again_has_no_past() {
    let mut old = step(&fresh(), signal(1), 1);
    old.generation = Generation::new("former").unwrap();
    let new = step(&fresh(), signal(0), 2);
    assert!(SensorEvent::between(Some(&old), &new).is_empty());
}

#[test]
fn ids_name_sensor_generation_and_number() {
    let old = step(&fresh(), signal(1), 1);
    let new = step(&old, signal(0), 2);
    let events = SensorEvent::between(Some(&old), &new);
    assert_eq!(events[0].id(), "lock/g/1");
    assert_eq!(events[0].address.as_str(), "Main St 1");
}
