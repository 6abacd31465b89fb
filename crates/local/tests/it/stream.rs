use std::time::Duration;

use antumbra_dynamodb::MAIN;
use antumbra_local::{
    dynamodb::Storage,
    queues::{Queues, definitions},
    stream::{self, Checkpoints, Position, RetryPolicy, Source, Start},
    task::Running,
};
use serde_json::{Value, json};

use crate::support::{Calls, Tables, eventually, function, queues, soon, tables, text};

const SHARD: &str = "/dynamodb/SequenceNumber";
const FAILED: &str = "antumbra-undeliverable";
const KEY: &str = "/dynamodb/Keys/SK/S";

struct Stack {
    tables: Tables,
    queues: Queues,
    sqs: aws_sdk_sqs::Client,
    stream_arn: String,
    checkpoints: Checkpoints,
}

async fn stack() -> Stack {
    stack_on(Storage::Memory, Checkpoints::in_memory()).await
}

async fn stack_on(storage: Storage, checkpoints: Checkpoints) -> Stack {
    let tables = tables(storage).await;
    let (queues, sqs) = queues().await;
    definitions::ensure_all(&sqs).await.unwrap();
    let made = MAIN.ensure(&tables.client).await.unwrap();
    Stack {
        tables,
        queues,
        sqs,
        stream_arn: made.stream_arn.expect("a stream"),
        checkpoints,
    }
}

impl Stack {
    /// Writes items with the given sort keys, one after the other.
    async fn write(&self, keys: &[&str]) {
        for key in keys {
            self.tables.put(key, &[]).await;
        }
    }

    fn source(&self) -> Source {
        Source {
            retry: RetryPolicy {
                retries: Some(2),
                first_delay: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            on_failure: Some(self.queues.queue_url(FAILED)),
            poll: Duration::from_millis(5),
            ..Source::new(&self.stream_arn)
        }
    }

    fn start(&self, source: Source) -> (Running, Calls) {
        let (function, calls) = function("listener");
        let pump = stream::start(
            self.tables.streams.clone(),
            self.tables.server.stream_reader(),
            self.sqs.clone(),
            source,
            function,
            self.checkpoints.clone(),
        );
        (pump, calls)
    }

    fn position(&self) -> Option<Position> {
        let shard = format!("shardId-00000001-{}", MAIN.name);
        self.checkpoints
            .position("listener", &self.stream_arn, &shard)
    }

    /// Receives the record of a failed batch.
    async fn given_up(&self, queue: &str) -> Value {
        let receive = self.sqs.receive_message().wait_time_seconds(20);
        let receive = receive.queue_url(self.queues.queue_url(queue));
        let received = receive.send().await.unwrap();
        let message = received.messages().first().expect("a failure message");
        serde_json::from_str(message.body().unwrap()).unwrap()
    }
}

fn after(number: &str) -> Option<Position> {
    Some(Position::After(number.to_owned()))
}

#[tokio::test]
async fn a_change_has_the_fields_of_a_stream_event() {
    let stack = stack().await;
    stack.write(&["a"]).await;
    let number = "12345678901234567890.125";
    stack.tables.put("a", &[("n", number)]).await;
    let delete = stack.tables.client.delete_item().table_name(MAIN.name);
    let delete = delete.key("PK", text("p")).key("SK", text("a"));
    delete.send().await.unwrap();

    let (pump, mut calls) = stack.start(stack.source());
    let call = calls.next().await;
    assert_eq!(call.each("/eventName"), ["INSERT", "MODIFY", "REMOVE"]);
    let keys = json!({"PK": {"S": "p"}, "SK": {"S": "a"}});
    let full = json!({"PK": {"S": "p"}, "SK": {"S": "a"}, "n": {"N": number}});
    let modified = &call.records()[1];
    assert_eq!(modified["dynamodb"]["Keys"], keys);
    assert_eq!(modified["dynamodb"]["OldImage"], keys);
    assert_eq!(modified["dynamodb"]["NewImage"], full);
    assert_eq!(modified["dynamodb"]["StreamViewType"], "NEW_AND_OLD_IMAGES");
    assert_eq!(modified["eventSource"], "aws:dynamodb");
    assert_eq!(modified["eventVersion"], "1.1");
    assert_eq!(modified["eventSourceARN"], stack.stream_arn.as_str());
    assert!(modified["eventID"].is_string() && modified["awsRegion"].is_string());
    assert!(modified["dynamodb"]["ApproximateCreationDateTime"].is_i64());
    assert!(modified["dynamodb"]["SizeBytes"].is_i64());
    assert_eq!(call.records()[0]["dynamodb"].get("OldImage"), None);
    assert_eq!(call.records()[2]["dynamodb"].get("NewImage"), None);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn the_position_stays_at_the_lowest_reported_failure() {
    let stack = stack().await;
    stack.write(&["a", "b", "c", "d"]).await;
    let (pump, mut calls) = stack.start(stack.source());

    let call = calls.next().await;
    let numbers = call.each(SHARD);
    // Highest first; the lowest counts.
    call.report(&[&numbers[3], &numbers[1]]);
    let call = calls.next().await;
    assert_eq!(
        call.each(KEY),
        ["b", "c", "d"],
        "also those that had succeeded"
    );
    assert_eq!(stack.position(), after(&numbers[0]));
    call.succeed();
    pump.stop().await;
    assert_eq!(stack.position(), after(&numbers[3]));
}

#[tokio::test]
async fn a_failed_batch_is_bisected_down_to_the_poison_record() {
    let stack = stack().await;
    stack.write(&["a", "b", "poison", "d"]).await;
    let (pump, mut calls) = stack.start(stack.source());

    let mut seen = Vec::new();
    loop {
        let call = calls.next().await;
        let keys = call.each(KEY).concat();
        seen.push(keys.clone());
        if keys.contains("poison") {
            call.fail();
        } else {
            call.succeed();
            if keys == "d" {
                break;
            }
        }
    }
    // One call and two retries for the poison.
    let expected = "abpoisond ab poisond poison poison poison d";
    assert_eq!(seen.join(" "), expected);
    let failure = stack.given_up(FAILED).await;
    assert_eq!(
        failure["requestContext"]["condition"],
        "RetryAttemptsExhausted"
    );
    assert_eq!(failure["responseContext"]["functionError"], "Unhandled");
    assert_eq!(failure["DDBStreamBatchInfo"]["batchSize"], 1);
    pump.stop().await;
}

#[tokio::test]
async fn an_abandoned_record_goes_to_the_failure_destination() {
    let stack = stack().await;
    stack.write(&["a", "b", "c"]).await;
    let mut source = stack.source();
    source.retry.bisect = false;
    source.retry.retries = Some(1);
    let (pump, mut calls) = stack.start(source);

    let call = calls.next().await;
    let numbers = call.each(SHARD);
    call.report(&[&numbers[1]]);
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["b", "c"]);
    call.report(&[&numbers[1]]);

    stack.write(&["d"]).await;
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["d"]);
    assert_eq!(stack.position(), after(&numbers[2]));
    let failure = stack.given_up(FAILED).await;
    let info = &failure["DDBStreamBatchInfo"];
    assert_eq!(info["startSequenceNumber"], numbers[1].as_str());
    assert_eq!(info["endSequenceNumber"], numbers[2].as_str());
    assert_eq!(info["batchSize"], 2);
    assert_eq!(info["streamArn"], stack.stream_arn.as_str());
    assert!(info["shardId"].as_str().unwrap().starts_with("shardId-"));
    assert_eq!(failure["requestContext"]["approximateInvokeCount"], 2);
    let function = failure["requestContext"]["functionArn"].as_str().unwrap();
    assert!(function.ends_with(":function:listener"), "{function}");
    assert_eq!(failure["responseContext"].get("functionError"), None);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn a_restart_continues_at_the_position() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::File(directory.path().join("tables.db"));
    let positions = directory.path().join("positions.json");

