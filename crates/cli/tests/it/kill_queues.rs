//! `kill -9` during MQTT reports, signals, inbox messages and webhook retries: everything that was accepted arrives.
//!
//! `scripts/check-kill` runs this with more messages.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use antumbra_dynamodb::{MAIN, MESSAGES};
use antumbra_local::clients::sdk_config;
use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver::{self, Receiver};
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::{Value, json};

use crate::process::{Home, Running, text};

const SENSOR_CLIENTS: &str = include_str!("../../../../registrations/sensor-clients.json");
/// Longer than an interrupted delivery stays hidden.
const PATIENCE: Duration = Duration::from_secs(240);

fn count() -> usize {
    let wanted = std::env::var("ANTUMBRA_KILL_MESSAGES");
    wanted.map_or(40, |text| text.parse().unwrap())
}

fn address(running: &Running, service: &str) -> SocketAddr {
    let url = running.addresses[service].as_str().unwrap();
    url.split("//").nth(1).unwrap().parse().unwrap()
}

fn run(running: &Running, arguments: &[&str]) {
    let done = running.run(arguments);
    assert!(done.status.success(), "{}", text(&done.stderr));
}

/// Publishes reports until the broker is gone; returns the acknowledged ones.
async fn report(broker: SocketAddr, most: usize) -> usize {
    let mut options = MqttOptions::new("lamp", broker.ip().to_string(), broker.port());
    options.set_keep_alive(Duration::from_secs(60));
    let (client, mut events) = AsyncClient::new(options, 10);
    for n in 0..most {
        let value = json!({"value": n, "timestamp": 1_700_000_000_000_i64});
        let update = json!({"state": {"reported": {format!("n{n}"): value}}}).to_string();
        let published = client.publish("shadow/lamp/update", QoS::AtLeastOnce, false, update);
        if published.await.is_err() {
            return n;
        }
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::PubAck(_))) => break,
                Ok(_) => {}
                Err(_) => return n,
            }
        }
    }
    most
}

/// Sends messages until the stack is gone; returns the accepted ones.
async fn send(aws: SocketAddr, queue: &str, most: usize, body: impl Fn(usize) -> Value) -> usize {
    let sqs = aws_sdk_sqs::Client::new(&sdk_config(aws));
    let url = format!("http://{aws}/000000000000/{queue}");
    for n in 0..most {
        let call = sqs.send_message().queue_url(&url);
        if call.message_body(body(n).to_string()).send().await.is_err() {
            return n;
        }
    }
    most
}

