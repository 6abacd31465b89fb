//! SQS: requests and the meaning of responses.

use std::sync::atomic::{AtomicUsize, Ordering};

use antumbra_publish::{SqsChannel, group_id, sqs};
use antumbra_service::notifications::{Channel, Message};
use aws_sdk_sqs::config::retry::RetryConfig;
use serde_json::{Value, json};

use crate::contract::{Behaviour, rejection};
use crate::message::{letters, message, messages, reason, sent};
use crate::scripted::config_of;
use antumbra_testkit::http::{Endpoint, Request, Response};
use antumbra_testkit::table::cases;

const URL: &str = "https://sqs.us-east-1.amazonaws.com/123456789012/alerts";

pub(crate) fn bodies(request: &Request) -> Vec<String> {
    let request = request.json();
    let entries = request["Entries"].as_array().unwrap();
    let body = |entry: &Value| entry["MessageBody"].as_str().unwrap().to_owned();
    entries.iter().map(body).collect()
}

pub(crate) fn respond(behaviour: Behaviour, request: &Request) -> Response {
    match behaviour {
        Behaviour::Accepts => entries(request, |_| None),
        Behaviour::Throttles => refused(400, "RequestThrottled", "RequestThrottled;Sender"),
        Behaviour::Denies => refused(403, "AccessDenied", "AccessDenied;Sender"),
        Behaviour::HangsUp => Response::HangUp,
    }
}

fn accept(request: &Request) -> Response {
    respond(Behaviour::Accepts, request)
}

/// An endpoint that gives these responses to the first requests.
fn first_then(first: Vec<Response>, then: fn(&Request) -> Response) -> Endpoint {
    let calls = AtomicUsize::new(0);
    Endpoint::start(move |request| {
        let first = first.get(calls.fetch_add(1, Ordering::SeqCst));
        first.cloned().unwrap_or_else(|| then(request))
    })
}

/// A response with a failure for each given entry: its code, and whether it is the sender's fault.
fn entries(request: &Request, failure: impl Fn(usize) -> Option<(&'static str, bool)>) -> Response {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    let request = request.json();
    for (n, entry) in request["Entries"].as_array().unwrap().iter().enumerate() {
        let id = &entry["Id"];
        match failure(n) {
            None => successful.push(json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "d"})),
            Some((code, ours)) => failed
                .push(json!({"Id": id, "Code": code, "Message": "because", "SenderFault": ours})),
        }
    }
    // AWS guarantees no order; here it is reversed.
    successful.reverse();
    Response::ok(json!({ "Successful": successful, "Failed": failed }))
}

/// A rejection with the codes of both protocols, as AWS sends it.
fn refused(status: u16, code: &str, query: &str) -> Response {
    let body = json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": "no"});
    Response::new(status, body).with_header("x-amzn-query-error", query)
}

fn channel(endpoint: &Endpoint, queue: &str) -> SqsChannel {
    SqsChannel::new(&aws_sdk_sqs::Client::new(&config_of(endpoint)), queue)
}

fn full() -> Message {
    Message {
        attributes: vec![
            ("state".to_owned(), "reported".to_owned()),
            ("shadow".to_owned(), "a\u{0}b".to_owned()),
            ("token".to_owned(), String::new()),
        ],
        delay_seconds: Some(900),
        ..message(1)
    }
}

#[tokio::test]
async fn a_standard_queue_gets_body_attributes_and_delay() {
    let endpoint = Endpoint::start(accept);
    assert_eq!(
        sent(&channel(&endpoint, URL), &[message(0), full()]).await,
        ".."
    );
    let requests = endpoint.requests();
    assert_eq!(requests[0].operation(), "SendMessageBatch");
    let state = json!({"DataType": "String", "StringValue": "reported"});
    let shadow = json!({"DataType": "String", "StringValue": "a\u{FFFD}b"});
    assert_eq!(
        requests[0].json(),
        json!({
            "QueueUrl": URL,
            "Entries": [
                {"Id": "0", "MessageBody": "{\"n\":0}", "MessageAttributes": {"state": state}},
                {"Id": "1", "MessageBody": "{\"n\":1}", "DelaySeconds": 900,
                 "MessageAttributes": {"state": state, "shadow": shadow}},
            ]
        })
    );
}

