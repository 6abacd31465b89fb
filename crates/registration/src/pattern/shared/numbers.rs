//! Finds the numeric ranges that contain a number.

use super::intervals::Intervals;
use crate::decimal::Decimal;
use crate::pattern::test::{End, Range};

type Owned = Decimal<Box<str>>;

/// Ranges with one end are sorted by it, so that those that contain a number are adjacent.
#[derive(Debug)]
pub(crate) struct Numbers {
    above: Box<[(Owned, bool, u32)]>,
    below: Box<[(Owned, bool, u32)]>,
    between: Intervals<Owned>,
}

impl Numbers {
    pub(crate) fn new(given: Vec<(Range, u32)>) -> Numbers {
        let (mut above, mut below, mut between) = (Vec::new(), Vec::new(), Vec::new());
        let end = |end: End| (Decimal::new(end.number), end.included);
        for (range, number) in given {
            match (range.low.map(end), range.high.map(end)) {
                (Some((low, included)), None) => above.push((low, included, number)),
                (None, Some((high, included))) => below.push((high, included, number)),
                (low, high) => between.push((low, high, number)),
            }
        }
        // Of equal ends, inclusive ones come first for lower ends and last for upper ends.
        above.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        below.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
        Numbers {
            above: above.into(),
            below: below.into(),
            between: Intervals::new(between),
        }
    }

    /// Calls `found` with every number stored for a range that contains this plain decimal.
    pub(crate) fn each(&self, text: &str, then: &mut impl FnMut(u32)) {
        let value = Decimal::new(text);
        let holds = |end: &Owned, included: bool| match end.compare(&value) {
            std::cmp::Ordering::Equal => included,
            order => order.is_lt(),
        };
        let above = self
            .above
            .partition_point(|(low, included, _)| holds(low, *included));
        self.above[..above]
            .iter()
            .for_each(|(.., number)| then(*number));
        let below = self
            .below
            .partition_point(|(high, included, _)| holds(high, !included));
        self.below[below..]
            .iter()
            .for_each(|(.., number)| then(*number));
        self.between.each(&|end: &Owned| end.compare(&value), then);
    }
}
