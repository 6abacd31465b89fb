//! The time at which each leaf of a document took its present value, by the writer's clock.
//!
//! A leaf here is a scalar or an empty container, whatever the model says of the objects around it.
//! Leaves are counted in document order and most of them changed together, so that the times are kept as
//! runs: a document written once is one run however large it is.

use std::fmt::Write;

use crate::document::Document;
use crate::model::Model;
use crate::tape::{Kind, View};

/// The times of all leaves of one document, in seconds since 1970.
///
/// ```
/// use antumbra_shadow::{Document, LeafTimes, Model};
///
/// let old = Document::parse(r#"{"fan":1,"led":"on"}"#)?;
/// let new = Document::parse(r#"{"fan":1,"led":"off"}"#)?;
/// let before = LeafTimes::all(&old, 1700000000);
/// let after = before.after(&old, &new, &Model::default(), 1700000060);
/// assert_eq!(after.metadata(&new), r#"{"fan":{"timestamp":1700000000},"led":{"timestamp":1700000060}}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafTimes {
    /// Seconds, and how many leaves in a row have them.
    runs: Vec<(i64, u32)>,
}

impl LeafTimes {
    /// One time for every leaf.
    pub fn all(document: &Document, seconds: i64) -> LeafTimes {
        let mut times = LeafTimes::default();
        times.push(seconds, leaves(document.view()));
        times
    }

    /// The times of `new` if these are those of `old`: a leaf that is as it was keeps its time, every other
    /// has the one given. Arrays and timestamped values are as they were as a whole or not at all.
    pub fn after(&self, old: &Document, new: &Document, model: &Model, seconds: i64) -> LeafTimes {
        let mut walk = Walk {
            model,
            seconds,
            old: self.expanded(),
            ordinals: ordinals(old.view()),
            out: LeafTimes::default(),
        };
        walk.value(new.view(), Some(old.view()), true);
        walk.out
    }

    /// As text, each time as the seconds it lies before `base`.
    ///
    /// ```
    /// # use antumbra_shadow::{Document, LeafTimes};
    /// let document = Document::parse(r#"{"a":1,"b":[2,3]}"#)?;
    /// let times = LeafTimes::all(&document, 1700000000);
    /// assert_eq!(times.encode(1700000060), "60*3");
    /// assert_eq!(LeafTimes::decode("60*3", 1700000060, &document), Some(times));
    /// # Ok::<(), antumbra_shadow::DocumentError>(())
    /// ```
    pub fn encode(&self, base: i64) -> String {
        let mut text = String::new();
        for (seconds, count) in &self.runs {
            if !text.is_empty() {
                text.push(',');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "{}", i128::from(base) - i128::from(*seconds));
            if *count > 1 {
                let _ = write!(text, "*{count}");
            }
        }
        text
    }

    /// From text; `None` where it is not the text of this document's times.
    pub fn decode(text: &str, base: i64, document: &Document) -> Option<LeafTimes> {
        let mut times = LeafTimes::default();
        let mut counted: u32 = 0;
        for run in text.split(',').filter(|_| !text.is_empty()) {
            let (before, count) = run.split_once('*').unwrap_or((run, "1"));
            let before: i128 = before.parse().ok()?;
            let count: u32 = count.parse().ok()?;
            let seconds = i64::try_from(i128::from(base).checked_sub(before)?).ok()?;
            counted = counted.checked_add(count)?;
            times.push(seconds, count);
        }
        (counted == leaves(document.view())).then_some(times)
    }

    /// The document's shape with `{"timestamp":seconds}` for each leaf, as JSON text.
    pub fn metadata(&self, document: &Document) -> String {
        self.metadata_of(document.view(), document, 0)
    }

    /// The same for a part of the document: of each leaf of `part` the time that the document's leaf at that
    /// place has, or the latest below it. What the document does not have, has the time given.
    pub fn metadata_of(&self, part: View<'_>, document: &Document, otherwise: i64) -> String {
        let known = Known {
            times: self.expanded(),
            ordinals: ordinals(document.view()),
            otherwise,
        };
        let mut out = String::new();
        known.write(part, Some(document.view()), &mut out);
        out
    }

    fn push(&mut self, seconds: i64, count: u32) {
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some((last, counted)) if *last == seconds => *counted += count,
            _ => self.runs.push((seconds, count)),
        }
    }

    fn expanded(&self) -> Vec<i64> {
        let runs = self.runs.iter();
        runs.flat_map(|(seconds, count)| std::iter::repeat_n(*seconds, *count as usize))
            .collect()
    }
}

/// Returns `true` for leaves.
fn is_leaf(view: View<'_>) -> bool {
    !view.is_container() || view.is_empty_container()
}

fn leaves(view: View<'_>) -> u32 {
    if is_leaf(view) {
        // A document without a member has no leaf: there is nothing to have a time.
        u32::from(!(view.index() == 0 && view.is_container()))
    } else {
        view.children().map(leaves).sum()
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
    let (mut ordinals, mut count) = (Vec::new(), 0);
    visit(root, &mut ordinals, &mut count);
    ordinals
}

struct Walk<'m> {
    model: &'m Model,
    seconds: i64,
    old: Vec<i64>,
    ordinals: Vec<u32>,
    out: LeafTimes,
}

