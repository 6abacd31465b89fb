//! `antumbra queues …` as a process, with the queues, streams and functions of the local stack.

use std::net::SocketAddr;

use antumbra_local::clients::sdk_config;
use antumbra_service::clock::{Clock as _, SystemClock};
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, QueueAttributeName};
use serde_json::{Value, json};

use crate::process::{Home, Running, command, text, wait_for};

const ALL: &str = r#"{"name":"all","on":{"key":"^DS#"},"to":{"sqs":{"queue":"changes"}}}"#;

/// A running stack and a client of its queues.
struct Bench {
    running: Running,
    home: Home,
    runtime: tokio::runtime::Runtime,
    sqs: Client,
    aws: SocketAddr,
}

impl Bench {
    fn start() -> Bench {
        let home = Home::new(&[("all.json", ALL)]);
        let running = home.start();
        let url = running.addresses["aws"].as_str().unwrap();
        let aws = url.split("//").nth(1).unwrap().parse().unwrap();
        Bench {
            sqs: Client::new(&sdk_config(aws)),
            runtime: tokio::runtime::Runtime::new().unwrap(),
            running,
            home,
            aws,
        }
    }

    fn url(&self, queue: &str) -> String {
        format!("http://{}/000000000000/{queue}", self.aws)
    }

    fn send(&self, queue: &str, body: &str) {
        let call = self.sqs.send_message().queue_url(self.url(queue));
        let sent = self.runtime.block_on(call.message_body(body).send());
        sent.unwrap();
    }

    fn create(&self, queue: &str, attributes: &[(QueueAttributeName, String)]) {
        let attributes = attributes.iter().cloned().collect();
        let call = self.sqs.create_queue().queue_name(queue);
        let call = call.set_attributes(Some(attributes)).send();
        self.runtime.block_on(call).unwrap();
    }

    /// Receives messages and leaves them in the queue.
    fn peek(&self, queue: &str) -> Vec<Message> {
        let call = self
            .sqs
            .receive_message()
            .queue_url(self.url(queue))
            .max_number_of_messages(10)
            .visibility_timeout(0)
            .message_attribute_names("All");
        let received = self.runtime.block_on(call.send()).unwrap();
        received.messages.unwrap_or_default()
    }

    fn holds(&self, queue: &str, count: usize) -> Vec<Message> {
        wait_for(&format!("{count} in {queue}"), || {
            let there = self.peek(queue);
            (there.len() == count).then_some(there)
        })
    }

    /// `antumbra queues …`: what it printed, and how it ended.
    fn queues(&self, arguments: &[&str]) -> (String, i32) {
        let dynamodb = self.running.addresses["dynamodb"].as_str().unwrap();
        let mut command = command();
        command
            .args(["--endpoint-url", dynamodb, "queues"])
            .args(arguments)
            .args(["--aws-url", self.running.addresses["aws"].as_str().unwrap()]);
        if arguments[0] == "redrive" {
            let registrations = self.home.path("registrations");
            command.arg("--registrations").arg(registrations);
        }
        let output = command.output().unwrap();
        let printed = text(&output.stdout) + &text(&output.stderr);
        (printed, output.status.code().unwrap())
    }

    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let mut all = arguments.to_vec();
        all.push("--json");
        let (printed, _) = self.queues(&all);
        // An error may follow.
        let first = serde_json::Deserializer::from_str(&printed)
            .into_iter()
            .next();
        let printed: Value = first.unwrap().unwrap_or_else(|_| panic!("{printed}"));
        printed["results"].as_array().unwrap().clone()
    }
}

#[test]
fn quarantined_messages_go_back_to_their_queues() {
    let bench = Bench::start();
    bench.send("antumbra-inbound", "{ nope");
    bench.send("antumbra-signals", r#"{"sensor_id":"door-7","data":1}"#);
    bench.holds("antumbra-quarantine", 2);

    let (shown, code) = bench.queues(&["show", "antumbra-quarantine"]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("antumbra-quarantine  2 messages"), "{shown}");
    assert!(
        shown.contains("UnknownSensor  to antumbra-signals"),
        "{shown}"
    );

    // Without --go nothing is moved.
    let planned = bench.rows(&["redrive", "antumbra-quarantine"]);
    let outcomes: Vec<_> = planned.iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, ["planned", "planned"], "{planned:?}");
    bench.holds("antumbra-quarantine", 2);

    let place = ["sensors", "register", "door-7", "Poznań", "A", "2", "13"];
    assert!(bench.running.run(&place).status.success());
    let (printed, code) = bench.queues(&["redrive", "antumbra-quarantine", "--go"]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("moved"), "{printed}");
    // The sensor is known now. The message that is not JSON is quarantined again, and was moved only once.
    wait_for("the signal", || {
        let state = bench.running.run(&["sensors", "state", "door-7", "--json"]);
        let state: Value = serde_json::from_slice(&state.stdout).unwrap_or_default();
        state.to_string().contains("\"value\":1").then_some(())
    });
    let back = bench.holds("antumbra-quarantine", 1);
    assert_eq!(back[0].body(), Some("{ nope"));
    let attributes = back[0].message_attributes().unwrap();
    assert_eq!(attributes["reason"].string_value(), Some("NotJson"));
}

