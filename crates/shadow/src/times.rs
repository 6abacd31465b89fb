//! The time at which each leaf of a document took its value, and when removed ones were removed.
//!
//! A leaf here is a scalar or an empty container, whatever the model says of the objects around it.
//! Leaves are counted in document order and most of them changed together, so that the times are kept as
//! runs: a document written once is one run however large it is.

mod metadata;
mod removed;
mod text;

use std::sync::Arc;

use crate::document::Document;
use crate::model::Model;
use crate::tape::{Kind, View};
use crate::timestamp::Timestamp;

pub(crate) use self::removed::Removed;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;
/// Microseconds for which times are kept exactly, and those of removed leaves at all. Older times are whole seconds.
const EXACT: i64 = 600 * SECOND;

/// The times of all leaves of one document. Cheap to clone.
///
/// ```
/// use antumbra_shadow::{Document, LeafTimes, Model, Timestamp};
///
/// let seconds = |seconds: i128| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
/// let old = Document::parse(r#"{"fan":1,"led":"on"}"#)?;
/// let new = Document::parse(r#"{"fan":1,"led":"off"}"#)?;
/// let before = LeafTimes::all(&old, seconds(1700000000));
/// let after = before.after(&old, &new, &Model::default(), seconds(1700000060));
/// assert_eq!(after.metadata(&new), r#"{"fan":{"timestamp":1700000000},"led":{"timestamp":1700000060}}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeafTimes(Arc<Times>);

/// Times in microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Times {
    /// A time, and how many leaves in a row have it.
    runs: Vec<(i64, u32)>,
    pub(crate) removed: Removed,
}

pub(crate) fn microseconds(time: Timestamp) -> i64 {
    let microseconds = time.nanoseconds().div_euclid(1000);
    i64::try_from(microseconds).unwrap_or(i64::MAX)
}

/// The time as it is kept: a whole second if it lies long before `now`.
pub(crate) fn recorded(time: i64, now: i64) -> i64 {
    match time < now.saturating_sub(EXACT) {
        true => time.div_euclid(SECOND).saturating_mul(SECOND),
        false => time,
    }
}

impl Times {
    pub(crate) fn push(&mut self, time: i64, count: u32) {
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some((last, counted)) if *last == time => *counted += count,
            _ => self.runs.push((time, count)),
        }
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            runs: &self.runs,
            taken: 0,
        }
    }

    /// The removals that still count at this time.
    pub(crate) fn recent_removals(&self, now: i64) -> Removed {
        self.removed.since(now.saturating_sub(EXACT))
    }

    /// Times that lie long before `now` as whole seconds.
    pub(crate) fn settled(self, now: i64) -> LeafTimes {
        let mut settled = Times {
            removed: self.removed,
            ..Times::default()
        };
        for (time, count) in self.runs {
            settled.push(recorded(time, now), count);
        }
        LeafTimes(Arc::new(settled))
    }
}

/// Reads the times of leaves in document order.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    runs: &'a [(i64, u32)],
    /// Leaves of the first run that were read.
    taken: u32,
}

impl Reader<'_> {
    /// Calls `visit` with the times of the next leaves, in runs.
    pub(crate) fn take(&mut self, mut leaves: u32, mut visit: impl FnMut(i64, u32)) {
        while leaves > 0
            && let Some((time, count)) = self.runs.first()
        {
            let run = leaves.min(count - self.taken);
            visit(*time, run);
            leaves -= run;
            self.taken += run;
            if self.taken == *count {
                self.runs = &self.runs[1..];
                self.taken = 0;
            }
        }
    }

    /// The newest of the next leaves.
    pub(crate) fn newest(&mut self, leaves: u32) -> i64 {
        let mut newest = i64::MIN;
        self.take(leaves, |time, _| newest = newest.max(time));
        newest
    }
}

impl LeafTimes {
    /// One time for every leaf.
    pub fn all(document: &Document, time: Timestamp) -> LeafTimes {
        let mut times = Times::default();
        times.push(microseconds(time), leaves(document.view()));
        LeafTimes(Arc::new(times))
    }