impl Walk<'_> {
    fn value(&mut self, new: View<'_>, old: Option<View<'_>>, root: bool) {
        let same = old.filter(|old| old.kind() == new.kind() && old.raw() == new.raw());
        if let Some(same) = same {
            let first = self.ordinals[same.index() as usize] as usize;
            for ordinal in first..first + leaves(new) as usize {
                let seconds = self.old.get(ordinal).copied().unwrap_or(self.seconds);
                self.out.push(seconds, 1);
            }
            return;
        }
        let whole =
            is_leaf(new) || new.kind() == Kind::Array || (!root && self.model.time(new).is_some());
        if whole {
            return self.out.push(self.seconds, leaves(new));
        }
        // Both are in rising order of their names as written.
        let olds = old.filter(|old| old.kind() == Kind::Object);
        let mut olds = olds.into_iter().flat_map(View::children).peekable();
        for member in new.children() {
            while olds
                .next_if(|old| old.raw_key() < member.raw_key())
                .is_some()
            {}
            let old = olds.next_if(|old| old.raw_key() == member.raw_key());
            self.value(member, old, false);
        }
    }
}

struct Known {
    times: Vec<i64>,
    ordinals: Vec<u32>,
    otherwise: i64,
}

impl Known {
    fn write(&self, part: View<'_>, whole: Option<View<'_>>, out: &mut String) {
        let root = part.index() == 0;
        match part.kind() {
            Kind::Object if root || !part.is_empty_container() => {
                out.push('{');
                for (position, member) in part.children().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    out.push('"');
                    out.push_str(member.raw_key());
                    out.push_str("\":");
                    self.write(
                        member,
                        whole.and_then(|whole| whole.get(&member.key())),
                        out,
                    );
                }
                out.push('}');
            }
            Kind::Array if !part.is_empty_container() => {
                let same = whole.filter(|whole| whole.same(part));
                out.push('[');
                for (position, element) in part.children().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    let whole = same.map_or(whole, |same| same.element(position));
                    self.write(element, whole, out);
                }
                out.push(']');
            }
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{{\"timestamp\":{}}}", self.latest(whole));
            }
        }
    }

    fn latest(&self, whole: Option<View<'_>>) -> i64 {
        let Some(whole) = whole else {
            return self.otherwise;
        };
        let first = self.ordinals[whole.index() as usize] as usize;
        let times = self.times.iter().skip(first).take(leaves(whole) as usize);
        times.max().copied().unwrap_or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(json: &str) -> Document {
        Document::parse(json).unwrap()
    }

    /// Old at second 1, new at second 2: what the metadata says then.
    fn check(old: &str, new: &str, metadata: &str) {
        let (old, new) = (document(old), document(new));
        let times = LeafTimes::all(&old, 1).after(&old, &new, &Model::default(), 2);
        let short = metadata
            .replace(":1", ":{\"timestamp\":1}")
            .replace(":2", ":{\"timestamp\":2}")
            .replace("[1", "[{\"timestamp\":1}")
            .replace("[2", "[{\"timestamp\":2}")
            .replace(",1]", ",{\"timestamp\":1}]")
            .replace(",2]", ",{\"timestamp\":2}]");
        assert_eq!(times.metadata(&new), short);
        let text = times.encode(5);
        assert_eq!(LeafTimes::decode(&text, 5, &new), Some(times));
    }

    #[test]
    fn a_leaf_has_the_time_of_its_last_change() {
        check("{}", "{}", "{}");
        check("{}", r#"{"a":7}"#, r#"{"a":2}"#);
        check(r#"{"a":7}"#, r#"{"a":7}"#, r#"{"a":1}"#);
        check(
            r#"{"a":7,"b":8,"c":9}"#,
            r#"{"a":7,"c":0,"d":9}"#,
            r#"{"a":1,"c":2,"d":2}"#,
        );
        check(
            r#"{"a":{"x":7,"y":8},"b":{}}"#,
            r#"{"a":{"x":7,"y":9},"b":{}}"#,
            r#"{"a":{"x":1,"y":2},"b":1}"#,
        );
        check(r#"{"a":{"x":7}}"#, r#"{"a":7}"#, r#"{"a":2}"#);
        check(r#"{"a":7}"#, r#"{"a":{"x":7}}"#, r#"{"a":{"x":2}}"#);
        check(
            r#"{"a":[7,8],"b":[7]}"#,
            r#"{"a":[7,9],"b":[7]}"#,
            r#"{"a":[2,2],"b":[1]}"#,
        );
    }

    #[test]
    fn a_timestamped_value_changes_as_a_whole() {
        check(
            r#"{"t":{"timestamp":1700000000,"value":7}}"#,
            r#"{"t":{"timestamp":1700000001,"value":7}}"#,
            r#"{"t":{"timestamp":2,"value":2}}"#,
        );
        // The root is a container, whatever it holds.
        check(
            r#"{"timestamp":1700000000,"value":7}"#,
            r#"{"timestamp":1700000001,"value":7}"#,
            r#"{"timestamp":2,"value":1}"#,
        );
    }

    #[test]
    fn a_part_is_told_of_by_the_whole() {
        let whole = document(r#"{"a":{"x":1,"y":2},"b":3}"#);
        let times = LeafTimes::decode("9,8,7", 10, &whole).unwrap();
        let part = document(r#"{"a":{"y":2},"b":{"z":1},"c":null}"#);
        assert_eq!(
            times.metadata_of(part.view(), &whole, 99),
            r#"{"a":{"y":{"timestamp":2}},"b":{"z":{"timestamp":99}},"c":{"timestamp":99}}"#
        );
    }

    #[test]
    fn what_is_not_the_text_of_these_times_is_none() {
        let two = document(r#"{"a":1,"b":2}"#);
        for text in [
            "",
            "1",
            "1*3",
            "1,2,3",
            "x*2",
            "1*x",
            "1*99999999999",
            ",",
            "1*4294967295,1*4294967295",
        ] {
            assert_eq!(LeafTimes::decode(text, 0, &two), None, "{text}");
        }
        assert_eq!(
            LeafTimes::decode("", 0, &Document::default()),
            Some(LeafTimes::default())
        );
    }
}