#[tokio::test]
async fn a_fifo_queue_gets_group_and_deduplication_and_no_delay() {
    let endpoint = Endpoint::start(accept);
    let odd = Message {
        key: "DS#My House#DSR#main".to_owned(),
        attributes: Vec::new(),
        ..full()
    };
    let fifo = format!("{URL}.fifo");
    assert_eq!(
        sent(&channel(&endpoint, &fifo), &[message(0), odd]).await,
        ".."
    );
    let entries = &endpoint.requests()[0].json()["Entries"];
    assert_eq!(entries[0]["MessageGroupId"], "DS#boiler#DSR#main");
    assert_eq!(entries[0]["MessageDeduplicationId"], "id-0");
    let expected = json!({
        "Id": "1", "MessageBody": "{\"n\":1}", "MessageDeduplicationId": "id-1",
        "MessageGroupId": group_id("DS#My House#DSR#main"),
    });
    assert_eq!(entries[1], expected);
}

#[tokio::test]
async fn each_entry_has_its_own_result() {
    let endpoint = Endpoint::start(|request| {
        entries(request, |n| match n {
            1 => Some(("InternalError", false)),
            3 => Some(("InvalidMessageContents", true)),
            4 => Some(("RequestThrottled", true)),
            _ => None,
        })
    });
    let results = channel(&endpoint, URL).send(&messages(6)).await;
    assert_eq!(letters(&results), ".r.pr.");
    let expected_reason = format!("SQS {URL}: InvalidMessageContents: because");
    assert_eq!(reason(&results[3]), expected_reason);
}

#[tokio::test]
async fn entries_without_a_result_are_retryable() {
    let endpoint = Endpoint::start(|_| {
        let first = json!({"Id": "0", "MessageId": "m", "MD5OfMessageBody": "d"});
        let unknown = json!({"Id": "77", "MessageId": "m", "MD5OfMessageBody": "d"});
        Response::ok(json!({ "Successful": [first, unknown] }))
    });
    let results = channel(&endpoint, URL).send(&messages(2)).await;
    assert_eq!(letters(&results), ".r");
}

#[tokio::test]
async fn rejected_calls_are_retryable_or_permanent() {
    let table = "
        400 | QueueDoesNotExist | AWS.SimpleQueueService.NonExistentQueue;Sender | pp
        400 | KmsAccessDenied | KMS.AccessDeniedException;Sender | pp
        400 | KmsThrottled | KMS.ThrottlingException;Sender | rr
        400 | UnsupportedOperation | AWS.SimpleQueueService.UnsupportedOperation;Sender | pp
        403 | ExpiredTokenException | ExpiredToken;Sender | rr
        500 | InternalFailure | InternalFailure;Receiver | rr
        503 | ServiceUnavailable | ServiceUnavailable;Receiver | rr
    ";
    for [status, code, query, expected] in cases(table) {
        let response = refused(status.parse().unwrap(), &code, &query);
        let endpoint = Endpoint::start(move |_| response.clone());
        let results = channel(&endpoint, URL).send(&messages(2)).await;
        assert_eq!(letters(&results), expected, "{code}: {results:?}");
    }
    for garbage in ["", "<html>", "[]"] {
        let endpoint = Endpoint::start(move |_| Response::ok(garbage));
        let results = channel(&endpoint, URL).send(&messages(2)).await;
        assert_eq!(letters(&results), "rr", "{garbage:?}");
    }
}

#[tokio::test]
async fn messages_whose_response_was_lost_are_sent_again_with_the_same_ids() {
    let endpoint = first_then(vec![Response::HangUp], accept);
    let channel = channel(&endpoint, &format!("{URL}.fifo"));
    assert_eq!(sent(&channel, &messages(2)).await, "rr");
    assert_eq!(sent(&channel, &messages(2)).await, "..");
    let requests = endpoint.requests();
    assert_eq!(requests[0].json(), requests[1].json());
}

#[tokio::test]
async fn retries_of_the_client_count_as_one_call_of_ours() {
    let busy = refused(503, "ServiceUnavailable", "ServiceUnavailable;Receiver");
    let endpoint = first_then(vec![busy], accept);
    let patient = RetryConfig::standard().with_initial_backoff(std::time::Duration::from_millis(1));
    let config = config_of(&endpoint).into_builder().retry_config(patient);
    let client = aws_sdk_sqs::Client::new(&config.build());
    let results = SqsChannel::new(&client, URL).send(&messages(2)).await;
    assert_eq!(letters(&results), "..");
    assert_eq!(endpoint.requests().len(), 2);
}

/// Also responds to GetQueueUrl.
fn with_url(request: &Request) -> Response {
    match request.operation() {
        "GetQueueUrl" => Response::ok(json!({ "QueueUrl": URL })),
        _ => respond(Behaviour::Accepts, request),
    }
}

