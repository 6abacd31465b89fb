//! Devices hear over MQTT what became of their requests, what is wished, and how their shadow stands.

use serde_json::{Map, Value};

use super::Evidence;
use super::shadows::{answers, documents, ends, wish};
use crate::cloud::Published;

/// How long a wish has to stand to be told of: one that came true before is none any more.
const STANDS: u64 = 5_000;

pub(super) fn check(evidence: &Evidence<'_>) {
    let published = evidence.world.cloud.published();
    every_update_is_answered(evidence, &published);
    nonsense_is_rejected(evidence, &published);
    wishes_are_told(evidence, &published);
    devices_hear_how_it_ends(evidence, &published);
}

fn every_update_is_answered(evidence: &Evidence<'_>, published: &[Published]) {
    for measured in evidence.devices.memory().measured {
        let accepted = answers(published, &measured, "accepted");
        let answered = accepted || answers(published, &measured, "rejected");
        evidence.expect(
            "every-request-is-answered",
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
        evidence.expect("bad-input-is-answered", answered, || {
            format!("{} {} got no answer", nonsense.topic, nonsense.token)
        });
    }
}

/// A wish that stands for a while reaches its device.
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
        // Who tells of it may come so late, when things go wrong, that it is true by then.
        let stood = true_at.is_none_or(|at| calm && at > document.change.at + STANDS);
        let topic = format!("shadow/{device}/update/delta");
        let told = |one: &Published| {
            let told: Value = serde_json::from_str(&one.payload).unwrap_or_default();
            one.topic == topic && wish(told.get("state")) == Some(*wished)
        };
        evidence.expect(
            "wishes-are-told",
            !stood || published.iter().any(told),
            || format!("{device}: the wish {wished} was never told"),
        );
    }
}

/// The newest that a device hears of its shadow is how it stands.
fn devices_hear_how_it_ends(evidence: &Evidence<'_>, published: &[Published]) {
    let empty = || Value::Object(Map::new());
    let ends = ends(evidence);
    for device in evidence.devices.names() {
        let partition = format!("DS#{device}");
        let mut changes = evidence.changes.iter();
        if changes.any(|change| change.partition == partition && change.poisoned) {
            continue;
        }
        let topic = format!("shadow/{device}/update/documents");
        let heard = published.iter().filter(|one| one.topic == topic);
        let heard = heard.filter_map(|one| serde_json::from_str::<Value>(&one.payload).ok());
        let newest = heard.max_by_key(|heard| heard["current"]["version"].as_u64());
        let newest = newest.unwrap_or_default();
        for state in ["reported", "desired"] {
            let told = newest["current"]["state"].get(state).cloned();
            let told = told.unwrap_or_else(empty);
            let end = ends.get(&(device.as_str(), state)).copied().flatten();
            let end = end.cloned().unwrap_or_else(empty);
            evidence.expect("devices-hear-how-it-ends", told == end, || {
                format!("{device} {state}: {end} is so, {told} was told")
            });
        }
    }
}
