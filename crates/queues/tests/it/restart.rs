//! Queues and topics after a restart.

use antumbra_queues::{Queues, QueuesConfig};
use serde_json::json;

use crate::operations::{call, config, create};

fn open(directory: &tempfile::TempDir) -> Queues {
    let data_dir = Some(directory.path().to_owned());
    Queues::open(QueuesConfig {
        data_dir,
        ..config()
    })
    .unwrap()
}

#[tokio::test]
async fn messages_survive_with_visibility_receive_count_and_deduplication() {
    let directory = tempfile::tempdir().unwrap();
    let queues = open(&directory);
    let q = create(&queues, "q", json!({"VisibilityTimeout": "0"})).await;
    let fifo = create(&queues, "q.fifo", json!({})).await;
    for body in ["deleted", "received", "waiting"] {
        let request = json!({"QueueUrl": q, "MessageBody": body});
        call(&queues, "SendMessage", request).await.unwrap();
    }
    let receive = json!({"QueueUrl": q, "MaxNumberOfMessages": 2});
    let received = call(&queues, "ReceiveMessage", receive).await.unwrap();
    let handle = &received["Messages"][0]["ReceiptHandle"];
    let delete = json!({"QueueUrl": q, "ReceiptHandle": handle});
    call(&queues, "DeleteMessage", delete).await.unwrap();
    let in_order = |body: &str| json!({"QueueUrl": fifo, "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": "d"});
    let sent = call(&queues, "SendMessage", in_order("first"))
        .await
        .unwrap();
    let hidden = json!({"QueueUrl": fifo, "VisibilityTimeout": 600});
    let hidden = call(&queues, "ReceiveMessage", hidden).await.unwrap();
    drop(queues);

    for _ in 0..2 {
        let queues = open(&directory);
        let all = json!({"QueueUrl": q, "MaxNumberOfMessages": 10, "AttributeNames": ["All"]});
        let received = call(&queues, "ReceiveMessage", all).await.unwrap();
        let mut found: Vec<_> = received["Messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| &m["Body"])
            .collect();
        found.sort_by_key(|body| body.as_str());
        assert_eq!(found, ["received", "waiting"]);
        let again = call(&queues, "SendMessage", in_order("again"))
            .await
            .unwrap();
        assert_eq!(
            again["MessageId"], sent["MessageId"],
            "the deduplication id is known"
        );
        let poll = json!({"QueueUrl": fifo});
        assert_eq!(
            call(&queues, "ReceiveMessage", poll).await.unwrap(),
            json!({}),
            "it is in flight"
        );
    }
    let queues = open(&directory);
    let handle = &hidden["Messages"][0]["ReceiptHandle"];
    let delete = json!({"QueueUrl": fifo, "ReceiptHandle": handle});
    call(&queues, "DeleteMessage", delete).await.unwrap();
    let request = json!({"QueueUrl": fifo, "AttributeNames": ["All"]});
    let attributes = call(&queues, "GetQueueAttributes", request).await.unwrap();
    let counts = &attributes["Attributes"];
    assert_eq!(counts["ApproximateNumberOfMessagesNotVisible"], "0");
    assert_eq!(counts["ApproximateNumberOfMessages"], "0");
}

#[tokio::test]
async fn messages_of_ended_consumers_are_released() {
    let directory = tempfile::tempdir().unwrap();
    let queues = open(&directory);
    let q = create(&queues, "q", json!({"VisibilityTimeout": "600"})).await;
    let send = json!({"QueueUrl": q, "MessageBody": "m"});
    call(&queues, "SendMessage", send).await.unwrap();
    let receive = json!({"QueueUrl": q, "AttributeNames": ["All"]});
    call(&queues, "ReceiveMessage", receive.clone())
        .await
        .unwrap();
    drop(queues);
    let queues = open(&directory);
    assert_eq!(
        call(&queues, "ReceiveMessage", receive.clone())
            .await
            .unwrap(),
        json!({})
    );
    queues.release("q").unwrap();
    let received = call(&queues, "ReceiveMessage", receive).await.unwrap();
    let attributes = &received["Messages"][0]["Attributes"];
    assert_eq!(attributes["ApproximateReceiveCount"], "2");
}

#[tokio::test]
async fn a_line_cut_off_by_a_crash_ends_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let queues = open(&directory);
    let q = create(&queues, "q", json!({})).await;
    call(
        &queues,
        "SendMessage",
        json!({"QueueUrl": q, "MessageBody": "kept"}),
    )
    .await
    .unwrap();
    drop(queues);
    let path = directory.path().join("queues.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(r#"{"send":["q",{"id":"half"#);
    std::fs::write(&path, text).unwrap();
    let queues = open(&directory);
    let received = call(&queues, "ReceiveMessage", json!({"QueueUrl": q}))
        .await
        .unwrap();
    assert_eq!(received["Messages"][0]["Body"], "kept");
}

#[cfg(unix)]
#[tokio::test]
async fn the_journal_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let _queues = open(&directory);
    let metadata = std::fs::metadata(directory.path().join("queues.jsonl")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn topics_and_subscriptions_survive() {
    let directory = tempfile::tempdir().unwrap();
    let queues = open(&directory);
    let q = create(&queues, "q", json!({})).await;
    let arn = "arn:aws:sns:us-east-1:000000000000:t";
    let queue = "arn:aws:sqs:us-east-1:000000000000:q";
    for body in [
        "Action=CreateTopic&Name=t".to_owned(),
        format!(
            "Action=Subscribe&TopicArn={arn}&Protocol=sqs&Endpoint={queue}&Attributes.entry.1.key=RawMessageDelivery&Attributes.entry.1.value=true"
        ),
    ] {
        assert_eq!(queues.sns(body.as_bytes()).status(), 200);
    }
    drop(queues);
    let queues = open(&directory);
    let publish = format!("Action=Publish&TopicArn={arn}&Message=hello");
    assert_eq!(queues.sns(publish.as_bytes()).status(), 200);
    let received = call(&queues, "ReceiveMessage", json!({"QueueUrl": q}))
        .await
        .unwrap();
    assert_eq!(received["Messages"][0]["Body"], "hello");
}
