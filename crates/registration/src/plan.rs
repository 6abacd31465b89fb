//! Finds the registrations that match a change.

use crate::change::Change;
use crate::key::index::KeyScratch;
use crate::leaf::paths::PathScratch;
use crate::pattern::shared::SharedScratch;
use crate::registrations::{Group, RegistrationId, Registrations};

/// Buffers for planning, reused from change to change so that nothing is allocated once they have grown.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: KeyScratch,
    shared: Vec<SharedScratch>,
    leaves: LeafScratch,
    matched: Vec<RegistrationId>,
}

#[derive(Debug, Default)]
struct LeafScratch {
    paths: PathScratch,
    /// The members of a group that are settled: they do not match, or have matched.
    settled: Vec<bool>,
}

/// Returns `true` if a registration could match a change of the item with this key. Other records need not be decoded.
pub fn wants(
    registrations: &Registrations,
    key: &str,
    shadow: bool,
    scratch: &mut Scratch,
) -> bool {
    let keyless = &registrations.keyless;
    let mut found = shadow && !keyless.is_empty();
    if !found {
        let keys = &mut scratch.keys;
        registrations
            .index
            .each_match(&registrations.keys, key, keys, |_| found = true);
    }
    found
}

/// Returns the registrations that match a change, in the order they were loaded.
///
/// The diff of the change is computed only if a registration that matches so far needs it.
pub fn plan<'s>(
    registrations: &Registrations,
    change: &Change<'_>,
    scratch: &'s mut Scratch,
) -> &'s [RegistrationId] {
    let Scratch {
        keys,
        shared,
        leaves,
        matched,
    } = scratch;
    matched.clear();
    if shared.len() < registrations.shared {
        shared.resize_with(registrations.shared, SharedScratch::default);
    }
    let found = &mut |group: &Group| group.plan(registrations, change, shared, leaves, matched);
    registrations
        .index
        .each_match(&registrations.keys, change.key, keys, |group| {
            registrations
                .groups
                .get(group as usize)
                .into_iter()
                .for_each(&mut *found);
        });
    if change.shadow.is_some() {
        found(&registrations.keyless);
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
        let Some((members, paths)) = self.leaves.as_deref() else {
            return;
        };
        let LeafScratch {
            paths: path_scratch,
            settled,
        } = scratch;
        let passes = |number: &u32| registrations[RegistrationId(*number)].passes(change);
        settled.clear();
        settled.extend(members.iter().map(|number| !passes(number)));
        if settled.iter().all(|settled| *settled) {
            return;
        }
        paths.each_match(change.diff.diff(), path_scratch, &mut |position, leaf| {
            let position = position as usize;
            if settled[position] {
                return;
            }
            let id = RegistrationId(members[position]);
            let on = &registrations[id].on;
            let condition = on.leaf.as_ref();
            if condition.is_some_and(|condition| condition.holds(&leaf, change, on.changes)) {
                settled[position] = true;
                if registrations[id].changed_enough(change) {
                    matched.push(id);
                }
            }
        });
    }
}
