//! Every registration receives every change, in order, and duplicates with the same id.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_service::history::Operation;
use serde_json::{Map, Value, json};

use super::Evidence;
use super::shadows::{DocumentChange, documents};
use super::spill::HoldUps;
use crate::functions::names;
use crate::profile::Outage;

/// Maximum delay of a notification if only others fail.
const PROMPT: u64 = 5_000;

/// Notifications of one registration.
struct Received {
    registration: &'static str,
    /// With their arrival times, in milliseconds.
    notifications: Vec<(u64, Value)>,
}

/// Key, state and version of one change of a document, and whether it is a removal, which repeats the version.
pub(super) type Place = (String, String, (u64, bool));

pub(super) fn check(evidence: &Evidence<'_>) {
    let queue = |registration, name: &str| Received {
        registration,
        notifications: bodies(
            evidence
                .world
                .cloud
                .messages(name)
                .into_iter()
                .map(|held| (held.sent_ms, held.body)),
        ),
    };
    let published = evidence.world.cloud.published().into_iter();
    let published = published.filter(|one| one.topic.starts_with("changed/"));
    let all = [
        queue("in-order", names::CHANGES_FIFO),
        queue("in-any-order", names::CHANGES),
        Received {
            registration: "mqtt",
            notifications: bodies(published.map(|one| (one.at, one.payload))),
        },
    ];
    let hold_ups = HoldUps::new(evidence);
    for received in &all {
        every_change_once_and_in_order(evidence, received, &hold_ups);
    }
    undeliverable_notifications_are_kept(evidence);
}

pub(super) fn bodies(texts: impl Iterator<Item = (u64, String)>) -> Vec<(u64, Value)> {
    texts
        .filter_map(|(at, text)| Some((at, serde_json::from_str(&text).ok()?)))
        .collect()
}

pub(super) fn place(notification: &Value) -> Place {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&notification["key"]),
        text(&notification["shadow"]["state"]),
        (
            notification["version"].as_u64().unwrap_or_default(),
            notification["operation"] == Operation::Remove.as_str(),
        ),
    )
}

/// The readable changes, in order.
pub(super) fn readable_changes<'a>(evidence: &'a Evidence<'_>) -> Vec<(Place, DocumentChange<'a>)> {
    let changes = evidence.changes.iter().filter(|change| !change.poisoned);
    changes
        .flat_map(|change| documents(change))
        .map(|document| {
            let version = document.version.unwrap_or_default();
            let version = (version, document.is_removal());
            let place = (document.change.key(), document.state.to_owned(), version);
            (place, document)
        })
        .collect()
}

fn every_change_once_and_in_order(
    evidence: &Evidence<'_>,
    received: &Received,
    hold_ups: &HoldUps,
) {
    let registration = received.registration;
    let profile = &evidence.world.profile;
    let is_out = |out: &Outage| out.registrations().contains(&registration);
    let works =
        profile.is_calm_apart_from_target() && !profile.target_outage.as_ref().is_some_and(is_out);
    let written_at: BTreeMap<Place, u64> = readable_changes(evidence)
        .into_iter()
        .map(|(place, document)| (place, document.change.at))
        .collect();
    let mut ids: BTreeMap<String, &Value> = BTreeMap::new();
    let mut places: BTreeMap<Place, String> = BTreeMap::new();
    let mut order: BTreeMap<(String, String), Vec<(u64, bool)>> = BTreeMap::new();
    let mut arrived: BTreeMap<Place, u64> = BTreeMap::new();
    for (at, notification) in &received.notifications {
        let id = notification["id"].as_str().unwrap_or_default().to_owned();
        let place = place(notification);
        let (key, state, version) = place.clone();
        if let Some(before) = ids.get(&id) {
            evidence.expect("duplicates-share-an-id", *before == notification, || {
                format!("{registration}: {id} was sent twice with different content")
            });
            let is_free = |written: &u64| hold_ups.end(*written) == *written;
            let once = works && written_at.get(&place).is_none_or(is_free);
            evidence.expect("sent-once-without-faults", !once, || {
                format!("{registration}: {id} was sent twice")
            });
            continue;
        }
        ids.insert(id.clone(), notification);
        arrived.insert(place.clone(), *at);
        let another = places.insert(place, id.clone());
        evidence.expect("duplicates-share-an-id", another.is_none(), || {
            format!("{registration}: {key} {state} {version:?} was sent as {another:?} and {id}")
        });
        order.entry((key, state)).or_default().push(version);
    }
    let mut expected: BTreeMap<(String, String), Vec<(u64, bool)>> = BTreeMap::new();
    let readable_changes = readable_changes(evidence);
    for ((key, state, version), _) in &readable_changes {
        let of_document = expected.entry((key.clone(), state.clone())).or_default();
        of_document.push(*version);
    }
    for (document, versions) in &expected {
        let sent = order.get(document).cloned().unwrap_or_default();
        let missing: Vec<_> = versions.iter().filter(|one| !sent.contains(one)).collect();
        evidence.expect("every-change-is-notified", missing.is_empty(), || {
            format!("{registration}: {document:?} {missing:?} were never sent")
        });
        evidence.expect(
            "notifications-are-in-order-without-a-gap",
            sent == *versions,
            || format!("{registration}: {document:?} {versions:?} was sent as {sent:?}"),
        );
    }
    for document in order.keys().filter(|sent| !expected.contains_key(sent)) {
        let seen = format!("{registration}: {document:?} never changed");
        evidence.expect("nothing-is-invented", false, || seen);
    }
    for (place, document) in &readable_changes {
        let sent = places.get(place).and_then(|id| ids.get(id));
        if let Some(sent) = sent {
            matches_the_change(evidence, registration, document, sent);
        }
        let free = hold_ups.end(document.change.at);
        let waited = arrived.get(place).map(|at| at.saturating_sub(free));
        if let Some(waited) = waited.filter(|_| works) {
            evidence.expect("failures-delay-nothing-else", waited <= PROMPT, || {
                format!("{registration}: {place:?} waited {waited} ms")
            });
        }
    }
}

