//! The diff is computed only if a registration needs it.

use antumbra_registration::{Scratch, plan};

use crate::support::{Given, load};

#[test]
fn the_diff_is_computed_only_if_needed() {
    let given = Given::new(r#"{"a":2}"#).with_old(r#"{"a":1}"#);
    for (on, asks) in [
        (r#"{}"#, false),
        (
            r#"{"key":"^DS#","state":"reported","operations":["modify"],"pattern":{"old":{"a":[1]},"new":{"a":[2]}}}"#,
            false,
        ),
        (r#"{"changes":"value"}"#, true),
        (r#"{"changes":"value","pattern":{"new":{"a":[3]}}}"#, false),
        (r#"{"changes":"value","key":"^SENSOR#"}"#, false),
        (r#"{"changes":"value","state":"desired"}"#, false),
        (
            r#"{"pattern":{"diff":{"updated":{"/a":{"new":[2]}}}}}"#,
            true,
        ),
        (
            r#"{"state":"desired","pattern":{"diff":{"updated":{"/a":{"new":[2]}}}}}"#,
            false,
        ),
    ] {
        let computed = given.with(|change, diff| {
            plan(&load([on]), change, &mut Scratch::default());
            diff.is_computed()
        });
        assert_eq!(computed, asks, "{on}");
    }
}

#[test]
fn disabled_registrations_match_nothing() {
    let text = r#"{"name":"r","enabled":false,"to":{"clients":{}}}"#;
    let registrations =
        antumbra_registration::Registrations::load([("r.json", text)], &|_| None).unwrap();
    let given = Given::new("{}");
    assert!(given.planned(&registrations).is_empty());
    let explained = given.with(|change, _| antumbra_registration::explain(&registrations, change));
    assert_eq!(
        explained[0].unmet.as_ref().unwrap().to_string(),
        "enabled: the registration is disabled"
    );
}

#[test]
fn a_scratch_is_reusable() {
    let registrations =
        load((0..40).map(|number| format!(r#"{{"pattern":{{"new":{{"a":[{number}]}}}}}}"#)));
    let mut scratch = Scratch::default();
    for number in [3, 7, 3, 39, 40, 0] {
        let matched = Given::new(&format!(r#"{{"a":{number}}}"#))
            .with(|change, _| plan(&registrations, change, &mut scratch).to_vec());
        let names: Vec<_> = matched.iter().map(|id| &*registrations[*id].name).collect();
        let expected: Vec<String> = (number < 40)
            .then(|| format!("r{number}"))
            .into_iter()
            .collect();
        assert_eq!(names, expected);
    }
}
