//! The record of an acknowledgement: which leaves a write removed from the desired document because they are reported.
//!
//! A write removes leaves of the desired document for two reasons: somebody withdrew them, or they are reported. Both
//! look the same in a diff. The writer therefore stores this record with the document, under the document's version: a
//! record of another version belongs to an earlier write and says nothing.

use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

use crate::diff::{Diff, Part, diff};
use crate::document::Document;
use crate::model::Model;
use crate::tape::{Kind, View};

/// The leaves that a write removed from the desired document because they are reported.
///
/// ```
/// use antumbra_shadow::{AcknowledgedLeaves, Document, Model};
///
/// let stored = Document::parse(r#"{"fan":2,"led":"on"}"#)?;
/// let withdrawn = Document::parse(r#"{"led":"on"}"#)?;
/// let left = Document::parse(r#"{}"#)?;
/// let leaves = AcknowledgedLeaves::between(&stored, &withdrawn, &left, &Model::default()).unwrap();
/// let text = leaves.encode(7);
/// let nodes = AcknowledgedLeaves::decode(&text, 7).unwrap().nodes(stored.view());
/// assert!(nodes.contains(stored.view().get("led").unwrap()));
/// assert!(!nodes.contains(stored.view().get("fan").unwrap()));
/// assert_eq!(AcknowledgedLeaves::decode(&text, 8), None);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgedLeaves(Removals);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Removals {
    /// Every leaf that the write removed.
    All,
    /// These values of the document before the write, counted from its root in document order. Pointers could be far
    /// longer than the document.
    Some(Box<[Range<u32>]>),
}

impl AcknowledgedLeaves {
    /// Compares the desired document as it was stored, as it was after the update itself, and as the acknowledgement
    /// left it. `None` if no stored leaf was acknowledged.
    pub fn between(
        stored: &Document,
        updated: &Document,
        left: &Document,
        model: &Model,
    ) -> Option<AcknowledgedLeaves> {
        if left == stored {
            return None;
        }
        let diff_to = |new| diff(stored.view(), Document::view(new), model);
        let withdrawn = joined(withdrawn(&diff_to(updated)));
        let mut acknowledged: Vec<_> = diff_to(left).removed().map(|(_, old)| nodes(old)).collect();
        let removed = acknowledged.len();
        acknowledged.retain(|leaf| !contains(&withdrawn, leaf.start));
        match acknowledged.len() {
            0 => None,
            all if all == removed => Some(AcknowledgedLeaves(Removals::All)),
            _ => Some(AcknowledgedLeaves(Removals::Some(joined(acknowledged)))),
        }
    }

    /// The record of the write that made this version: the version, and unless everything that was removed is
    /// acknowledged, how many values follow in turn that are not and that are.
    pub fn encode(&self, version: i64) -> String {
        let mut text = version.to_string();
        if let Removals::Some(ranges) = &self.0 {
            let mut end = 0;
            for (position, range) in ranges.iter().enumerate() {
                let separator = if position > 0 { ',' } else { ':' };
                // Writing to a String cannot fail.
                let _ = write!(text, "{separator}{}+{}", range.start - end, range.len());
                end = range.end;
            }
        }
        text
    }

    /// Reads the record of the write that made this version; `None` if it belongs to another write.
    pub fn decode(text: &str, version: i64) -> Option<AcknowledgedLeaves> {
        let (recorded, runs) = match text.split_once(':') {
            Some((recorded, runs)) => (recorded, Some(runs)),
            None => (text, None),
        };
        if recorded.parse() != Ok(version) {
            return None;
        }
        let Some(runs) = runs else {
            return Some(AcknowledgedLeaves(Removals::All));
        };
        let mut end = 0u32;
        let ranges = runs.split(',').map(|run| {
            let (skipped, length) = run.split_once('+')?;
            let start = end.checked_add(skipped.parse().ok()?)?;
            end = start.checked_add(length.parse().ok()?)?;
            Some(start..end)
        });
        let ranges = ranges.collect::<Option<_>>()?;
        Some(AcknowledgedLeaves(Removals::Some(ranges)))
    }

    /// The acknowledged values of the desired document before the write, in any order of members.
    pub fn nodes(&self, old: View<'_>) -> AcknowledgedNodes {
        let Removals::Some(ranges) = &self.0 else {
            return AcknowledgedNodes(None);
        };
        let mut nodes = HashSet::new();
        if let Ok(document) = Document::parse(&old.to_json()) {
            collect(old, document.view(), ranges, &mut nodes);
        }
        AcknowledgedNodes(Some(nodes))
    }
}

/// The acknowledged values among those that a write removed from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgedNodes(Option<HashSet<u32>>);

impl AcknowledgedNodes {
    /// Returns `true` if a removed leaf of the document was acknowledged.
    pub fn contains(&self, removed: View<'_>) -> bool {
        let nodes = self.0.as_ref();
        nodes.is_none_or(|nodes| nodes.contains(&removed.index()))
    }
}

fn nodes(view: View<'_>) -> Range<u32> {
    view.index()..view.index() + view.subtree().len() as u32
}

/// The nodes that an update itself removed: removed leaves, and everything below a value that it replaced.
fn withdrawn(diff: &Diff<'_>) -> Vec<Range<u32>> {
    let withdrawn = diff.leaves().filter_map(|leaf| {
        let nodes = nodes(leaf.old?);
        Some(match leaf.part {
            Part::Removed => nodes,
            _ => nodes.start + 1..nodes.end,
        })
    });
    withdrawn.filter(|nodes| !nodes.is_empty()).collect()
}

fn contains(ranges: &[Range<u32>], node: u32) -> bool {
    let after = ranges.partition_point(|range| range.start <= node);
    let range = after.checked_sub(1).and_then(|at| ranges.get(at));
    range.is_some_and(|range| range.contains(&node))
}

fn joined(mut ranges: Vec<Range<u32>>) -> Box<[Range<u32>]> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let adjoins = next.start == last.end;
        if adjoins {
            last.end = next.end;
        }
        adjoins
    });
    ranges.into()
}

/// Walks the same document in two orders of members, and collects what the ranges of the second name in the first.
fn collect(view: View<'_>, ordered: View<'_>, ranges: &[Range<u32>], nodes: &mut HashSet<u32>) {
    if contains(ranges, ordered.index()) {
        nodes.insert(view.index());
    }
    let by_name = |view: View<'_>| {
        let mut children: Vec<_> = view.children().map(View::index).collect();
        if view.kind() == Kind::Object {
            children.sort_by_cached_key(|child| view.at(*child).key());
        }
        children
    };
    for (child, other) in by_name(view).into_iter().zip(by_name(ordered)) {
        collect(view.at(child), ordered.at(other), ranges, nodes);
    }
}