#[test]
fn commands_use_the_queues_of_the_deployment_that_the_table_belongs_to() {
    let bench = Bench::start();
    for queue in ["signals", "quarantine"] {
        bench.create(&format!("staging-{queue}"), &[]);
    }
    // The table of a restore belongs to the same deployment.
    for table in ["staging", "staging-r20260131120000"] {
        let aws = bench.running.addresses["aws"].as_str().unwrap();
        let signal = ["sensors", "signal", "door-7", "1", "--aws-url", aws];
        let sent = bench
            .running
            .run(&[&signal[..], &["--table", table]].concat());
        assert!(sent.status.success(), "{}", text(&sent.stderr));
    }
    let [signal, _] = &bench.holds("staging-signals", 2)[..] else {
        unreachable!()
    };

    let attribute = |value: &str| {
        let attribute = MessageAttributeValue::builder().data_type("String");
        attribute.string_value(value).build().unwrap()
    };
    let source = "arn:aws:sqs:us-east-1:000000000000:staging-signals";
    let call = bench
        .sqs
        .send_message()
        .queue_url(bench.url("staging-quarantine"))
        .message_body(signal.body().unwrap())
        .message_attributes("reason", attribute("UnknownSensor"))
        .message_attributes("source", attribute(source));
    bench.runtime.block_on(call.send()).unwrap();
    let redrive = [
        "redrive",
        "staging-quarantine",
        "--go",
        "--table",
        "staging",
    ];
    let (printed, code) = bench.queues(&redrive);
    assert_eq!(code, 0, "{printed}");
    bench.holds("staging-signals", 3);
}

#[test]
fn undeliverable_notifications_go_to_their_targets() {
    let bench = Bench::start();
    let delete = bench.sqs.delete_queue().queue_url(bench.url("changes"));
    bench.runtime.block_on(delete.send()).unwrap();
    let report = ["shadow", "report", "lamp", r#"{"led":"on"}"#];
    assert!(bench.running.run(&report).status.success());
    bench.holds("antumbra-undeliverable", 1);

    // The queue does not exist yet: nothing is lost, and the exit code shows it.
    let (printed, code) = bench.queues(&["redrive", "antumbra-undeliverable", "--go"]);
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("rejected again"), "{printed}");
    let undeliverable = bench.holds("antumbra-undeliverable", 1);
    let undeliverable: Value = serde_json::from_str(undeliverable[0].body().unwrap()).unwrap();

    bench.create("changes", &[]);
    let (printed, code) = bench.queues(&["redrive", "antumbra-undeliverable", "--go"]);
    assert_eq!(code, 0, "{printed}");
    let arrived = bench.holds("changes", 1);
    let body: Value = serde_json::from_str(arrived[0].body().unwrap()).unwrap();
    assert_eq!(body, undeliverable["notification"]);
    assert_eq!(body["diff"]["added"]["/led"], "on");
    let attributes = arrived[0].message_attributes().unwrap();
    assert_eq!(attributes["registration"].string_value(), Some("all"));
    bench.holds("antumbra-undeliverable", 0);
}

/// Positions of the records of the main table's stream: its ARN, the shard, and all numbers.
async fn positions(running: &Running) -> (String, String, Vec<String>) {
    let url = running.addresses["dynamodb"].as_str().unwrap();
    let address = url.split("//").nth(1).unwrap().parse().unwrap();
    let streams = aws_sdk_dynamodbstreams::Client::new(&sdk_config(address));
    let listed = streams.list_streams().table_name("antumbra").send().await;
    let arn = listed.unwrap().streams()[0]
        .stream_arn()
        .unwrap()
        .to_owned();
    let described = streams.describe_stream().stream_arn(&arn).send().await;
    let described = described.unwrap().stream_description.unwrap();
    let shard = described.shards()[0].shard_id().unwrap().to_owned();
    let iterator = streams
        .get_shard_iterator()
        .stream_arn(&arn)
        .shard_id(&shard)
        .shard_iterator_type(ShardIteratorType::TrimHorizon);
    let iterator = iterator.send().await.unwrap().shard_iterator.unwrap();
    let page = streams.get_records().shard_iterator(iterator).send().await;
    let number = |record: &aws_sdk_dynamodbstreams::types::Record| {
        let change = record.dynamodb().unwrap();
        change.sequence_number().unwrap().to_owned()
    };
    let numbers = page.unwrap().records().iter().map(number).collect();
    (arn, shard, numbers)
}

