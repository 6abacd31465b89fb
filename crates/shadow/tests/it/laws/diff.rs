//! The laws of diff and apply.

use antumbra_shadow::{DiffBuffer, Model, apply, diff};
use proptest::prelude::*;
use serde_json::Value;

use super::strategies::{document, document_of, pair};
use crate::config;
use crate::reference::diff::{Lines, diff as naive};
use crate::reference::value::{parse, time, without_time};

proptest! {
    #![proptest_config(config(450))]

    #[test]
    fn agrees_with_the_reference((old, new) in pair()) {
        let (model, old, new) = (Model::default(), document_of(&old), document_of(&new));
        let ours = Lines::of(&diff(old.view(), new.view(), &model)).to_string();
        let theirs = naive(&parse(old.as_str()), &parse(new.as_str()), &model).to_string();
        prop_assert_eq!(ours, theirs, "{} to {}", old, new);
    }

    #[test]
    fn apply_leads_from_old_to_new((old, new) in pair()) {
        let (old, new) = (document_of(&old), document_of(&new));
        let found = diff(old.view(), new.view(), &Model::default());
        let applied = apply(&old, &found);
        prop_assert_eq!(applied.as_ref().map(|document| document.as_str()), Ok(new.as_str()), "from {}", old);
    }

    #[test]
    fn a_diff_of_equals_is_empty(document in document()) {
        let (one, other) = (document_of(&document), document_of(&document));
        let found = diff(one.view(), other.view(), &Model::default());
        prop_assert!(found.is_empty() && !found.value_changed());
        prop_assert_eq!((found.added().count(), found.updated().count(), found.removed().count()), (0, 0, 0));
    }

    #[test]
    fn empty_only_of_equals((old, new) in pair()) {
        let (old, new) = (document_of(&old), document_of(&new));
        prop_assert_eq!(diff(old.view(), new.view(), &Model::default()).is_empty(), old == new);
    }

    #[test]
    fn no_value_changed_means_all_but_times_is_equal((old, new) in pair()) {
        let (model, old, new) = (Model::default(), document_of(&old), document_of(&new));
        if !diff(old.view(), new.view(), &model).value_changed() {
            let timeless = |text: &str| members_without_time(&parse(text), &model);
            prop_assert_eq!(timeless(old.as_str()), timeless(new.as_str()));
        }
    }

    #[test]
    fn a_buffer_used_again_finds_the_same((one, other) in pair(), (old, new) in pair()) {
        let model = Model::default();
        let (one, other, old, new) = (document_of(&one), document_of(&other), document_of(&old), document_of(&new));
        let mut buffer = DiffBuffer::default();
        let _ = buffer.diff(one.view(), other.view(), &model);
        let again = Lines::of(&buffer.diff(old.view(), new.view(), &model)).to_string();
        prop_assert_eq!(again, Lines::of(&diff(old.view(), new.view(), &model)).to_string());
    }
}

/// The document without the times of its timestamped values; the root is not one of them.
fn members_without_time(document: &Value, model: &Model) -> Value {
    let member = |(key, value): (&String, &Value)| (key.clone(), timeless(value, model));
    document
        .as_object()
        .into_iter()
        .flatten()
        .map(member)
        .collect()
}

fn timeless(value: &Value, model: &Model) -> Value {
    match value {
        value if time(value, model).is_some() => without_time(value, model),
        Value::Object(_) => members_without_time(value, model),
        Value::Array(items) => items.iter().map(|item| timeless(item, model)).collect(),
        scalar => scalar.clone(),
    }
}
