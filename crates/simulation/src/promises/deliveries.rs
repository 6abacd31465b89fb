//! Every client is told everything its mode says, in order, and the history tells what happened.

use std::collections::BTreeMap;

use antumbra_service::clients::Mode;
use antumbra_service::deliveries::{DeliveryRecord, Kind, Status};

use super::Evidence;
use super::sensors::{states, word};
use crate::actors::clients::{Character, Intent, Known};
use crate::endpoint::Got;
use crate::functions::names;

/// How long a client whose endpoint is healthy waits at most when nothing goes wrong but others.
const PROMPT: u64 = 15_000;

/// How long a turn may take from its decision to its request.
const UNDER_WAY: u64 = 6_000;

/// Something that occurred at a sensor, told from its state's writes by rules of our own.
struct Occurrence {
    kind: Kind,
    /// When it was written, in milliseconds.
    at: u64,
}

fn occurrences(evidence: &Evidence<'_>, sensor: &str) -> Vec<Occurrence> {
    let mut all = Vec::new();
    for change in states(evidence, sensor) {
        let (Some(old), Some(new)) = (&change.old, &change.new) else {
            continue;
        };
        let (was, is) = (word(Some(old), "connection"), word(Some(new), "connection"));
        let contact = match (was, is) {
            ("NEVER", "LOST") => Some(Kind::ConnectionNeverSeen),
            ("ONLINE", "LOST") => Some(Kind::ConnectionLost),
            ("LOST", "ONLINE") => Some(Kind::ConnectionRestored),
            _ => None,
        };
        let changed = old.get("value").is_some() && old.get("value") != new.get("value");
        let changed = changed.then_some(Kind::StateChanged);
        all.extend(contact.into_iter().chain(changed).map(|kind| Occurrence {
            kind,
            at: change.at,
        }));
    }
    all
}

/// The texts of what was tried too often. A function that ended in the middle of the last turn could not
/// write that it was the last; the message is here all the same.
fn dead_letters(evidence: &Evidence<'_>) -> Vec<String> {
    let queues = [names::ORDERED_DEAD, names::UNORDERED_DEAD];
    let held = queues
        .iter()
        .flat_map(|name| evidence.world.cloud.held(name));
    held.map(|held| held.body).collect()
}

/// What overtakes each other.
fn family(kind: Kind) -> bool {
    kind == Kind::StateChanged
}

