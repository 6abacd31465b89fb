//! Removals of values, by path and time.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::tape::{Kind, View};

/// Removed leaves, and containers that were removed or replaced, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Removed {
    /// Everything here and below that is not newer than this time was removed.
    pub(crate) time: Option<i64>,
    below: BTreeMap<Box<str>, Removed>,
}

impl Removed {
    pub(crate) fn child(&self, name: &str) -> Option<&Removed> {
        self.below.get(name)
    }

    /// Newest time here and below.
    pub(crate) fn newest(&self) -> i64 {
        let below = self.below.values().map(Removed::newest);
        below.max().max(self.time).unwrap_or(i64::MIN)
    }

    /// Records a removal. Returns `false` if one at least as new is known here or above.
    pub(crate) fn record(&mut self, path: &[&str], time: i64) -> bool {
        if self.time.is_some_and(|known| known >= time) {
            return false;
        }
        match path {
            [] => {
                self.time = Some(time);
                true
            }
            [name, path @ ..] => match self.below.get_mut(*name) {
                Some(below) => below.record(path, time),
                None => {
                    let below = self.below.entry((*name).into());
                    below.or_default().record(path, time)
                }
            },
        }
    }

    /// The removals at a time or later.
    pub(super) fn since(&self, oldest: i64) -> Removed {
        let below = self.below.iter();
        let below = below.filter(|(_, below)| below.newest() >= oldest);
        Removed {
            time: self.time.filter(|time| *time >= oldest),
            below: below
                .map(|(name, below)| (name.clone(), below.since(oldest)))
                .collect(),
        }
    }

    /// Writes JSON: a number for a time, or an object of the names below. If a place has both, its time is the member with
    /// the empty name, which no member of a stored document has.
    pub(super) fn write(&self, base: i64, out: &mut String) {
        // Writing to a String cannot fail.
        let number = |out: &mut String, time: i64| {
            let _ = write!(out, "{}", i128::from(base) - i128::from(time));
        };
        if let (Some(time), true) = (self.time, self.below.is_empty()) {
            return number(out, time);
        }
        out.push('{');
        if let Some(time) = self.time {
            out.push_str("\"\":");
            number(out, time);
        }
        for (position, (name, below)) in self.below.iter().enumerate() {
            let first = position == 0 && self.time.is_none();
            out.push_str(if first { "\"" } else { ",\"" });
            out.push_str(name);
            out.push_str("\":");
            below.write(base, out);
        }
        out.push('}');
    }

    pub(super) fn read(view: View<'_>, base: i64) -> Option<Removed> {
        if let Some(number) = view.as_number() {
            return Some(Removed {
                time: Some(before(base, number)?),
                below: BTreeMap::new(),
            });
        }
        let mut removed = Removed::default();
        if view.kind() != Kind::Object || view.is_empty_container() {
            return None;
        }
        for member in view.children() {
            if member.raw_key().is_empty() {
                removed.time = Some(before(base, member.as_number()?)?);
            } else {
                let below = Removed::read(member, base)?;
                removed.below.insert(member.raw_key().into(), below);
            }
        }
        Some(removed)
    }
}

/// The time a number of microseconds before another one.
pub(super) fn before(base: i64, number: &str) -> Option<i64> {
    let before: i128 = number.parse().ok()?;
    i64::try_from(i128::from(base).checked_sub(before)?).ok()
}
