//! The laws of patches.

use antumbra_shadow::{Document, Model, Patch, PatchError, Patched, PatchedLeaf, diff};
use proptest::prelude::*;

use super::strategies::{document, document_of, pair};
use crate::config;

fn between(old: &Document, new: &Document) -> Patch {
    let patch = Patch::between(old, new, &Model::default(), usize::MAX);
    let stored = patch.expect("there is no limit").to_json();
    Patch::parse(&stored).expect("a written patch is read")
}

fn leaves_of_diff(old: &Document, new: &Document) -> Vec<PatchedLeaf> {
    let model = Model::default();
    let diff = diff(old.view(), new.view(), &model);
    let leaves = diff.leaves().map(|leaf| PatchedLeaf {
        pointer: leaf.pointer.to_string(),
        old: leaf.old.map(|view| view.to_json()),
        new: leaf.new.map(|view| view.to_json()),
    });
    leaves.collect()
}

fn sorted(mut leaves: Vec<PatchedLeaf>) -> Vec<PatchedLeaf> {
    leaves.sort_by(|a, b| (&a.pointer, &a.old).cmp(&(&b.pointer, &b.old)));
    leaves
}

proptest! {
    #![proptest_config(config(450))]

    #[test]
    fn a_patch_leads_forwards_and_back((old, new) in pair()) {
        let (old, new) = (document_of(&old), document_of(&new));
        let patch = between(&old, &new);
        let mut patched = Patched::new(&old);
        patched.apply(&patch).unwrap();
        prop_assert_eq!(&patched.document().unwrap(), &new);
        patched.revert(&patch).unwrap();
        prop_assert_eq!(&patched.document().unwrap(), &old);
        prop_assert_eq!(patch.is_empty(), old == new);
    }

    #[test]
    fn patches_of_a_chain_lead_to_every_document_of_it(all in prop::collection::vec(document(), 2..6)) {
        let all: Vec<Document> = all.iter().map(document_of).collect();
        let patches: Vec<Patch> = all.windows(2).map(|two| between(&two[0], &two[1])).collect();
        let mut patched = Patched::new(&all[0]);
        for (patch, document) in patches.iter().zip(&all[1..]) {
            patched.apply(patch).unwrap();
            prop_assert_eq!(&patched.document().unwrap(), document);
        }
        for (patch, document) in patches.iter().zip(&all).rev() {
            patched.revert(patch).unwrap();
            prop_assert_eq!(&patched.document().unwrap(), document);
        }
    }

    #[test]
    fn the_leaves_are_those_of_the_diff((old, new) in pair()) {
        let (old, new) = (document_of(&old), document_of(&new));
        let leaves = between(&old, &new).leaves(&Model::default(), usize::MAX).unwrap();
        let expected = leaves_of_diff(&old, &new);
        prop_assert_eq!(sorted(leaves.unwrap()), sorted(expected), "{} to {}", old, new);
    }

    #[test]
    fn a_patch_stays_within_its_limit((old, new) in pair(), limit in 0..200usize) {
        let (old, new) = (document_of(&old), document_of(&new));
        if let Some(patch) = Patch::between(&old, &new, &Model::default(), limit) {
            // Names are escaped once more in a JSON text.
            let escapes = patch.to_json().matches('\\').count();
            prop_assert!(patch.to_json().len() <= limit + escapes);
        }
    }

    #[test]
    fn a_patch_of_another_document_is_a_misfit_or_changes_the_same_values(
        (old, new) in pair(),
        other in document(),
    ) {
        let (old, new, other) = (document_of(&old), document_of(&new), document_of(&other));
        let patch = between(&old, &new);
        let mut patched = Patched::new(&other);
        if patched.apply(&patch).is_ok() {
            patched.revert(&patch).unwrap();
            prop_assert_eq!(patched.document().unwrap(), other);
        }
    }
}

#[test]
fn texts_that_are_no_patch_are_rejected() {
    for text in ["", "{}", "[1]", r#"[["/a",[1,2],[]]]"#, r#"[["/a",[1]]]"#] {
        assert!(
            matches!(Patch::parse(text), Err(PatchError::Syntax(_))),
            "{text}"
        );
    }
    for text in [
        r#"[["",[],[1]]]"#,
        r#"[["/a/b",[],[1]]]"#,
        r#"[["/a",[2],[1]]]"#,
    ] {
        let mut patched = Patched::new(&Document::parse(r#"{"a":1}"#).unwrap());
        let patch = Patch::parse(text).unwrap();
        assert!(
            matches!(patched.apply(&patch), Err(PatchError::Misfit { .. })),
            "{text}"
        );
    }
}
