//! Every client receives the deliveries of its mode, in order, and the history records them.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_queues::queue::Message;
use antumbra_service::clients::Mode;
use antumbra_service::deliveries::{DeliveryRecord, EventType, Status};
use antumbra_shadow::Timestamp;
use serde_json::Value;

use super::Evidence;
use super::sensors::{states, word};
use super::spill::HoldUps;
use super::suppressed::{
    circuits_have_one_probe, superseded_deliveries_are_not_sent, the_circuit_opens,
};
use crate::actors::clients::{Character, Known};
use crate::endpoint::ReceivedPost;
use crate::functions::names;
use crate::profile::Outage;
use crate::run::MAX_ATTEMPTS;

/// Maximum delay of a client with a healthy endpoint if only others fail.
const PROMPT: u64 = 15_000;

/// A sensor event, derived from the writes of its state by rules of our own.
pub(super) struct Occurrence {
    pub(super) kind: EventType,
    /// Time of the write, in milliseconds.
    pub(super) at: u64,
    /// Time at which the last signal was sent, in milliseconds.
    last_seen: Option<u64>,
}

/// The events of a sensor, by its generation.
pub(super) fn occurrences(
    evidence: &Evidence<'_>,
    sensor: &str,
) -> BTreeMap<String, Vec<Occurrence>> {
    let mut by_generation: BTreeMap<String, Vec<Occurrence>> = BTreeMap::new();
    for change in states(evidence, sensor) {
        let Some(new) = &change.new else {
            continue;
        };
        let all = by_generation.entry(word(Some(new), "generation").to_owned());
        let all = all.or_default();
        let Some(old) = &change.old else {
            continue;
        };
        let (was, is) = (word(Some(old), "connection"), word(Some(new), "connection"));
        let contact = match (was, is) {
            ("NEVER", "LOST") => Some(EventType::ConnectionNeverSeen),
            ("ONLINE", "LOST") => Some(EventType::ConnectionLost),
            ("LOST", "ONLINE") => Some(EventType::ConnectionRestored),
            _ => None,
        };
        let changed = old.get("value").is_some() && old.get("value") != new.get("value");
        let changed = changed.then_some(EventType::StateChanged);
        let last_seen = new.get("lastSeen").and_then(Value::as_u64);
        all.extend(contact.into_iter().chain(changed).map(|kind| Occurrence {
            kind,
            at: change.at,
            last_seen,
        }));
    }
    by_generation
}

/// Returns whether a sensor is unregistered and registered again: its links, too, come and go.
fn returns(evidence: &Evidence<'_>, sensor: &str) -> bool {
    let sensors = evidence.sensors.memory().sensors;
    sensors
        .iter()
        .any(|known| known.id == sensor && known.returns)
}

/// Deliveries after their last attempt.
fn dead_letters(evidence: &Evidence<'_>) -> Vec<Message> {
    let queues = [names::ORDERED_DEAD, names::UNORDERED_DEAD].iter();
    queues
        .flat_map(|name| evidence.world.cloud.messages(name))
        .collect()
}

/// Deliveries that can supersede each other.
pub(super) fn family(kind: EventType) -> bool {
    kind == EventType::StateChanged
}

pub(super) async fn check(evidence: &Evidence<'_>) {
    let got = evidence.endpoints.posts();
    let mut bodies: BTreeMap<&str, &str> = BTreeMap::new();
    for one in &got {
        let before = bodies.insert(&one.id, &one.body).unwrap_or(&one.body);
        evidence.expect("duplicates-share-an-id", before == one.body, || {
            format!("{} was {before} and {}", one.id, one.body)
        });
    }
    for client in evidence.clients.all() {
        let history = evidence.clients.history(&client.id).await;
        let got: Vec<&ReceivedPost> = got.iter().filter(|got| got.client == client.id).collect();
        the_circuit_opens(evidence, &client, &got);
        circuits_have_one_probe(evidence, &client, &got);
        for sensor in &client.sensors {
            let of_sensor = |record: &&DeliveryRecord| {
                let at = record.delivery.sensor.as_ref();
                at.is_some_and(|at| at.id.as_str() == sensor)
            };
            let records: Vec<&DeliveryRecord> = history.iter().filter(of_sensor).collect();
            for (generation, occurred) in occurrences(evidence, sensor) {
                let of_generation = |record: &&&DeliveryRecord| {
                    let at = record.delivery.sensor.as_ref();
                    at.is_some_and(|at| at.generation.as_str() == generation)
                };
                let records: Vec<_> = records.iter().filter(of_generation).copied().collect();
                everything_is_delivered(evidence, &client, sensor, &occurred, &records);
                superseded_deliveries_are_not_sent(evidence, &client, &occurred, &records, &got);
                if client.mode == Mode::Every {
                    in_order(evidence, &client, sensor, &records, &got);
                }
                if client.character == Character::Steady {
                    promptly(evidence, &client, sensor, &occurred, &records, &got);
                }
            }
        }
        for record in &history {
            ends(evidence, &client, record);
            is_complete(evidence, record);
            matches_the_endpoint(evidence, record, &got);
        }
    }
}