/// A notification contains the written document.
fn matches_the_change(
    evidence: &Evidence<'_>,
    registration: &str,
    document: &DocumentChange<'_>,
    sent: &Value,
) {
    let same = |name: &str, written: Option<&Value>| match sent.get(name) {
        None | Some(Value::Null) => true,
        Some(sent) => Some(sent) == written,
    };
    let has_new = sent.get("new").is_some_and(|new| !new.is_null());
    let complete = has_new != document.is_removal();
    let diff = sent.get("diff").is_none_or(|sent| *sent == diff(document));
    let kept = same("new", document.new) && same("old", document.old) && complete && diff;
    evidence.expect("notifications-match-the-change", kept, || {
        format!(
            "{registration}: {sent} of {:?} and {:?}",
            document.old, document.new
        )
    });
}

/// The diff, by rules of our own: leaves at their pointers; an object or array that takes the place of something else,
/// and the reverse, is one value.
pub(super) fn diff(document: &DocumentChange<'_>) -> Value {
    let mut diff = Diff::default();
    diff.compare("", document.old, document.new);
    json!({"added": diff.added, "updated": diff.updated, "removed": diff.removed})
}

#[derive(Default)]
struct Diff {
    added: Map<String, Value>,
    updated: Map<String, Value>,
    removed: Map<String, Value>,
}

impl Diff {
    fn compare(&mut self, pointer: &str, old: Option<&Value>, new: Option<&Value>) {
        let (olds, news) = (old.and_then(members), new.and_then(members));
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if olds.is_none() || news.is_none() => {
                let both = json!({"old": old, "new": new});
                self.updated.insert(pointer.to_owned(), both);
            }
            (Some(old), None) if olds.is_none() => {
                self.removed.insert(pointer.to_owned(), old.clone());
            }
            (None, Some(new)) if news.is_none() => {
                self.added.insert(pointer.to_owned(), new.clone());
            }
            _ => {
                let (olds, news) = (olds.unwrap_or_default(), news.unwrap_or_default());
                let names: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
                for name in names {
                    let pointer = format!("{pointer}/{name}");
                    self.compare(&pointer, olds.get(name).copied(), news.get(name).copied());
                }
            }
        }
    }
}

/// The members of an object or array that is more than one value.
fn members(value: &Value) -> Option<BTreeMap<String, &Value>> {
    match value {
        Value::Object(members) if !members.contains_key("timestamp") => {
            let members = members.iter();
            Some(members.map(|(name, value)| (name.clone(), value)).collect())
        }
        Value::Array(elements) => {
            let elements = elements.iter().enumerate();
            let members = elements.map(|(index, value)| (index.to_string(), value));
            Some(members.collect())
        }
        _ => None,
    }
}

/// Unreadable records and notifications to the missing queue are undeliverable, and nothing else is.
fn undeliverable_notifications_are_kept(evidence: &Evidence<'_>) {
    let held = evidence
        .world
        .cloud
        .messages(names::UNDELIVERABLE)
        .into_iter();
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for (_, body) in bodies(held.map(|held| (held.sent_ms, held.body))) {
        if body.get("requestPayload").is_some() {
            continue;
        }
        let sequence = body["record"]["sequenceNumber"]
            .as_str()
            .unwrap_or_default();
        let registration = body["registration"].as_str().unwrap_or("unreadable");
        let state = body["notification"]["shadow"]["state"].as_str();
        kept.insert(format!("{sequence} {registration} {}", state.unwrap_or("")));
    }
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for change in &evidence.changes {
        let sequence = &change.sequence;
        if change.poisoned {
            expected.insert(format!("{sequence} unreadable "));
            continue;
        }
        for document in documents(change) {
            expected.insert(format!("{sequence} nowhere {}", document.state));
        }
    }
    let missing: Vec<_> = expected.difference(&kept).collect();
    evidence.expect(
        "undeliverable-notifications-are-kept",
        missing.is_empty(),
        || format!("not kept: {missing:?}"),
    );
    let wrong: Vec<_> = kept.difference(&expected).collect();
    evidence.expect(
        "only-undeliverable-notifications-are-kept",
        wrong.is_empty(),
        || format!("kept: {wrong:?}"),
    );
}