#[test]
fn failed_stream_records_are_read_again_from_the_stream() {
    let bench = Bench::start();
    for n in 0..3 {
        let document = json!({ "n": n }).to_string();
        let report = ["shadow", "report", "lamp", &document];
        assert!(bench.running.run(&report).status.success());
    }
    let ids = |messages: &[Message]| {
        let mut ids: Vec<String> = messages
            .iter()
            .map(|message| serde_json::from_str::<Value>(message.body().unwrap()).unwrap())
            .map(|body| body["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let first = ids(&bench.holds("changes", 3));
    let purge = bench.sqs.purge_queue().queue_url(bench.url("changes"));
    bench.runtime.block_on(purge.send()).unwrap();

    let (arn, shard, numbers) = bench.runtime.block_on(positions(&bench.running));
    let failed_batch = |start: &str, end: &str| {
        json!({
            "requestContext": { "condition": "RetryAttemptsExhausted" },
            "DDBStreamBatchInfo": { "streamArn": arn, "shardId": shard, "batchSize": 2,
                "startSequenceNumber": start, "endSequenceNumber": end },
        })
    };
    bench.send(
        "antumbra-undeliverable",
        &failed_batch(&numbers[1], &numbers[2]).to_string(),
    );
    // There are no records at these positions, so the message stays.
    bench.send(
        "antumbra-undeliverable",
        &failed_batch("1", "2").to_string(),
    );
    let (printed, code) = bench.queues(&["redrive", "antumbra-undeliverable", "--go"]);
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("2 records from the stream"), "{printed}");
    let again = ids(&bench.holds("changes", 2));
    assert!(
        again.iter().all(|id| first.contains(id)),
        "{first:?} {again:?}"
    );
    bench.holds("antumbra-undeliverable", 1);
}

#[test]
fn failed_requests_stay_or_are_deleted() {
    let bench = Bench::start();
    let rule =
        json!({ "ruleName": "antumbra_message_get", "failures": [{ "errorMessage": "denied" }] });
    let call =
        json!({ "requestContext": { "condition": "EventAgeExceeded" }, "requestPayload": {} });
    bench.send("antumbra-undeliverable", &rule.to_string());
    bench.send("antumbra-undeliverable", &call.to_string());
    bench.send("antumbra-undeliverable", "what is this");
    let left = bench.rows(&["redrive", "antumbra-undeliverable", "--go"]);
    assert!(left.iter().all(|row| row["outcome"] == "left"), "{left:?}");
    bench.holds("antumbra-undeliverable", 3);
    let (printed, code) = bench.queues(&[
        "redrive",
        "antumbra-undeliverable",
        "--go",
        "--drop-requests",
    ]);
    assert_eq!(code, 0, "{printed}");
    let left = bench.holds("antumbra-undeliverable", 1);
    assert_eq!(left[0].body(), Some("what is this"));
}

/// The record of a failed invocation, in the form that AWS documents for failure destinations.
fn failed_update(payload: &str, milliseconds: i128) -> String {
    let function = "arn:aws:lambda:us-east-1:000000000000:function:antumbra-shadow-requests";
    json!({
        "version": "1.0",
        "timestamp": "2026-01-31T12:03:00.568Z",
        "requestContext": {
            "requestId": "e4b46cbf-b738-4c2b-8880-a18cdf61200e",
            "functionArn": format!("{function}:$LATEST"),
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 3,
        },
        "requestPayload": {
            "payload": payload, "topic": "shadow/lamp/update", "clientId": "lamp",
            "timestamp": milliseconds as i64,
        },
        "responseContext": { "statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled" },
        "responsePayload": { "errorType": "UpdateFailed", "errorMessage": "Throttled" },
    })
    .to_string()
}

#[test]
fn a_failed_update_is_made_by_its_original_time() {
    let bench = Bench::start();
    let report = ["shadow", "report", "lamp", r#"{"led":"new"}"#];
    assert!(bench.running.run(&report).status.success());
    let minute_ago = SystemClock.now().nanoseconds() / 1_000_000 - 60_000;
    // {"state":{"reported":{"led":"old","fan":1}}}
    let update = "eyJzdGF0ZSI6eyJyZXBvcnRlZCI6eyJsZWQiOiJvbGQiLCJmYW4iOjF9fX0=";
    bench.send("antumbra-quarantine", &failed_update(update, minute_ago));
    // {"state":{"reported":{"led":"x"}},"version":77}
    let conditional = "eyJzdGF0ZSI6eyJyZXBvcnRlZCI6eyJsZWQiOiJ4In19LCJ2ZXJzaW9uIjo3N30=";
    bench.send(
        "antumbra-quarantine",
        &failed_update(conditional, minute_ago),
    );
    let planned = bench.rows(&["redrive", "antumbra-quarantine"]);
    assert_eq!(planned[0]["route"], "to its shadow", "{planned:?}");
    let rows = bench.rows(&["redrive", "antumbra-quarantine", "--go"]);
    let row = |outcome: &str| rows.iter().find(|row| row["outcome"] == outcome).unwrap();
    assert_eq!(row("moved")["count"], 1, "{rows:?}");
    let rejected = row("failed")["error"].as_str().unwrap();
    assert!(rejected.ends_with("rejected with code 409"), "{rejected}");
    bench.holds("antumbra-quarantine", 1);
    let shadow = bench.running.run(&["shadow", "get", "lamp", "--json"]);
    let shadow: Value = serde_json::from_str(&text(&shadow.stdout)).unwrap();
    let expected = json!({"led": "new", "fan": 1});
    assert_eq!(shadow["reported"]["document"], expected, "{shadow}");
}

#[test]
fn dead_letters_go_back_unchanged() {
    let bench = Bench::start();
    for suffix in ["", ".fifo"] {
        let fifo = !suffix.is_empty();
        let [work, dead] = ["work", "work-dead"].map(|name| format!("{name}{suffix}"));
        let kind = match fifo {
            true => vec![(QueueAttributeName::FifoQueue, "true".to_owned())],
            false => Vec::new(),
        };
        bench.create(&dead, &kind);
        let policy = json!({
            "deadLetterTargetArn": format!("arn:aws:sqs:us-east-1:000000000000:{dead}"),
            "maxReceiveCount": 1,
        });
        let mut attributes = kind;
        attributes.push((QueueAttributeName::RedrivePolicy, policy.to_string()));
        bench.create(&work, &attributes);
        let mut call = bench.sqs.send_message().queue_url(bench.url(&work));
        call = call.message_body("hello");
        // A sender can set the attributes of a quarantined message too.
        let sent = [
            ("reason", "NotJson"),
            ("source", "antumbra-deliveries"),
            ("colour", "red"),
        ];
        for (name, text) in sent {
            let value = MessageAttributeValue::builder().data_type("String");
            call = call.message_attributes(name, value.string_value(text).build().unwrap());
        }
        if fifo {
            call = call.message_group_id("g").message_deduplication_id("d");
        }
        let id = bench
            .runtime
            .block_on(call.send())
            .unwrap()
            .message_id
            .unwrap();
        wait_for("a dead letter", || {
            bench.peek(&work);
            (bench.peek(&dead).len() == 1).then_some(())
        });

        let (shown, _) = bench.queues(&["show", &dead]);
        assert!(
            shown.contains(&format!("dead letter  to {work}")),
            "{shown}"
        );
        let (printed, code) = bench.queues(&["redrive", &dead, "--go"]);
        assert_eq!(code, 0, "{printed}");
        assert!(printed.contains("moved"), "{printed}");
        assert_eq!(bench.peek(&dead).len(), 0);
        let back = bench.peek(&work);
        assert_eq!(back[0].body(), Some("hello"));
        let attributes = back[0].message_attributes().unwrap();
        for (name, text) in sent {
            assert_eq!(attributes[name].string_value(), Some(text));
        }
        let origin = attributes["antumbra-origin"].string_value().unwrap();
        assert!(origin.ends_with(&format!("-{id}")), "{origin}");
    }
}

#[test]
fn a_missing_queue_and_an_empty_queue_are_reported() {
    let bench = Bench::start();
    let (printed, code) = bench.queues(&["show", "antumbra-nowhere"]);
    assert_eq!(code, 3, "{printed}");
    assert!(
        printed.contains("the queue antumbra-nowhere does not exist"),
        "{printed}"
    );
    let (printed, code) = bench.queues(&["redrive", "antumbra-quarantine", "--go"]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("the queue is empty"), "{printed}");
}