    let first = stack_on(storage.clone(), Checkpoints::in_file(&positions).unwrap()).await;
    first.write(&["a", "b", "c"]).await;
    let (pump, mut calls) = first.start(first.source());
    let call = calls.next().await;
    let second_number = call.each(SHARD).swap_remove(1);
    call.report(&[&second_number]);
    // The process ends before the outcome of this invocation counts.
    let lost = calls.next().await;
    drop(pump);
    drop(lost);
    first.tables.server.stop().await;

    let second = stack_on(storage, Checkpoints::in_file(&positions).unwrap()).await;
    second.write(&["d"]).await;
    let (pump, mut calls) = second.start(second.source());
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["b", "c", "d"]);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn stopping_waits_for_the_running_invocation() {
    let stack = stack().await;
    stack.write(&["a"]).await;
    let (pump, mut calls) = stack.start(stack.source());
    let call = calls.next().await;
    let number = call.each(SHARD).swap_remove(0);
    let stopping = tokio::spawn(pump.stop());
    call.succeed();
    soon("the stop", stopping).await.unwrap();
    assert_eq!(stack.position(), after(&number));
}

#[tokio::test]
async fn partial_failures_count_only_when_enabled() {
    let stack = stack().await;
    stack.write(&["a", "b"]).await;
    let mut source = stack.source();
    source.retry.report_failures = false;
    let (pump, mut calls) = stack.start(source);
    let call = calls.next().await;
    let number = call.each(SHARD).swap_remove(1);
    call.report(&[&number]);
    stack.write(&["c"]).await;
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["c"]);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn records_past_their_maximum_age_are_abandoned() {
    let stack = stack().await;
    stack.write(&["old"]).await;
    let mut source = stack.source();
    source.retry.max_age = Some(Duration::ZERO);
    let (pump, calls) = stack.start(source);
    let failure = stack.given_up(FAILED).await;
    assert_eq!(failure["requestContext"]["condition"], "RecordAgeExceeded");
    assert_eq!(failure["requestContext"]["approximateInvokeCount"], 0);
    pump.stop().await;
    assert!(stack.position().is_some());
    drop(calls);
}

