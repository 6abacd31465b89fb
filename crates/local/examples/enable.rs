//! Enables a client with a long history on a local stack, kills the stack during the release of the held deliveries,
//! starts it again, and checks that every held delivery arrives, in order per sensor.
//!
//! `cargo run --release -p antumbra-local --example enable -- [RECORDS] [HELD]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_local::clients::{HttpClients, sdk_config};
use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver;
use antumbra_local::stack::{Options, Stack, default_webhook_allow};
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::{ClientId, Clients, Mode, NewClient};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryMessage, History as _, NewDeliveries as _, Queues, SensorRef,
};
use antumbra_service::sensors::{
    EventType, Generation, Location, RegisteredSensor, Sensor, SensorId, SensorStore as _, Signal,
    StateStore as _, Value,
};
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use aws_sdk_sqs::config::SharedHttpClient;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use futures_util::stream::{self, StreamExt as _};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const TOKEN: &str = "enable";
const SENSORS: usize = 100;
/// Items of one `BatchWriteItem`.
const BATCH: usize = 25;
/// File with the addresses of the stack, and file with the number of calls of its HTTP API.
const ADDRESSES: &str = "addresses.json";
const CALLS: &str = "calls";

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, directory] = &arguments[..]
        && word == "stack"
    {
        return stack(Path::new(directory)).await;
    }
    let number = |at: usize| arguments.get(at).map(|text| text.parse().unwrap());
    measure(number(0).unwrap_or(1_000_000), number(1).unwrap_or(20_000)).await;
}

/// Runs a stack until it is killed.
async fn stack(directory: &Path) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let stack = Stack::start(Options {
        data_dir: Some(directory.join("data")),
        http_token: Some(TOKEN.to_owned()),
        http_clients: HttpClients::new(|function| {
            let plain = aws_smithy_http_client::Builder::new().build_http();
            match function == antumbra_http_api::NAME {
                true => SharedHttpClient::new(Counting(plain, &COUNT)),
                false => plain,
            }
        }),
        ..Options::default()
    });
    let stack = stack.await.unwrap();
    let of = stack.addresses();
    let addresses = [of.dynamodb, of.aws, of.http].map(|address| address.to_string());
    let [temporary, addresses_file] = ["new", ADDRESSES].map(|name| directory.join(name));
    std::fs::write(&temporary, serde_json::to_string(&addresses).unwrap()).unwrap();
    std::fs::rename(temporary, addresses_file).unwrap();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let count = COUNT.load(Ordering::Relaxed).to_string();
        std::fs::write(directory.join(CALLS), count).unwrap();
    }
}

/// Counts calls.
#[derive(Debug)]
struct Counting<Inner>(Inner, &'static AtomicUsize);

impl HttpClient for Counting<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.0.http_connector(settings, components);
        SharedHttpConnector::new(Counting(inner, self.1))
    }
}

impl HttpConnector for Counting<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.call(request)
    }
}

/// A stack in another process.
struct Running {
    process: Child,
    dynamodb: SocketAddr,
    aws: SocketAddr,
    http: SocketAddr,
}

impl Running {
    async fn start(directory: &Path) -> Running {
        let file = directory.join(ADDRESSES);
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(std::env::current_exe().unwrap());
        let process = command.arg("stack").arg(directory).spawn().unwrap();
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let addresses = std::fs::read(file).unwrap();
        let [dynamodb, aws, http]: [SocketAddr; 3] = serde_json::from_slice(&addresses).unwrap();
        Running {
            process,
            dynamodb,
            aws,
            http,
        }
    }

    fn store(&self) -> DynamoDbDeliveries {
        DynamoDbDeliveries::connect(&sdk_config(self.dynamodb), MAIN.name)
    }