fn everything_is_delivered(
    evidence: &Evidence<'_>,
    client: &Known,
    sensor: &str,
    occurred: &[Occurrence],
    records: &[&DeliveryRecord],
) {
    let of_number = |number: usize| {
        let mut of_number = records.iter();
        of_number.find(|record| record.delivery.sequence == number as u64)
    };
    for (number, occurrence) in (1..).zip(occurred) {
        let record = of_number(number);
        let gone = client.character == Character::Leaving || returns(evidence, sensor);
        evidence.expect(
            "every-sensor-event-has-a-delivery",
            record.is_some() || gone,
            || {
                format!(
                    "{} {sensor} {number} {}: not in the history",
                    client.id, occurrence.kind
                )
            },
        );
        let Some(record) = record else {
            continue;
        };
        let kind = record.delivery.event_type;
        evidence.expect(
            "notifications-match-the-change",
            kind == occurrence.kind,
            || {
                format!(
                    "{} {sensor} {number}: {kind} of {}",
                    client.id, occurrence.kind
                )
            },
        );
        // Also if the signal was sent before the loss and processed after it.
        let data: Value = serde_json::from_str(record.delivery.data.get()).unwrap_or_default();
        let restored = data.get("restoredAt").or_else(|| data.get("restored_at"));
        let restored = restored.and_then(|time| Timestamp::parse(time.as_str()?));
        let restored = restored.map(Timestamp::nanoseconds);
        let sent = occurrence
            .last_seen
            .map(|sent| i128::from(sent) * 1_000_000);
        evidence.expect(
            "notifications-match-the-change",
            kind != EventType::ConnectionRestored || restored == sent,
            || format!("{} {sensor} {number}: {data}, sent at {sent:?}", client.id),
        );
        let newest = occurred
            .iter()
            .rposition(|other| family(other.kind) == family(occurrence.kind));
        let newest = newest.is_some_and(|newest| newest + 1 == number);
        evidence.expect(
            "superseded-only-by-a-newer-delivery",
            record.status != Status::Superseded || (client.mode == Mode::Latest && !newest),
            || format!("{} {sensor} {number}: superseded", client.id),
        );
    }
    let count = records.len();
    evidence.expect("nothing-is-invented", count <= occurred.len(), || {
        format!(
            "{} {sensor}: {count} deliveries of {}",
            client.id,
            occurred.len()
        )
    });
}

fn ends(evidence: &Evidence<'_>, client: &Known, record: &DeliveryRecord) {
    let id = &record.delivery.id;
    let is_among = |letters: Vec<Message>| {
        let id = id.to_string();
        letters.iter().any(|held| held.body.contains(&id))
    };
    let ended = match record.status {
        Status::Delivered | Status::Superseded => {
            client.character != Character::Dead || record.status == Status::Superseded
        }
        // All attempts were made, in every round that ended.
        Status::Dead => {
            let round = record.progress.round;
            let made = record.attempts.iter().filter(|one| one.round == round);
            is_among(dead_letters(evidence)) && made.count() == MAX_ATTEMPTS as usize
        }
        Status::Skipped => {
            let sensor = record.delivery.sensor.as_ref();
            let returns = sensor.is_some_and(|sensor| returns(evidence, sensor.id.as_str()));
            client.character == Character::Leaving || returns
        }
        Status::Pending | Status::Failed | Status::Held => false,
    };
    evidence.expect("every-delivery-is-settled", ended, || {
        format!(
            "{id} ends {} ({:?}), attempts {:?}",
            record.status, client.character, record.attempts
        )
    });
    let calm = evidence.world.profile.is_calm();
    if calm && client.character == Character::Steady {
        let sensor = record.delivery.sensor.as_ref();
        let returns = sensor.is_some_and(|sensor| returns(evidence, sensor.id.as_str()));
        let fine = matches!(record.status, Status::Delivered | Status::Superseded) || returns;
        evidence.expect("healthy-endpoints-receive-everything", fine, || {
            format!("{id} is {}", record.status)
        });
    }
}

