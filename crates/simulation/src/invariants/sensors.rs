//! States and readings equal the signals, and silence is detected in time, once, and never too early.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::Evidence;
use crate::actors::sensors::{Known, Memory, Signal};
use crate::functions::names;
use crate::stream::Change;

/// Time that the sweep grants to signals that its marker overtook.
const SETTLE: u64 = 5_000;
/// Maximum delay of detecting silence without faults: a period, the marker's delay and a run.
const LATE: Duration = Duration::from_secs(60 + 30);

/// The writes of a sensor's state, in order.
pub(super) fn states<'a>(evidence: &'a Evidence<'_>, sensor: &str) -> Vec<&'a Change> {
    let partition = format!("SENSOR#{sensor}");
    let changes = evidence.changes.iter().map(|change| &**change);
    changes
        .filter(|change| change.partition == partition && change.sort == "STATE")
        .collect()
}

pub(super) fn word<'a>(image: Option<&'a Value>, name: &str) -> &'a str {
    let found = image.and_then(|image| image.get(name)?.as_str());
    found.unwrap_or_default()
}

pub(super) fn check(evidence: &Evidence<'_>) {
    let memory = evidence.sensors.memory();
    for sensor in &memory.sensors {
        let signals: Vec<&Signal> = memory
            .signals
            .iter()
            .filter(|signal| signal.sensor == sensor.id)
            .collect();
        contacts_restore_the_sensor(evidence, sensor);
        if sensor.returns {
            every_signal_is_kept(evidence, sensor, &signals);
            continue;
        }
        newest_value_is_stored(evidence, sensor, &signals);
        every_signal_has_a_reading(evidence, sensor, &signals);
        silent_sensors_are_lost(evidence, sensor, &signals);
    }
    progress_never_decreases(evidence);
    bad_input_is_quarantined(evidence, &memory);
}

fn progress_never_decreases(evidence: &Evidence<'_>) {
    let reached = |image: &Option<Value>| image.as_ref()?.get("reached")?.as_u64();
    for change in &evidence.changes {
        let back = change.partition == "LIVENESS" && reached(&change.new) < reached(&change.old);
        evidence.expect("progress-never-decreases", !back, || {
            format!("{}: {:?} after {:?}", change.sort, change.new, change.old)
        });
    }
}

fn newest_value_is_stored(evidence: &Evidence<'_>, sensor: &Known, signals: &[&Signal]) {
    let held = states(evidence, &sensor.id)
        .last()
        .and_then(|last| last.new.as_ref());
    let held = held.and_then(|state| state.get("value")?.as_u64());
    // Two signals with the same time and sequence number have the same value.
    let newest = signals.iter().max_by_key(|signal| &signal.order);
    let expected = newest.map(|signal| signal.value);
    evidence.expect("newest-value-is-stored", held == expected, || {
        format!("{}: {held:?} is stored, {newest:?} was sent", sensor.id)
    });
    let last = states(evidence, &sensor.id)
        .last()
        .and_then(|last| last.new.as_ref());
    let last_seen = last.and_then(|state| state.get("lastSeen")?.as_u64());
    let sent = signals.iter().map(|signal| signal.sent).max();
    evidence.expect("last-contact-is-stored", last_seen == sent, || {
        format!("{}: last seen {last_seen:?}, last sent {sent:?}", sensor.id)
    });
}

fn every_signal_has_a_reading(evidence: &Evidence<'_>, sensor: &Known, signals: &[&Signal]) {
    let partition = format!("SENSOR#{}", sensor.id);
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for change in &evidence.changes {
        if change.partition == partition && change.sort.starts_with("READ#") {
            let value = change
                .new
                .as_ref()
                .and_then(|new| new.get("value")?.as_u64());
            let before = kept.insert(change.sort.clone(), value.unwrap_or(99));
            evidence.expect(
                "readings-are-stored-once",
                before.is_none_or(|before| Some(before) == value),
                || {
                    format!(
                        "{}: {} was {before:?} and is {value:?}",
                        sensor.id, change.sort
                    )
                },
            );
        }
    }
    let expected: BTreeSet<&(u64, String)> = signals.iter().map(|signal| &signal.order).collect();
    evidence.expect(
        "every-signal-has-a-reading",
        kept.len() == expected.len(),
        || {
            format!(
                "{}: {expected:?} were sent, {:?} are stored",
                sensor.id,
                kept.keys()
            )
        },
    );
}

