//! A fault of the library this grew from, kept out: a rule that did not parse was taken for no rule at
//! all, and notified of everything.

use antumbra_registration::Registrations;

#[test]
fn a_bad_rule_notifies_nobody() {
    let rules = [
        r#"{"name":"r","on":{"pattern":{"new":{"a":[{"numeric":["about",1]}]}}},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":{"pattern":{}},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":{"pattern":null},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":{"key":"("},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":{"operations":[]},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":{"where":"x"},"to":{"sqs":{"queue":"q"}}}"#,
        r#"{"name":"r","on":[],"to":{"sqs":{"queue":"q"}}}"#,
    ];
    for rule in rules {
        let loaded = Registrations::load([("r.json", rule)], &|_| None);
        assert!(loaded.is_err(), "{rule}");
    }
}
