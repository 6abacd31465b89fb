//! A target that keeps failing is suspended, and holds up the others only until then.

use std::collections::BTreeMap;

use super::Evidence;
use super::sensors::word;

/// Longest invocation of the listener with its retry.
const INVOCATION: u64 = 30_000 + 7_000;
/// Failed invocations until a registration is suspended.
const FAILED_INVOCATIONS: u64 = 5;

/// Times in which a failing target may hold up the others, in milliseconds: from its first failure until the
/// invocations that did not know of its suspension have ended.
pub(super) struct HoldUps(Vec<(u64, u64)>);

impl HoldUps {
    pub(super) fn new(evidence: &Evidence<'_>) -> HoldUps {
        let mut since: BTreeMap<&str, u64> = BTreeMap::new();
        let mut all = Vec::new();
        for change in records(evidence) {
            match word(change.new.as_ref(), "state") {
                "failing" => {
                    since
                        .entry(&change.sort)
                        .or_insert(change.at.saturating_sub(INVOCATION));
                }
                _ => {
                    let since = since.remove(change.sort.as_str());
                    all.extend(since.map(|since| (since, change.at + INVOCATION)));
                }
            }
        }
        let ended = evidence.world.faults_ended_ms() + INVOCATION;
        all.extend(since.into_values().map(|since| (since, ended)));
        HoldUps(all)
    }

    /// The first time, from that of a change on, at which no failing target may hold it up.
    ///
    /// Hold-ups of several targets add up, because each target is suspended for itself: a record waits as long as the
    /// listener repeats a batch of its shard, the listener repeats a batch only for a message of a registration that is
    /// not suspended, and the record of that registration says `failing` then. So at every moment at which a change
    /// waits, one of these times holds; where none holds, the next invocation sends it. The sum is bounded: a
    /// registration is `failing` once, and again only after its target has worked.
    pub(super) fn end(&self, at: u64) -> u64 {
        let mut end = at;
        let until = |end: u64| {
            let holding = self
                .0
                .iter()
                .filter(|(from, until)| (*from..*until).contains(&end));
            holding.map(|(_, until)| *until).max()
        };
        while let Some(later) = until(end) {
            end = later;
        }
        end
    }
}

fn records<'a>(evidence: &'a Evidence<'_>) -> impl Iterator<Item = &'a crate::stream::Change> {
    let changes = evidence.changes.iter().map(|change| &**change);
    changes.filter(|change| change.partition == "SUSPENSIONS")
}

pub(super) fn check(evidence: &Evidence<'_>) {
    let mut left: BTreeMap<&str, &str> = BTreeMap::new();
    for change in records(evidence) {
        let new = change.new.as_ref();
        let state = word(new, "state");
        let failures = new.and_then(|new| new.get("failures")?.as_u64());
        let suspends = state == "suspended" || failures < Some(FAILED_INVOCATIONS);
        evidence.expect("failing-targets-are-suspended", suspends, || {
            format!("{}: {new:?}", change.sort)
        });
        left.insert(&change.sort, state);
    }
    if evidence.world.profile.is_calm_apart_from_target() {
        left.retain(|_, state| matches!(*state, "suspended" | "draining"));
        evidence.expect("suspensions-end", left.is_empty(), || format!("{left:?}"));
    }
}
