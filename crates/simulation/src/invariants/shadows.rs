//! Accepted reports are kept, and the newest measurement wins.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Evidence;
use crate::actors::devices::{Measured, Outcome};
use crate::cloud::Published;
use crate::stream::{Change, is_document};

/// A document of a shadow that changed.
pub(super) struct DocumentChange<'a> {
    pub(super) change: &'a Change,
    pub(super) device: &'a str,
    pub(super) state: &'static str,
    pub(super) old: Option<&'a Value>,
    pub(super) new: Option<&'a Value>,
    /// The item's.
    pub(super) version: Option<u64>,
}

impl DocumentChange<'_> {
    /// Returns whether the item was deleted.
    pub(super) fn is_removal(&self) -> bool {
        !is_document(&self.change.new)
    }
}

/// The changes of documents by one write, in the order of their notifications.
pub(super) fn documents<'a>(change: &'a Change) -> Vec<DocumentChange<'a>> {
    let Some(device) = change.partition.strip_prefix("DS#") else {
        return Vec::new();
    };
    let both: &[&'static str] = match change.sort.split('#').next() {
        _ if change.is_of_times() => &[],
        Some("DSR") => &["reported"],
        Some("DSD") => &["desired"],
        Some("DSC") => &["reported", "desired"],
        _ => &[],
    };
    let combined = both.len() == 2;
    let part = |image: &'a Option<Value>, state: &str| -> Option<&'a Value> {
        let image = image.as_ref().filter(|_| is_document(image))?;
        image.get(state)
    };
    let differs = |state: &str| {
        let (old, new) = (part(&change.old, state), part(&change.new, state));
        let empty = Value::Object(serde_json::Map::new());
        old.unwrap_or(&empty) != new.unwrap_or(&empty)
    };
    // Creating or deleting two empty documents is a change of the first.
    let first_only = is_document(&change.old) != is_document(&change.new)
        && !both.iter().any(|state| differs(state));
    let version = change.new.as_ref().or(change.old.as_ref());
    let version = version.and_then(|image| image["version"].as_u64());
    both.iter()
        .filter(|state| {
            // In an item with both documents only the changed one is notified; an empty one is not.
            !combined || differs(state) || (first_only && **state == "reported")
        })
        .map(|state| DocumentChange {
            change,
            device,
            state,
            old: part(&change.old, state),
            new: part(&change.new, state),
            version,
        })
        .collect()
}

/// Final state of every document, by device and state.
pub(super) fn ends<'a>(
    evidence: &'a Evidence<'_>,
) -> BTreeMap<(&'a str, &'static str), Option<&'a Value>> {
    let all = evidence.changes.iter().flat_map(|change| documents(change));
    all.map(|document| ((document.device, document.state), document.new))
        .collect()
}

/// Returns whether a report over MQTT had this response.
pub(super) fn has_response(published: &[Published], measured: &Measured, how: &str) -> bool {
    let topic = format!("shadow/{}/update/{how}", measured.device);
    let token = measured.token.as_ref();
    token.is_some_and(|token| {
        let token = format!("\"clientToken\":\"{token}\"");
        let mut all = published.iter();
        all.any(|one| one.topic == topic && one.payload.contains(&token))
    })
}

pub(super) fn setting(document: Option<&Value>) -> Option<u64> {
    document?.get("setting")?.as_u64()
}

pub(super) fn check(evidence: &Evidence<'_>) {
    versions_have_no_gap(evidence);
    newest_measurement_wins(evidence);
    no_accepted_report_is_lost(evidence);
    no_accepted_desired_value_is_lost(evidence);
    only_reached_values_disappear(evidence);
    reached_values_are_acknowledged(evidence);
    conflicts_are_retried(evidence);
}

fn versions_have_no_gap(evidence: &Evidence<'_>) {
    let shadows = evidence
        .changes
        .iter()
        .filter(|change| !change.is_of_times());
    let mut version_of: BTreeMap<String, u64> = BTreeMap::new();
    let mut deleted: BTreeSet<(&str, &str)> = BTreeSet::new();
    for change in shadows.filter(|change| change.is_of_shadow()) {
        let name = change.sort.split_once('#').map_or("", |(_, name)| name);
        let shadow = (change.partition.as_str(), name);
        let Some(new) = change.new.as_ref().filter(|_| is_document(&change.new)) else {
            deleted.insert(shadow);
            continue;
        };
        let version = new["version"].as_u64().unwrap_or_default();
        let before = version_of.insert(change.key(), version).unwrap_or(0);
        // The version of a shadow is the sum of those of its documents and continues after a delete: a document that is
        // created then may also continue the version of the other one.
        let is_next = match !is_document(&change.old) && deleted.contains(&shadow) {
            true => version > before,
            false => version == before + 1,
        };
        evidence.expect("versions-have-no-gap", is_next, || {
            format!("{}: {before} then {version}", change.key())
        });
    }
}

fn time_of(document: Option<&Value>, field: &str) -> Option<i64> {
    document?.get(field)?.get("timestamp")?.as_i64()
}

