//! Deliveries that must not be sent: to disabled, unlinked or gone clients, twice, too early, or superseded.

use std::collections::BTreeMap;

use antumbra_service::clients::Mode;
use antumbra_service::deliveries::DeliveryRecord;
use serde_json::Value;

use super::Evidence;
use super::deliveries::{Occurrence, family};
use super::sensors::word;
use crate::actors::clients::{Character, Intent, Known};
use crate::endpoint::{RETRY_AFTER, ReceivedPost, TIMEOUT};
use crate::run::OPEN_FIRST;
use crate::stream::Change;

/// Maximum time from the decision of an attempt to its request.
const UNDER_WAY: u64 = 6_000;
/// Maximum time since a client was enabled that a running attempt disables.
const ENABLING: u64 = 30_000;
/// Shortest delay between two attempts, with jitter and differing clocks.
const SHORTEST_DELAY: u64 = 2_000;
/// Tolerance for differing clocks and the delay of requests.
const ABOUT: u64 = 1_500;

pub(super) fn check(evidence: &Evidence<'_>) {
    let got = evidence.endpoints.posts();
    disabled_and_unlinked_clients_receive_nothing(evidence, &got);
    delivered_is_not_sent_again(evidence, &got);
    former_registrations_send_nothing(evidence, &got);
    attempts_do_not_overlap(evidence, &got);
    a_410_disables_the_client(evidence);
    // Otherwise the same delivery can be queued twice, or a function can end before it records a response.
    if evidence.world.profile.is_calm() {
        disabled_endpoints_are_not_called(evidence, &got);
        retry_after_is_honoured(evidence, &got);
    }
}

/// A disabled or unlinked client receives nothing from the confirmation until the next intent.
fn disabled_and_unlinked_clients_receive_nothing(evidence: &Evidence<'_>, got: &[ReceivedPost]) {
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
        // An attempt that began before may take longer.
        let ends_later = |other: &Intent| other.confirmed.is_none_or(|ended| ended >= intent.began);
        let early = others
            .clone()
            .any(|(before, other)| before < at && ends_later(other));
        let until = others
            .filter(|(other, _)| *other > at)
            .map(|(_, other)| other.began)
            .min();
        let forbidden = confirmed + UNDER_WAY..until.unwrap_or(u64::MAX);
        let sensor = intent
            .sensor
            .as_ref()
            .map(|sensor| format!("\"id\":\"{sensor}\""));
        let about = |got: &&ReceivedPost| {
            sensor
                .as_ref()
                .is_none_or(|sensor| got.body.contains(sensor))
        };
        let wrong = got
            .iter()
            .filter(|got| got.client == intent.client && forbidden.contains(&got.at))
            .find(about);
        evidence.expect(
            "disabled-and-unlinked-clients-receive-nothing",
            early || wrong.is_none(),
            || format!("{intent:?}, but {wrong:?}"),
        );
    }
}

/// A delivery that is recorded as delivered is not sent again; no redelivery is requested here.
fn delivered_is_not_sent_again(evidence: &Evidence<'_>, got: &[ReceivedPost]) {
    let mut arrived: BTreeMap<String, u64> = BTreeMap::new();
    for change in &evidence.changes {
        let (Some(client), Some(order)) = (
            change.partition.strip_prefix("CLIENT#"),
            change.sort.strip_prefix("DELIVERY#"),
        ) else {
            continue;
        };
        let id = format!("{client}_{order}");
        let claim = |image: &Option<Value>| image.as_ref()?.get("claim").cloned();
        let begins = claim(&change.new).is_some_and(|new| Some(new) != claim(&change.old));
        let known = arrived.get(&id);
        evidence.expect(
            "delivered-is-not-sent-again",
            !begins || known.is_none(),
            || {
                let at = change.at;
                format!("{id} was attempted at {at}, delivered at {known:?}")
            },
        );
        if word(change.new.as_ref(), "status") == "delivered" {
            arrived.entry(id).or_insert(change.at);
        }
    }
    for one in got {
        let known = arrived.get(&one.id).copied();
        let again = known.is_some_and(|known| one.at > known + UNDER_WAY);
        evidence.expect("delivered-is-not-sent-again", !again, || {
            format!("{} was sent at {}, delivered at {known:?}", one.id, one.at)
        });
    }
}