pub(super) async fn check(evidence: &Evidence<'_>) {
    let got = evidence.endpoints.got();
    let mut bodies: BTreeMap<&str, &str> = BTreeMap::new();
    for one in &got {
        let before = bodies.insert(&one.id, &one.body).unwrap_or(&one.body);
        evidence.expect("duplicates-have-one-id", before == one.body, || {
            format!("{} was {before} and {}", one.id, one.body)
        });
    }
    nothing_is_sent_against_the_will(evidence, &got);
    what_arrived_is_not_sent_again(evidence, &got);
    for client in evidence.clients.all() {
        let history = evidence.clients.history(&client.id).await;
        let got: Vec<&Got> = got.iter().filter(|got| got.client == client.id).collect();
        for sensor in &client.sensors {
            let of_sensor = |record: &&DeliveryRecord| {
                let at = record.delivery.sensor.as_ref();
                at.is_some_and(|at| at.id.as_str() == sensor)
            };
            let records: Vec<&DeliveryRecord> = history.iter().filter(of_sensor).collect();
            let occurred = occurrences(evidence, sensor);
            everything_is_delivered(evidence, &client, sensor, &occurred, &records);
            if client.mode == Mode::Every && client.character != Character::Fickle {
                in_order(evidence, &client, sensor, &records, &got);
            }
            if client.character == Character::Steady && evidence.world.profile.is_calm() {
                promptly(evidence, &client, sensor, &occurred, &records, &got);
            }
        }
        for record in &history {
            ends(evidence, &client, record);
            is_true(evidence, record, &got);
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
        let gone = client.character == Character::Leaving || {
            let number = format!("\"sequence\":{number},");
            let of_client = format!("\"id\":\"{}_", client.id);
            let of_sensor = format!("\"sensor\":{{\"id\":\"{sensor}\"");
            let parts = [of_client, of_sensor, number];
            let all = |body: &String| parts.iter().all(|part| body.contains(part));
            dead_letters(evidence).iter().any(all)
        };
        evidence.expect(
            "every-occurrence-has-a-delivery",
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
        let kind = record.delivery.kind;
        evidence.expect("told-as-it-was", kind == occurrence.kind, || {
            format!(
                "{} {sensor} {number}: {kind} of {}",
                client.id, occurrence.kind
            )
        });
        let newest = occurred
            .iter()
            .rposition(|other| family(other.kind) == family(occurrence.kind));
        let newest = newest.is_some_and(|newest| newest + 1 == number);
        evidence.expect(
            "superseded-only-by-a-newer",
            record.status != Status::Superseded || (client.mode == Mode::Latest && !newest),
            || format!("{} {sensor} {number}: superseded", client.id),
        );
    }
    let told = records.len();
    evidence.expect("nothing-is-made-up", told <= occurred.len(), || {
        format!(
            "{} {sensor}: {told} deliveries of {}",
            client.id,
            occurred.len()
        )
    });
}

fn ends(evidence: &Evidence<'_>, client: &Known, record: &DeliveryRecord) {
    let id = &record.delivery.id;
    let ended = match record.status {
        Status::Delivered | Status::Superseded => {
            client.character != Character::Dead || record.status == Status::Superseded
        }
        Status::Dead | Status::Failed => {
            let dead = dead_letters(evidence);
            let is_dead = dead.iter().any(|body| body.contains(&id.to_string()));
            is_dead && (record.status == Status::Dead || !evidence.world.profile.is_calm())
        }
        Status::Skipped => client.character == Character::Leaving,
        Status::Pending | Status::Parked => false,
    };
    evidence.expect("every-delivery-ends", ended, || {
        format!(
            "{id} ends {} ({:?}), attempts {:?}",
            record.status, client.character, record.attempts
        )
    });
    let calm = evidence.world.profile.is_calm();
    if calm && client.character == Character::Steady {
        let fine = matches!(record.status, Status::Delivered | Status::Superseded);
        evidence.expect("healthy-endpoints-get-everything", fine, || {
            format!("{id} is {}", record.status)
        });
    }
}

fn is_true(evidence: &Evidence<'_>, record: &DeliveryRecord, got: &[&Got]) {
    let id = record.delivery.id.to_string();
    let of_delivery: Vec<&&Got> = got.iter().filter(|got| got.id == id).collect();
    let arrived = |got: &&&&Got| {
        got.status
            .is_some_and(|status| (200..300).contains(&status))
    };
    let received = of_delivery.iter().filter(|got| arrived(got)).count();
    if record.status == Status::Delivered {
        evidence.expect("history-is-true", received > 0, || {
            format!("{id} is delivered, its client never took it")
        });
    }
    for attempt in &record.attempts {
        let Some(status) = attempt.status else {
            continue;
        };
        let real = of_delivery.iter().any(|got| got.status == Some(status));
        evidence.expect("history-is-true", real, || {
            format!("{id} was answered {status} by nobody")
        });
    }
    let calm = evidence.world.profile.is_calm();
    if calm {
        let answered = record.attempts.iter().filter(|one| one.status.is_some());
        let answers = of_delivery
            .iter()
            .filter(|got| got.status.is_some() && got.heard);
        let (noted, given) = (answered.count(), answers.count());
        evidence.expect("history-is-true", noted == given, || {
            format!("{id}: {given} answers were given, {noted} are noted")
        });
        evidence.expect("delivered-once-when-all-is-well", received <= 1, || {
            format!("{id} was delivered {received} times")
        });
    }
}

/// A later one is first tried when the one before has arrived, or was tried for the last time.
fn in_order(
    evidence: &Evidence<'_>,
    client: &Known,
    sensor: &str,
    records: &[&DeliveryRecord],
    got: &[&Got],
) {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.delivery.sequence);
    let tries = |record: &DeliveryRecord| {
        let id = record.delivery.id.to_string();
        let of_delivery = got.iter().filter(move |got| got.id == id);
        of_delivery.copied().collect::<Vec<&Got>>()
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
        evidence.expect("in-order-per-client-and-sensor", done <= first.at, || {
            let (one, other) = (two[0].delivery.sequence, two[1].delivery.sequence);
            let at = first.at;
            format!(
                "{} {sensor}: {other} was tried at {at}, {one} was done at {done}",
                client.id
            )
        });
    }
}

/// Whoever is broken delays nobody else.
fn promptly(
    evidence: &Evidence<'_>,
    client: &Known,
    sensor: &str,
    occurred: &[Occurrence],
    records: &[&DeliveryRecord],
    got: &[&Got],
) {
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
        let waited = first.at.saturating_sub(occurrence.at);
        evidence.expect("the-broken-delay-nobody-else", waited <= PROMPT, || {
            format!("{} {sensor} {number}: waited {waited} ms", client.id)
        });
    }
}