#[tokio::test]
async fn latest_skips_existing_records() {
    let stack = stack().await;
    stack.write(&["before"]).await;
    let source = Source {
        start: Start::Latest,
        ..stack.source()
    };
    let (pump, mut calls) = stack.start(source);
    // The iterator exists once a later record arrives; until then a record may count as existing.
    let writing = async {
        loop {
            stack.write(&["after"]).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let call = tokio::select! {
        call = calls.next() => call,
        () = writing => unreachable!(),
    };
    assert_eq!(call.each(KEY)[0], "after");
    call.succeed();
    drop(pump);
}

#[tokio::test]
async fn an_expired_item_is_deleted_as_dynamodb() {
    let stack = stack().await;
    stack.tables.put("s", &[("ttl", "1")]).await;
    assert_eq!(stack.tables.server.delete_expired().await.unwrap(), 1);
    let (pump, mut calls) = stack.start(stack.source());
    let call = calls.next().await;
    let removed = &call.records()[1];
    assert_eq!(removed["eventName"], "REMOVE");
    assert_eq!(
        removed["userIdentity"],
        json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"})
    );
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn a_missing_failure_destination_blocks_the_shard() {
    let stack = stack().await;
    stack.write(&["poison", "b"]).await;
    let mut source = stack.source();
    source.batch_size = 1;
    source.retry.retries = Some(0);
    source.on_failure = Some(stack.queues.queue_url("made-later"));
    let (pump, mut calls) = stack.start(source);
    calls.next().await.fail();
    // The failed record could not be reported, so it is not skipped.
    let create = stack.sqs.create_queue().queue_name("made-later");
    assert_eq!(stack.position(), None);
    create.send().await.unwrap();
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["b"]);
    assert!(stack.position().is_some());
    let failure = stack.given_up("made-later").await;
    assert_eq!(failure["DDBStreamBatchInfo"]["batchSize"], 1);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn stopping_during_retries_keeps_the_position() {
    let stack = stack().await;
    stack.write(&["a", "b", "c"]).await;
    let mut source = stack.source();
    source.retry.first_delay = Duration::from_secs(3600);
    source.retry.longest_delay = Duration::from_secs(3600);
    let (pump, mut calls) = stack.start(source);
    let call = calls.next().await;
    let numbers = call.each(SHARD);
    call.report(&[&numbers[1]]);
    // The next attempt is in an hour; stopping does not wait for it.
    eventually("the position", async || stack.position()).await;
    soon("the stop", pump.stop()).await;
    let (pump, mut calls) = stack.start(stack.source());
    let call = calls.next().await;
    assert_eq!(call.each(KEY), ["b", "c"]);
    call.succeed();
    pump.stop().await;
}

#[tokio::test]
async fn batches_of_a_shard_overlap_and_keep_the_order_of_each_item() {
    let stack = stack().await;
    let written = ["a", "b", "c", "a", "d", "b", "e", "a", "f"];
    stack.write(&written).await;
    let (pump, mut calls) = stack.start(Source {
        parallelization: 2,
        ..stack.source()
    });
    // Both run at once.
    let (one, other) = (calls.next().await, calls.next().await);
    let (first, second) = (one.each(KEY), other.each(KEY));
    assert_eq!(first.len() + second.len(), written.len());
    for (batch, other) in [(&first, &second), (&second, &first)] {
        assert!(batch.iter().all(|key| !other.contains(key)), "{batch:?}");
        let expected = written
            .iter()
            .filter(|key| !other.contains(&(**key).to_owned()));
        assert!(batch.iter().eq(expected), "{batch:?}");
    }
    // The position does not pass records of the batch that still runs.
    let (with_head, without) = match first[0] == "a" {
        true => (one, other),
        false => (other, one),
    };
    without.succeed();
    assert_eq!(stack.position(), None);
    let (head, all) = (
        with_head.each(SHARD).swap_remove(0),
        with_head.records().len(),
    );
    with_head.report(&[&head]);
    let again = calls.next().await;
    assert_eq!(again.each(SHARD)[0], head);
    assert_eq!(stack.position(), None);
    let mut left = again.records().len();
    again.succeed();
    while left < all {
        let call = calls.next().await;
        left += call.records().len();
        call.succeed();
    }
    pump.stop().await;
    let last = format!("{:021}", 0);
    assert!(matches!(stack.position(), Some(Position::After(number)) if number > last));
}
