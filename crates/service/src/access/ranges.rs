//! Ranges of ids, for listings.

use super::prefix::Prefix;

/// Ids that follow each other in the order of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdRange {
    /// All ids that start with a text.
    StartsWith(String),
    /// One id.
    Is(String),
}

impl IdRange {
    /// The text that the range begins with.
    pub fn start(&self) -> &str {
        match self {
            IdRange::StartsWith(text) | IdRange::Is(text) => text,
        }
    }

    pub fn contains(&self, id: &str) -> bool {
        match self {
            IdRange::StartsWith(start) => id.starts_with(start),
            IdRange::Is(own) => id == own,
        }
    }

    /// Returns the ids of both ranges; `None` if there are none.
    fn and(&self, other: &IdRange) -> Option<IdRange> {
        match (self, other) {
            (IdRange::Is(id), range) | (range, IdRange::Is(id)) => {
                range.contains(id).then(|| IdRange::Is(id.clone()))
            }
            (IdRange::StartsWith(one), IdRange::StartsWith(two)) => {
                let (short, long) = if one.len() <= two.len() {
                    (one, two)
                } else {
                    (two, one)
                };
                long.starts_with(short)
                    .then(|| IdRange::StartsWith(long.clone()))
            }
        }
    }
}

/// Ranges without common ids, in the order of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRanges(Vec<IdRange>);

impl IdRanges {
    /// All ids.
    pub fn all() -> IdRanges {
        IdRanges::starting_with("")
    }

    /// The ids that start with a text.
    pub fn starting_with(text: impl Into<String>) -> IdRanges {
        IdRanges(vec![IdRange::StartsWith(text.into())])
    }

    /// One id.
    pub fn one(id: impl Into<String>) -> IdRanges {
        IdRanges(vec![IdRange::Is(id.into())])
    }

    /// Those of the ids that start with a text.
    #[must_use]
    pub fn below(&self, text: &str) -> IdRanges {
        let below = IdRange::StartsWith(text.to_owned());
        IdRanges(
            self.0
                .iter()
                .filter_map(|range| range.and(&below))
                .collect(),
        )
    }

    pub fn is_all(&self) -> bool {
        *self == IdRanges::all()
    }

    pub fn iter(&self) -> impl Iterator<Item = &IdRange> {
        self.0.iter()
    }

    pub fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|range| range.contains(id))
    }
}

/// All ids.
impl Default for IdRanges {
    fn default() -> IdRanges {
        IdRanges::all()
    }
}

/// The ids that prefixes cover; `None` covers all.
impl<'a> FromIterator<Option<&'a Prefix>> for IdRanges {
    fn from_iter<I: IntoIterator<Item = Option<&'a Prefix>>>(prefixes: I) -> IdRanges {
        let range = |prefix: Option<&Prefix>| match prefix {
            None => IdRange::StartsWith(String::new()),
            Some(prefix) if prefix.is_open() => IdRange::StartsWith(prefix.as_str().to_owned()),
            Some(prefix) => IdRange::Is(prefix.as_str().to_owned()),
        };
        let mut ranges: Vec<IdRange> = prefixes.into_iter().map(range).collect();
        // A range that holds others sorts before them.
        let is_one = |range: &IdRange| matches!(range, IdRange::Is(_));
        ranges.sort_by(|a, b| (a.start(), is_one(a)).cmp(&(b.start(), is_one(b))));
        ranges.dedup_by(|later, earlier| earlier.contains(later.start()));
        IdRanges(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(prefixes: &[&str]) -> IdRanges {
        let prefixes: Vec<Prefix> = prefixes.iter().map(|text| text.parse().unwrap()).collect();
        prefixes.iter().map(Some).collect()
    }

    fn starts(ranges: &IdRanges) -> Vec<&str> {
        ranges.iter().map(IdRange::start).collect()
    }

    #[test]
    fn ranges_are_ordered_and_hold_no_id_twice() {
        let ranges_of = ranges(&["b#", "a#1", "a#", "b#c#", "c", "c", "a", "c#d", "b#"]);
        assert_eq!(starts(&ranges_of), ["a", "a#", "b#", "c", "c#d"]);
        let all: IdRanges = [None, Prefix::new("a#").as_ref()].into_iter().collect();
        assert!(all.is_all());
        assert_eq!(starts(&ranges(&["a:", "a:"])), ["a:"]);
    }

    #[test]
    fn ranges_below_a_text_are_cut() {
        let own = ranges(&["a#", "b", "ab#c"]);
        assert_eq!(starts(&own.below("a")), ["a#", "ab#c"]);
        assert_eq!(starts(&own.below("a#1")), ["a#1"]);
        assert!(starts(&own.below("c")).is_empty());
        assert_eq!(own.below(""), own);
        assert_eq!(starts(&own.below("b")), ["b"]);
        assert!(starts(&own.below("ba")).is_empty());
        assert!(own.contains("a#7") && !own.contains("a") && own.contains("b"));
        assert!(!IdRanges::all().below("a#").contains("b"));
    }
}
