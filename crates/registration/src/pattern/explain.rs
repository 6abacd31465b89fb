//! Explains why a pattern does not match: the first field that does not match, and its values.

use super::Pattern;
use super::alternative::{Alternative, Field, each_value};
use super::root::Root;
use super::test::Scalar;
use crate::change::Change;

/// Maximum values of a field in an explanation.
const SHOWN_VALUES: usize = 5;
/// Maximum bytes of each of them.
const SHOWN_BYTES: usize = 1024;

impl Pattern {
    /// Explains why a change does not match; `None` if it matches. Of several alternatives, the one with the most matching
    /// fields is explained, by its first field that does not match. Calls `holds` with the fields that match: those before
    /// that one, or those of the alternative that matches.
    pub(crate) fn miss(
        &self,
        change: &Change<'_>,
        holds: &mut dyn FnMut(&Field),
    ) -> Option<(Field, String)> {
        // Position of the field in its alternative, the fields up to it, and whether it matches without the others.
        let mut furthest: Option<(usize, Vec<Field>, bool)> = None;
        for alternative in &self.alternatives {
            let mut fields = alternative.fields();
            let first_match =
                |count: usize| Alternative::new(fields[..count].to_vec()).matches(change);
            let Some(first) = (1..=fields.len()).find(|count| !first_match(*count)) else {
                fields.iter().for_each(holds);
                return None;
            };
            if furthest.as_ref().is_none_or(|(best, ..)| first > *best) {
                let field = fields[first - 1].clone();
                let matches_alone = Alternative::new(vec![field]).matches(change);
                fields.truncate(first);
                furthest = Some((first, fields, matches_alone));
            }
        }
        let (_, mut fields, matches_alone) = furthest?;
        let field = fields.pop()?;
        fields.iter().for_each(holds);
        let expected = field.wanted.text();
        let found = match values(&field, change).as_slice() {
            [] => "there is no value".to_owned(),
            values => format!("is {}", values.join(", ")),
        };
        // A value would match, but not in the element that the earlier fields chose.
        let place = match matches_alone {
            true => " (in another element of the array than the fields before)",
            false => "",
        };
        let path = pointer(&field.path);
        let miss = format!("{path} must be {expected}, but {found}{place}");
        Some((field, miss))
    }
}

pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > SHOWN_BYTES {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES));
        text.shrink_to_fit();
        text.push_str("...");
    }
    text
}

/// The JSON Pointer of a field.
pub(crate) fn pointer(path: &[Box<str>]) -> String {
    let mut pointer = String::new();
    path.iter()
        .for_each(|step| antumbra_shadow::pointer::push_key(&mut pointer, step));
    pointer
}

/// The values of a change at the path of a field.
fn values(field: &Field, change: &Change<'_>) -> Vec<String> {
    let mut values = Vec::new();
    let mut add = |scalar: &Scalar<'_>| match values.len() {
        0..SHOWN_VALUES => values.push(shortened(scalar.to_string())),
        SHOWN_VALUES => values.push("...".to_owned()),
        _ => {}
    };
    let [root, path @ ..] = &*field.path else {
        return values;
    };
    let view = match Root::parse(root) {
        Some(Root::Old) => change.old.map(|view| (view, path)),
        Some(Root::New) => change.new.map(|view| (view, path)),
        Some(Root::Diff) => in_diff(change, path),
        Some(scalar) => {
            scalar.with_scalar(change, |scalar| scalar.into_iter().for_each(&mut add));
            None
        }
        None => None,
    };
    if let Some((view, path)) = view {
        each_value(view, path, &mut |scalar| add(&scalar));
    }
    values
}

/// The value of a diff at the start of a path, and the rest of the path.
fn in_diff<'c, 'p>(
    change: &'c Change<'_>,
    path: &'p [Box<str>],
) -> Option<(antumbra_shadow::View<'c>, &'p [Box<str>])> {
    let diff = change.diff.diff();
    let [part, pointer, rest @ ..] = path else {
        return None;
    };
    match (&**part, rest) {
        ("added", rest) => diff
            .added()
            .find(|(known, _)| known.is(pointer))
            .map(|(_, new)| (new, rest)),
        ("removed", rest) => diff
            .removed()
            .find(|(known, _)| known.is(pointer))
            .map(|(_, old)| (old, rest)),
        (_, [side, rest @ ..]) => {
            let (_, old, new) = diff.updated().find(|(known, ..)| known.is(pointer))?;
            Some((if &**side == "old" { old } else { new }, rest))
        }
        _ => None,
    }
}
