//! Hostile input: a clear result, in bounded time.
//!
//! The bounds are on work, not on time: with exponential cost none of these tests would ever end.

use antumbra_registration::{Registrations, limits};

use crate::support::{Given, load};

fn refused(on: &str) -> String {
    let text = format!(r#"{{"name":"r","on":{on},"to":{{"sqs":{{"queue":"q"}}}}}}"#);
    Registrations::load([("r.json", text)], &|_| None)
        .unwrap_err()
        .to_string()
}

#[test]
fn regular_expression_bombs_are_rejected_at_load() {
    for bomb in [r"(\\w{100}){100}", "((a{1000}){1000}){1000}", r"\\pL{5000}"] {
        let error = refused(&format!(r#"{{"key":"{bomb}"}}"#));
        assert_eq!(
            error,
            "r.json: /on/key: compiles to an automaton of more than 1048576 bytes, which is the limit"
        );
    }
    assert!(
        refused(&format!(
            r#"{{"key":"{}"}}"#,
            "a".repeat(limits::KEY_BYTES + 1)
        ))
        .contains("has 2049 bytes, the limit is 2048")
    );
    assert!(
        refused(&format!(
            r#"{{"key":"{}a{}"}}"#,
            "(".repeat(900),
            ")".repeat(900)
        ))
        .contains("/on/key: is not a regular expression")
    );
}

#[test]
fn expressions_that_backtrack_elsewhere_are_linear() {
    let registrations = load([
        r#"{"key":"^(a+)+$"}"#,
        r#"{"key":"(x+x+)+y"}"#,
        r#"{"key":"^(([a-z])+.)+[A-Z]([a-z])+$"}"#,
    ]);
    let key = "a".repeat(100_000) + "!";
    assert!(
        Given::new("{}")
            .with_key(&key)
            .planned(&registrations)
            .is_empty()
    );
}

#[test]
fn wildcards_are_linear() {
    let wildcard = "*a".repeat(60) + "*b";
    let registrations = load([format!(
        r#"{{"pattern":{{"new":{{"s":[{{"wildcard":"{wildcard}"}}]}}}}}}"#
    )]);
    let given = Given::new(&format!(r#"{{"s":"{}"}}"#, "a".repeat(300_000)));
    assert!(given.planned(&registrations).is_empty());
}

#[test]
fn alternatives_are_bounded() {
    let either = r#"{"$or":[{"a":[1]},{"b":[1]}]}"#;
    let fields: Vec<_> = (0..20)
        .map(|number| format!(r#""f{number}":{either}"#))
        .collect();
    let error = refused(&format!(
        r#"{{"pattern":{{"new":{{{}}}}}}}"#,
        fields.join(",")
    ));
    assert!(
        error.starts_with("r.json: /on/pattern: has 1024 alternatives or more"),
        "{error}"
    );
    assert!(error.ends_with("the limit is 1000"), "{error}");
}

#[test]
fn arrays_are_not_multiplied_with_each_other() {
    // Ten arrays of 300 elements, all of which match all fields except the last one.
    let names: Vec<String> = (0..10).map(|number| format!("a{number}")).collect();
    let fields: Vec<_> = names
        .iter()
        .map(|name| format!(r#""{name}":{{"x":[1],"y":[1]}}"#))
        .collect();
    let registrations = load([format!(
        r#"{{"pattern":{{"new":{{{},"z":{{"x":[1],"y":[2]}}}}}}}}"#,
        fields.join(",")
    )]);
    let elements = vec![r#"{"x":1,"y":1}"#; 300].join(",");
    let arrays: Vec<_> = names
        .iter()
        .chain([&"z".to_owned()])
        .map(|name| format!(r#""{name}":[{elements}]"#))
        .collect();
    assert!(
        Given::new(&format!("{{{}}}", arrays.join(",")))
            .planned(&registrations)
            .is_empty()
    );
}

#[test]
fn arrays_in_arrays_are_walked_once() {
    let mut document = r#"{"x":1}"#.to_owned();
    for _ in 0..29 {
        document = format!("[{document},{{\"y\":1}}]");
    }
    let registrations = load([
        r#"{"pattern":{"new":{"a":{"x":[1],"y":[1]}}}}"#,
        r#"{"pattern":{"new":{"a":{"x":[1],"y":[{"exists":false}]}}}}"#,
    ]);
    assert_eq!(
        Given::new(&format!(r#"{{"a":{document}}}"#)).planned(&registrations),
        [1]
    );
}

#[test]
fn documents_of_maximum_depth_are_matched() {
    let nested = |levels: usize, inner: &str| {
        format!("{}{inner}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    };
    let registrations = load([format!(r#"{{"pattern":{{"new":{}}}}}"#, nested(26, "[1]"))]);
    assert_eq!(Given::new(&nested(26, "1")).planned(&registrations), [0]);
    assert!(
        Given::new(&nested(31, "1"))
            .planned(&registrations)
            .is_empty()
    );
    assert!(
        refused(&format!(r#"{{"pattern":{{"new":{}}}}}"#, nested(40, "[1]")))
            .contains("levels deep, the limit is 32")
    );
}

#[test]
fn large_documents_are_matched_against_many_patterns() {
    let members: Vec<_> = (0..8_000)
        .map(|number| format!(r#""sensor{number}":{{"value":{number},"unit":"celsius-degrees"}}"#))
        .collect();
    let document = format!("{{{}}}", members.join(","));
    assert!(document.len() > 400_000);
    let registrations = load((0..500).map(|number| {
        format!(
            r#"{{"pattern":{{"new":{{"sensor{}":{{"value":[{number}]}}}}}}}}"#,
            number * 10
        )
    }));
    assert_eq!(Given::new(&document).planned(&registrations), [0]);
}

#[test]
fn keys_with_unusual_unicode_are_matched() {
    let odd = [
        "\u{0}",
        "\u{feff}",
        "\u{202e}abc",
        "e\u{301}",
        "\u{1f468}\u{200d}\u{1f469}",
        "\u{10ffff}",
        "\r\n",
        "'\"\\",
        "ǅ",
        "ﷺ",
        "",
    ];
    let registrations = load([
        r#"{"key":"^DS#.*#DSR#"}"#,
        r#"{"key":"^DS#\\P{L}"}"#,
        r#"{"key":"(?i)ǆ"}"#,
        "{}",
    ]);
    for id in odd {
        let key = format!("DS#{id}#DSR#main");
        let planned = Given::new("{}")
            .with_key(&key)
            .with_id(id)
            .planned(&registrations);
        assert!(planned.contains(&3), "{id:?}");
        assert_eq!(planned.contains(&0), !id.contains('\n'), "{id:?}");
        assert_eq!(planned.contains(&2), id == "ǅ", "{id:?}");
    }
}