/// Whoever is disabled, or not linked any more, gets nothing from when that was confirmed until somebody
/// wants it otherwise.
fn nothing_is_sent_against_the_will(evidence: &Evidence<'_>, got: &[Got]) {
    let intents = evidence.clients.intents();
    for (at, intent) in intents.iter().enumerate() {
        let (false, Some(confirmed)) = (intent.wanted, intent.confirmed) else {
            continue;
        };
        let same = |other: &Intent| other.client == intent.client && other.sensor == intent.sensor;
        let others = intents
            .iter()
            .enumerate()
            .filter(|(_, other)| other.wanted && same(other));
        // One that began before may still be under way.
        let early = others
            .clone()
            .any(|(other, intent)| other < at && intent.confirmed.is_none());
        let until = others
            .filter(|(other, _)| *other > at)
            .map(|(_, other)| other.began)
            .min();
        let forbidden = confirmed + UNDER_WAY..until.unwrap_or(u64::MAX);
        let sensor = intent
            .sensor
            .as_ref()
            .map(|sensor| format!("\"id\":\"{sensor}\""));
        let about = |got: &&Got| {
            sensor
                .as_ref()
                .is_none_or(|sensor| got.body.contains(sensor))
        };
        let wrong = got
            .iter()
            .filter(|got| got.client == intent.client && forbidden.contains(&got.at))
            .find(about);
        evidence.expect(
            "nothing-is-sent-against-the-will",
            early || wrong.is_none(),
            || format!("{intent:?}, but {wrong:?}"),
        );
    }
}

/// Once it is written down that a client has something, it gets it no more; nobody asks for that here.
fn what_arrived_is_not_sent_again(evidence: &Evidence<'_>, got: &[Got]) {
    let mut arrived: BTreeMap<String, u64> = BTreeMap::new();
    for change in &evidence.changes {
        let (Some(client), Some(order)) = (
            change.partition.strip_prefix("CLIENT#"),
            change.sort.strip_prefix("DELIVERY#"),
        ) else {
            continue;
        };
        if word(change.new.as_ref(), "status") == "delivered" {
            let id = format!("{client}_{order}");
            arrived.entry(id).or_insert(change.at);
        }
    }
    for one in got {
        let known = arrived.get(&one.id).copied();
        let again = known.is_some_and(|known| one.at > known + UNDER_WAY);
        evidence.expect("what-arrived-is-not-sent-again", !again, || {
            format!("{} was sent at {}, delivered at {known:?}", one.id, one.at)
        });
    }
}
