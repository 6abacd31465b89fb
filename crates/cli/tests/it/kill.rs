//! `kill -9` during reports: acknowledged reports are stored, and notifications continue from the stored
//! position in the stream.
//!
//! Checked from outside: the stored position never passes a change that was not sent, every change after it is sent
//! by the next process, and a change that is sent twice has the same id.
//!
//! `scripts/check-kill` runs this with 10,000 reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbShadows, MAIN, ShadowTableConfig};
use antumbra_local::clients::sdk_config;
use antumbra_service::shadows::{DocumentSet, ShadowId, Shadows, State};
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::{Value, json};

use crate::process::{Home, Running};

const DEVICES: usize = 8;

/// The listener sends a batch of the stream before it stores its position.
const STREAM_BATCH: usize = 100;

const QUEUE: &str = r#"{"name":"queue","on":{"key":"^DS#"},"to":{"sqs":{"queue":"changes"}}}"#;
const TOPIC: &str =
    r#"{"name":"topic","on":{"key":"^DS#"},"to":{"mqtt":{"topic":"changes/${id}"}}}"#;

/// A change: device and version.
type Change = (String, u64);

/// The ids under which each change was received.
type Received = Arc<Mutex<BTreeMap<Change, BTreeSet<String>>>>;

fn reports() -> usize {
    let wanted = std::env::var("ANTUMBRA_KILL_REPORTS");
    wanted.map_or(400, |text| text.parse().unwrap())
}

fn address(running: &Running, service: &str) -> SocketAddr {
    let url = running.addresses[service].as_str().unwrap();
    url.split("//").nth(1).unwrap().parse().unwrap()
}

fn shadows(running: &Running) -> Shadows<DynamoDbShadows> {
    let config = sdk_config(address(running, "dynamodb"));
    Shadows::new(DynamoDbShadows::connect(
        &config,
        ShadowTableConfig::new(MAIN.name),
    ))
}

fn device(at: usize) -> ShadowId {
    ShadowId::new(format!("device-{at}")).unwrap()
}

fn record(received: &Received, payload: &[u8]) {
    let body: Value = serde_json::from_slice(payload).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let change = (
        text(&body["shadow"]["id"]),
        body["version"].as_u64().unwrap(),
    );
    let mut received = received.lock().unwrap();
    received
        .entry(change)
        .or_default()
        .insert(text(&body["id"]));
}

/// Starts to report for all devices in parallel, until `total` reports are acknowledged or the stack ends. Each task
/// returns its device and the last acknowledged version.
async fn report(
    running: &Running,
    from: &[u64],
    total: usize,
    done: &Arc<AtomicUsize>,
) -> tokio::task::JoinSet<(usize, u64)> {
    let mut writers = tokio::task::JoinSet::new();
    for (at, &version) in from.iter().enumerate() {
        let (shadows, done) = (shadows(running), Arc::clone(done));
        writers.spawn(async move {
            let mut known = version;
            while done.load(Ordering::SeqCst) < total {
                let document = json!({ "n": known + 1 });
                match shadows.report(&device(at), &document).await {
                    Ok(updated) => known = updated.version(State::Reported).0 as u64,
                    Err(_) => break,
                }
                done.fetch_add(1, Ordering::SeqCst);
            }
            (at, known)
        });
    }
    writers
}

/// Receives the messages of the queue until the stack ends.
async fn receive(running: &Running, received: Received) -> tokio::task::JoinHandle<()> {
    let aws = address(running, "aws");
    let sqs = aws_sdk_sqs::Client::new(&sdk_config(aws));
    let queue = format!("http://{aws}/000000000000/changes");
    tokio::spawn(async move {
        loop {
            let request = sqs.receive_message().queue_url(&queue);
            let request = request.max_number_of_messages(10).wait_time_seconds(1);
            let Ok(response) = request.send().await else {
                return;
            };
            for message in response.messages() {
                record(&received, message.body().unwrap().as_bytes());
                let delete = sqs.delete_message().queue_url(&queue);
                let delete = delete.receipt_handle(message.receipt_handle().unwrap());
                if delete.send().await.is_err() {
                    return;
                }
            }
        }
    })
}

