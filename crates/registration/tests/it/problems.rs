//! All problems of all files are reported, each with file, field and reason.

use antumbra_registration::Registrations;

/// The problems of one file, without its name.
fn problems(text: &str) -> Vec<String> {
    let env = |name: &str| (name == "EMPTY").then(String::new);
    match Registrations::load([("r.json", text)], &env) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .problems
            .iter()
            .map(|problem| problem.to_string().replacen("r.json: ", "", 1))
            .collect(),
    }
}

#[test]
fn problems_of_a_file_are_reported_with_their_places() {
    for case in include_str!("../../testdata/problems.txt")
        .trim_end()
        .split("\n\n")
    {
        let mut lines = case.lines();
        let text = lines.next().unwrap();
        let expected: Vec<&str> = lines.map(str::trim_start).collect();
        assert_eq!(problems(text), expected, "{text}");
    }
    assert_eq!(problems(""), ["not JSON at byte 0: a value is expected"]);
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(70_000));
    let expected = "has 70018 bytes, the limit is 65536";
    assert!(problems(&long)[0].starts_with(expected));
}

#[test]
fn problems_of_all_files_are_reported() {
    let files = [
        ("a.json", r#"{"name":"same","to":{"clients":{}}}"#),
        ("b.json", r#"{"name":"same","to":{"clients":{}}}"#),
        ("c.json", "nonsense"),
        ("d.json", r#"{"name":"fine","to":{"clients":{"x":1}}}"#),
    ];
    let errors = Registrations::load(files, &|_| None).unwrap_err();
    let places: Vec<_> = errors
        .problems
        .iter()
        .map(|problem| (problem.file.as_str(), problem.field.as_str()))
        .collect();
    assert_eq!(
        places,
        [
            ("c.json", ""),
            ("d.json", "/to/clients/x"),
            ("b.json", "/name")
        ]
    );
    assert_eq!(
        errors.problems[2].reason,
        r#""same" is already the name of the registration in a.json"#
    );
    assert_eq!(errors.to_string().lines().count(), 3);
}

#[test]
fn names_are_short_and_plain() {
    let expected =
        "/name: must be 1 to 128 letters, digits, - _ and dots, starting with a letter or digit";
    for name in ["", "-a", "a b", "ä", &"x".repeat(129)] {
        let text = format!(r#"{{"name":"{name}","to":{{"clients":{{}}}}}}"#);
        assert_eq!(problems(&text), [expected], "{name}");
    }
}

/// The schema rejects files of the wrong shape as well, so that editors show it.
#[test]
fn the_schema_rejects_files_of_the_wrong_shape() {
    let validator = jsonschema::validator_for(&crate::support::schema()).unwrap();
    for text in include_str!("../../testdata/wrong-shape.txt").lines() {
        assert!(!problems(text).is_empty(), "{text}");
        let json = serde_json::from_str(text).unwrap();
        assert!(!validator.is_valid(&json), "{text}");
    }
}
