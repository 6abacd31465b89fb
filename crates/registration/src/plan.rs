//! Finds the registrations that match a change.

use crate::change::Change;
use crate::key::index::KeyScratch;
use crate::leaf::paths::PathScratch;
use crate::pattern::shared::SharedScratch;
use crate::registrations::{Group, RegistrationId, Registrations};

/// The registrations whose key expression matches a key: the first step of [`plan`].
#[derive(Debug, Default)]
pub struct KeyMatches {
    keys: KeyScratch,
    groups: Vec<u32>,
}

impl KeyMatches {
    /// Finds them. Returns `true` if a registration could match a change of the item with this key. Other records need not
    /// be decoded.
    pub fn find(&mut self, registrations: &Registrations, key: &str, shadow: bool) -> bool {
        let KeyMatches { keys, groups } = self;
        groups.clear();
        let index = &registrations.index;
        index.each_match(&registrations.keys, key, keys, |group| groups.push(group));
        !groups.is_empty() || (shadow && !registrations.keyless.is_empty())
    }
}

/// Buffers for planning, reused from change to change so that nothing is allocated once they have grown.
#[derive(Debug, Default)]
pub struct Scratch {
    shared: Vec<SharedScratch>,
    leaves: LeafScratch,
    matched: Vec<RegistrationId>,
}

#[derive(Debug, Default)]
struct LeafScratch {
    paths: PathScratch,
    /// For each member of a group, the last round in which it was settled: it does not match, or has matched.
    settled: Vec<u64>,
    /// Number of groups that were planned so far.
    round: u64,
}

/// Returns the registrations that match a change, in the order they were loaded.
///
/// The diff of the change is computed only if a registration that matches so far needs it. This is for single changes;
/// [`plan_found`] keeps the buffers of the key.
pub fn plan<'s>(
    registrations: &Registrations,
    change: &Change<'_>,
    scratch: &'s mut Scratch,
) -> &'s [RegistrationId] {
    let mut matches = KeyMatches::default();
    matches.find(registrations, change.key, change.shadow.is_some());
    plan_found(registrations, change, &matches, scratch)
}

/// Does the same with matches that were found for the change's key.
pub fn plan_found<'s>(
    registrations: &Registrations,
    change: &Change<'_>,
    matches: &KeyMatches,
    scratch: &'s mut Scratch,
) -> &'s [RegistrationId] {
    let Scratch {
        shared,
        leaves,
        matched,
    } = scratch;
    matched.clear();
    if shared.len() < registrations.shared {
        shared.resize_with(registrations.shared, SharedScratch::default);
    }
    let groups = matches.groups.iter();
    let groups = groups.filter_map(|&group| registrations.groups.get(group as usize));
    let keyless = change.shadow.is_some().then_some(&registrations.keyless);
    for group in groups.chain(keyless) {
        group.plan(registrations, change, shared, leaves, matched);
    }
    // A pattern can match in more than one alternative.
    matched.sort_unstable();
    matched.dedup();
    matched
}

impl Group {
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.patterned.is_empty() && self.leaves.is_none()
    }

    fn plan(
        &self,
        registrations: &Registrations,
        change: &Change<'_>,
        shared: &mut [SharedScratch],
        leaves: &mut LeafScratch,
        matched: &mut Vec<RegistrationId>,
    ) {
        self.plan_leaves(registrations, change, leaves, matched);
        for id in self.plain.iter().copied().map(RegistrationId) {
            let registration = &registrations[id];
            if registration.passes(change) && registration.changed_enough(change) {
                matched.push(id);
            }
        }
        let pattern = |id: RegistrationId| registrations[id].on.pattern.as_ref();
        match &self.shared {
            None => {
                for id in self.patterned.iter().copied().map(RegistrationId) {
                    let registration = &registrations[id];
                    if registration.passes(change)
                        && pattern(id).is_some_and(|pattern| pattern.matches(change))
                        && registration.changed_enough(change)
                        && registration.leaf_holds(change, &mut leaves.paths)
                    {
                        matched.push(id);
                    }
                }
            }
            Some(shared_patterns) => {
                let (patterns, slot) = &**shared_patterns;
                let member = |position: u32| {
                    self.patterned
                        .get(position as usize)
                        .copied()
                        .map(RegistrationId)
                };
                patterns.each_match(
                    |position| pattern(member(position)?),
                    change,
                    &mut shared[*slot],
                    |position| {
                        if let Some(id) = member(position)
                            && registrations[id].passes(change)
                            && registrations[id].changed_enough(change)
                            && registrations[id].leaf_holds(change, &mut leaves.paths)
                        {
                            matched.push(id);
                        }
                    },
                );
            }
        }
    }

    /// Walks the diff once along the paths of all members.
    fn plan_leaves(
        &self,
        registrations: &Registrations,
        change: &Change<'_>,
        scratch: &mut LeafScratch,
        matched: &mut Vec<RegistrationId>,
    ) {
        let Some(leaves) = self.leaves.as_deref() else {
            return;
        };
        let passes = |number: &u32| registrations[RegistrationId(*number)].passes(change);
        if !leaves.representatives.iter().any(passes) {
            return;
        }
        let LeafScratch {
            paths,
            settled,
            round,
        } = scratch;
        if settled.len() < leaves.members.len() {
            settled.resize(leaves.members.len(), 0);
        }
        *round += 1;
        let diff = change.diff.diff();
        leaves.paths.each_match(diff, paths, &mut |position, leaf| {
            let position = position as usize;
            let number = leaves.members[position];
            if settled[position] == *round {
                return;
            }
            if !passes(&number) {
                settled[position] = *round;
                return;
            }
            let id = RegistrationId(number);
            let on = &registrations[id].on;
            let condition = on.leaf.as_ref();
            if condition.is_some_and(|condition| condition.holds(&leaf, change, on.changes)) {
                settled[position] = *round;
                if registrations[id].changed_enough(change) {
                    matched.push(id);
                }
            }
        });
    }
}
