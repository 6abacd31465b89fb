//! The times of a document as `metadata`, in the format of AWS IoT Device Shadow.

use std::fmt::Write;

use super::{LeafTimes, Reader, SECOND, Times, is_leaf, leaves};
use crate::document::Document;
use crate::tape::{Kind, View};

impl LeafTimes {
    /// The document's shape with `{"timestamp":seconds}` for each leaf, as JSON text.
    pub fn metadata(&self, document: &Document) -> String {
        self.metadata_of(document.view(), document, 0)
    }

    /// The same for a part of the document: of each leaf of `part` the time that the document's leaf at that
    /// place has, or the latest below it. What the document does not have, has the time given.
    pub fn metadata_of(&self, part: View<'_>, document: &Document, otherwise: i64) -> String {
        let runs = self.0.runs.iter();
        let starts = runs.scan(0, |start, (_, count)| {
            *start += count;
            Some(*start - count)
        });
        let known = Known {
            times: &self.0,
            starts: starts.collect(),
            ordinals: ordinals(document.view()),
            otherwise,
        };
        let mut out = String::new();
        known.write(part, Some(document.view()), &mut out);
        out
    }
}

/// For each node of a document's tape, how many leaves come before it.
fn ordinals(root: View<'_>) -> Vec<u32> {
    fn visit(view: View<'_>, ordinals: &mut Vec<u32>, count: &mut u32) {
        ordinals.push(*count);
        if is_leaf(view) {
            *count += u32::from(view.index() != 0);
        }
        for child in view.children() {
            visit(child, ordinals, count);
        }
    }
    let mut ordinals = Vec::with_capacity(root.subtree().len());
    visit(root, &mut ordinals, &mut 0);
    ordinals
}

struct Known<'a> {
    times: &'a Times,
    /// Leaves before each run.
    starts: Vec<u32>,
    ordinals: Vec<u32>,
    otherwise: i64,
}

impl Known<'_> {
    fn write(&self, part: View<'_>, whole: Option<View<'_>>, out: &mut String) {
        let root = part.index() == 0;
        match part.kind() {
            Kind::Object if root || !part.is_empty_container() => {
                // Both are in rising order of their names as written.
                let wholes = whole.filter(|whole| whole.kind() == Kind::Object);
                let mut wholes = wholes.into_iter().flat_map(View::children).peekable();
                write_members(part, out, |member, out| {
                    let name = member.raw_key();
                    while wholes.next_if(|whole| whole.raw_key() < name).is_some() {}
                    let whole = wholes.next_if(|whole| whole.raw_key() == name);
                    self.write(member, whole, out);
                });
            }
            Kind::Array if whole.is_some_and(|whole| whole.same(part)) && !is_leaf(part) => {
                let mut wholes = whole.into_iter().flat_map(View::children);
                write_members(part, out, |element, out| {
                    self.write(element, wholes.next(), out);
                });
            }
            _ => write_all(part, self.latest(whole), out),
        }
    }

    fn latest(&self, whole: Option<View<'_>>) -> i64 {
        let Some(whole) = whole else {
            return self.otherwise;
        };
        let first = self.ordinals[whole.index() as usize];
        let run = self.starts.partition_point(|start| *start <= first);
        let Some(run) = run.checked_sub(1) else {
            return self.otherwise;
        };
        let mut reader = Reader {
            runs: &self.times.runs[run..],
            taken: first - self.starts[run],
        };
        match reader.newest(leaves(whole)) {
            i64::MIN => self.otherwise,
            time => time.div_euclid(SECOND),
        }
    }
}

/// Writes a container with something else in place of each child.
fn write_members<'v>(
    view: View<'v>,
    out: &mut String,
    mut write: impl FnMut(View<'v>, &mut String),
) {
    let named = view.kind() == Kind::Object;
    out.push(if named { '{' } else { '[' });
    for (position, child) in view.children().enumerate() {
        if position > 0 {
            out.push(',');
        }
        if named {
            out.push('"');
            out.push_str(child.raw_key());
            out.push_str("\":");
        }
        write(child, out);
    }
    out.push(if named { '}' } else { ']' });
}

/// Writes the same time for every leaf.
fn write_all(view: View<'_>, seconds: i64, out: &mut String) {
    if is_leaf(view) {
        // Writing to a String cannot fail.
        let _ = write!(out, "{{\"timestamp\":{seconds}}}");
    } else {
        write_members(view, out, |child, out| write_all(child, seconds, out));
    }
}
