//! Two objects side by side: each name once, with the value on either side.
//!
//! In canonical documents the names rise on both sides and one step over both is enough. Elsewhere
//! they mostly stand in the same order; where they do not, a few names are looked for one by one and
//! many are paired through sorted lists.

use crate::tape::{Children, View};

/// Members on one side that are still looked for one by one; one bit each says which were found.
const FEW: usize = 32;

/// Calls `pair` once per member name of either object; stops and returns `false` at the first `false`.
#[inline]
pub(crate) fn all_twins<'a, 'b>(
    left: View<'a>,
    right: View<'b>,
    mut pair: impl FnMut(Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    let (mut lefts, mut rights) = (left.children(), right.children());
    while let (Some(a), Some(b)) = (lefts.peek(), rights.peek()) {
        if a.raw_key_bytes() != b.raw_key_bytes() {
            break;
        }
        if !pair(Some(a), Some(b)) {
            return false;
        }
        lefts.step_over(a);
        rights.step_over(b);
    }
    if lefts.peek().is_none() && rights.peek().is_none() {
        return true;
    }
    join(lefts, rights, pair)
}

/// Calls `pair` once per name of either, in whatever order the members stand.
#[inline(never)]
pub(crate) fn join<'a, 'b>(
    lefts: Children<'a>,
    rights: Children<'b>,
    mut pair: impl FnMut(Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    if rises(lefts.clone()) && rises(rights.clone()) {
        join_sorted(lefts, rights, &mut pair)
    } else if rights.clone().nth(FEW).is_none() {
        join_few(lefts, rights, &mut pair)
    } else {
        join_sorted(
            sorted(lefts).into_iter(),
            sorted(rights).into_iter(),
            &mut pair,
        )
    }
}

fn join_few<'a, 'b>(
    lefts: Children<'a>,
    rights: Children<'b>,
    pair: &mut impl FnMut(Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    let mut found = 0_u32;
    for a in lefts {
        let (key, mut bit) = (a.raw_key_bytes(), 1);
        let mut twin = None;
        for b in rights.clone() {
            if found & bit == 0 && b.raw_key_bytes() == key {
                found |= bit;
                twin = Some(b);
                break;
            }
            bit <<= 1;
        }
        if !pair(Some(a), twin) {
            return false;
        }
    }
    let mut left_over = rights
        .enumerate()
        .filter(|(position, _)| found >> position & 1 == 0);
    left_over.all(|(_, b)| pair(None, Some(b)))
}

fn rises(children: Children<'_>) -> bool {
    children.is_sorted_by(|a, b| a.raw_key_bytes() < b.raw_key_bytes())
}

fn sorted(children: Children<'_>) -> Vec<View<'_>> {
    let mut views: Vec<_> = children.collect();
    views.sort_by(|a, b| a.raw_key_bytes().cmp(b.raw_key_bytes()));
    views
}

fn join_sorted<'a, 'b>(
    lefts: impl Iterator<Item = View<'a>>,
    rights: impl Iterator<Item = View<'b>>,
    pair: &mut impl FnMut(Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    let (mut lefts, mut rights) = (lefts.peekable(), rights.peekable());
    loop {
        let order = match (lefts.peek(), rights.peek()) {
            (None, None) => return true,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.raw_key_bytes().cmp(b.raw_key_bytes()),
        };
        let a = if order.is_le() { lefts.next() } else { None };
        let b = if order.is_ge() { rights.next() } else { None };
        if !pair(a, b) {
            return false;
        }
    }
}