    /// The times of a document that was removed at this time.
    pub fn removed(time: Timestamp) -> LeafTimes {
        let mut times = Times::default();
        times.removed.time = Some(microseconds(time));
        LeafTimes(Arc::new(times))
    }

    pub(crate) fn times(&self) -> &Times {
        &self.0
    }

    /// The time of each leaf, in document order.
    ///
    /// ```
    /// use antumbra_shadow::{Document, LeafTimes, Timestamp};
    ///
    /// let document = Document::parse(r#"{"fan":{"rpm":1,"on":true},"led":"on"}"#)?;
    /// let time = Timestamp::from_nanoseconds(1_700_000_000_000_000_000);
    /// let times: Vec<Timestamp> = LeafTimes::all(&document, time).iter().collect();
    /// assert_eq!(times, [time; 3]);
    /// # Ok::<(), antumbra_shadow::DocumentError>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + '_ {
        let runs = self.0.runs.iter();
        runs.flat_map(|(time, count)| {
            let time = Timestamp::from_nanoseconds(i128::from(*time) * 1000);
            std::iter::repeat_n(time, *count as usize)
        })
    }

    /// Newest time of a leaf or a removal.
    pub fn newest(&self) -> Option<Timestamp> {
        let newest = self.0.runs.iter().map(|(time, _)| *time).max();
        let newest = newest.unwrap_or(i64::MIN).max(self.0.removed.newest());
        (newest > i64::MIN).then(|| Timestamp::from_nanoseconds(i128::from(newest) * 1000))
    }

    /// The times of `new` if these are those of `old`: a leaf that is as it was keeps its time, every other
    /// has the one given, and so has the removal of leaves that are gone. Arrays and timestamped values are as they
    /// were as a whole or not at all.
    pub fn after(
        &self,
        old: &Document,
        new: &Document,
        model: &Model,
        time: Timestamp,
    ) -> LeafTimes {
        let time = microseconds(time);
        let mut walk = Walk {
            model,
            time,
            old: self.0.reader(),
            out: Times::default(),
            path: Vec::new(),
        };
        walk.out.removed = self.0.recent_removals(time);
        walk.value(Some(new.view()), Some(old.view()), true);
        walk.out.settled(time)
    }
}

/// Returns `true` for leaves.
fn is_leaf(view: View<'_>) -> bool {
    !view.is_container() || view.is_empty_container()
}

pub(crate) fn leaves(view: View<'_>) -> u32 {
    if is_leaf(view) {
        // A document without a member has no leaf: there is nothing to have a time.
        u32::from(!(view.index() == 0 && view.is_container()))
    } else {
        view.children().map(leaves).sum()
    }
}

