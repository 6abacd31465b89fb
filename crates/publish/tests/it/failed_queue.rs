//! Queues of failed messages: calls to SQS.

use antumbra_publish::SqsFailedQueue;
use antumbra_service::redrive::FailedQueue as _;
use antumbra_testkit::http::{Endpoint, Request, Response};
use aws_sdk_sqs::Client;
use serde_json::{Value, json};

use crate::scripted::config_of;

const URL: &str = "https://sqs.us-east-1.amazonaws.com/123456789012/failed";

/// Receives from a queue whose short polls find nothing, and whose long polls find a message.
async fn received(count: fn() -> Response) -> (usize, Vec<(String, Value)>) {
    let endpoint = Endpoint::start(move |request: &Request| match request.operation() {
        "GetQueueAttributes" => count(),
        _ if request.json()["WaitTimeSeconds"] == 0 => Response::ok(json!({})),
        _ => Response::ok(json!({"Messages": [{"MessageId": "m", "Body": "late"}]})),
    });
    let client = Client::new(&config_of(&endpoint));
    let queue = SqsFailedQueue::open(&client, URL).await.unwrap();
    let messages = queue.receive_counted().await.unwrap();
    let calls = endpoint.requests().into_iter();
    let call = |request: Request| {
        let waits = request.json()["WaitTimeSeconds"].clone();
        (request.operation().to_owned(), waits)
    };
    (messages.len(), calls.map(call).collect())
}

fn call(operation: &str, wait: Value) -> (String, Value) {
    (operation.to_owned(), wait)
}

#[tokio::test]
async fn an_empty_queue_is_read_without_waiting() {
    let short = [
        call("ReceiveMessage", json!(0)),
        call("GetQueueAttributes", Value::Null),
    ];
    let empty = || Response::ok(json!({"Attributes": {"ApproximateNumberOfMessages": "0"}}));
    assert_eq!(received(empty).await, (0, short.to_vec()));
    // A short poll asks some servers only. If messages are counted, or cannot be, a long poll asks all.
    let mut long = short.to_vec();
    long.push(call("ReceiveMessage", json!(1)));
    let some = || Response::ok(json!({"Attributes": {"ApproximateNumberOfMessages": "3"}}));
    assert_eq!(received(some).await, (1, long.clone()));
    let denied = || {
        let body = json!({"__type": "com.amazonaws.sqs#AccessDenied", "message": "no"});
        Response::new(403, body)
    };
    assert_eq!(received(denied).await, (1, long));
}
