//! The binary as Lambda runs it, with events of API Gateway. Each file of `testdata` holds an event and the
//! exact response to it; they run in the order of their names, on the same tables.

use std::path::{Path, PathBuf};

use antumbra_dynamodb::{MAIN, MESSAGES};
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::lambda::{AwsServer, Environment, Lambda, assert_rejects, unreachable_url};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_antumbra-http-api");

fn environment(endpoint: &str, main: &str, messages: &str) -> Environment {
    let queue = format!("{}/000000000000/deliveries", unreachable_url());
    let mut environment = vec![
        ("TABLE", main.to_owned()),
        ("MESSAGES_TABLE", messages.to_owned()),
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
    ];
    environment.extend(QUEUES.map(|name| (name, queue.clone())));
    environment
}

const QUEUES: [&str; 10] = [
    "DELIVERIES_QUEUE_URL",
    "DELIVERIES_FIFO_QUEUE_URL",
    "DELIVERIES_DEAD_QUEUE_URL",
    "DELIVERIES_DEAD_FIFO_QUEUE_URL",
    "UNDELIVERABLE_QUEUE_URL",
    "QUARANTINE_QUEUE_URL",
    "SPILL_QUEUE_URL",
    "INBOUND_QUEUE_URL",
    "SIGNALS_QUEUE_URL",
    "OUTBOUND_QUEUE_URL",
];

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_events_get_the_exact_response() {
    let main = TestTable::create(MAIN).await;
    let messages = main.another(MESSAGES).await;
    let environment = environment(&main.endpoint.url(), &main.name, &messages);
    let function = Lambda::start(BINARY, &environment);
    for path in cases() {
        let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let response = function.invoke(&case["event"].to_string()).unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        if std::env::var_os("ANTUMBRA_WRITE_RESPONSES").is_some() {
            case["response"] = response.clone();
            let text = serde_json::to_string_pretty(&case).unwrap() + "\n";
            std::fs::write(&path, text).unwrap();
        }
        assert_eq!(response, case["response"], "{}", path.display());
    }
}

/// The event of a request with this authorizer.
fn request(method: &str, path: &str, authorizer: Value) -> Value {
    let case = cases().into_iter().nth(3).unwrap();
    let case: Value = serde_json::from_slice(&std::fs::read(case).unwrap()).unwrap();
    let mut event = case["event"].clone();
    event["rawPath"] = path.into();
    event["requestContext"]["http"]["path"] = path.into();
    event["requestContext"]["http"]["method"] = method.into();
    event["requestContext"]["authorizer"] = authorizer;
    event
}

fn status_of(function: &Lambda, event: &Value) -> u64 {
    let response = function.invoke(&event.to_string()).unwrap();
    let response: Value = serde_json::from_str(&response).unwrap();
    response["statusCode"].as_u64().unwrap()
}

/// The status of a request for a shadow that does not exist, with this authorizer.
fn status(function: &Lambda, id: &str, authorizer: Value) -> u64 {
    let event = request("GET", &format!("/v1/shadows/{id}"), authorizer);
    status_of(function, &event)
}

fn jwt(claims: Value) -> Value {
    json!({"jwt": {"claims": claims, "scopes": null}})
}