struct Walk<'a> {
    model: &'a Model,
    time: i64,
    old: Reader<'a>,
    out: Times,
    path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, new: Option<View<'a>>, old: Option<View<'a>>, root: bool) {
        let Some(new) = new else {
            let newest = self.old.newest(old.map_or(0, leaves));
            // The message that set the leaf must not bring it back when it is repeated.
            let time = self.time.max(newest.saturating_add(1));
            self.out.removed.record(&self.path, time);
            return;
        };
        let same = old.filter(|old| old.kind() == new.kind() && old.raw() == new.raw());
        if same.is_some() {
            let out = &mut self.out;
            return self
                .old
                .take(leaves(new), |time, count| out.push(time, count));
        }
        let whole = is_leaf(new) || new.kind() == Kind::Array || self.model.time(new).is_some();
        let olds = old.filter(|old| old.kind() == Kind::Object && (root || !is_leaf(*old)));
        if !root && (whole || olds.is_none()) {
            let newest = self.old.newest(old.map_or(0, leaves));
            return self.out.push(self.time.max(newest), leaves(new));
        }
        // Both are in rising order of their names as written.
        let mut olds = olds.into_iter().flat_map(View::children).peekable();
        let mut news = new.children().peekable();
        loop {
            let name = match (olds.peek(), news.peek()) {
                (Some(old), Some(new)) => old.raw_key().min(new.raw_key()),
                (Some(one), None) | (None, Some(one)) => one.raw_key(),
                (None, None) => return,
            };
            let old = olds.next_if(|old| old.raw_key() == name);
            let new = news.next_if(|new| new.raw_key() == name);
            self.path.push(name);
            self.value(new, old, false);
            self.path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_nanoseconds(i128::from(seconds) * 1_000_000_000)
    }

    fn document(json: &str) -> Document {
        Document::parse(json).unwrap()
    }

    /// Checks the metadata of `new`, written at second 2 over `old` of second 1.
    fn check(old: &str, new: &str, metadata: &str) {
        let (old, new) = (document(old), document(new));
        let times =
            LeafTimes::all(&old, seconds(1)).after(&old, &new, &Model::default(), seconds(2));
        let short = metadata
            .replace(":1", ":{\"timestamp\":1}")
            .replace(":2", ":{\"timestamp\":2}")
            .replace("[1", "[{\"timestamp\":1}")
            .replace("[2", "[{\"timestamp\":2}")
            .replace(",1]", ",{\"timestamp\":1}]")
            .replace(",2]", ",{\"timestamp\":2}]");
        assert_eq!(times.metadata(&new), short);
        assert_eq!(LeafTimes::decode(&times.encode(), &new), Some(times));
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
    fn a_part_has_the_times_of_the_whole() {
        let whole = document(r#"{"a":{"x":1,"y":2},"b":3}"#);
        let times = LeafTimes::decode("10000000:9s,8s,7s", &whole).unwrap();
        let part = document(r#"{"a":{"y":2},"b":{"z":1},"c":null}"#);
        assert_eq!(
            times.metadata_of(part.view(), &whole, 99),
            r#"{"a":{"y":{"timestamp":2}},"b":{"z":{"timestamp":99}},"c":{"timestamp":99}}"#
        );
    }

    #[test]
    fn text_of_other_times_is_rejected() {
        let two = document(r#"{"a":1,"b":2}"#);
        for text in [
            "",
            "1*2",
            "0:",
            "0:1",
            "0:1*3",
            "0:1,2,3",
            "0:x*2",
            "0:1*x",
            "x:1*2",
            "0:1*99999999999",
            "0:,",
            "0:1*4294967295,1*4294967295",
            "0:1*2;",
            "0:1*2;{}",
            "0:1*2;[1]",
            "0:1*2;{\"a\":{}}",
            "9223372036854775807:-1*2",
        ] {
            assert_eq!(LeafTimes::decode(text, &two), None, "{text}");
        }
        assert_eq!(
            LeafTimes::decode("0:", &Document::default()),
            Some(LeafTimes::default())
        );
    }

    #[test]
    fn removals_are_kept_for_ten_minutes() {
        let old = document(r#"{"a":{"x":1,"y":2},"b\"":3}"#);
        let new = document(r#"{"a":{"x":1}}"#);
        let at = |time: i64, old: &Document, new: &Document, times: &LeafTimes| {
            times.after(old, new, &Model::default(), seconds(time))
        };
        let first = LeafTimes::all(&old, seconds(1000));
        let times = at(1100, &old, &new, &first);
        assert_eq!(times.encode(), r#"1100000000:100s;{"a":{"y":0},"b\"":0}"#);
        assert_eq!(
            LeafTimes::decode(&times.encode(), &new),
            Some(times.clone())
        );
        assert_eq!(times.newest(), Some(seconds(1100)));
        assert_ne!(at(1700, &new, &new, &times).encode(), "1000000000:0");
        assert_eq!(at(1701, &new, &new, &times).encode(), "1000000000:0");
    }

    #[test]
    fn old_times_are_whole_seconds() {
        let one = document(r#"{"a":1}"#);
        let two = document(r#"{"a":1,"b":2}"#);
        let first = LeafTimes::all(&one, Timestamp::from_nanoseconds(1_000_000_123_456_789));
        let soon = first.after(&one, &two, &Model::default(), seconds(1_000_500));
        assert_eq!(soon.encode(), "1000500000000:499876544,0");
        let late = first.after(&one, &two, &Model::default(), seconds(1_000_700));
        assert_eq!(late.encode(), "1000700000000:700s,0");
    }
}