#[tokio::test]
async fn the_url_of_a_name_or_arn_is_requested_once() {
    let arn = "arn:aws:sqs:us-east-1:999999999999:alerts";
    let owner = "999999999999";
    for (queue, sent_request) in [
        ("alerts", json!({"QueueName": "alerts"})),
        (
            arn,
            json!({"QueueName": "alerts", "QueueOwnerAWSAccountId": owner}),
        ),
    ] {
        let endpoint = Endpoint::start(with_url);
        let channel = channel(&endpoint, queue);
        for _ in 0..2 {
            assert_eq!(sent(&channel, &messages(1)).await, ".");
        }
        let requests = endpoint.requests();
        let operations: Vec<_> = requests.iter().map(Request::operation).collect();
        let expected = ["GetQueueUrl", "SendMessageBatch", "SendMessageBatch"];
        assert_eq!(operations, expected, "{queue}");
        assert_eq!(requests[0].json(), sent_request);
        assert_eq!(requests[1].json()["QueueUrl"], URL);
    }
}

#[tokio::test]
async fn a_queue_of_another_region_is_called_there() {
    for queue in [
        "arn:aws:sqs:eu-west-1:999999999999:alerts",
        "https://sqs.eu-west-1.amazonaws.com/999999999999/alerts",
    ] {
        let endpoint = Endpoint::start(with_url);
        let sent = channel(&endpoint, queue).send(&messages(1)).await;
        assert_eq!(letters(&sent), ".");
        for request in endpoint.requests() {
            let signed = request.header("authorization").to_owned();
            assert!(signed.contains("/eu-west-1/sqs/"), "{signed}");
        }
    }
}

#[tokio::test]
async fn a_queue_that_is_created_later_is_found() {
    let missing = "AWS.SimpleQueueService.NonExistentQueue;Sender";
    let missing = refused(400, "QueueDoesNotExist", missing);
    let throttled = refused(400, "RequestThrottled", "RequestThrottled;Sender");
    let endpoint = first_then(vec![missing, throttled], with_url);
    let channel = channel(&endpoint, "alerts");
    let missing = channel.send(&messages(2)).await;
    assert_eq!(letters(&missing), "pp");
    let text = reason(&missing[0]);
    assert!(text.starts_with("SQS alerts: "), "{text}");
    assert_eq!(sent(&channel, &messages(2)).await, "rr");
    assert_eq!(sent(&channel, &messages(2)).await, "..");
}

#[tokio::test]
async fn messages_that_a_queue_cannot_accept_are_rejected_without_a_call() {
    let endpoint = Endpoint::start(accept);
    let attribute = |n| (format!("a{n}"), "1".to_owned());
    let wrong = [
        Message {
            delay_seconds: Some(901),
            ..message(0)
        },
        Message {
            attributes: (0..11).map(attribute).collect(),
            ..message(1)
        },
        Message {
            body: "\u{1}".to_owned(),
            ..message(2)
        },
        Message {
            body: String::new(),
            ..message(3)
        },
    ];
    let results = channel(&endpoint, URL).send(&wrong).await;
    assert_eq!(letters(&results), "pppp");
    let words = [
        "901 seconds, the limit is 900",
        "11 attributes, the limit is 10",
        "character",
        "no body",
    ];
    for (result, word) in results.iter().zip(words) {
        assert!(reason(result).contains(word), "{result:?}");
    }
    assert_eq!(endpoint.requests().len(), 0);
}

#[tokio::test]
async fn the_size_limit_can_be_the_old_one() {
    let endpoint = Endpoint::start(accept);
    let large = Message {
        body: json!({ "long": "x".repeat(300 * 1024) }).to_string(),
        ..message(0)
    };
    let today = channel(&endpoint, URL);
    assert_eq!(today.limits().batch_bytes, 1024 * 1024);
    assert_eq!(
        letters(&today.send(std::slice::from_ref(&large)).await),
        "."
    );
    let before = channel(&endpoint, URL).with_bytes(sqs::SMALL_BYTES);
    let limits = before.limits();
    assert_eq!(
        (limits.batch_bytes, limits.message_bytes),
        (262_144, 262_144)
    );
    assert_eq!(letters(&before.send(&[large]).await), "p");
}

#[tokio::test]
async fn an_unreachable_service_is_retryable() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let config = crate::scripted::config(&format!("http://{address}"));
    let channel = SqsChannel::new(&aws_sdk_sqs::Client::new(&config), URL);
    assert_eq!(sent(&channel, &messages(2)).await, "rr");
    // So is a service with an unknown response.
    let endpoint = Endpoint::start(|_| rejection(502, ""));
    let channel = self::channel(&endpoint, "alerts");
    assert_eq!(sent(&channel, &messages(2)).await, "rr");
}
