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

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

#[track_caller]
fn check_on(on: &str, expected: &[&str]) {
    check(
        &format!(r#"{{"name":"r","on":{on},"to":{{"clients":{{}}}}}}"#),
        expected,
    );
}

#[track_caller]
fn check_pattern(field: &str, expected: &str) {
    check_on(
        &format!(r#"{{"pattern":{{"new":{{"a":{field}}}}}}}"#),
        &[&format!("/on/pattern/new/a{expected}")],
    );
}

#[track_caller]
fn check_to(to: &str, expected: &[&str]) {
    check(&format!(r#"{{"name":"r","to":{to}}}"#), expected);
}

#[test]
fn problems_of_the_whole_file() {
    check("", &["not JSON at byte 0: a value is expected"]);
    check("[]", &["a document is a JSON object, not an array"]);
    check(
        r#"{"name":"a","name":"b"}"#,
        &[r#"the name "name" stands twice in one object"#],
    );
    check("{}", &["has no name", "has no to"]);
    assert!(
        problems(&format!(r#"{{"description":"{}"}}"#, "x".repeat(70_000)))[0]
            .starts_with("has 70018 bytes, the limit is 65536")
    );
}

#[test]
fn all_problems_of_a_file_are_reported() {
    check(
        r#"{"nmae":"x","enabled":"yes","on":{"state":"on","operations":[],"changes":1,"key":"(","pattern":{"new":{"a":[],"b":5}}},"as":"keys","send":["old","old","all"],"to":{"sqs":{"queue":"a b","delaySeconds":901}}}"#,
        &[
            "/nmae: is not a field; the fields are $schema, name, description, enabled, on, as, send, to",
            "has no name",
            "/enabled: must be true or false",
            "/on/key: is not a regular expression: unclosed group at character 1",
            "/on/state: must be reported, desired or both",
            "/on/operations: must be a list of insert, modify and remove",
            "/on/changes: must be value or any",
            "/on/pattern/new/a: must not be empty",
            "/on/pattern/new/b: must be a list of values, or an object of fields",
            "/as: must be notification, key, shadow-delta or shadow-documents",
            "/send/1: is listed twice",
            "/send/2: must be old, new or diff",
            r#"/to/sqs/queue: "a b" is not the name, URL or ARN of a queue"#,
            "/to/sqs/delaySeconds: must be a whole number from 0 to 900",
        ],
    );
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
fn problems_of_names_and_texts() {
    for name in ["", "-a", "a b", "ä", &"x".repeat(129)] {
        let told = problems(&format!(r#"{{"name":"{name}","to":{{"clients":{{}}}}}}"#));
        assert_eq!(
            told,
            [
                "/name: must be 1 to 128 letters, digits, - _ and dots, starting with a letter or digit"
            ],
            "{name}"
        );
    }
    check(
        r#"{"$schema":1,"name":2,"description":3,"to":{"clients":{}}}"#,
        &[
            "/$schema: must be a string",
            "/name: must be a string",
            "/description: must be a string",
        ],
    );
    check(
        r#"{"name":"r","on":[],"to":{"clients":{}}}"#,
        &["/on: must be an object"],
    );
    check(
        r#"{"name":"r","send":[],"to":{"clients":{}}}"#,
        &["/send: must be a list of old, new and diff"],
    );
    check(
        r#"{"name":"r","send":"diff","to":{"clients":{}}}"#,
        &["/send: must be a list of old, new and diff"],
    );
}

#[test]
fn patterns() {
    const SHAPE: &str = r#"/0/numeric: must be a comparison and a number, such as [">", 0], or a range, such as [">=", 0, "<", 10]"#;
    check_on(r#"{"pattern":{}}"#, &["/on/pattern: must not be empty"]);
    check_on(
        r#"{"pattern":[]}"#,
        &["/on/pattern: must be an object of fields"],
    );
    check_on(
        r#"{"pattern":{"nwe":{"a":[1]}}}"#,
        &[
            "/on/pattern/nwe: cannot be matched; the names are operation, id, name, state, version, clientToken, old, new, diff",
        ],
    );
    check_on(
        r#"{"pattern":{"operation":"insert"}}"#,
        &["/on/pattern/operation: is a single value: must be a list of values"],
    );
    check_on(
        r#"{"pattern":{"id":{"a":[1]}}}"#,
        &["/on/pattern/id: is a single value: must be a list of values"],
    );
    check_on(
        r#"{"pattern":{"new":[1]}}"#,
        &["/on/pattern/new: is an object: name the fields in it"],
    );
    check_on(
        r#"{"pattern":{"diff":{"changed":{"/a":[1]}}}}"#,
        &["/on/pattern/diff/changed: is not in a diff; the names are added, updated and removed"],
    );
    check_on(
        r#"{"pattern":{"diff":{"added":[1]}}}"#,
        &["/on/pattern/diff/added: is an object: name the JSON Pointers in it"],
    );
    check_on(
        r#"{"pattern":{"diff":{"added":{"a":[1]}}}}"#,
        &["/on/pattern/diff/added/a: must be a JSON Pointer such as \"/temp\""],
    );
    check_on(
        r#"{"pattern":{"diff":{"updated":{"/a":[1]}}}}"#,
        &["/on/pattern/diff/updated/~1a: is an object with old and new"],
    );
    check_on(
        r#"{"pattern":{"diff":{"updated":{"/a":{"now":[1]}}}}}"#,
        &["/on/pattern/diff/updated/~1a/now: must be old or new"],
    );
    check_pattern("[]", ": must not be empty");
    check_pattern("{}", ": must not be empty");
    check_pattern("[[1]]", "/0: must be a value or an operator, not a list");
    check_pattern("[{}]", "/0: must have exactly one operator");
    check_pattern(
        r#"[{"prefix":"a","suffix":"b"}]"#,
        "/0: must have exactly one operator",
    );
    check_pattern(
        r#"[1,{"like":"x"}]"#,
        "/1/like: is not an operator; the operators are anything-but, cidr, equals-ignore-case, exactly, exists, numeric, prefix, suffix and wildcard",
    );
    check_pattern(
        r#"[{"prefix":1}]"#,
        "/0/prefix: must be a string, or an object with equals-ignore-case",
    );
    check_pattern(
        r#"[{"suffix":{"wildcard":"a"}}]"#,
        "/0/suffix: must be a string, or an object with equals-ignore-case",
    );
    check_pattern(
        r#"[{"equals-ignore-case":["a"]}]"#,
        "/0/equals-ignore-case: must be a string",
    );
    check_pattern(r#"[{"exists":"true"}]"#, "/0/exists: must be true or false");
    check_pattern(
        r#"[{"wildcard":"a**b"}]"#,
        "/0/wildcard: must not have two wildcards in a row",
    );
    check_pattern(
        r#"[{"wildcard":"a\\b"}]"#,
        "/0/wildcard: a backslash must be followed by an asterisk or a backslash",
    );
    check_pattern(
        r#"[{"wildcard":"a\\"}]"#,
        "/0/wildcard: a backslash must be followed by an asterisk or a backslash",
    );
    check_pattern(r#"[{"numeric":5}]"#, SHAPE);
    check_pattern(r#"[{"numeric":[]}]"#, SHAPE);
    check_pattern(r#"[{"numeric":[">"]}]"#, SHAPE);
    check_pattern(r#"[{"numeric":[">","5"]}]"#, SHAPE);
    check_pattern(r#"[{"numeric":["!=",5]}]"#, SHAPE);
    check_pattern(r#"[{"numeric":["<",5,">",0]}]"#, SHAPE);
    check_pattern(r#"[{"numeric":["=",5,"<",9]}]"#, SHAPE);
    check_pattern(
        r#"[{"numeric":[">",5,"<",5]}]"#,
        "/0/numeric: the range from 5 to 5 is empty",
    );
    check_pattern(
        r#"[{"cidr":"10.0.0.0"}]"#,
        "/0/cidr: a network has the form address/bits, such as 10.0.0.0/8",
    );
    check_pattern(
        r#"[{"cidr":"10.0.0/8"}]"#,
        "/0/cidr: \"10.0.0\" is not an address",
    );
    check_pattern(
        r#"[{"cidr":"10.0.0.1/32"}]"#,
        "/0/cidr: the number of bits must be below 32; for a single address use a plain value",
    );
    check_pattern(
        r#"[{"anything-but":[]}]"#,
        "/0/anything-but: must be a string, a number, or a list of only strings or only numbers",
    );
    check_pattern(
        r#"[{"anything-but":["a",1]}]"#,
        "/0/anything-but: must be a string, a number, or a list of only strings or only numbers",
    );
    check_pattern(
        r#"[{"anything-but":null}]"#,
        "/0/anything-but: must be a string, a number, or a list of only strings or only numbers",
    );
    check_pattern(
        r#"[{"anything-but":{"prefix":""}}]"#,
        "/0/anything-but: must not be empty: that would exclude every string",
    );
    check_pattern(
        r#"[{"anything-but":{"suffix":["a",""]}}]"#,
        "/0/anything-but: must not be empty: that would exclude every string",
    );
    check_pattern(
        r#"[{"anything-but":{"prefix":[]}}]"#,
        "/0/anything-but: must be a string or a list of strings",
    );
    check_pattern(
        r#"[{"anything-but":{"numeric":["a"]}}]"#,
        "/0/anything-but: \"numeric\" cannot be combined with it; use prefix, suffix, equals-ignore-case or wildcard",
    );
    check_pattern(
        r#"[{"anything-but":{"wildcard":"**"}}]"#,
        "/0/anything-but: must not have two wildcards in a row",
    );
    check_pattern(
        r#"{"$or":[{"b":[1]}]}"#,
        "/$or: must be a list of at least two objects",
    );
    check_pattern(
        r#"{"$or":{"b":[1]}}"#,
        "/$or: must be a list of at least two objects",
    );
    check_pattern(
        r#"{"$or":[{"b":[1]},5]}"#,
        "/$or/1: must be an object of fields",
    );
    check_pattern(r#"{"$or":[{"b":[1]},{}]}"#, "/$or/1: must not be empty");
    check_pattern(
        r#"{"$or":[{"b":[1]},{"prefix":["a"]}]}"#,
        "/$or/1/prefix: is an operator; $or must contain objects of fields",
    );
    check_on(
        r#"{"pattern":{"new":{"a":[1],"$or":[{"a":[2]},{"b":[3]}]}}}"#,
        &["/on/pattern: has two conditions on /new/a"],
    );
}

#[test]
fn targets() {
    check_to(
        "{}",
        &["/to: must have exactly one target, one of sqs, sns, mqtt, clients, eventbridge"],
    );
    check_to(
        r#"{"clients":{},"sqs":{"queue":"q"}}"#,
        &["/to: must have exactly one target, one of sqs, sns, mqtt, clients, eventbridge"],
    );
    check_to(
        r#"{"kafka":{}}"#,
        &[
            "/to/kafka: is not a field; the fields are sqs, sns, mqtt, clients, eventbridge",
            "/to: must have exactly one target, one of sqs, sns, mqtt, clients, eventbridge",
        ],
    );
    check_to(r#"{"sqs":{}}"#, &["/to/sqs: has no queue"]);
    check_to(r#"{"sqs":"alerts"}"#, &["/to/sqs: must be an object"]);
    check_to(
        r#"{"sqs":{"queue":"${env:QUEUE}"}}"#,
        &["/to/sqs/queue: the environment variable QUEUE is not set"],
    );
    check_to(
        r#"{"sqs":{"queue":"${env:EMPTY}"}}"#,
        &["/to/sqs/queue: the environment variable EMPTY is empty"],
    );
    check_to(
        r#"{"sqs":{"queue":"${id}"}}"#,
        &["/to/sqs/queue: there is no placeholder ${id} here; there is ${env:NAME}"],
    );
    check_to(
        r#"{"sqs":{"queue":"${env:A"}}"#,
        &[r#"/to/sqs/queue: the placeholder "${env:A" has no end"#],
    );
    check_to(
        r#"{"sqs":{"queue":"a.fifo","delaySeconds":5}}"#,
        &["/to/sqs/delaySeconds: FIFO queues do not support a delay per message"],
    );
    for queue in [
        "arn:aws:sns:eu-west-1:123456789012:a",
        "arn:aws:sqs:eu-west-1:1234:a",
        "https://sqs.eu-west-1.amazonaws.com",
        "a.fifo.b",
        ".fifo",
    ] {
        check_to(
            &format!(r#"{{"sqs":{{"queue":"{queue}"}}}}"#),
            &[&format!(
                "/to/sqs/queue: {queue:?} is not the name, URL or ARN of a queue"
            )],
        );
    }
    check_to(
        r#"{"sqs":{"queue":"a","attributes":{"state":"x","AWS.x":"x","a b":"x","n":1,"e":"","p":"${env:X}"}}}"#,
        &[
            "/to/sqs/attributes/AWS.x: names that start with aws. or amazon. are reserved",
            "/to/sqs/attributes/a b: must be 1 to 256 letters, digits, _, - and single dots between them",
            "/to/sqs/attributes/e: must not be empty",
            "/to/sqs/attributes/n: must be a string",
            "/to/sqs/attributes/p: the environment variable X is not set",
            "/to/sqs/attributes/state: is set on every notification",
        ],
    );
    check_to(
        r#"{"sqs":{"queue":"a","attributes":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1"}}}"#,
        &["/to/sqs/attributes: has 7 attributes, the limit is 6"],
    );
    check_to(
        r#"{"sns":{"topic":"alerts"}}"#,
        &[r#"/to/sns/topic: "alerts" is not the ARN of a topic"#],
    );
    check_to(
        r#"{"sns":{"topic":"arn:aws:sns:eu-west-1:123456789012:a","subject":""}}"#,
        &["/to/sns/subject: must be 1 to 100 printable ASCII characters, the first no space"],
    );
    check_to(
        r#"{"mqtt":{"topic":"a/${ID}"}}"#,
        &[
            "/to/mqtt/topic: there is no placeholder ${ID}; there are ${id}, ${name}, ${state}, ${operation}, ${shadow}, ${key:ATTRIBUTE} and ${env:NAME}",
        ],
    );
    check_to(
        r#"{"mqtt":{"topic":"a/#","qos":2}}"#,
        &[
            "/to/mqtt/topic: a topic must not contain '#'",
            "/to/mqtt/qos: must be a whole number from 0 to 1",
        ],
    );
    check_to(
        r#"{"mqtt":{"topic":"$aws/things/${id}"}}"#,
        &["/to/mqtt/topic: topics that start with $ are reserved"],
    );
    check_to(
        r#"{"mqtt":{"topic":"a//b"}}"#,
        &["/to/mqtt/topic: has an empty level"],
    );
    check_to(
        r#"{"mqtt":{"topic":""}}"#,
        &["/to/mqtt/topic: must not be empty"],
    );
    check_to(
        r#"{"mqtt":{"topic":"a/b/c/d/e/f/g/h/i"}}"#,
        &["/to/mqtt/topic: has 8 slashes, the limit is 7"],
    );
    check_to(
        &format!(r#"{{"mqtt":{{"topic":"{}"}}}}"#, "x".repeat(257)),
        &["/to/mqtt/topic: has 257 bytes, the limit is 256"],
    );
    check_to(
        r#"{"eventbridge":{"bus":"a b","detailType":""}}"#,
        &[
            r#"/to/eventbridge/bus: "a b" is not the name or ARN of a bus"#,
            "/to/eventbridge/detailType: must be 1 to 128 characters",
        ],
    );
    check_to(r#"{"clients":null}"#, &["/to/clients: must be an object"]);
}

/// The schema rejects files of the wrong shape as well, so that editors show it.
#[test]
fn the_schema_rejects_files_of_the_wrong_shape() {
    let validator = jsonschema::validator_for(&crate::support::schema()).unwrap();
    for (on, to) in [
        (r#"{"unknown":1}"#, r#"{"clients":{}}"#),
        (r#"{"state":"on"}"#, r#"{"clients":{}}"#),
        (r#"{"operations":["update"]}"#, r#"{"clients":{}}"#),
        (r#"{"operations":["insert","insert"]}"#, r#"{"clients":{}}"#),
        (r#"{"changes":"all"}"#, r#"{"clients":{}}"#),
        (r#"{"pattern":{"nwe":{"a":[1]}}}"#, r#"{"clients":{}}"#),
        (r#"{"pattern":{"new":{"a":5}}}"#, r#"{"clients":{}}"#),
        (r#"{"pattern":{"new":{"a":[]}}}"#, r#"{"clients":{}}"#),
        (
            r#"{"pattern":{"new":{"a":[{"like":"x"}]}}}"#,
            r#"{"clients":{}}"#,
        ),
        (
            r#"{"pattern":{"new":{"a":[{"numeric":["<",5,">",0]}]}}}"#,
            r#"{"clients":{}}"#,
        ),
        (
            r#"{"pattern":{"new":{"a":[{"anything-but":["a",1]}]}}}"#,
            r#"{"clients":{}}"#,
        ),
        (
            r#"{"pattern":{"new":{"a":{"$or":[{"b":[1]}]}}}}"#,
            r#"{"clients":{}}"#,
        ),
        (
            r#"{"pattern":{"diff":{"added":{"a":[1]}}}}"#,
            r#"{"clients":{}}"#,
        ),
        (
            r#"{"pattern":{"diff":{"updated":{"/a":[1]}}}}"#,
            r#"{"clients":{}}"#,
        ),
        ("{}", "{}"),
        ("{}", r#"{"clients":{},"sqs":{"queue":"q"}}"#),
        ("{}", r#"{"sqs":{}}"#),
        ("{}", r#"{"sqs":{"queue":"q","delaySeconds":901}}"#),
        ("{}", r#"{"mqtt":{"topic":"a","qos":2}}"#),
    ] {
        let text = format!(r#"{{"name":"r","on":{on},"to":{to}}}"#);
        assert!(!problems(&text).is_empty(), "{text}");
        assert!(
            !validator.is_valid(&serde_json::from_str(&text).unwrap()),
            "{text}"
        );
    }
    for text in [
        r#"{"to":{"clients":{}}}"#,
        r#"{"name":"r"}"#,
        r#"{"name":"r","nmae":1,"to":{"clients":{}}}"#,
        r#"{"name":"r","send":[],"to":{"clients":{}}}"#,
    ] {
        assert!(
            !validator.is_valid(&serde_json::from_str(text).unwrap()),
            "{text}"
        );
    }
}
