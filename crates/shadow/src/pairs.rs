//! Two objects side by side: each name once, with the value on either side.
//!
//! In canonical documents the names rise on both sides and one step over both is enough. Elsewhere
//! they mostly stand in the same order; where they do not, the rest is paired through sorted lists.

use crate::tape::{Children, View};

/// Calls `pair` once per member name of either object; stops and says `false` at the first `false`.
pub(crate) fn all_pairs<'a, 'b>(
    left: View<'a>,
    right: View<'b>,
    mut pair: impl FnMut(&str, Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    let (mut lefts, mut rights) = (left.children(), right.children());
    loop {
        // What is left when names part ways includes the two just looked at.
        let rest = (lefts.clone(), rights.clone());
        match (lefts.next(), rights.next()) {
            (Some(a), Some(b)) if a.raw_key() == b.raw_key() => {
                if !pair(a.raw_key(), Some(a), Some(b)) {
                    return false;
                }
            }
            (None, None) => return true,
            _ => return join(rest.0, rest.1, pair),
        }
    }
}

fn join<'a, 'b>(
    lefts: Children<'a>,
    rights: Children<'b>,
    mut pair: impl FnMut(&str, Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    if !rises(lefts.clone()) || !rises(rights.clone()) {
        return join_sorted(
            sorted(lefts).into_iter(),
            sorted(rights).into_iter(),
            &mut pair,
        );
    }
    join_sorted(lefts, rights, &mut pair)
}

fn rises(children: Children<'_>) -> bool {
    children.is_sorted_by(|a, b| a.raw_key() < b.raw_key())
}

fn sorted(children: Children<'_>) -> Vec<View<'_>> {
    let mut views: Vec<_> = children.collect();
    views.sort_by(|a, b| a.raw_key().cmp(b.raw_key()));
    views
}

fn join_sorted<'a, 'b>(
    lefts: impl Iterator<Item = View<'a>>,
    rights: impl Iterator<Item = View<'b>>,
    pair: &mut impl FnMut(&str, Option<View<'a>>, Option<View<'b>>) -> bool,
) -> bool {
    let (mut lefts, mut rights) = (lefts.peekable(), rights.peekable());
    loop {
        let order = match (lefts.peek(), rights.peek()) {
            (None, None) => return true,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.raw_key().cmp(b.raw_key()),
        };
        let a = if order.is_le() { lefts.next() } else { None };
        let b = if order.is_ge() { rights.next() } else { None };
        let Some(key) = a.map(View::raw_key).or(b.map(View::raw_key)) else {
            return true;
        };
        if !pair(key, a, b) {
            return false;
        }
    }
}