/// A signal of a sensor that is registered again has a reading, of whichever registration, or was quarantined while
/// the sensor was not registered.
fn every_signal_is_kept(evidence: &Evidence<'_>, sensor: &Known, signals: &[&Signal]) {
    let partition = format!("SENSOR#{}", sensor.id);
    let is_reading = |change: &&Change| {
        let is_of_sensor = change.partition == partition && change.sort.starts_with("READ#");
        is_of_sensor && change.new.is_some()
    };
    let changes = evidence.changes.iter().map(|change| &**change);
    let readings: BTreeSet<&str> = changes.filter(is_reading).map(|one| &*one.sort).collect();
    let quarantined = evidence.world.cloud.messages(names::QUARANTINE);
    let is_of_sensor = |body: &str| body.contains(&format!("\"sensor_id\":\"{}\"", sensor.id));
    let quarantined = quarantined
        .iter()
        .filter(|held| is_of_sensor(&held.body))
        .count();
    let sent: BTreeSet<&(u64, String)> = signals.iter().map(|signal| &signal.order).collect();
    let kept = readings.len() + quarantined;
    evidence.expect("every-signal-has-a-reading", kept >= sent.len(), || {
        format!(
            "{}: {sent:?} were sent, {readings:?} are stored, {quarantined} quarantined",
            sensor.id
        )
    });
}

/// A contact ends the loss of a sensor, also one that was sent before the loss and processed after it.
fn contacts_restore_the_sensor(evidence: &Evidence<'_>, sensor: &Known) {
    let last_seen = |image: &Option<Value>| image.as_ref()?.get("lastSeen")?.as_u64();
    for change in states(evidence, &sensor.id) {
        let is_contact = change.new.is_some() && last_seen(&change.new) > last_seen(&change.old);
        let state = word(change.new.as_ref(), "connection");
        let has_loss = change
            .new
            .as_ref()
            .is_some_and(|new| new.get("lostAt").is_some());
        let is_lost = state != "ONLINE" || has_loss;
        evidence.expect(
            "contacts-restore-the-sensor",
            !is_contact || !is_lost,
            || format!("{}: {:?} after a contact", sensor.id, change.new),
        );
    }
}

fn silent_sensors_are_lost(evidence: &Evidence<'_>, sensor: &Known, signals: &[&Signal]) {
    let silence = sensor.silence.as_millis() as u64;
    for change in states(evidence, &sensor.id) {
        let connection = word(change.new.as_ref(), "connection");
        let before = word(change.old.as_ref(), "connection");
        if connection != "LOST" || before == "LOST" {
            continue;
        }
        never_early(evidence, sensor, change, signals);
        let last = signals
            .iter()
            .map(|signal| signal.sent)
            .filter(|sent| *sent < change.at)
            .max();
        let since = last.unwrap_or(sensor.registered);
        let late = since + silence + LATE.as_millis() as u64;
        if evidence.world.profile.is_sweep_undisturbed() {
            evidence.expect("sensors-are-lost-in-time", change.at <= late, || {
                format!(
                    "{}: lost at {}, expected before {late}",
                    sensor.id, change.at
                )
            });
        }
    }
    let end = evidence.swept_until;
    let last = signals.iter().map(|signal| signal.sent).max();
    let since = last.unwrap_or(sensor.registered);
    let state = states(evidence, &sensor.id)
        .last()
        .and_then(|last| last.new.clone());
    let connection = word(state.as_ref(), "connection");
    if since + silence + 2 * LATE.as_millis() as u64 <= end {
        evidence.expect("silent-sensors-are-lost", connection == "LOST", || {
            format!(
                "{}: silent since {since}, it is {connection} at {end}",
                sensor.id
            )
        });
    }
    if last.is_some_and(|last| last + silence > end) {
        evidence.expect("active-sensors-are-online", connection == "ONLINE", || {
            format!(
                "{}: last seen at {since}, it is {connection} at {end}",
                sensor.id
            )
        });
    }
}