/// The next attempt of a delivery follows the end of the attempt before it and a delay. A client that is enabled gets
/// its deliveries at once.
fn attempts_do_not_overlap(evidence: &Evidence<'_>, posts: &[ReceivedPost]) {
    for client in evidence.clients.all() {
        if client.character == Character::Fickle {
            continue;
        }
        let posts = posts.iter().filter(|post| post.client == client.id);
        let mut last: BTreeMap<&str, &ReceivedPost> = BTreeMap::new();
        for post in posts {
            let Some(before) = last.insert(&post.id, post) else {
                continue;
            };
            let took = match before.status {
                Some(_) => 0,
                None => TIMEOUT.as_millis() as u64,
            };
            let waited = post.at - before.at;
            let enough = waited >= took + SHORTEST_DELAY;
            evidence.expect("attempts-do-not-overlap", enough, || {
                format!("{}: the next attempt came after {waited} ms", post.id)
            });
        }
    }
}

/// Nothing of an earlier registration of a sensor is sent once it is registered again.
fn former_registrations_send_nothing(evidence: &Evidence<'_>, got: &[ReceivedPost]) {
    let registrations = evidence.clients.registrations();
    for (at, registration) in registrations.iter().enumerate() {
        let later = registrations[at..].iter();
        let current: Vec<&str> = later.map(|later| &*later.generation).collect();
        let is_former = |got: &&ReceivedPost| {
            let body: Value = serde_json::from_str(&got.body).unwrap_or_default();
            let sensor = &body["sensor"];
            let generation = sensor["generation"].as_str().unwrap_or_default();
            sensor["id"] == registration.sensor.as_str()
                && got.at > registration.confirmed + UNDER_WAY
                && !current.contains(&generation)
        };
        let wrong = got.iter().find(is_former);
        evidence.expect("former-registrations-send-nothing", wrong.is_none(), || {
            format!("{registration:?}, but: {wrong:?}")
        });
    }
}

/// A client is disabled before a response 410 of its endpoint is recorded.
fn a_410_disables_the_client(evidence: &Evidence<'_>) {
    let gone = |image: &Option<Value>| {
        let attempts = image
            .as_ref()
            .and_then(|image| image["attempts"].as_array());
        let all = attempts.into_iter().flatten();
        all.filter(|attempt| attempt["status"] == 410).count()
    };
    // Clients that were disabled, with the times at which they were enabled again.
    let mut disabled: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for change in &evidence.changes {
        let client = change.partition.as_str();
        match word(change.new.as_ref(), "state") {
            "disabled" => {
                disabled.insert(client, None);
            }
            "enabled" => {
                if let Some(since) = disabled.get_mut(client) {
                    since.get_or_insert(change.at);
                }
            }
            _ => {}
        }
        if gone(&change.new) > gone(&change.old) {
            let known = disabled.get(client);
            let meanwhile = |enabled: &u64| enabled + ENABLING >= change.at;
            let kept = known.is_some_and(|since| since.as_ref().is_none_or(meanwhile));
            evidence.expect("a-410-disables-the-client", kept, || {
                format!(
                    "{client} responded 410 before {}, disabled: {known:?}",
                    change.at
                )
            });
        }
    }
}

/// A client whose endpoint responds with 410 receives nothing until it is enabled.
fn disabled_endpoints_are_not_called(evidence: &Evidence<'_>, got: &[ReceivedPost]) {
    let intents = evidence.clients.intents();
    for gone in got.iter().filter(|got| got.status == Some(410)) {
        let enabled = |intent: &&Intent| {
            let late = intent
                .confirmed
                .is_none_or(|confirmed| confirmed >= gone.at);
            intent.client == gone.client && intent.sensor.is_none() && intent.wanted && late
        };
        let until = intents.iter().filter(enabled).map(|intent| intent.began);
        let forbidden = gone.at + UNDER_WAY..until.min().unwrap_or(u64::MAX);
        let of_client = |got: &&ReceivedPost| got.client == gone.client;
        let mut of_client = got.iter().filter(of_client);
        let sent = of_client.find(|got| forbidden.contains(&got.at));
        evidence.expect("disabled-endpoints-are-not-called", sent.is_none(), || {
            format!("{} was gone at {}, but got {sent:?}", gone.client, gone.at)
        });
    }
}

