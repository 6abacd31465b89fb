//! Traces: the conditions of one registration that hold for a change, and the one that decides.

use antumbra_registration::{Registrations, trace};

use crate::support::Given;

/// Returns the pointers of the conditions, `+` for those that hold and `-` for the one that does not.
fn traced(on: &str, given: &Given) -> Vec<String> {
    let text = format!(r#"{{"name":"r","on":{on},"to":{{"clients":{{}}}}}}"#);
    let registrations = Registrations::load([("r.json", text)], &|_| None).unwrap();
    let (id, _) = registrations.iter().next().unwrap();
    let trace = given.with(|change, _| trace(&registrations, id, change));
    let unmet = trace.evaluated.iter().filter(|one| !one.holds).count();
    assert_eq!(unmet, usize::from(trace.unmet.is_some()), "{trace:?}");
    let sign = |holds| if holds { '+' } else { '-' };
    let lines = trace.evaluated.iter();
    let lines = lines.map(|one| format!("{}{}", sign(one.holds), one.pointer));
    lines.collect()
}

/// The conditions that every registration has.
const BEFORE: [&str; 6] = [
    "+/enabled",
    "+/on/key",
    "+/as",
    "+/on/state",
    "+/on/operations",
    "+/on/changes",
];

#[test]
fn a_trace_ends_with_the_condition_that_decides() {
    let given = Given::new(r#"{"temp":-14.1}"#).with_old(r#"{"temp":-14.8}"#);
    assert_eq!(
        traced(r#"{"key":"^DS#other"}"#, &given),
        ["+/enabled", "-/on/key"]
    );
    let by_field = r#"{"pattern":{
        "new":{"mode":[{"exists":false}],"temp":[{"numeric":[">",-15]}]},
        "old":{"temp":[{"numeric":["<=",-15]}]},
        "operation":["modify"]}}"#;
    let traced_pattern = traced(by_field, &given);
    assert_eq!(traced_pattern[..6], BEFORE);
    assert_eq!(
        traced_pattern[6..],
        [
            "+/on/pattern/new/mode",
            "+/on/pattern/new/temp",
            "-/on/pattern/old/temp"
        ]
    );
}

#[test]
fn a_match_shows_the_alternative_that_matches() {
    let given = Given::new(r#"{"a":1,"b":2}"#);
    let or = r#"{"pattern":{"$or":[{"new":{"a":[7]}},{"new":{"b":[2]}}]}}"#;
    assert_eq!(traced(or, &given)[6..], ["+/on/pattern/new/b"]);
    let neither = r#"{"pattern":{"$or":[{"new":{"a":[7]}},{"new":{"a":[1],"b":[7]}}]}}"#;
    assert_eq!(
        traced(neither, &given)[6..],
        ["+/on/pattern/new/a", "-/on/pattern/new/b"]
    );
}

#[test]
fn members_of_a_leaf_condition_are_traced_in_order() {
    let given = Given::new(r#"{"led":2}"#).with_old(r#"{"led":1}"#);
    let leaf = r#"{"leaf":{"path":"/led","change":["updated"],"old":[1],"new":[3]}}"#;
    assert_eq!(
        traced(leaf, &given)[6..],
        [
            "+/on/leaf/path",
            "+/on/leaf/change",
            "+/on/leaf/old",
            "-/on/leaf/new"
        ]
    );
    let other = r#"{"leaf":{"path":"/fan"}}"#;
    assert_eq!(traced(other, &given)[6..], ["-/on/leaf/path"]);
}
