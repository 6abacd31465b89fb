//! Every registration receives every change, in order, and duplicates with the same id.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Evidence;
use super::shadows::{DocumentChange, documents};
use crate::functions::names;

/// Maximum delay of a notification if only others fail.
const PROMPT: u64 = 5_000;

/// Notifications of one registration.
struct Received {
    registration: &'static str,
    /// With their arrival times, in milliseconds.
    notifications: Vec<(u64, Value)>,
}

/// Key of one change of a document.
type Place = (String, String, u64);

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
    for received in &all {
        every_change_once_and_in_order(evidence, received);
    }
    undeliverable_notifications_are_kept(evidence);
}

fn bodies(texts: impl Iterator<Item = (u64, String)>) -> Vec<(u64, Value)> {
    texts
        .filter_map(|(at, text)| Some((at, serde_json::from_str(&text).ok()?)))
        .collect()
}

fn place(notification: &Value) -> Place {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&notification["key"]),
        text(&notification["shadow"]["state"]),
        notification["version"].as_u64().unwrap_or_default(),
    )
}

/// The readable changes, in order.
fn readable_changes<'a>(evidence: &'a Evidence<'_>) -> Vec<(Place, DocumentChange<'a>)> {
    let changes = evidence.changes.iter().filter(|change| !change.poisoned);
    changes
        .flat_map(|change| documents(change))
        .map(|document| {
            let version = document.version.unwrap_or_default();
            let place = (document.change.key(), document.state.to_owned(), version);
            (place, document)
        })
        .collect()
}

fn every_change_once_and_in_order(evidence: &Evidence<'_>, received: &Received) {
    let registration = received.registration;
    let mut ids: BTreeMap<String, &Value> = BTreeMap::new();
    let mut places: BTreeMap<Place, String> = BTreeMap::new();
    let mut order: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    let mut arrived: BTreeMap<Place, u64> = BTreeMap::new();
    for (at, notification) in &received.notifications {
        let id = notification["id"].as_str().unwrap_or_default().to_owned();
        let place = place(notification);
        let (key, state, version) = place.clone();
        if let Some(before) = ids.get(&id) {
            evidence.expect("duplicates-share-an-id", *before == notification, || {
                format!("{registration}: {id} was sent twice with different content")
            });
            let calm = evidence.world.profile.is_calm();
            evidence.expect("sent-once-without-faults", !calm, || {
                format!("{registration}: {id} was sent twice")
            });
            continue;
        }
        ids.insert(id.clone(), notification);
        arrived.insert(place.clone(), *at);
        let another = places.insert(place, id.clone());
        evidence.expect("duplicates-share-an-id", another.is_none(), || {
            format!("{registration}: {key} {state} {version} was sent as {another:?} and {id}")
        });
        order.entry((key, state)).or_default().push(version);
    }
    let mut expected: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
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
        let waited = arrived
            .get(place)
            .map(|at| at.saturating_sub(document.change.at));
        let calm = evidence.world.profile.is_calm();
        if let Some(waited) = waited.filter(|_| calm) {
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
    let complete = sent.get("new").is_some_and(|new| !new.is_null());
    let diff = sent.get("diff").is_none_or(|sent| *sent == diff(document));
    let kept = same("new", document.new) && same("old", document.old) && complete && diff;
    evidence.expect("notifications-match-the-change", kept, || {
        format!(
            "{registration}: {sent} of {:?} and {:?}",
            document.old, document.new
        )
    });
}

/// The diff, by rules of our own: here every member of a document is one leaf.
fn diff(document: &DocumentChange<'_>) -> Value {
    let nothing = Map::new();
    let members = |half: Option<&'_ Value>| half.and_then(Value::as_object).cloned();
    let old = members(document.old).unwrap_or_else(|| nothing.clone());
    let new = members(document.new).unwrap_or_else(|| nothing.clone());
    let (mut added, mut updated, mut removed) = (nothing.clone(), nothing.clone(), nothing);
    for (name, is) in &new {
        match old.get(name) {
            None => added.insert(format!("/{name}"), is.clone()),
            Some(was) if was == is => None,
            Some(was) => updated.insert(format!("/{name}"), json!({"old": was, "new": is})),
        };
    }
    for (name, was) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        removed.insert(format!("/{name}"), was.clone());
    }
    json!({"added": added, "updated": updated, "removed": removed})
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