    /// Number of deliveries held for the client, up to a limit.
    async fn held(&self, client: &ClientId, limit: usize) -> usize {
        self.store().held(client, limit).await.unwrap().len()
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn sensor(at: usize) -> SensorRef {
    SensorRef {
        id: SensorId::new(format!("door-{at}")).unwrap(),
        address: String::new(),
        generation: Generation::new("g1").unwrap(),
    }
}

fn delivery(client: &ClientId, at: usize, first: Timestamp) -> Delivery {
    let time = first.after(Duration::from_millis(at as u64));
    let sequence = (at / SENSORS + 2) as u64;
    Delivery {
        id: DeliveryId::new(client, time, sequence, &format!("{at}")),
        event_type: EventType::StateChanged,
        sequence,
        number: sequence,
        occurred_at: time,
        sensor: Some(sensor(at % SENSORS)),
        data: RawValue::from_string(r#"{"previous":0,"current":1}"#.to_owned()).unwrap(),
    }
}

/// A client linked to sensors, disabled.
async fn prepare(running: &Running, endpoint: SocketAddr) -> ClientId {
    let database = sdk_config(running.dynamodb);
    let store = DynamoDbClients::connect(&database, MAIN.name);
    let guard = Guard::new(default_webhook_allow());
    let clients = Clients::new(store, guard, Arc::new(SystemClock));
    let client: ClientId = "watch".parse().unwrap();
    let new = NewClient {
        id: Some(client.clone()),
        name: "Watch".to_owned(),
        url: format!("http://{endpoint}/"),
        mode: Mode::Every,
        requested: None,
    };
    clients.create(new).await.unwrap();
    let sensors = DynamoDbSensors::connect(&database, SensorConfig::new(MAIN.name));
    for at in 0..SENSORS {
        let of = sensor(at);
        let location = Location::new("Poznań", "A", "1", &at.to_string()).unwrap();
        let registered = RegisteredSensor {
            sensor: Sensor::new(of.id.clone(), location),
            version: Version(1),
            registered_at: SystemClock.now(),
            generation: of.generation,
        };
        sensors.register(&registered).await.unwrap();
        let (now, value) = (SystemClock.now(), Value::whole(0));
        let signal = Signal::new(of.id.clone(), value, None, None, now, "first").unwrap();
        sensors.record(&signal).await.unwrap().unwrap();
        clients.link(&client, &of.id).await.unwrap();
    }
    clients.disable(&client, "maintenance").await.unwrap();
    client
}

type Item = HashMap<String, AttributeValue>;

/// Adds the first delivery of every sensor; returns their items, which others are copied from.
async fn add_models(running: &Running, client: &ClientId, first: Timestamp) -> Vec<Item> {
    let store = running.store();
    let database = aws_sdk_dynamodb::Client::new(&sdk_config(running.dynamodb));
    let mut models = Vec::new();
    for at in 0..SENSORS {
        let new = delivery(client, at, first);
        store.add(&new, SystemClock.now()).await.unwrap();
        let get = database.get_item().table_name(MAIN.name);
        let get = get.key("PK", AttributeValue::S(format!("CLIENT#{client}")));
        let sort = format!("DELIVERY#{}", new.id.order());
        let found = get.key("SK", AttributeValue::S(sort)).send().await.unwrap();
        models.push(found.item.unwrap());
    }
    models
}

/// The item of another delivery of the same sensor.
fn copy(model: &Item, delivery: &Delivery) -> Item {
    let (order, client) = (delivery.id.order(), delivery.id.client());
    let texts = [
        ("SK", format!("DELIVERY#{order}")),
        ("deliveryId", delivery.id.to_string()),
        ("listSort", format!("{order}_{client}")),
    ];
    let texts = texts.map(|(name, text)| (name, AttributeValue::S(text)));
    let number = || AttributeValue::N(delivery.sequence.to_string());
    let numbers = ["sequence", "number"].map(|name| (name, number()));
    let changed = texts.into_iter().chain(numbers);
    let changed = changed.map(|(name, value)| (name.to_owned(), value));
    let mut item = model.clone();
    item.extend(changed);
    item
}

async fn put_all(database: &aws_sdk_dynamodb::Client, mut puts: Vec<WriteRequest>) {
    while !puts.is_empty() {
        let call = database.batch_write_item().request_items(MAIN.name, puts);
        let left = call.send().await.unwrap().unprocessed_items;
        puts = left
            .and_then(|mut left| left.remove(MAIN.name))
            .unwrap_or_default();
    }
}

async fn measure(records: usize, held: usize) {
    let directory = tempfile::tempdir().unwrap();
    let mut endpoint = receiver::start(0, Vec::new(), AllowedHosts::default(), |_| 204)
        .await
        .unwrap();
    let running = Running::start(directory.path()).await;
    let client = prepare(&running, endpoint.address()).await;
    let first = SystemClock.now();
    let start = Instant::now();
    let models = add_models(&running, &client, first).await;
    let database = aws_sdk_dynamodb::Client::new(&sdk_config(running.dynamodb));
    let rest: Vec<usize> = (SENSORS..records).collect();
    let batches = rest.chunks(BATCH).map(|batch| {
        let puts = batch.iter().map(|at| {
            let item = copy(&models[at % SENSORS], &delivery(&client, *at, first));
            let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        put_all(&database, puts.collect())
    });
    let batches = stream::iter(batches).buffer_unordered(16);
    batches.collect::<()>().await;
    println!("{records} records made in {:.0?}", start.elapsed());

    let sqs = aws_sdk_sqs::Client::new(&sdk_config(running.aws));
    let url = |name: &str| format!("http://{}/000000000000/{name}", running.aws);
    let queue = |name: &str| Arc::new(SqsChannel::new(&sqs, &url(name)));
    let queues = Queues {
        ordered: queue("antumbra-deliveries.fifo"),
        unordered: queue("antumbra-deliveries"),
    };
    let start = Instant::now();
    let queues = &queues;
    let send = |at: usize| {
        let message = DeliveryMessage::first(&delivery(&client, at, first));
        async move { queues.send(Mode::Every, &message).await.unwrap() }
    };
    let last = stream::iter(records - held..records).map(send);
    last.buffered(64).collect::<()>().await;
    while running.held(&client, held).await < held {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("{held} of them held after {:.0?}", start.elapsed());

    let calls = || async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let text = std::fs::read_to_string(directory.path().join(CALLS)).unwrap();
        text.parse::<usize>().unwrap()
    };
    let before = calls().await;
    let start = Instant::now();
    let response = post(running.http, "/v1/clients/watch/enable").await;
    let taken = start.elapsed();
    let made = calls().await - before;
    println!("enabled in {taken:.0?} with {made} calls: {response}");
    assert!(taken < Duration::from_secs(1), "{taken:?}");

    let mut received = Received::default();
    let start = Instant::now();
    // The schedule releases the rest.
    let mut left = running.held(&client, held).await;
    while left > held / 2 {
        received
            .take(&mut endpoint, Duration::from_millis(100))
            .await;
        left = running.held(&client, held).await;
    }
    running.kill();
    println!("killed after {:.0?} with {left} held", start.elapsed());
    let start = Instant::now();
    let running = Running::start(directory.path()).await;
    while received.sequences.len() < held {
        received.take(&mut endpoint, Duration::from_secs(1)).await;
        assert!(
            start.elapsed() < Duration::from_secs(1800),
            "{} arrived",
            received.sequences.len()
        );
    }
    let left = running.held(&client, 1).await;
    println!(
        "all {held} arrived {:.0?} after the restart, {} of them twice; {left} held, {} out of order",
        start.elapsed(),
        received.count - held,
        received.out_of_order
    );
    running.kill();
    assert_eq!((left, received.out_of_order), (0, 0));
}

#[derive(Default)]
struct Received {
    count: usize,
    /// Sequence by delivery.
    sequences: BTreeMap<String, u64>,
    newest: BTreeMap<String, u64>,
    out_of_order: usize,
}

impl Received {
    /// Takes what arrives within a time.
    async fn take(&mut self, endpoint: &mut receiver::Receiver, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while let Ok(Some(one)) = tokio::time::timeout_at(end, endpoint.next()).await {
            let body: serde_json::Value = serde_json::from_str(&one.body).unwrap();
            let sequence = body["sequence"].as_u64().unwrap();
            let sensor = body["sensor"]["id"].as_str().unwrap().to_owned();
            self.count += 1;
            if self.sequences.insert(one.id, sequence).is_none() {
                let newest = self.newest.entry(sensor).or_default();
                self.out_of_order += usize::from(sequence < *newest);
                *newest = sequence;
            }
        }
    }
}

async fn post(address: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
         connection: close\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    response
        .split("\r\n\r\n")
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}
