//! The order of reports over MQTT: times decide, however invocations run.
//!
//! The oracle applies reports in the order of their times to a plain document: values are set, `null` removes, and
//! objects are entered. A timestamped value goes by its own time, everything else by that of its report. Of reports of
//! one time any may be the last, and a report without a response may have been executed or not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Evidence;
use super::mqtt::quarantined_payloads;
use crate::actors::reports::Report;
use crate::cloud::Published;
use crate::stream::Change;

pub(super) fn check(evidence: &Evidence<'_>) {
    let published = evidence.world.cloud.published();
    let reports = evidence.reports.reports();
    reports_are_accepted_or_quarantined(evidence, &reports, &published);
    times_decide(evidence, &reports, &published);
    times_are_written_alone(evidence);
}

fn has_response(published: &[Published], report: &Report, kind: &str) -> bool {
    let topic = report.topic(kind);
    let token = format!("\"clientToken\":\"{}\"", report.token);
    let mut all = published.iter();
    all.any(|one| one.topic == topic && one.payload.contains(&token))
}

/// A report without a version is never rejected: it is repeated, and quarantined after its last invocation.
fn reports_are_accepted_or_quarantined(
    evidence: &Evidence<'_>,
    reports: &[Report],
    published: &[Published],
) {
    let quarantined = quarantined_payloads(evidence);
    for report in reports {
        let is_accepted = has_response(published, report, "accepted");
        let is_rejected = has_response(published, report, "rejected");
        evidence.expect("valid-reports-are-not-rejected", !is_rejected, || {
            format!("{report:?} was rejected")
        });
        let calm = evidence.world.profile.is_calm();
        evidence.expect("conflicts-are-retried", is_accepted || !calm, || {
            format!("{report:?} was not accepted")
        });
        let response = is_accepted || !report.ended;
        evidence.expect("every-request-has-a-response", response, || {
            format!("{report:?} got no response")
        });
        let token = format!("\"clientToken\":\"{}\"", report.token);
        let is_kept = quarantined.iter().any(|payload| payload.contains(&token));
        evidence.expect(
            "failed-reports-are-quarantined",
            is_accepted || is_kept,
            || format!("{report:?} is neither accepted nor in the quarantine"),
        );
    }
}

/// One step of the oracle.
#[derive(Debug)]
struct Step {
    /// In nanoseconds.
    time: i64,
    /// The values at their places; `None` removes the whole document.
    patch: Option<Map<String, Value>>,
    /// The report was certainly executed.
    certain: bool,
}

type Document = Map<String, Value>;

fn times_decide(evidence: &Evidence<'_>, reports: &[Report], published: &[Published]) {
    let mut steps: BTreeMap<(&str, &str, &str), Vec<Step>> = BTreeMap::new();
    for report in reports {
        let certain = has_response(published, report, "accepted");
        for (state, document) in report.state.as_object().into_iter().flatten() {
            let place = (&*report.thing, report.name, state.as_str());
            let found = steps.entry(place).or_default();
            let mut add = |time, patch| {
                found.push(Step {
                    time,
                    patch,
                    certain,
                });
            };
            let Value::Object(document) = document else {
                add(report.time, None);
                continue;
            };
            let (plain, timestamped) = split(document);
            add(report.time, Some(plain));
            for (time, patch) in timestamped {
                add(time, Some(patch));
            }
        }
    }
    for ((thing, name, state), steps) in steps {
        let stored = stored(evidence, thing, name, state);
        let possible = possible_documents(&steps);
        evidence.expect("times-decide", possible.contains(&stored), || {
            let possible: Vec<_> = possible.into_iter().map(Value::Object).take(3).collect();
            let stored = Value::Object(stored);
            format!("{thing} {name} {state}: {stored} is stored, possible {possible:?}")
        });
    }
}

/// Separates timestamped values, which have times of their own.
fn split(document: &Document) -> (Document, Vec<(i64, Document)>) {
    let (mut plain, mut timestamped) = (Map::new(), Vec::new());
    for (name, value) in document {
        let Value::Object(members) = value else {
            plain.insert(name.clone(), value.clone());
            continue;
        };
        let at_name = |value: Value| Map::from_iter([(name.clone(), value)]);
        if let Some(time) = members.get("timestamp").and_then(Value::as_i64) {
            timestamped.push((time, at_name(value.clone())));
            continue;
        }
        let (inner, found) = split(members);
        let found = found.into_iter();
        timestamped.extend(found.map(|(time, inner)| (time, at_name(Value::Object(inner)))));
        if !inner.is_empty() {
            plain.insert(name.clone(), Value::Object(inner));
        }
    }
    (plain, timestamped)
}

/// The documents that the order of times permits.
fn possible_documents(steps: &[Step]) -> Vec<Document> {
    let mut by_time: BTreeMap<i64, Vec<&Step>> = BTreeMap::new();
    for step in steps {
        by_time.entry(step.time).or_default().push(step);
    }
    let mut possible = BTreeMap::from([(String::new(), Document::new())]);
    for together in by_time.values() {
        let mut next = BTreeMap::new();
        for document in possible.into_values() {
            any_order(document, together, &mut next);
        }
        possible = next;
    }
    possible.into_values().collect()
}

/// Adds the documents after these steps in any order.
fn any_order(document: Document, steps: &[&Step], found: &mut BTreeMap<String, Document>) {
    if steps.iter().all(|step| !step.certain) {
        let text = Value::Object(document.clone()).to_string();
        found.insert(text, document.clone());
    }
    for (index, step) in steps.iter().enumerate() {
        let mut after = document.clone();
        match &step.patch {
            None => after.clear(),
            Some(patch) => apply(&mut after, patch),
        }
        let others: Vec<&Step> = [&steps[..index], &steps[index + 1..]].concat();
        any_order(after, &others, found);
    }
}

/// Sets values, removes where `null` is, and enters objects; an object that becomes empty goes.
fn apply(document: &mut Document, patch: &Document) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                document.remove(name);
            }
            Value::Object(members) if !members.contains_key("timestamp") => {
                let inner = document.remove(name);
                let mut inner = match inner {
                    Some(Value::Object(inner)) if !inner.contains_key("timestamp") => inner,
                    _ => Map::new(),
                };
                apply(&mut inner, members);
                if !inner.is_empty() {
                    document.insert(name.clone(), Value::Object(inner));
                }
            }
            value => {
                document.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The document in the end.
fn stored(evidence: &Evidence<'_>, thing: &str, name: &str, state: &str) -> Document {
    let partition = format!("DS#{thing}");
    let kind = match state {
        "reported" => "DSR",
        _ => "DSD",
    };
    let keys = [format!("{kind}#{name}"), format!("DSC#{name}")];
    let is_meant = |change: &&std::sync::Arc<Change>| {
        change.partition == partition && keys.contains(&change.sort)
    };
    let last = evidence.changes.iter().rfind(is_meant);
    let document = last.and_then(|change| change.new.as_ref()?.get(state)?.as_object().cloned());
    document.unwrap_or_default()
}

/// A write of times has the version and the documents of the write before it.
fn times_are_written_alone(evidence: &Evidence<'_>) {
    for change in &evidence.changes {
        if !change.is_of_times() {
            continue;
        }
        let of = |image: &Option<Value>| {
            let image = image.as_ref();
            ["reported", "desired"].map(|state| image.and_then(|image| image.get(state)).cloned())
        };
        let same = of(&change.old) == of(&change.new);
        evidence.expect("versions-have-no-gap", same, || {
            format!("{}: another document with the same version", change.key())
        });
    }
}