fn iam(arn: &str) -> Value {
    json!({"iam": {"userArn": arn, "accountId": "111122223333"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_queued_in_the_group_of_their_client() {
    let main = TestTable::create(MAIN).await;
    let messages = main.another(MESSAGES).await;
    let sqs = AwsServer::start();
    let mut environment = environment("", &main.name, &messages);
    let queue = sqs.queue_url("antumbra-deliveries");
    environment.retain(|(name, _)| !["AWS_ENDPOINT_URL", "DELIVERIES_QUEUE_URL"].contains(name));
    environment.push(("DELIVERIES_QUEUE_URL", queue));
    environment.push(("AWS_ENDPOINT_URL_DYNAMODB", main.endpoint.url()));
    environment.push(("AWS_ENDPOINT_URL_SQS", sqs.url()));
    environment.push(("WEBHOOK_ALLOW", "http://127.0.0.0/8".to_owned()));
    let function = Lambda::start(BINARY, &environment);
    let caller = || iam("arn:aws:sts::111122223333:assumed-role/any/one");
    let mut create = request("POST", "/v1/clients", caller());
    create["headers"]["content-type"] = "application/json".into();
    create["body"] = r#"{"id":"watch","name":"Watch","url":"http://127.0.0.1:9/"}"#.into();
    assert_eq!(status_of(&function, &create), 201);
    let test = request("POST", "/v1/clients/watch/test", caller());
    assert_eq!(status_of(&function, &test), 202);
    let sent = sqs.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["MessageGroupId"], "watch");
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_of_tokens_are_those_of_their_claim() {
    let main = TestTable::create(MAIN).await;
    let messages = main.another(MESSAGES).await;
    let mut environment = environment(&main.endpoint.url(), &main.name, &messages);
    let function = Lambda::start(BINARY, &environment);
    let scope = |scope: &str| jwt(json!({"sub": "x", "exp": "4000000000", "scope": scope}));
    let expiring = |exp: &str| jwt(json!({"sub": "x", "exp": exp, "scope": "antumbra/*"}));
    for (authorizer, expected) in [
        (scope("antumbra/shadows:read"), 404),
        (scope("openid antumbra/shadows:read:a# email"), 404),
        (scope("[antumbra/sensors:read antumbra/shadows:read]"), 404),
        (scope("antumbra/shadow:read antumbra/*:read"), 404),
        (scope("antumbra/*"), 404),
        (scope(""), 403),
        (scope("shadows:read"), 403),
        (scope("antumbra/sensors:admin"), 403),
        (scope("antumbra/shadows:read:a"), 403),
        (scope("antumbra/shadows:read:a#10"), 403),
        (scope("antumbra/shadows:read:%61%2523"), 403),
        (scope("antumbra/shadows:read:a%"), 403),
        (scope("antumbra/shadows:read:"), 403),
        (scope("antumbra/shadows:read:a#\u{0}"), 403),
        (scope("antumbra/shadows:read,antumbra/*"), 403),
        // Encoded twice, in UTF-16, overlong, half a character, and other characters that look like these.
        (scope("antumbra%2F*"), 403),
        (scope("antumbra/%2A"), 403),
        (scope("antumbra/shadows%3Aread"), 403),
        (scope("antumbra/shadows:read:a%C0%A3"), 403),
        (scope("antumbra/shadows:read:%C5"), 403),
        (scope("antumbra/shadows:read:a\u{ff03}"), 403),
        (scope("antumbra/shadows:read:\u{430}#"), 403),
        (scope("antumbra/\u{200b}*"), 403),
        (scope("antumbra/shadows:read:%61%23"), 404),
        (jwt(json!({"sub": "x"})), 403),
        // Claims of other names grant nothing.
        (
            jwt(
                json!({"sub": "x", "scp": "antumbra/*", "custom:scope": "antumbra/*", "Scope": "antumbra/*"}),
            ),
            403,
        ),
        (
            jwt(json!({"sub": "x", "exp": "1", "scope": "antumbra/*"})),
            401,
        ),
        // An expiry with a fraction, in the past, at the epoch, and texts that are not a time.
        (expiring("4000000000.5"), 404),
        (expiring("4e9"), 404),
        (expiring("1.5"), 401),
        (expiring("0"), 401),
        (expiring("-4000000000"), 401),
        (expiring(""), 401),
        (expiring("never"), 401),
        (expiring("NaN"), 401),
        (expiring("inf"), 401),
        (jwt(json!({})), 401),
        (json!({}), 401),
        // Without a file, IAM callers may do what API Gateway lets them do.
        (iam("arn:aws:sts::111122223333:assumed-role/any/one"), 404),
        (iam(""), 401),
    ] {
        let found = status(&function, "a#1", authorizer.clone());
        assert_eq!(found, expected, "{authorizer}");
    }

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("iam-grants.json");
    let grants = r#"{"arn:aws:iam::111122223333:role/fleet/tenant-a": ["shadows:read:a#"]}"#;
    std::fs::write(&file, grants).unwrap();
    environment.push(("IAM_GRANTS", file.display().to_string()));
    environment.push(("GRANTS_CLAIM", "permissions".to_owned()));
    let function = Lambda::start(BINARY, &environment);
    for (authorizer, id, expected) in [
        (
            iam("arn:aws:sts::111122223333:assumed-role/tenant-a/x"),
            "a#1",
            404,
        ),
        (
            iam("arn:aws:sts::111122223333:assumed-role/tenant-a/y"),
            "a#1",
            404,
        ),
        (
            iam("arn:aws:sts::111122223333:assumed-role/tenant-a/x"),
            "b#1",
            403,
        ),
        (
            iam("arn:aws:sts::111122223333:assumed-role/other/tenant-a"),
            "a#1",
            403,
        ),
        (
            iam("arn:aws:sts::444455556666:assumed-role/tenant-a/x"),
            "a#1",
            403,
        ),
        (iam("arn:aws:iam::111122223333:user/tenant-a"), "a#1", 403),
        (iam("arn:aws:iam::111122223333:root"), "a#1", 403),
        (
            jwt(json!({"sub": "x", "permissions": "[antumbra/shadows:read:a#]"})),
            "a#1",
            404,
        ),
        (jwt(json!({"sub": "x", "scope": "antumbra/*"})), "a#1", 403),
    ] {
        let found = status(&function, id, authorizer.clone());
        assert_eq!(found, expected, "{authorizer} {id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_environment_is_rejected() {
    let table = TestTable::create(MAIN).await;
    let environment = environment(&table.endpoint.url(), &table.name, "messages");
    let changes = [
        ("TABLE", None),
        ("MESSAGES_TABLE", None),
        ("AUTH", Some("perhaps")),
        ("IAM_GRANTS", Some("/there/is/no/such/file.json")),
        ("WEBHOOK_ALLOW", Some("http://")),
        ("SHARDS", Some("many")),
        ("TIMESTAMP_FIELDS", Some("timestamp,,ts")),
        ("TIMESTAMP_FIELDS", Some("ts, ts")),
        ("MQTT_ORDER", Some("perhaps")),
    ];
    let changes: Vec<_> = changes
        .into_iter()
        .chain(QUEUES.map(|name| (name, None)))
        .collect();
    assert_rejects(BINARY, &environment, &changes);
}