/// `Retry-After` is honoured for the same delivery.
fn retry_after_is_honoured(evidence: &Evidence<'_>, got: &[ReceivedPost]) {
    for (at, busy) in got.iter().enumerate() {
        if busy.status != Some(503) {
            continue;
        }
        let next = got[at + 1..].iter().find(|next| next.id == busy.id);
        let waited = next.map(|next| next.at - busy.at);
        let enough = waited.is_none_or(|waited| waited >= RETRY_AFTER.as_millis() as u64);
        evidence.expect("retry-after-is-honoured", enough, || {
            format!("{} came again after {waited:?} ms", busy.id)
        });
    }
}

/// A client in mode `latest` receives nothing that is known to be superseded.
pub(super) fn superseded_deliveries_are_not_sent(
    evidence: &Evidence<'_>,
    client: &Known,
    occurred: &[Occurrence],
    records: &[&DeliveryRecord],
    got: &[&ReceivedPost],
) {
    if client.mode != Mode::Latest {
        return;
    }
    for (at, occurrence) in occurred.iter().enumerate() {
        let mut later = occurred[at + 1..].iter();
        let newer = later.find(|later| family(later.kind) == family(occurrence.kind));
        let number = at as u64 + 1;
        let record = records.iter().find(|one| one.delivery.sequence == number);
        let (Some(newer), Some(record)) = (newer, record) else {
            continue;
        };
        let id = record.delivery.id.to_string();
        let late = |got: &&&ReceivedPost| got.id == id && got.at > newer.at + UNDER_WAY;
        let sent = got.iter().find(late);
        evidence.expect("superseded-deliveries-are-not-sent", sent.is_none(), || {
            format!("{id} was overtaken at {}, but: {sent:?}", newer.at)
        });
    }
}

/// While the circuit of a client is open, one request at a time finds out whether its endpoint works again.
pub(super) fn circuits_have_one_probe(
    evidence: &Evidence<'_>,
    client: &Known,
    got: &[&ReceivedPost],
) {
    if client.character != Character::Dead || !evidence.world.profile.is_calm() {
        return;
    }
    let partition = format!("CLIENT#{}", client.id);
    let opens = |change: &&std::sync::Arc<Change>| {
        let new = change.new.as_ref();
        change.partition == partition && new.is_some_and(|new| new.get("openUntil").is_some())
    };
    let Some(opened) = evidence.changes.iter().find(opens) else {
        return;
    };
    let probes = got.iter().filter(|post| post.at > opened.at + UNDER_WAY);
    let times: Vec<u64> = probes.map(|post| post.at).collect();
    let shortest = OPEN_FIRST.as_millis() as u64 - ABOUT;
    for two in times.windows(2) {
        let apart = two[1] - two[0];
        evidence.expect("circuits-have-one-probe", apart >= shortest, || {
            format!("{} was called at {two:?}, {apart} ms apart", client.id)
        });
    }
}

/// A client whose endpoint never responds is paused after every timeout.
pub(super) fn the_circuit_opens(evidence: &Evidence<'_>, client: &Known, got: &[&ReceivedPost]) {
    if client.character != Character::Dead || !evidence.world.profile.is_calm() {
        return;
    }
    let timed_out = TIMEOUT.as_millis() as u64;
    let open = timed_out + ABOUT..timed_out + OPEN_FIRST.as_millis() as u64 - ABOUT;
    for (at, first) in got.iter().enumerate() {
        let hung = first.status.is_none();
        let next = got[at + 1..].iter();
        let early = next.map(|next| next.at - first.at);
        let early = early.filter(|after| hung && open.contains(after)).min();
        evidence.expect("the-circuit-opens", early.is_none(), || {
            format!(
                "{} hung at {}, the next came after {early:?} ms",
                client.id, first.at
            )
        });
    }
}
