use std::time::{Duration, Instant};

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
use serde_json::{Value, json};

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
    name: &'static str,
}

async fn stack(name: &'static str, attributes: &[(QueueAttributeName, &str)]) -> Stack {
    let (queues, client) = queues().await;
    client
        .create_queue()
        .queue_name("dead")
        .send()
        .await
        .unwrap();
    let mut request = client.create_queue().queue_name(name);
    for (attribute, value) in attributes {
        request = request.attributes(attribute.clone(), *value);
    }
    request.send().await.unwrap();
    Stack {
        queues,
        client,
        name,
    }
}

impl Stack {
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
            ..Source::new(self.queues.queue_url(self.name), queue_arn(self.name))
        };
        let pump = queue_pump::start(self.client.clone(), source, function);
        (pump, calls)
    }

    async fn send(&self, bodies: &[&str]) {
        for body in bodies {
            let queue = self.queues.queue_url(self.name);
            let request = self
                .client
                .send_message()
                .queue_url(queue)
                .message_body(*body);
            let fifo = self.name.ends_with(".fifo");
            let request = request.set_message_group_id(fifo.then(|| "g".to_owned()));
            let request = request.set_message_deduplication_id(fifo.then(|| (*body).to_owned()));
            request.send().await.unwrap();
        }
    }

    /// Makes a message visible again at once, if the queue still has it.
    async fn release(&self, record: &Value) {
        self.hide(record, 0).await;
    }

    async fn hide(&self, record: &Value, seconds: i32) {
        let request = self.client.change_message_visibility();
        let request = request.queue_url(self.queues.queue_url(self.name));
        let request = request.receipt_handle(record["receiptHandle"].as_str().unwrap());
        let _ = request.visibility_timeout(seconds).send().await;
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
        let request = request.queue_url(self.queues.queue_url(self.name));
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
    let stack = stack("q", &[]).await;
    let attribute = MessageAttributeValue::builder().data_type("String");
    let request = stack
        .client
        .send_message()
        .queue_url(stack.queues.queue_url("q"));
    let sent = request
        .message_body(r#"{"big": 12345678901234567890}"#)
        .message_attributes("kind", attribute.string_value("x").build().unwrap())
        .send()
        .await
        .unwrap();
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
    let stack = stack("q", &[]).await;
    stack.send(&["a", "b", "c"]).await;
    let records = stack
        .once(|call| {
            assert_eq!(call.each(BODY), ["a", "b", "c"]);
            let id = call.each("/messageId")[1].to_owned();
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
    let stack = stack("q", &[]).await;
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
async fn a_message_that_always_fails_becomes_a_dead_letter() {
    let policy = json!({"deadLetterTargetArn": queue_arn("dead"), "maxReceiveCount": 2});
    let policy = policy.to_string();
    let stack = stack("q", &[(QueueAttributeName::RedrivePolicy, &policy)]).await;
    stack.send(&["poison"]).await;
    for receives in ["1", "2"] {
        let records = stack.once(Call::fail).await;
        assert_eq!(field(&records, RECEIVES), [receives]);
        stack.release(&records[0]).await;
    }
    let (pump, _calls) = stack.start();
    let request = stack.client.receive_message().wait_time_seconds(20);
    let dead = request.queue_url(stack.queues.queue_url("dead")).send();
    let dead = soon("the dead letter", dead).await.unwrap();
    assert_eq!(dead.messages()[0].body(), Some("poison"));
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_failed_message_blocks_its_group() {
    let stack = stack("q.fifo", &[(QueueAttributeName::FifoQueue, "true")]).await;
    stack.send(&["1", "2", "3"]).await;
    let failed = stack
        .once(|call| {
            let ids = call.each("/messageId").into_iter().map(str::to_owned);
            let ids: Vec<_> = ids.collect();
            call.report(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        })
        .await;
    assert_eq!(field(&failed, BODY)[0], "1");
    assert_eq!(field(&failed, "/attributes/MessageGroupId")[0], "g");
    assert_eq!(stack.left().await, 3);
    // In reverse order, each to the head of its group.
    for record in failed.iter().rev() {
        stack.release(record).await;
    }
    let (pump, mut calls) = stack.start();
    let mut processed = Vec::new();
    while processed.len() < 3 {
        let call = calls.next().await;
        processed.extend(call.each(BODY).into_iter().map(str::to_owned));
        call.succeed();
    }
    assert_eq!(processed, ["1", "2", "3"]);
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn stopping_waits_for_the_running_invocation() {
    let stack = stack("q", &[]).await;
    stack.send(&["a"]).await;
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let stopping = tokio::spawn(pump.stop());
    call.succeed();
    soon("the stop", stopping).await.unwrap();
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_failed_message_returns_after_its_visibility_timeout() {
    let hidden = [(QueueAttributeName::VisibilityTimeout, "1")];
    let stack = stack("q", &hidden).await;
    stack.send(&["a", "b"]).await;
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let begin = Instant::now();
    let id = call.each("/messageId")[1].to_owned();
    call.report(&[&id]);
    let call = calls.next().await;
    assert_eq!(call.each(BODY), ["b"]);
    assert_eq!(call.each(RECEIVES), ["2"]);
    assert!(begin.elapsed() > Duration::from_millis(900), "not at once");
    call.succeed();
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn a_function_can_set_the_visibility_timeout() {
    // Longer than the test waits, unless the function changes it.
    let hidden = [(QueueAttributeName::VisibilityTimeout, "600")];
    let stack = stack("q", &hidden).await;
    stack.send(&["a"]).await;
    let (pump, mut calls) = stack.start();
    let call = calls.next().await;
    let id = call.each("/messageId")[0].to_owned();
    stack.hide(&call.records()[0], 1).await;
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
    let hidden = [(QueueAttributeName::VisibilityTimeout, "600")];
    let stack = stack("q", &hidden).await;
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
async fn a_dead_letter_frees_its_group() {
    let policy = json!({"deadLetterTargetArn": queue_arn("dead.fifo"), "maxReceiveCount": 1});
    let stack = stack("q.fifo", &[(QueueAttributeName::FifoQueue, "true")]).await;
    let dead = stack.client.create_queue().queue_name("dead.fifo");
    let dead = dead.attributes(QueueAttributeName::FifoQueue, "true");
    dead.send().await.unwrap();
    let redrive = stack.client.set_queue_attributes();
    let redrive = redrive.queue_url(stack.queues.queue_url("q.fifo"));
    let redrive = redrive.attributes(QueueAttributeName::RedrivePolicy, policy.to_string());
    redrive.send().await.unwrap();
    stack.send(&["poison", "2"]).await;

    let records = stack
        .once(|call| {
            let ids = call.each("/messageId").into_iter().map(str::to_owned);
            let ids: Vec<_> = ids.collect();
            call.report(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        })
        .await;
    assert_eq!(field(&records, BODY)[0], "poison");
    for record in records.iter().rev() {
        stack.release(record).await;
    }
    let (pump, mut calls) = stack.start();
    let dead = stack.queues.queue_url("dead.fifo");
    let received = async {
        loop {
            // The emulator does not end a long poll for a dead letter of a FIFO queue.
            let receive = stack.client.receive_message().queue_url(&dead);
            let receive = receive.wait_time_seconds(1).send().await.unwrap();
            if let Some(message) = receive.messages().first() {
                return message.body().map(str::to_owned);
            }
        }
    };
    let received = soon("the dead letter", received).await;
    assert_eq!(received.as_deref(), Some("poison"));
    if records.len() == 1 {
        let call = calls.next().await;
        assert_eq!(call.each(BODY), ["2"], "its group goes on without it");
        call.succeed();
    }
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}

#[tokio::test]
async fn concurrency_is_limited() {
    let stack = stack("q", &[]).await;
    let bodies: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    stack.send(&bodies).await;
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
    while seen < bodies.len() {
        let call = calls.next().await;
        seen += call.records().len();
        call.succeed();
    }
    pump.stop().await;
    assert_eq!(stack.left().await, 0);
}
