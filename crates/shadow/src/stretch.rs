//! The common stretch of two texts, computed once and used for every value in it.
//!
//! Most of two documents is equal. Comparing each of their values by itself costs a call per value and
//! level; here the texts are compared once, up to the next difference, and a member that ends before it
//! is equal without another look.

use crate::blocks::{LANE, differences};
use crate::tape::{Children, Span, View};

/// A stretch of two texts that is known to be the same in both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stretch {
    /// Range in the left text. The byte at `end` differs, or is the end of the last root.
    start: u32,
    end: u32,
    /// Offset of the stretch in the right text, relative to the left one.
    shift: u32,
    /// Ends of the two roots.
    left_limit: u32,
    right_limit: u32,
}

/// Comparison of a member with the member of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Names and values are the same.
    Same,
    /// The values' texts differ; of the names nothing is said.
    Different,
    /// They have to be looked at.
    Unknown,
}

impl Stretch {
    /// Compares two roots. Whether their texts are the same is [`Stretch::is_whole`].
    pub(crate) fn of(left: View<'_>, right: View<'_>) -> Stretch {
        let (a, b) = (left.node().value, right.node().value);
        let mut stretch = Stretch {
            left_limit: a.end,
            right_limit: b.end,
            ..Stretch::default()
        };
        stretch.start_at(a.start, b.start, left, right);
        stretch
    }

    /// Returns `true` if the roots are equal.
    pub(crate) fn is_whole(&self) -> bool {
        self.end == self.left_limit && self.left_limit.wrapping_add(self.shift) == self.right_limit
    }

    /// Looks at two members of objects below the roots, which go forward from call to call.
    #[inline]
    pub(crate) fn members(&mut self, left: View<'_>, right: View<'_>) -> Known {
        let (a, b) = (left.node(), right.node());
        if !self.is_within(a.key.start, b.key.start) {
            self.start_at(a.key.start, b.key.start, left, right);
        }
        if a.value.end <= self.end && b.value.end == a.value.end.wrapping_add(self.shift) {
            Known::Same
        } else if self.reaches_into(a.value, b.value) {
            Known::Different
        } else {
            Known::Unknown
        }
    }

    /// Steps over the members that follow two members that are the same, as far as the texts are known to be equal:
    /// these are the same too, and have as many nodes. Returns the last of them on the left.
    #[inline]
    pub(crate) fn step_over_same<'a>(
        &self,
        lefts: &mut Children<'a>,
        rights: &mut Children<'_>,
    ) -> Option<View<'a>> {
        let (last, nodes) = lefts.step_to(self.end);
        rights.advance(nodes);
        last
    }

    fn is_within(&self, left: u32, right: u32) -> bool {
        self.start <= left && left < self.end && right == left.wrapping_add(self.shift)
    }

    /// Returns `true` if everything before the first byte of the values is equal, so that only the values differ.
    fn reaches_into(&self, left: Span, right: Span) -> bool {
        left.start <= self.end && right.start == left.start.wrapping_add(self.shift)
    }

    #[inline(never)]
    fn start_at(&mut self, left: u32, right: u32, a: View<'_>, b: View<'_>) {
        let left_rest = Span::new(left as usize, self.left_limit as usize);
        let right_rest = Span::new(right as usize, self.right_limit as usize);
        let same = common_prefix(
            left_rest.bytes_of(a.source()),
            right_rest.bytes_of(b.source()),
        );
        self.start = left;
        self.end = left + same as u32;
        self.shift = right.wrapping_sub(left);
    }
}

/// Length of the common prefix in bytes.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let shorter = a.len().min(b.len());
    let (a, b) = (&a[..shorter], &b[..shorter]);
    let (blocks, rest) = a.as_chunks::<{ 2 * LANE }>();
    let (others, other_rest) = b.as_chunks::<{ 2 * LANE }>();
    for (index, (a, b)) in blocks.iter().zip(others).enumerate() {
        let differs = differences(a, b);
        if differs != 0 {
            return index * 2 * LANE + differs.trailing_zeros() as usize;
        }
    }
    let same = rest.iter().zip(other_rest).take_while(|(a, b)| a == b);
    shorter - rest.len() + same.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_first_difference() {
        let text: Vec<u8> = (0..200).collect();
        for length in 0..text.len() {
            for at in (0..length).chain([length]) {
                let mut other = text[..length].to_vec();
                if let Some(byte) = other.get_mut(at) {
                    *byte ^= 0x80;
                }
                assert_eq!(common_prefix(&text[..length], &other), at);
                assert_eq!(common_prefix(&text, &other), at);
                assert_eq!(common_prefix(&other, &text), at);
            }
        }
    }
}
