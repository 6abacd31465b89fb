//! Keys of the history table.
//!
//! | partition key | sort key | item |
//! |---|---|---|
//! | `DS#{id}` | `DSR#{name}#{time}#{version}`, or with `DSD` or `DSC` | entry: a change of an item of a shadow |
//! | `DS#{id}` | `PART#{sort key of the entry}#{number}` | part of a large entry |
//! | `DS#{id}` | `PURGE#{name}` | marker: changes of the shadow up to its time are not recorded any more |
//! | `PURGES` | `LATEST` | latest time of all markers |
//!
//! A name is escaped, so that no `#` in it ends it. Times have 20 digits and versions 19, so that texts sort as numbers.

use std::borrow::Cow;
use std::fmt;

use crate::items::{ItemKind, ShadowItem};

const PART: &str = "PART#";

/// Place of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HistoryKey {
    /// The device's id.
    pub id: String,
    /// The shadow's name.
    pub name: String,
    pub item: ShadowItem,
    /// Time of the write, in nanoseconds since 1970.
    pub time: u64,
    pub version: u64,
}

/// Error of a sort key that does not belong to a history entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a history entry")]
pub struct InvalidHistoryKey;

impl HistoryKey {
    pub fn partition(&self) -> String {
        history_partition(&self.id)
    }

    /// The sort key.
    pub fn sort(&self) -> String {
        let prefix = document_prefix(self.item, &self.name);
        format!("{prefix}{}#{:019}", time_key(self.time), self.version)
    }

    /// Parses a key.
    ///
    /// ```
    /// use antumbra_wire::history::HistoryKey;
    /// use antumbra_wire::items::ShadowItem;
    /// let key = HistoryKey {
    ///     id: "My House#Attic".to_owned(),
    ///     name: "a#1%".to_owned(),
    ///     item: ShadowItem::Reported,
    ///     time: 1_700_000_000_000_000_000,
    ///     version: 7,
    /// };
    /// assert_eq!(key.sort(), "DSR#a%231%25#01700000000000000000#0000000000000000007");
    /// assert_eq!(HistoryKey::parse(&key.partition(), &key.sort()), Ok(key));
    /// ```
    pub fn parse(partition: &str, sort: &str) -> Result<HistoryKey, InvalidHistoryKey> {
        let parse = || {
            let of = |item: &ShadowItem| {
                let kind = ItemKind::Shadow(*item);
                let id = partition.strip_prefix(kind.partition_prefix())?;
                Some((*item, id, sort.strip_prefix(kind.sort_prefix())?))
            };
            let (item, id, rest) = ShadowItem::ALL.iter().find_map(of)?;
            let mut parts = rest.split('#');
            let (name, time, version) = (parts.next()?, parts.next()?, parts.next()?);
            let is_whole = parts.next().is_none() && time.len() == 20 && version.len() == 19;
            is_whole.then_some(())?;
            Some(HistoryKey {
                id: id.to_owned(),
                name: unescape_name(name)?,
                item,
                time: time.parse().ok()?,
                version: version.parse().ok()?,
            })
        };
        parse().ok_or(InvalidHistoryKey)
    }
}

/// Partition key of everything of a device's shadows.
pub fn history_partition(id: &str) -> String {
    ItemKind::Shadow(ShadowItem::Reported).partition(id)
}

/// Start of the sort keys of all entries of an item.
pub fn document_prefix(item: ShadowItem, name: &str) -> String {
    let prefix = ItemKind::Shadow(item).sort(&escape_name(name));
    format!("{prefix}#")
}

/// A time as it stands in a sort key.
pub fn time_key(time: u64) -> String {
    format!("{time:020}")
}

/// Sort key of a part of a large entry.
pub fn part_sort(entry_sort: &str, number: usize) -> String {
    format!("{PART}{entry_sort}#{number:04}")
}

/// Sort keys of a shadow's entries up to a time, and of their parts: first and last of each range, in ascending order. The
/// parts come after all entries.
pub fn past_ranges(name: &str, until: u64) -> Vec<[String; 2]> {
    let mut prefixes = ShadowItem::ALL.map(|item| document_prefix(item, name));
    prefixes.sort_unstable();
    let entries = prefixes.iter().cloned();
    let parts = prefixes.iter().map(|prefix| format!("{PART}{prefix}"));
    let range = |prefix: String| {
        // A colon sorts after all digits: no entry of that time is as late.
        let last = format!("{prefix}{}#:", time_key(until));
        [format!("{prefix}{}", time_key(0)), last]
    };
    entries.chain(parts).map(range).collect()
}

