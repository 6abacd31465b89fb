//! Devices receive over MQTT the responses to their requests, the deltas, and their shadow's documents.

use serde_json::{Value, json};

use super::Evidence;
use super::shadows::{DocumentChange, answers, documents, ends, wish};
use crate::cloud::Published;

/// Minimum time that a desired value must stand to have a delta published.
const STANDS: u64 = 5_000;

pub(super) fn check(evidence: &Evidence<'_>) {
    let published = evidence.world.cloud.published();
    every_update_is_answered(evidence, &published);
    nonsense_is_rejected(evidence, &published);
    wishes_are_told(evidence, &published);
    both_documents_are_told(evidence, &published);
    devices_hear_how_it_ends(evidence, &published);
}

fn every_update_is_answered(evidence: &Evidence<'_>, published: &[Published]) {
    for measured in evidence.devices.memory().measured {
        let accepted = answers(published, &measured, "accepted");
        let answered = accepted || answers(published, &measured, "rejected");
        evidence.expect(
            "every-request-has-a-response",
            answered || !measured.ended,
            || format!("{measured:?} got no answer"),
        );
    }
}

fn nonsense_is_rejected(evidence: &Evidence<'_>, published: &[Published]) {
    let memory = evidence.devices.memory();
    for nonsense in memory.nonsense.iter().filter(|nonsense| nonsense.ended) {
        let topic = format!("{}/rejected", nonsense.topic);
        let token = format!("\"{}\"", nonsense.token);
        let answered = published
            .iter()
            .any(|one| one.topic == topic && one.payload.contains(&token));
        evidence.expect("bad-requests-are-rejected", answered, || {
            format!("{} {} got no answer", nonsense.topic, nonsense.token)
        });
    }
}

/// A desired value that stands for a while reaches its device.
fn wishes_are_told(evidence: &Evidence<'_>, published: &[Published]) {
    let all = evidence.changes.iter().flat_map(|change| documents(change));
    let wishes: Vec<_> = all
        .filter_map(|document| Some((wish(document.new)?, document)))
        .collect();
    for (wished, document) in &wishes {
        if document.state != "desired" || document.change.poisoned {
            continue;
        }
        let device = document.device;
        let true_at = wishes
            .iter()
            .find(|(value, other)| {
                value == wished && other.state == "reported" && other.device == device
            })
            .map(|(_, reported)| reported.change.at);
        let calm = evidence.world.profile.is_calm();
        // With faults the delta may come so late that the value is reported by then.
        let stood = true_at.is_none_or(|at| calm && at > document.change.at + STANDS);
        let topic = format!("shadow/{device}/update/delta");
        let told = |one: &Published| {
            let told: Value = serde_json::from_str(&one.payload).unwrap_or_default();
            one.topic == topic && wish(told.get("state")) == Some(*wished)
        };
        evidence.expect(
            "deltas-are-published",
            !stood || published.iter().any(told),
            || format!("{device}: the wish {wished} was never told"),
        );
    }
}

/// The documents that a device receives.
fn heard(published: &[Published], device: &str) -> Vec<Value> {
    let topic = format!("shadow/{device}/update/documents");
    let all = published.iter().filter(|one| one.topic == topic);
    all.filter_map(|one| serde_json::from_str(&one.payload).ok())
        .collect()
}

/// A document, where none is as good as an empty one.
fn whole(document: Option<&Value>) -> Value {
    document.cloned().unwrap_or_else(|| json!({}))
}

/// Devices without unreadable changes: the listener does not know the unreadable ones.
fn readable(evidence: &Evidence<'_>) -> Vec<String> {
    let poisoned = |device: &String| {
        let partition = format!("DS#{device}");
        let mut changes = evidence.changes.iter();
        changes.any(|change| change.partition == partition && change.poisoned)
    };
    let mut devices = evidence.devices.names();
    devices.retain(|device| !poisoned(device));
    devices
}

/// The last documents that a device receives are its shadow's final state.
fn devices_hear_how_it_ends(evidence: &Evidence<'_>, published: &[Published]) {
    let ends = ends(evidence);
    for device in readable(evidence) {
        let heard = heard(published, &device).into_iter();
        let newest = heard.max_by_key(|heard| heard["current"]["version"].as_u64());
        let newest = newest.unwrap_or_default();
        for state in ["reported", "desired"] {
            let told = whole(newest["current"]["state"].get(state));
            let end = whole(ends.get(&(device.as_str(), state)).copied().flatten());
            evidence.expect("the-last-documents-are-published", told == end, || {
                format!("{device} {state}: {end} is so, {told} was told")
            });
        }
    }
}

/// For every change a device receives both documents: the changed one, and the other as it was then or newer.
fn both_documents_are_told(evidence: &Evidence<'_>, published: &[Published]) {
    for device in readable(evidence) {
        let changes = evidence.changes.iter().flat_map(|change| documents(change));
        let changes: Vec<DocumentChange<'_>> =
            changes.filter(|change| change.device == device).collect();
        for heard in heard(published, &device) {
            let told = (0..changes.len()).any(|at| is_told(&heard["current"], &changes, at));
            evidence.expect("notifications-match-the-change", told, || {
                format!("{device} never was {}", heard["current"])
            });
        }
    }
}

/// Returns whether the documents match one of the changes.
fn is_told(told: &Value, changes: &[DocumentChange<'_>], at: usize) -> bool {
    let changed = &changes[at];
    let combined = changed.change.sort.starts_with("DSC");
    let same = |state: &str, document| whole(told["state"].get(state)) == whole(document);
    let of_other = |other: &&DocumentChange<'_>| other.state != changed.state;
    let other = match changed.state {
        "reported" => "desired",
        _ => "reported",
    };
    let before = changes[..at].iter().rfind(of_other);
    let before = before.map_or((None, None), |other| (other.version, other.new));
    let later = changes[at..].iter().filter(of_other);
    let later = later.map(|other| (other.version, other.new));
    let fits = |(version, document): (Option<u64>, _)| {
        let other_version = version.filter(|_| !combined).unwrap_or(0);
        let version = changed.version.map(|version| version + other_version);
        told["version"].as_u64() == version && same(other, document)
    };
    same(changed.state, changed.new) && std::iter::once(before).chain(later).any(fits)
}