/// Receives the messages of the topics until the connection ends. Returns after the subscription is acknowledged.
async fn subscribe(running: &Running, received: Received) -> tokio::task::JoinHandle<()> {
    let broker = address(running, "mqtt");
    let mut options = MqttOptions::new("outside", broker.ip().to_string(), broker.port());
    options.set_keep_alive(Duration::from_secs(60));
    let (client, mut events) = AsyncClient::new(options, 10);
    client
        .subscribe("changes/#", QoS::AtLeastOnce)
        .await
        .unwrap();
    loop {
        if let Event::Incoming(Packet::SubAck(_)) = events.poll().await.unwrap() {
            break;
        }
    }
    tokio::spawn(async move {
        let _client = client;
        while let Ok(event) = events.poll().await {
            if let Event::Incoming(Packet::Publish(publish)) = event {
                record(&received, &publish.payload);
            }
        }
    })
}

/// Returns all changes of the stream with their sequence numbers, in order.
async fn stream(running: &Running) -> Vec<(u128, Change)> {
    let config = sdk_config(address(running, "dynamodb"));
    let client = aws_sdk_dynamodbstreams::Client::new(&config);
    let listed = client.list_streams().table_name(MAIN.name).send().await;
    let arn = listed.unwrap().streams()[0]
        .stream_arn()
        .unwrap()
        .to_owned();
    let described = client.describe_stream().stream_arn(&arn).send().await;
    let description = described.unwrap().stream_description.unwrap();
    let mut all = Vec::new();
    for shard in description.shards() {
        let request = client.get_shard_iterator().stream_arn(&arn);
        let request = request.set_shard_id(shard.shard_id.clone());
        let request = request.shard_iterator_type(ShardIteratorType::TrimHorizon);
        let mut iterator = request.send().await.unwrap().shard_iterator;
        while let Some(at) = iterator {
            let page = client.get_records().shard_iterator(at).send().await;
            let page = page.unwrap();
            if page.records().is_empty() {
                break;
            }
            all.extend(page.records().iter().filter_map(|record| {
                let change = record.dynamodb().unwrap();
                let image = change.new_image()?;
                // Other items, such as the position of the sweep, are skipped.
                let device = image["PK"].as_s().unwrap().strip_prefix("DS#")?;
                let version = image["version"].as_n().unwrap().parse().unwrap();
                Some((
                    change.sequence_number().unwrap().parse().unwrap(),
                    (device.to_owned(), version),
                ))
            }));
            iterator = page.next_shard_iterator;
        }
    }
    all
}