/// Sort key of the marker of a purge, in the partition of the device.
pub fn purge_marker_sort(name: &str) -> String {
    ItemKind::ShadowPurge.sort(name)
}

/// Partition and sort key of the latest time of all markers.
pub const LATEST_PURGE: [&str; 2] = ["PURGES", "LATEST"];

/// Escapes `#`, and `%` for its sake.
fn escape_name(name: &str) -> Cow<'_, str> {
    match name.contains(['#', '%']) {
        true => name.replace('%', "%25").replace('#', "%23").into(),
        false => name.into(),
    }
}

fn unescape_name(name: &str) -> Option<String> {
    let unescaped = name.replace("%23", "#").replace("%25", "%");
    (escape_name(&unescaped) == name).then_some(unescaped)
}

impl fmt::Display for HistoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.partition(), self.sort())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_separators_do_not_make_two_documents_one() {
        let names = [
            "a",
            "a#",
            "#",
            "a%23",
            "a%2523",
            "%",
            "å#b",
            "a#00000000000000000001",
        ];
        for name in names {
            let key = HistoryKey {
                id: "DS#x".to_owned(),
                name: name.to_owned(),
                item: ShadowItem::Combined,
                time: u64::MAX,
                version: i64::MAX as u64,
            };
            assert_eq!(
                HistoryKey::parse(&key.partition(), &key.sort()).as_ref(),
                Ok(&key)
            );
            for other in names.iter().filter(|other| **other != name) {
                let prefix = document_prefix(ShadowItem::Combined, other);
                assert!(!key.sort().starts_with(&prefix), "{name} {other}");
            }
        }
    }

    #[test]
    fn other_keys_are_no_entries() {
        for (partition, sort) in [
            ("DS#a", "PURGE#main"),
            (
                "DS#a",
                "PART#DSR#main#01700000000000000000#0000000000000000007#0001",
            ),
            ("DS#a", "DSR#main#1#2"),
            (
                "DS#a",
                "DSR#ma%24in#01700000000000000000#0000000000000000007",
            ),
            ("FEED#0", "COUNTER"),
        ] {
            assert!(HistoryKey::parse(partition, sort).is_err(), "{sort}");
        }
    }

    #[test]
    fn ranges_of_the_past_hold_the_entries_up_to_a_time_and_no_others() {
        let key = |name: &str, item, time| HistoryKey {
            id: "lamp".to_owned(),
            name: name.to_owned(),
            item,
            time,
            version: i64::MAX as u64,
        };
        let ranges = past_ranges("a#b", 7);
        let mut bounds: Vec<&String> = ranges.iter().flatten().collect();
        bounds.sort();
        assert_eq!(bounds, ranges.iter().flatten().collect::<Vec<_>>());
        let holds = |sort: &str| {
            let mut ranges = ranges.iter();
            ranges.any(|[first, last]| **first <= *sort && *sort <= **last)
        };
        for item in ShadowItem::ALL {
            for (name, time, expected) in [
                ("a#b", 0, true),
                ("a#b", 7, true),
                ("a#b", 8, false),
                ("a", 7, false),
                ("a#b#", 7, false),
                ("a%23b", 7, false),
                ("a#c", 7, false),
            ] {
                let sort = key(name, item, time).sort();
                assert_eq!(holds(&sort), expected, "{sort}");
                assert_eq!(holds(&part_sort(&sort, 12)), expected, "{sort}");
            }
        }
        assert!(!holds(&purge_marker_sort("a#b")));
    }

    #[test]
    fn the_longest_key_fits() {
        let key = HistoryKey {
            id: "i".repeat(1024),
            name: "#".repeat(256),
            item: ShadowItem::Combined,
            time: u64::MAX,
            version: i64::MAX as u64,
        };
        assert!(part_sort(&key.sort(), 9999).len() <= 1024);
    }
}
