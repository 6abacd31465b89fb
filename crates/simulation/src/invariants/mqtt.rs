//! Devices receive over MQTT the responses to their requests, the deltas, and their shadow's documents.

use antumbra_queues::queue::Message;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Evidence;
use super::shadows::{DocumentChange, documents, ends, has_response, setting};
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

/// Payloads of the requests whose last invocation failed.
pub(super) fn quarantined_payloads(evidence: &Evidence<'_>) -> Vec<String> {
    let messages = evidence.world.cloud.messages(names::QUARANTINE);
    let payload = |message: &Message| {
        let record: Value = serde_json::from_str(&message.body).ok()?;
        let payload = record["requestPayload"]["payload"].as_str()?;
        String::from_utf8(STANDARD.decode(payload).ok()?).ok()
    };
    messages.iter().filter_map(payload).collect()
}

/// A report has a response, or is in the quarantine after its last invocation failed.
fn every_update_has_a_response(evidence: &Evidence<'_>, published: &[Published]) {
    let failed = quarantined_payloads(evidence);
    for measured in evidence.devices.memory().measured {
        let Some(token) = &measured.token else {
            continue;
        };
        let accepted = has_response(published, &measured, "accepted");
        let responded = accepted || has_response(published, &measured, "rejected");
        evidence.expect(
            "every-request-has-a-response",
            responded || !measured.ended,
            || format!("{measured:?} got no response"),
        );
        let token = format!("\"clientToken\":\"{token}\"");
        let is_kept = failed.iter().any(|payload| payload.contains(&token));
        evidence.expect(
            "failed-reports-are-quarantined",
            responded || is_kept,
            || format!("{measured:?} is neither responded nor in the quarantine"),
        );
    }
}

fn bad_requests_are_rejected(evidence: &Evidence<'_>, published: &[Published]) {
    let memory = evidence.devices.memory();
    for invalid in memory.invalid.iter().filter(|invalid| invalid.ended) {
        let topic = format!("{}/rejected", invalid.topic);
        let token = format!("\"{}\"", invalid.token);
        let responded = published
            .iter()
            .any(|one| one.topic == topic && one.payload.contains(&token));
        evidence.expect("bad-requests-are-rejected", responded, || {
            format!("{} {} got no response", invalid.topic, invalid.token)
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

/// The documents that are published for a device, in the order in which that was requested: a request whose response
/// is lost may arrive behind a later one, and then the version in the documents tells which is newer.
fn received(published: &[Published], device: &str) -> Vec<Value> {
    let topic = format!("shadow/{device}/update/documents");
    let mut all: Vec<&Published> = published.iter().filter(|one| one.topic == topic).collect();
    all.sort_by_key(|one| one.call);
    let all = all.into_iter();
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

/// The last documents that are published, and those with the highest version, are the shadow's final state.
fn the_last_documents_are_published(evidence: &Evidence<'_>, published: &[Published]) {
    let ends = ends(evidence);
    for device in readable(evidence) {
        let all = received(published, &device);
        let version = |one: &&Value| one["current"]["version"].as_u64();
        let last = all.last().cloned().unwrap_or_default();
        let newest = all.iter().max_by_key(version).cloned().unwrap_or_default();
        for (documents, state) in [
            (&last, "reported"),
            (&last, "desired"),
            (&newest, "reported"),
            (&newest, "desired"),
        ] {
            let sent = or_empty(documents["current"]["state"].get(state));
            let end = or_empty(ends.get(&(device.as_str(), state)).copied().flatten());
            evidence.expect("the-last-documents-are-published", sent == end, || {
                format!("{device} {state}: {end} is stored, {sent} was published")
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