/// Returns the sequence number of the listener's stored position.
fn position(home: &Home) -> u128 {
    let bytes = std::fs::read(home.path("data/stream-positions.json"));
    let positions: Value = serde_json::from_slice(&bytes.unwrap_or(b"{}".to_vec())).unwrap();
    let all = positions["stream-listener"].as_object();
    let positions = all.into_iter().flat_map(|all| all.values());
    let positions = positions.flat_map(|shards| shards.as_object().unwrap().values());
    let numbers = positions.filter_map(|position| position["after"].as_str()?.parse().ok());
    numbers.max().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_no_acknowledged_report_and_no_notification() {
    let total = reports();
    let home = Home::new(&[("queue.json", QUEUE), ("topic.json", TOPIC)]);
    let (by_queue, by_topic) = (Received::default(), Received::default());

    let mut first = home.start();
    let receiving = receive(&first, Arc::clone(&by_queue)).await;
    let subscribed = subscribe(&first, Arc::clone(&by_topic)).await;
    let done = Arc::new(AtomicUsize::new(0));
    let mut writers = report(&first, &[0; DEVICES], total, &done).await;
    while done.load(Ordering::SeqCst) < total / 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.process.kill().unwrap();
    first.ended();
    let mut acknowledged = [0; DEVICES];
    while let Some(writer) = writers.join_next().await {
        let (at, known) = writer.unwrap();
        acknowledged[at] = known;
    }
    assert!(done.load(Ordering::SeqCst) < total, "killed in the middle");
    receiving.await.unwrap();
    subscribed.await.unwrap();
    let position = position(&home);
    let received_before = by_queue.lock().unwrap().clone();

    let second = home.start();
    // Every acknowledged report is stored, and at most one more that was in progress.
    let shadows = shadows(&second);
    let mut stored = [0; DEVICES];
    for at in 0..DEVICES {
        let found = shadows
            .read(&device(at), DocumentSet::Reported)
            .await
            .unwrap();
        let reported = found.reported.unwrap();
        stored[at] = reported.version.0 as u64;
        let (least, most) = (acknowledged[at], acknowledged[at] + 1);
        assert!((least..=most).contains(&stored[at]), "{at}: {stored:?}");
        let document = reported.document.to_string();
        assert_eq!(document, format!("{{\"n\":{}}}", stored[at]), "device {at}");
    }
    let receiving = receive(&second, Arc::clone(&by_queue)).await;
    let mut writers = report(&second, &stored, total, &done).await;
    let mut last = stored;
    while let Some(writer) = writers.join_next().await {
        let (at, known) = writer.unwrap();
        last[at] = known;
    }

    let changes = stream(&second).await;
    let written: u64 = last.iter().sum();
    assert_eq!(changes.len() as u64, written, "one change for each version");
    let (sent, unsent): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(at, _)| *at <= position);

    // The second process sends every change after the position.
    let expected: BTreeSet<Change> = unsent.iter().map(|(_, change)| change.clone()).collect();
    // Wait while more arrive, however slow the machine is.
    let timeout = Duration::from_secs(60);
    let (mut count, mut since) = (0, Instant::now());
    let received = loop {
        let received = by_queue.lock().unwrap().clone();
        if expected.iter().all(|change| received.contains_key(change)) {
            break received;
        }
        if received.len() > count {
            (count, since) = (received.len(), Instant::now());
        }
        let missing = expected
            .iter()
            .filter(|change| !received.contains_key(*change));
        assert!(since.elapsed() < timeout, "{} are missing", missing.count());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    // Changes before the position had been sent: a device received them, except those still in the broker.
    let by_topic = by_topic.lock().unwrap().clone();
    let missing_on_topic: Vec<_> = sent
        .iter()
        .map(|(_, change)| change)
        .filter(|change| !by_topic.contains_key(*change))
        .collect();
    assert!(
        missing_on_topic.len() <= STREAM_BATCH,
        "{} changes are missing on the topic",
        missing_on_topic.len()
    );
    let tail = &sent[sent.len().saturating_sub(STREAM_BATCH)..];
    let tail: BTreeSet<&Change> = tail.iter().map(|(_, change)| change).collect();
    for change in &missing_on_topic {
        assert!(tail.contains(change), "{change:?} was skipped");
    }

    // Each change has one id, and each id one change.
    let mut owners: BTreeMap<&String, &Change> = BTreeMap::new();
    for ids in [&received, &by_topic] {
        owners.clear();
        for (change, ids) in ids {
            assert_eq!(ids.len(), 1, "{change:?} has several ids");
            for id in ids {
                assert_eq!(
                    owners.insert(id, change),
                    None,
                    "{id} belongs to two changes"
                );
            }
        }
    }
    let again = expected
        .iter()
        .filter(|change| received_before.contains_key(*change));
    eprintln!(
        "{written} reports, killed after {}: position after {} changes, {} of them not received, \
         {} sent by the second process, {} of these had been received before",
        stored.iter().sum::<u64>(),
        sent.len(),
        missing_on_topic.len(),
        unsent.len(),
        again.count(),
    );
    drop(receiving);
}
