//! The laws of acknowledging.

use antumbra_shadow::{Acknowledged, Document, Model, acknowledge, delta};
use proptest::prelude::*;

use super::strategies::{document, document_of, pair};
use crate::config;
use crate::reference::acknowledge::acknowledge as naive;
use crate::reference::value::{below, parse};

fn pointers(found: &Acknowledged) -> Vec<String> {
    found.acknowledged.pointers(usize::MAX).unwrap_or_default()
}

proptest! {
    #![proptest_config(config(450))]

    #[test]
    fn agrees_with_the_reference((reported, desired) in pair()) {
        let (model, reported, desired) = (Model::default(), document_of(&reported), document_of(&desired));
        let ours = acknowledge(&reported, &desired, &model);
        let theirs = naive(&parse(reported.as_str()), &parse(desired.as_str()), &model);
        prop_assert_eq!(&ours.desired, &document_of(&theirs.remaining), "{} of {}", desired, reported);
        prop_assert_eq!(ours.acknowledged.len(), theirs.acknowledged.len());
        prop_assert_eq!(pointers(&ours), theirs.acknowledged, "{} of {}", desired, reported);
        ours.acknowledged.for_each(|pointer, value| {
            assert_eq!(desired.pointer(pointer).map(|view| view.to_json()), Some(value.to_json()));
        });
    }

    #[test]
    fn the_delta_is_the_unacknowledged_rest((reported, desired) in pair()) {
        let (model, reported, desired) = (Model::default(), document_of(&reported), document_of(&desired));
        let left = delta(&desired, &reported, &model);
        prop_assert_eq!(&left, &acknowledge(&reported, &desired, &model).desired);
    }

    #[test]
    fn the_delta_is_empty_exactly_when_everything_is_acknowledged((reported, desired) in pair()) {
        let (model, reported, desired) = (Model::default(), document_of(&reported), document_of(&desired));
        let acknowledged = pointers(&acknowledge(&reported, &desired, &model));
        let covered = |pointer: &str| acknowledged.iter().any(|one| {
            pointer.strip_prefix(one.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        // The id of an element is removed with its last other member.
        let all = below("", &parse(desired.as_str()), &model).iter().all(|(pointer, _)| {
            covered(pointer) || pointer.strip_suffix("/id").is_some_and(|element| {
                let position = element.rsplit('/').next().unwrap_or_default();
                position.parse::<usize>().is_ok()
                    && acknowledged.iter().any(|one| one.starts_with(&format!("{element}/")))
            })
        });
        prop_assert_eq!(delta(&desired, &reported, &model).is_empty(), all, "{} of {}", desired, reported);
    }

    #[test]
    fn values_reported_as_desired_are_acknowledged(document in document()) {
        let (model, document) = (Model::default(), document_of(&document));
        prop_assert_eq!(acknowledge(&document, &document, &model).desired, Document::default());
    }

    #[test]
    fn acknowledging_again_changes_nothing((reported, desired) in pair()) {
        let (model, reported, desired) = (Model::default(), document_of(&reported), document_of(&desired));
        let once = acknowledge(&reported, &desired, &model);
        let twice = acknowledge(&reported, &once.desired, &model);
        prop_assert_eq!(once.desired, twice.desired);
        prop_assert!(twice.acknowledged.is_empty());
    }

    #[test]
    fn nothing_reported_acknowledges_nothing(desired in document()) {
        let (model, desired) = (Model::default(), document_of(&desired));
        let found = acknowledge(&Document::default(), &desired, &model);
        prop_assert_eq!(found.desired, desired);
        prop_assert!(found.acknowledged.is_empty());
    }
}