/// Every attempt of every round is in the history, interrupted ones too.
fn is_complete(evidence: &Evidence<'_>, record: &DeliveryRecord) {
    let mut rounds: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for attempt in &record.attempts {
        let numbers = rounds.entry(attempt.round).or_default();
        numbers.insert(attempt.number);
    }
    for (round, numbers) in rounds {
        let last = numbers.last().copied().unwrap_or_default();
        evidence.expect(
            "history-is-complete",
            numbers.iter().copied().eq(1..=last),
            || {
                format!(
                    "{}: of round {round} {numbers:?} are recorded",
                    record.delivery.id
                )
            },
        );
    }
}

fn matches_the_endpoint(evidence: &Evidence<'_>, record: &DeliveryRecord, got: &[&ReceivedPost]) {
    let id = record.delivery.id.to_string();
    let of_delivery: Vec<&&ReceivedPost> = got.iter().filter(|got| got.id == id).collect();
    let arrived = |got: &&&&ReceivedPost| {
        got.status
            .is_some_and(|status| (200..300).contains(&status))
    };
    let received = of_delivery.iter().filter(|got| arrived(got)).count();
    if record.status == Status::Delivered {
        evidence.expect("history-matches-the-endpoint", received > 0, || {
            format!("{id} is delivered, its client never took it")
        });
    }
    for attempt in &record.attempts {
        let Some(status) = attempt.status else {
            continue;
        };
        let real = of_delivery.iter().any(|got| got.status == Some(status));
        evidence.expect("history-matches-the-endpoint", real, || {
            format!("{id} was responded {status} by nobody")
        });
    }
    let calm = evidence.world.profile.is_calm();
    if calm {
        let responded = record.attempts.iter().filter(|one| one.status.is_some());
        let responses = of_delivery
            .iter()
            .filter(|got| got.status.is_some() && got.response_arrived);
        let (noted, given) = (responded.count(), responses.count());
        evidence.expect("history-matches-the-endpoint", noted == given, || {
            format!("{id}: {given} responses were given, {noted} are noted")
        });
        evidence.expect("delivered-once-without-faults", received <= 1, || {
            format!("{id} was delivered {received} times")
        });
    }
}

/// The first attempt of a delivery follows the success or the last attempt of the delivery before it.
fn in_order(
    evidence: &Evidence<'_>,
    client: &Known,
    sensor: &str,
    records: &[&DeliveryRecord],
    got: &[&ReceivedPost],
) {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.delivery.sequence);
    let tries = |record: &DeliveryRecord| {
        let id = record.delivery.id.to_string();
        let of_delivery = got.iter().filter(move |got| got.id == id);
        of_delivery.copied().collect::<Vec<&ReceivedPost>>()
    };
    for two in records.windows(2) {
        let (earlier, later) = (tries(two[0]), tries(two[1]));
        let arrived = earlier
            .iter()
            .find(|got| got.status.is_some_and(|status| status < 300));
        let done = match two[0].status {
            Status::Delivered => arrived.map(|got| got.at),
            Status::Dead => earlier.last().map(|got| got.at),
            _ => None,
        };
        let (Some(done), Some(first)) = (done, later.first()) else {
            continue;
        };
        evidence.expect(
            "deliveries-are-in-order-per-client-and-sensor",
            done <= first.at,
            || {
                let (one, other) = (two[0].delivery.sequence, two[1].delivery.sequence);
                let at = first.at;
                format!(
                    "{} {sensor}: {other} was tried at {at}, {one} was done at {done}",
                    client.id
                )
            },
        );
    }
}

/// A failing client delays no other.
fn promptly(
    evidence: &Evidence<'_>,
    client: &Known,
    sensor: &str,
    occurred: &[Occurrence],
    records: &[&DeliveryRecord],
    got: &[&ReceivedPost],
) {
    let profile = &evidence.world.profile;
    let is_out = |out: &Outage| out.registrations().contains(&"sensor-clients");
    let is_affected = profile.target_outage.as_ref().is_some_and(is_out);
    if !profile.is_calm_apart_from_target() || is_affected {
        return;
    }
    let hold_ups = HoldUps::new(evidence);
    for (number, occurrence) in (1..).zip(occurred) {
        let record = records.iter().find(|one| one.delivery.sequence == number);
        let delivered = record.filter(|record| record.status == Status::Delivered);
        let Some(record) = delivered else {
            continue;
        };
        let id = record.delivery.id.to_string();
        let Some(first) = got.iter().find(|got| got.id == id) else {
            continue;
        };
        let waited = first.at.saturating_sub(hold_ups.end(occurrence.at));
        evidence.expect("failures-delay-nothing-else", waited <= PROMPT, || {
            format!("{} {sensor} {number}: waited {waited} ms", client.id)
        });
    }
}
