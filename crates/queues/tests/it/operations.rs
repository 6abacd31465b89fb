//! Requests and responses of the wire protocols.

use antumbra_queues::{Queues, QueuesConfig, Unkindness};
use serde_json::{Value, json};

pub(crate) fn config() -> QueuesConfig {
    QueuesConfig {
        account: "000000000000".to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: "http://127.0.0.1:4566".to_owned(),
        data_dir: None,
        unkindness: Unkindness::default(),
    }
}

pub(crate) async fn call(
    queues: &Queues,
    operation: &str,
    request: Value,
) -> Result<Value, String> {
    let response = queues.sqs(operation, request.to_string().as_bytes()).await;
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    match response.status().as_u16() {
        200 => Ok(body),
        _ => {
            let code = response.headers()["x-amzn-query-error"].to_str().unwrap();
            let kind = body["__type"].as_str().unwrap();
            Err(format!("{kind} {code}"))
        }
    }
}

async fn ok(queues: &Queues, operation: &str, request: Value) -> Value {
    call(queues, operation, request).await.unwrap()
}

pub(crate) async fn create(queues: &Queues, name: &str, attributes: Value) -> String {
    let mut attributes = attributes;
    if name.ends_with(".fifo") {
        attributes["FifoQueue"] = "true".into();
    }
    let request = json!({ "QueueName": name, "Attributes": attributes });
    let created = ok(queues, "CreateQueue", request).await;
    created["QueueUrl"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn errors_have_the_codes_of_sqs() {
    let queues = Queues::open(config()).unwrap();
    let q = create(&queues, "q", json!({})).await;
    let fifo = create(&queues, "q.fifo", json!({})).await;
    let cases = [
        (
            "GetQueueUrl",
            json!({"QueueName": "missing"}),
            "com.amazonaws.sqs#QueueDoesNotExist AWS.SimpleQueueService.NonExistentQueue;Sender",
        ),
        (
            "SendMessage",
            json!({"QueueUrl": fifo, "MessageBody": "x"}),
            "com.amazonaws.sqs#MissingParameter MissingParameter;Sender",
        ),
        (
            "SendMessage",
            json!({"QueueUrl": fifo, "MessageBody": "x", "MessageGroupId": "g"}),
            "com.amazonaws.sqs#InvalidParameterValue InvalidParameterValue;Sender",
        ),
        (
            "SendMessage",
            json!({"QueueUrl": q, "MessageBody": "x".repeat(1024 * 1024 + 1)}),
            "com.amazonaws.sqs#InvalidParameterValue InvalidParameterValue;Sender",
        ),
        (
            "SendMessage",
            json!({"QueueUrl": q, "MessageBody": "\u{1}"}),
            "com.amazonaws.sqs#InvalidMessageContents InvalidMessageContents;Sender",
        ),
        (
            "DeleteMessage",
            json!({"QueueUrl": q, "ReceiptHandle": "nonsense"}),
            "com.amazonaws.sqs#ReceiptHandleIsInvalid ReceiptHandleIsInvalid;Sender",
        ),
        (
            "SendMessageBatch",
            json!({"QueueUrl": q, "Entries": []}),
            "com.amazonaws.sqs#EmptyBatchRequest AWS.SimpleQueueService.EmptyBatchRequest;Sender",
        ),
        (
            "CreateQueue",
            json!({"QueueName": "q", "Attributes": {"VisibilityTimeout": "7"}}),
            "com.amazonaws.sqs#QueueNameExists QueueAlreadyExists;Sender",
        ),
    ];
    for (operation, request, expected) in cases {
        let result = call(&queues, operation, request.clone()).await;
        assert_eq!(result, Err(expected.to_owned()), "{operation}");
    }
    let largest = json!({"QueueUrl": q, "MessageBody": "x".repeat(1024 * 1024)});
    assert!(call(&queues, "SendMessage", largest).await.is_ok());
}

#[tokio::test]
async fn checksums_are_those_of_the_sdks() {
    let queues = Queues::open(config()).unwrap();
    let q = create(&queues, "q", json!({})).await;
    let request = json!({
        "QueueUrl": q,
        "MessageBody": "hello",
        "MessageAttributes": {
            "a": {"DataType": "String", "StringValue": "b"},
        },
    });
    let sent = ok(&queues, "SendMessage", request).await;
    assert_eq!(sent["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592");
    let request =
        json!({"QueueUrl": q, "MessageAttributeNames": ["All"], "AttributeNames": ["All"]});
    let received = ok(&queues, "ReceiveMessage", request).await;
    let message = &received["Messages"][0];
    assert_eq!(
        message["MD5OfMessageAttributes"],
        sent["MD5OfMessageAttributes"]
    );
    assert_eq!(message["Attributes"]["ApproximateReceiveCount"], "1");
    assert_eq!(message["MessageAttributes"]["a"]["StringValue"], "b");
}

#[tokio::test]
async fn a_moved_dead_letter_gets_a_new_id() {
    let queues = Queues::open(config()).unwrap();
    create(&queues, "dead", json!({})).await;
    let policy = r#"{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": "1"}"#;
    let q = create(&queues, "q", json!({"RedrivePolicy": policy})).await;
    let sent = ok(
        &queues,
        "SendMessage",
        json!({"QueueUrl": q, "MessageBody": "m"}),
    )
    .await;
    let receive = json!({"QueueUrl": q, "VisibilityTimeout": 0});
    ok(&queues, "ReceiveMessage", receive.clone()).await;
    assert_eq!(
        ok(&queues, "ReceiveMessage", receive.clone()).await,
        json!({})
    );
    let start = json!({"SourceArn": "arn:aws:sqs:us-east-1:000000000000:dead"});
    ok(&queues, "StartMessageMoveTask", start).await;
    let back = ok(&queues, "ReceiveMessage", receive).await;
    assert_eq!(back["Messages"][0]["Body"], "m");
    assert_ne!(back["Messages"][0]["MessageId"], sent["MessageId"]);
}

#[tokio::test]
async fn a_dead_letter_waits_in_its_queue_while_the_dead_letter_queue_is_missing() {
    let queues = Queues::open(config()).unwrap();
    let policy = r#"{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead", "maxReceiveCount": 1}"#;
    let q = create(&queues, "q", json!({"RedrivePolicy": policy})).await;
    ok(
        &queues,
        "SendMessage",
        json!({"QueueUrl": q, "MessageBody": "m"}),
    )
    .await;
    let receive = json!({"QueueUrl": q, "VisibilityTimeout": 0});
    ok(&queues, "ReceiveMessage", receive.clone()).await;
    assert_eq!(
        ok(&queues, "ReceiveMessage", receive.clone()).await,
        json!({})
    );
    let dead = create(&queues, "dead", json!({})).await;
    assert_eq!(ok(&queues, "ReceiveMessage", receive).await, json!({}));
    let received = ok(&queues, "ReceiveMessage", json!({"QueueUrl": dead})).await;
    assert_eq!(received["Messages"][0]["Body"], "m");
}

#[tokio::test]
async fn a_long_poll_ends_when_a_message_arrives() {
    let queues = Queues::open(config()).unwrap();
    let q = create(&queues, "q", json!({})).await;
    let request = json!({"QueueUrl": q, "WaitTimeSeconds": 20});
    let poll = call(&queues, "ReceiveMessage", request);
    let send = call(
        &queues,
        "SendMessage",
        json!({"QueueUrl": q, "MessageBody": "m"}),
    );
    let (received, sent) = tokio::join!(poll, send);
    sent.unwrap();
    assert_eq!(received.unwrap()["Messages"][0]["Body"], "m");
}

/// On several threads: a receiver could otherwise not run between two messages of a batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_receiver_gets_a_batch_as_a_whole() {
    let queues = Queues::open(config()).unwrap();
    let url = create(&queues, "q", json!({})).await;
    for round in 0..200 {
        let receiving = tokio::spawn({
            let (queues, url) = (queues.clone(), url.clone());
            async move {
                let request =
                    json!({ "QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20 });
                ok(&queues, "ReceiveMessage", request).await
            }
        });
        tokio::task::yield_now().await;
        let entry = |at: usize| json!({ "Id": at.to_string(), "MessageBody": at.to_string() });
        let entries: Vec<Value> = (0..10).map(entry).collect();
        let batch = json!({ "QueueUrl": url, "Entries": entries });
        ok(&queues, "SendMessageBatch", batch).await;
        let received = receiving.await.unwrap();
        let messages = received["Messages"].as_array().unwrap();
        assert_eq!(messages.len(), 10, "round {round}");
        let entry = |(at, message): (usize, &Value)| json!({ "Id": at.to_string(), "ReceiptHandle": message["ReceiptHandle"] });
        let entries: Vec<Value> = messages.iter().enumerate().map(entry).collect();
        let batch = json!({ "QueueUrl": url, "Entries": entries });
        ok(&queues, "DeleteMessageBatch", batch).await;
    }
}