async fn eventually(what: &str, mut poll: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !poll().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Counts the items that were written under a partition key, by the table's stream.
async fn items(running: &Running, table: &str, partition: &str, prefix: &str) -> usize {
    let config = sdk_config(address(running, "dynamodb"));
    let client = aws_sdk_dynamodbstreams::Client::new(&config);
    let listed = client.list_streams().table_name(table).send().await;
    let arn = listed.unwrap().streams()[0].stream_arn.clone();
    let described = client.describe_stream().set_stream_arn(arn.clone());
    let described = described.send().await.unwrap().stream_description.unwrap();
    let mut found = BTreeSet::new();
    for shard in described.shards() {
        let request = client.get_shard_iterator().set_stream_arn(arn.clone());
        let request = request.set_shard_id(shard.shard_id.clone());
        let request = request.shard_iterator_type(ShardIteratorType::TrimHorizon);
        let mut iterator = request.send().await.unwrap().shard_iterator;
        while let Some(at) = iterator {
            let page = client
                .get_records()
                .shard_iterator(at)
                .send()
                .await
                .unwrap();
            for record in page.records() {
                let keys = record.dynamodb().unwrap().keys().unwrap();
                let key = |name: &str| keys.get(name).and_then(|key| key.as_s().ok()).cloned();
                let place = key("PK")
                    .zip(key("SK"))
                    .or(key("uuid").zip(key("messageId")));
                let place = place.filter(|(pk, sk)| pk == partition && sk.starts_with(prefix));
                found.extend(place);
            }
            let is_empty = page.records().is_empty();
            iterator = page.next_shard_iterator.filter(|_| !is_empty);
        }
    }
    found.len()
}

/// Waits for an attempt to deliver the first event that gets this response.
async fn wait_for_attempt(endpoint: &mut Receiver, status: u16) {
    let mut longest = PATIENCE;
    loop {
        let next = tokio::time::timeout(longest, endpoint.next()).await;
        let received = next.expect("a delivery").unwrap();
        let body: Value = serde_json::from_str(&received.body).unwrap();
        if body["sequence"] != 1 {
            continue;
        }
        if received.status == status {
            return;
        }
        // Each delay is twice as long as the one before.
        longest *= 2;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_no_accepted_message_and_no_waiting_retry() {
    let most = count();
    let home = Home::new(&[("sensor-clients.json", SENSOR_CLIENTS)]);
    let mut first = home.start_with(&["--retry-first-seconds", "2"]);
    // The endpoint fails until the stack has been killed.
    let status = Arc::new(AtomicU16::new(500));
    let current = Arc::clone(&status);
    let respond = move |_: &_| current.load(Ordering::SeqCst);
    let endpoint = receiver::start(0, Vec::new(), AllowedHosts::default(), respond);
    let mut endpoint = endpoint.await.unwrap();
    run(
        &first,
        &["sensors", "register", "door", "Poznań", "A", "2", "13"],
    );
    let url = format!("http://{}/", endpoint.address());
    run(
        &first,
        &[
            "clients",
            "create",
            "Watch",
            &url,
            "--id",
            "watch",
            "--mode",
            "every",
            "--webhook-allow",
            "http://127.0.0.1",
        ],
    );
    run(&first, &["clients", "link", "watch", "door"]);
    let (aws, mqtt) = (address(&first, "aws"), address(&first, "mqtt"));
    // A delivery that fails and waits for its retry.
    let signal = |n: usize| json!({"sensor_id": "door", "data": n % 2, "ts": 1_700_000_000_000_u64 + n as u64, "seq": n});
    assert_eq!(send(aws, "antumbra-signals", 1, signal).await, 1);
    // Otherwise the second could overtake the first, and nothing would change.
    eventually("a first reading", async || {
        items(&first, MAIN.name, "SENSOR#door", "READ#").await == 1
    })
    .await;
    let second_signal = |_: usize| signal(1);
    assert_eq!(send(aws, "antumbra-signals", 1, second_signal).await, 1);
    wait_for_attempt(&mut endpoint, 500).await;

    let messages = |n: usize| json!({"thingName": "lamp", "epochTime": n});
    let reporting = tokio::spawn(report(mqtt, most));
    let signalling = tokio::spawn(send(aws, "antumbra-signals", most, move |n| signal(n + 2)));
    let sending = tokio::spawn(send(aws, "antumbra-inbound", most, messages));
    eventually("some reports are stored", async || {
        items(&first, MAIN.name, "SENSOR#door", "READ#").await > 2 + most / 8
    })
    .await;
    first.process.kill().unwrap();
    first.ended();
    let accepted = (
        reporting.await.unwrap(),
        signalling.await.unwrap(),
        sending.await.unwrap(),
    );

    status.store(204, Ordering::SeqCst);
    let second = home.start_with(&["--retry-first-seconds", "2"]);
    eventually("every accepted signal is a reading", async || {
        items(&second, MAIN.name, "SENSOR#door", "READ#").await >= 2 + accepted.1
    })
    .await;
    eventually("every accepted message is in the inbox", async || {
        items(&second, MESSAGES.name, "lamp", "").await >= accepted.2
    })
    .await;
    eventually("every acknowledged report is stored", async || {
        let shown = second.run(&["--json", "shadow", "get", "lamp"]);
        let shadow: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        let stored = shadow.to_string();
        (0..accepted.0).all(|n| stored.contains(&format!("\"n{n}\"")))
    })
    .await;
    // The retry that waited comes.
    wait_for_attempt(&mut endpoint, 204).await;
}
