//! Finds all intervals that contain a value.
//!
//! A balanced tree in an array, sorted by low ends; each node stores the highest high end of its range.

use std::cmp::Ordering;

/// One end of an interval; `None` is unbounded.
pub(crate) type Bound<T> = Option<(T, bool)>;

#[derive(Debug)]
pub(crate) struct Intervals<T> {
    items: Box<[Item<T>]>,
}

#[derive(Debug)]
struct Item<T> {
    low: Bound<T>,
    high: Bound<T>,
    /// The item with the highest high end in the range whose middle is this one.
    highest: u32,
    number: u32,
}

impl<T: Ord> Intervals<T> {
    pub(crate) fn new(given: Vec<(Bound<T>, Bound<T>, u32)>) -> Intervals<T> {
        let mut items: Vec<_> = given
            .into_iter()
            .map(|(low, high, number)| Item {
                low,
                high,
                highest: 0,
                number,
            })
            .collect();
        // Unbounded ends first; of equal ends, the inclusive one first.
        let key = |item: &Item<T>, other: &Item<T>| match (&item.low, &other.low) {
            (Some((a, a_in)), Some((b, b_in))) => a.cmp(b).then(b_in.cmp(a_in)),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        items.sort_by(key);
        let length = items.len();
        span(&mut items, 0, length);
        Intervals {
            items: items.into(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Calls `found` with the number of every interval that contains the value; `compare` compares an end with it.
    pub(crate) fn each(&self, compare: &impl Fn(&T) -> Ordering, then: &mut impl FnMut(u32)) {
        self.stab(0, self.items.len(), compare, then);
    }

    fn stab(
        &self,
        from: usize,
        to: usize,
        compare: &impl Fn(&T) -> Ordering,
        then: &mut impl FnMut(u32),
    ) {
        if from >= to {
            return;
        }
        let middle = from + (to - from) / 2;
        let item = &self.items[middle];
        let reaches = |item: &Item<T>| {
            item.high
                .as_ref()
                .is_none_or(|(end, included)| match compare(end) {
                    Ordering::Greater => true,
                    Ordering::Equal => *included,
                    Ordering::Less => false,
                })
        };
        if !reaches(&self.items[item.highest as usize]) {
            return;
        }
        self.stab(from, middle, compare, then);
        let starts = item
            .low
            .as_ref()
            .is_none_or(|(end, included)| match compare(end) {
                Ordering::Less => true,
                Ordering::Equal => *included,
                Ordering::Greater => false,
            });
        if starts {
            if reaches(item) {
                then(item.number);
            }
            self.stab(middle + 1, to, compare, then);
        }
    }
}

/// Sets the highest end of every range; returns that of this one.
fn span<T: Ord>(items: &mut [Item<T>], from: usize, to: usize) -> Option<usize> {
    if from >= to {
        return None;
    }
    let middle = from + (to - from) / 2;
    let below = [span(items, from, middle), span(items, middle + 1, to)];
    let higher = |items: &[Item<T>], a: usize, b: usize| match (&items[a].high, &items[b].high) {
        (Some(x), Some(y)) => {
            if x >= y {
                a
            } else {
                b
            }
        }
        (None, _) => a,
        (_, None) => b,
    };
    let highest = below
        .into_iter()
        .flatten()
        .fold(middle, |best, other| higher(items, best, other));
    items[middle].highest = highest as u32;
    Some(highest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound() -> impl Strategy<Value = Bound<i8>> {
        proptest::option::weighted(0.8, (-9i8..9, proptest::bool::ANY))
    }

    proptest! {
        #[test]
        fn finds_what_a_loop_finds(given in proptest::collection::vec((bound(), bound()), 0..40), value in -10i8..10) {
            let expected: Vec<u32> = (0u32..).zip(&given).filter(|(_, (low, high))| {
                low.is_none_or(|(end, included)| end < value || (included && end == value))
                    && high.is_none_or(|(end, included)| end > value || (included && end == value))
            }).map(|(number, _)| number).collect();
            let numbered = (0u32..).zip(given).map(|(number, (low, high))| (low, high, number)).collect();
            let mut found = Vec::new();
            Intervals::new(numbered).each(&|end: &i8| end.cmp(&value), &mut |number| found.push(number));
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
