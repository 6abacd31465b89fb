use std::time::Duration;

use antumbra_local::{
    function::Function,
    queue_pump::{self, Source},
    queues::{Queues, queue_arn},
    task::Running,
};
use aws_sdk_sqs::{
    Client,
    types::{MessageAttributeValue, QueueAttributeName},
};
use serde_json::Value;

use crate::support::{Call, Calls, function, queues, soon};

const BODY: &str = "/body";
const RECEIVES: &str = "/attributes/ApproximateReceiveCount";

fn field<'a>(records: &'a [Value], pointer: &str) -> Vec<&'a str> {
    let text = |record: &'a Value| record.pointer(pointer)?.as_str();
    records.iter().filter_map(text).collect()
}

struct Stack {
    queues: Queues,
    client: Client,
}

/// A queue with a visibility timeout longer than a test waits.
async fn stack() -> Stack {
    let (queues, client) = queues().await;
    let request = client.create_queue().queue_name("q");
    let hidden = QueueAttributeName::VisibilityTimeout;
    let request = request.attributes(hidden, "600");
    request.send().await.unwrap();
    Stack { queues, client }
}

impl Stack {
    fn url(&self) -> String {
        self.queues.queue_url("q")
    }

    fn start(&self) -> (Running, Calls) {
        self.start_with(function("ingest"), 1)
    }

    fn start_with(
        &self,
        (function, calls): (Function, Calls),
        concurrency: usize,
    ) -> (Running, Calls) {
        let source = Source {
            concurrency,
            ..Source::new(self.url(), queue_arn("q"))
        };
        let pump = queue_pump::start(self.client.clone(), source, function);
        (pump, calls)
    }

    async fn send(&self, bodies: &[&str]) {
        for body in bodies {
            let request = self.client.send_message().queue_url(self.url());
            request.message_body(*body).send().await.unwrap();
        }
    }

    /// Makes a message visible again at once, if the queue still has it.
    async fn release(&self, record: &Value) {
        let request = self.client.change_message_visibility();
        let request = request.queue_url(self.url());
        let request = request.receipt_handle(record["receiptHandle"].as_str().unwrap());
        let _ = request.visibility_timeout(0).send().await;
    }

    /// Completes one invocation and returns its records once the pump has processed the outcome.
    async fn once(&self, complete: impl FnOnce(Call)) -> Vec<Value> {
        let (pump, mut calls) = self.start();
        let call = calls.next().await;
        let records = call.records().to_vec();
        complete(call);
        // Unexpected invocations fail at once.
        drop(calls);
        pump.stop().await;
        records
    }

    /// Returns the number of messages, visible or not.
    async fn left(&self) -> u32 {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesNotVisible as Hidden,
        };
        let request = self.client.get_queue_attributes();
        let request = request.queue_url(self.url());
        let request = request.attribute_names(Visible).attribute_names(Hidden);
        let found = request.send().await.unwrap().attributes.unwrap();
        [Visible, Hidden]
            .iter()
            .map(|n| found[n].parse::<u32>().unwrap())
            .sum()
    }
}

#[tokio::test]
async fn a_message_has_the_fields_of_an_sqs_event() {
    let stack = stack().await;
    let attribute = MessageAttributeValue::builder().data_type("String");
    let attribute = attribute.string_value("x").build().unwrap();
    let request = stack.client.send_message().queue_url(stack.url());
    let request = request.message_body(r#"{"big": 12345678901234567890}"#);
    let sent = request.message_attributes("kind", attribute).send().await;
    let sent = sent.unwrap();
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let record = &call.records()[0];
    assert_eq!(record["messageId"], sent.message_id.unwrap().as_str());
    assert_eq!(record["body"], r#"{"big": 12345678901234567890}"#);
    assert_eq!(
        record["md5OfBody"],
        sent.md5_of_message_body.unwrap().as_str()
    );
    assert_eq!(record["eventSource"], "aws:sqs");
    assert_eq!(record["eventSourceARN"], queue_arn("q").as_str());
    assert_eq!(record["awsRegion"], "us-east-1");
    assert_eq!(record["messageAttributes"]["kind"]["stringValue"], "x");
    for name in [
        "SentTimestamp",
        "SenderId",
        "ApproximateFirstReceiveTimestamp",
    ] {
        assert!(record["attributes"][name].is_string(), "{name}");
    }
    assert_eq!(record["attributes"]["ApproximateReceiveCount"], "1");
    call.succeed();
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn only_reported_failures_stay_in_the_queue() {
    let stack = stack().await;
    stack.send(&["a", "b", "c"]).await;
    let records = stack
        .once(|call| {
            assert_eq!(call.each(BODY), ["a", "b", "c"]);
            let id = call.each("/messageId").swap_remove(1);
            call.report(&[&id]);
        })
        .await;
    assert_eq!(stack.left().await, 1);
    for record in &records {
        stack.release(record).await;
    }
    let records = stack.once(Call::succeed).await;
    assert_eq!(field(&records, BODY), ["b"]);
    assert_eq!(field(&records, RECEIVES), ["2"]);
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_failed_invocation_leaves_the_whole_batch() {
    let outcomes: [fn(Call); 4] = [
        Call::fail,
        |panicking| drop(panicking),
        |call| call.respond("not JSON"),
        |call| call.report(&["no such message"]),
    ];
    let stack = stack().await;
    stack.send(&["a", "b"]).await;
    for outcome in outcomes {
        let records = stack.once(outcome).await;
        assert_eq!(field(&records, BODY).len(), 2);
        assert_eq!(stack.left().await, 2);
        for record in &records {
            stack.release(record).await;
        }
    }
}

#[tokio::test]
async fn stopping_waits_for_the_running_invocation() {
    let stack = stack().await;
    stack.send(&["a"]).await;
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let stopping = tokio::spawn(pump.stop());
    call.succeed();
    soon("the stop", stopping).await.unwrap();
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_function_can_set_the_visibility_timeout() {
    let stack = stack().await;
    stack.send(&["a"]).await;
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let id = call.each("/messageId").swap_remove(0);
    stack.release(&call.records()[0]).await;
    call.report(&[&id]);
    let again = calls.next().await;
    assert_eq!(again.each("/messageId"), [id]);
    assert_eq!(again.each(RECEIVES), ["2"]);
    again.succeed();
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_timed_out_invocation_counts_as_failed() {
    let stack = stack().await;
    stack.send(&["a"]).await;
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let stuck = Function::new("stuck", Duration::from_millis(20), move |_| {
        let _ = started.send(());
        std::future::pending()
    });
    let (_, no_calls) = function("nobody");
    let (pump, _) = stack.start_with((stuck, no_calls), 1);
    soon("the call", starts.recv()).await.unwrap();
    soon("the stop", pump.stop()).await;
    assert_eq!(stack.left().await, 1);
}

#[tokio::test]
async fn concurrency_is_limited() {
    let stack = stack().await;
    stack.send(&["x"; 40]).await;
    let (pump, mut calls) = stack.start_with(function("ingest"), 2);
    let (first, second) = (calls.next().await, calls.next().await);
    // Two invocations run, and 20 messages wait. Each completion starts one more.
    assert!(calls.none_waits());
    let mut seen = first.records().len() + second.records().len();
    first.succeed();
    let third = calls.next().await;
    assert!(calls.none_waits());
    seen += third.records().len();
    second.succeed();
    third.succeed();
    while seen < 40 {
        let call = calls.next().await;
        seen += call.records().len();
        call.succeed();
    }
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}