fn newest_measurement_wins(evidence: &Evidence<'_>) {
    let devices = evidence.devices.names();
    for change in &evidence.changes {
        let documents = documents(change).into_iter();
        for document in documents.filter(|one| devices.iter().any(|device| device == one.device)) {
            let fields = document.old.and_then(Value::as_object);
            for field in fields.into_iter().flatten().map(|(field, _)| field) {
                let before = time_of(document.old, field);
                let after = time_of(document.new, field);
                evidence.expect("newest-measurement-wins", after >= before, || {
                    format!("{} {field}: {before:?} then {after:?}", change.key())
                });
            }
        }
    }
}

fn no_accepted_report_is_lost(evidence: &Evidence<'_>) {
    let memory = evidence.devices.memory();
    let published = evidence.world.cloud.published();
    let accepted = |measured: &Measured| {
        measured.outcome == Outcome::Accepted || has_response(&published, measured, "accepted")
    };
    let ends = ends(evidence);
    for device in evidence.devices.names() {
        let end = ends.get(&(device.as_str(), "reported")).copied().flatten();
        for field in ["temperature", "door"] {
            let of_field =
                |measured: &&Measured| measured.device == device && measured.field == field;
            let sent: Vec<&Measured> = memory.measured.iter().filter(of_field).collect();
            let newest = sent.iter().filter(|measured| accepted(measured));
            let newest = newest.map(|measured| measured.time).max();
            let held = time_of(end, field);
            evidence.expect("nothing-accepted-is-lost", held >= newest, || {
                format!("{device} {field}: {newest:?} was accepted, {held:?} is held")
            });
            let value = end.and_then(|end| end.get(field)?.get("value")?.as_u64());
            let known =
                |measured: &&Measured| Some(measured.time) == held && Some(measured.value) == value;
            evidence.expect(
                "state-equals-the-reference-model",
                held.is_none() || sent.iter().any(known),
                || format!("{device} {field}: {value:?} of {held:?} was never sent"),
            );
        }
    }
}

fn no_accepted_desired_value_is_lost(evidence: &Evidence<'_>) {
    let memory = evidence.devices.memory();
    let accepted = memory.desired_values.iter();
    for desired in accepted.filter(|desired| desired.outcome == Outcome::Accepted) {
        let holds = |document: &DocumentChange<'_>| {
            document.device == desired.device
                && document.state == "desired"
                && setting(document.new) == Some(desired.value)
        };
        let written = evidence
            .changes
            .iter()
            .any(|change| documents(change).iter().any(holds));
        evidence.expect("nothing-accepted-is-lost", written, || {
            format!(
                "{}: the desired value {} was accepted and never written",
                desired.device, desired.value
            )
        });
    }
}

/// A desired value disappears only if another replaces it or a report acknowledges it.
fn only_reached_values_disappear(evidence: &Evidence<'_>) {
    let mut reported: BTreeMap<&str, Vec<(usize, Option<u64>)>> = BTreeMap::new();
    for (at, change) in evidence.changes.iter().enumerate() {
        for document in documents(change)
            .iter()
            .filter(|one| one.state == "reported")
        {
            let value = setting(document.new);
            reported
                .entry(document.device)
                .or_default()
                .push((at, value));
        }
    }
    for (at, change) in evidence.changes.iter().enumerate() {
        for document in documents(change)
            .iter()
            .filter(|one| one.state == "desired")
        {
            let (Some(before), None) = (setting(document.old), setting(document.new)) else {
                continue;
            };
            let reports = reported.get(document.device);
            // Of a transaction either document may come first.
            let reports = reports.map(Vec::as_slice).unwrap_or_default();
            let known = reports.partition_point(|(reported_at, _)| *reported_at < at);
            let reports = reports[known.saturating_sub(1)..]
                .iter()
                .filter(|(reported_at, _)| *reported_at <= at + 1);
            let reports: Vec<&(usize, Option<u64>)> = reports.collect();
            let is_reached = reports.iter().any(|(_, value)| *value == Some(before));
            evidence.expect("desired-values-are-acknowledged", is_reached, || {
                format!(
                    "{}: the desired value {before} is gone, reported is {reports:?}",
                    document.device
                )
            });
        }
    }
}

/// Every desired value was reported in the end, so none is left.
fn reached_values_are_acknowledged(evidence: &Evidence<'_>) {
    for ((device, state), end) in ends(evidence) {
        let left = setting(end).filter(|_| state == "desired");
        evidence.expect("desired-values-are-acknowledged", left.is_none(), || {
            format!("{device}: the desired value {left:?} was reached and is still there")
        });
    }
}

/// Conflicts with other writers are retried; no caller sees them.
fn conflicts_are_retried(evidence: &Evidence<'_>) {
    if !evidence.world.profile.is_calm() {
        return;
    }
    let memory = evidence.devices.memory();
    let published = evidence.world.cloud.published();
    for measured in &memory.measured {
        let accepted =
            measured.outcome == Outcome::Accepted || has_response(&published, measured, "accepted");
        evidence.expect("conflicts-are-retried", accepted, || {
            format!("{measured:?}")
        });
    }
    for desired in &memory.desired_values {
        let accepted = desired.outcome == Outcome::Accepted;
        evidence.expect("conflicts-are-retried", accepted, || format!("{desired:?}"));
    }
}
