//! Devices receive over MQTT the responses to their requests, the deltas, and their shadow's documents.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Evidence;
use super::shadows::{DocumentChange, answers, documents, ends, setting};
use crate::cloud::Published;
use crate::functions::names;

/// Minimum time that a desired value must exist to have a delta published.
const STANDS: u64 = 5_000;

pub(super) fn check(evidence: &Evidence<'_>) {
    let published = evidence.world.cloud.published();
    every_update_has_a_response(evidence, &published);
    bad_requests_are_rejected(evidence, &published);
    deltas_are_published(evidence, &published);
    documents_match_the_change(evidence, &published);
    the_last_documents_are_published(evidence, &published);
}

/// A report has a response, or is in the quarantine after its last invocation failed.
fn every_update_has_a_response(evidence: &Evidence<'_>, published: &[Published]) {
    let failed: Vec<String> = evidence
        .world
        .cloud
        .messages(names::QUARANTINE)
        .iter()
        .filter_map(|message| {
            let record: Value = serde_json::from_str(&message.body).ok()?;
            let payload = record["requestPayload"]["payload"].as_str()?;
            String::from_utf8(STANDARD.decode(payload).ok()?).ok()
        })
        .collect();
    for measured in evidence.devices.memory().measured {
        let Some(token) = &measured.token else {
            continue;
        };
        let accepted = answers(published, &measured, "accepted");
        let answered = accepted || answers(published, &measured, "rejected");
        evidence.expect(
            "every-request-has-a-response",
            answered || !measured.ended,
            || format!("{measured:?} got no answer"),
        );
        let token = format!("\"clientToken\":\"{token}\"");
        let is_kept = failed.iter().any(|payload| payload.contains(&token));
        evidence.expect(
            "failed-reports-are-quarantined",
            answered || is_kept,
            || format!("{measured:?} is neither answered nor in the quarantine"),
        );
    }
}

fn bad_requests_are_rejected(evidence: &Evidence<'_>, published: &[Published]) {
    let memory = evidence.devices.memory();
    for invalid in memory.invalid.iter().filter(|invalid| invalid.ended) {
        let topic = format!("{}/rejected", invalid.topic);
        let token = format!("\"{}\"", invalid.token);
        let answered = published
            .iter()
            .any(|one| one.topic == topic && one.payload.contains(&token));
        evidence.expect("bad-requests-are-rejected", answered, || {
            format!("{} {} got no answer", invalid.topic, invalid.token)
        });
    }
}

/// A desired value that exists for a while reaches its device.
fn deltas_are_published(evidence: &Evidence<'_>, published: &[Published]) {
    let all = evidence.changes.iter().flat_map(|change| documents(change));
    let desired_values: Vec<_> = all
        .filter_map(|document| Some((setting(document.new)?, document)))
        .collect();
    for (desired, document) in &desired_values {
        if document.state != "desired" || document.change.poisoned {
            continue;
        }
        let device = document.device;
        let true_at = desired_values
            .iter()
            .find(|(value, other)| {
                value == desired && other.state == "reported" && other.device == device
            })
            .map(|(_, reported)| reported.change.at);
        let calm = evidence.world.profile.is_calm();
        // With faults the delta may come so late that the value is reported by then.
        let stood = true_at.is_none_or(|at| calm && at > document.change.at + STANDS);
        let topic = format!("shadow/{device}/update/delta");
        let has_value = |one: &Published| {
            let delta: Value = serde_json::from_str(&one.payload).unwrap_or_default();
            one.topic == topic && setting(delta.get("state")) == Some(*desired)
        };
        evidence.expect(
            "deltas-are-published",
            !stood || published.iter().any(has_value),
            || format!("{device}: the delta of {desired} was never published"),
        );
    }
}

/// The documents that a device receives.
fn received(published: &[Published], device: &str) -> Vec<Value> {
    let topic = format!("shadow/{device}/update/documents");
    let all = published.iter().filter(|one| one.topic == topic);
    all.filter_map(|one| serde_json::from_str(&one.payload).ok())
        .collect()
}

/// A document; a missing one equals an empty one.
fn or_empty(document: Option<&Value>) -> Value {
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
fn the_last_documents_are_published(evidence: &Evidence<'_>, published: &[Published]) {
    let ends = ends(evidence);
    for device in readable(evidence) {
        let all = received(published, &device).into_iter();
        // A publish that arrives after its sender gave up can be overtaken.
        let newest = match evidence.world.profile.can_be_late() {
            true => all.max_by_key(|one| one["current"]["version"].as_u64()),
            false => all.last(),
        };
        let newest = newest.unwrap_or_default();
        for state in ["reported", "desired"] {
            let last = or_empty(newest["current"]["state"].get(state));
            let end = or_empty(ends.get(&(device.as_str(), state)).copied().flatten());
            evidence.expect("the-last-documents-are-published", last == end, || {
                format!("{device} {state}: {end} is stored, {last} was published")
            });
        }
    }
}

/// For every change a device receives both documents: the changed one, and the other as it was then or newer.
fn documents_match_the_change(evidence: &Evidence<'_>, published: &[Published]) {
    for device in readable(evidence) {
        let changes = evidence.changes.iter().flat_map(|change| documents(change));
        let changes: Vec<DocumentChange<'_>> =
            changes.filter(|change| change.device == device).collect();
        for one in received(published, &device) {
            let is_known = (0..changes.len()).any(|at| matches(&one["current"], &changes, at));
            evidence.expect("notifications-match-the-change", is_known, || {
                format!("{device} never was {}", one["current"])
            });
        }
    }
}

/// Returns whether the documents match one of the changes.
fn matches(published: &Value, changes: &[DocumentChange<'_>], at: usize) -> bool {
    let changed = &changes[at];
    let combined = changed.change.sort.starts_with("DSC");
    let same =
        |state: &str, document| or_empty(published["state"].get(state)) == or_empty(document);
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
        published["version"].as_u64() == version && same(other, document)
    };
    same(changed.state, changed.new) && std::iter::once(before).chain(later).any(fits)
}