/// A lost sensor was silent for long enough. The rule, as the documentation of liveness states it:
///
/// 1. The last contact that the state knows is at least the silence time before the loss.
/// 2. A sweep marks a sensor only up to the time at which its marker was sent, and after the marker was received.
/// 3. It knows every signal sent until then that was processed [`SETTLE`] after the marker was received, and every one
///    that was received together with the marker. It may miss another one: the queue hides a message that was received
///    until its visibility timeout ends, and nobody can see it before. That signal restores the sensor afterwards, with
///    the time at which it was sent.
/// 4. If nothing delays functions or messages, it misses none.
fn never_early(evidence: &Evidence<'_>, sensor: &Known, change: &Change, signals: &[&Signal]) {
    let silence = sensor.silence.as_millis() as u64;
    let number =
        |image: Option<&Value>, name: &str| image.and_then(|image| image.get(name)?.as_u64());
    let lost_at = number(change.new.as_ref(), "lostAt").unwrap_or(change.at);
    let known = number(change.old.as_ref(), "lastSeen");
    let since = known.unwrap_or(sensor.registered);
    evidence.expect(
        "sensors-are-not-lost-too-early",
        since + silence <= lost_at + SKEW,
        || {
            format!(
                "{}: lost at {lost_at}, last seen at {since}, may be silent {silence}",
                sensor.id
            )
        },
    );
    let world = evidence.world;
    let marker = world.marker_of(lost_at);
    let marker = marker.filter(|marker| marker.received_at <= change.at);
    evidence.expect("sensors-are-not-lost-too-early", marker.is_some(), || {
        format!("{}: lost at {lost_at} without a marker", sensor.id)
    });
    let Some(marker) = marker else {
        return;
    };
    let batch = marker.processed.filter(|(at, _)| *at <= change.at);
    let is_known = |signal: &Signal| {
        let seen = |state: &&Change| number(state.new.as_ref(), "lastSeen") >= Some(signal.sent);
        let seen = states(evidence, &sensor.id).into_iter().find(seen);
        let in_time = seen.is_some_and(|seen| seen.at <= marker.received_at + SETTLE);
        let beside = batch.is_some_and(|(_, batch)| world.was_in(&signal.message, batch));
        in_time || beside || world.profile.is_sweep_undisturbed()
    };
    let missed = signals
        .iter()
        .filter(|signal| Some(signal.sent) > known && signal.sent <= lost_at)
        .find(|signal| is_known(signal));
    evidence.expect("sensors-are-not-lost-too-early", missed.is_none(), || {
        format!("{}: lost at {lost_at}, but {missed:?} was known", sensor.id)
    });
}

/// Maximum difference between the clocks of functions, which registering uses.
const SKEW: u64 = 1000;

fn bad_input_is_quarantined(evidence: &Evidence<'_>, memory: &Memory) {
    let mut expected: BTreeSet<(String, String)> = memory
        .invalid
        .iter()
        .map(|invalid| (invalid.body.clone(), invalid.reason.to_owned()))
        .collect();
    let of_inbox = evidence.inbox.memory().invalid.into_iter();
    expected.extend(of_inbox.map(|(body, reason)| (body, reason.to_owned())));
    let held = evidence.world.cloud.messages(names::QUARANTINE).into_iter();
    // Failed invocations are checked with the requests of devices.
    let held = held.filter(|held| !held.body.contains("\"requestPayload\""));
    let found: BTreeSet<(String, String)> = held
        .map(|held| {
            let reason = held.attributes.get("reason");
            let reason = reason.and_then(|reason| reason.string_value.clone());
            (held.body, reason.unwrap_or_default())
        })
        .collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    evidence.expect("bad-input-is-quarantined", missing.is_empty(), || {
        format!("not in the quarantine: {missing:?}")
    });
    // Sensors are unknown while they are not registered.
    let returning: BTreeSet<&str> = memory
        .sensors
        .iter()
        .filter(|sensor| sensor.returns)
        .map(|sensor| &*sensor.id)
        .collect();
    let of_returning = |(body, reason): &&(String, String)| {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        reason == "UnknownSensor" && returning.contains(body["sensor_id"].as_str().unwrap_or(""))
    };
    let wrong: Vec<_> = found
        .difference(&expected)
        .filter(|one| !of_returning(one))
        .collect();
    evidence.expect("only-bad-input-is-quarantined", wrong.is_empty(), || {
        format!("in the quarantine: {wrong:?}")
    });
}
