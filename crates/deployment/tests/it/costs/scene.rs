//! A stack whose event sources pass their events to the test, which invokes the functions with full batches.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_cost::{Batched, Bill, Unit};
use antumbra_local::function::Function;
use antumbra_local::stack::{Options, Settings, Stack};
use antumbra_registration::Registrations;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};

use super::bill::{bill_of, queue_batch, ruled};
use crate::calls::Recorder;
use crate::endpoint::Endpoints;
use crate::support::{self, Home, TOKEN, eventually};

/// Batch sizes of the templates.
pub(super) const STREAM_BATCH: u32 = 100;
pub(super) const QUEUE_BATCH: u32 = 10;

pub(super) struct Scene {
    home: Home,
    recorder: Recorder,
    functions: Arc<Mutex<BTreeMap<String, Function>>>,
    /// Events for the functions.
    events: Arc<Mutex<BTreeMap<String, Vec<Value>>>>,
    endpoints: Endpoints,
    /// Sent time of the last batch of messages, in milliseconds since 1970. It increases.
    sent: Cell<u128>,
}

fn registrations() -> Registrations {
    let queue = json!({
        "name": "to-queue",
        "on": {"key": "^DS#queued"},
        "to": {"sqs": {"queue": "changes"}},
    });
    let documents = include_str!("../../../../../registrations/shadow-documents.json");
    let mut documents: Value = serde_json::from_str(documents).unwrap();
    documents["on"]["key"] = json!("^DS#watched");
    let delta = include_str!("../../../../../registrations/shadow-delta.json");
    let mut delta: Value = serde_json::from_str(delta).unwrap();
    delta["on"]["key"] = json!("^DS#compared");
    let clients = include_str!("../../../../../registrations/sensor-clients.json");
    support::registrations([
        queue.to_string(),
        documents.to_string(),
        delta.to_string(),
        clients.to_owned(),
    ])
}

impl Scene {
    pub(super) async fn start() -> Scene {
        let recorder = Recorder::default();
        let functions: Arc<Mutex<BTreeMap<String, Function>>> = Arc::default();
        let events: Arc<Mutex<BTreeMap<String, Vec<Value>>>> = Arc::default();
        let options = Options {
            registrations: registrations(),
            http_token: Some(TOKEN.to_owned()),
            http_clients: recorder.clients(),
            settings: Settings::from([("DATA", "scalar"), ("ACCEPTED", "requested")]),
            ..Options::default()
        };
        let (real, seen) = (Arc::clone(&functions), Arc::clone(&events));
        let stack = Stack::start_wrapped(options, move |function| {
            let name = function.name().to_owned();
            let stand_in = Function::new(&name, function.timeout(), {
                let (name, seen) = (name.clone(), Arc::clone(&seen));
                move |event: Bytes| {
                    // The API has no event source.
                    let event = serde_json::from_slice(&event).unwrap_or_default();
                    let mut seen = seen.lock().unwrap();
                    seen.entry(name.clone()).or_default().push(event);
                    async { Ok(Bytes::new()) }
                }
            });
            real.lock().unwrap().insert(name, function);
            stand_in
        });
        Scene {
            home: Home::of(stack.await.unwrap()),
            recorder,
            functions,
            events,
            endpoints: Endpoints::start().await,
            sent: Cell::default(),
        }
    }

    pub(super) async fn stop(self) {
        self.home.stop().await;
    }

    /// Invokes a function, and returns the bill of its AWS calls.
    async fn invoke(&self, name: &str, event: &Value) -> Bill {
        let function = self.functions.lock().unwrap()[name].clone();
        self.recorder.take();
        let answer = function.invoke(event.to_string().into()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}"));
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let failures = answer["batchItemFailures"].as_array();
        assert!(failures.is_none_or(Vec::is_empty), "{name}: {answer}");
        bill_of(&self.recorder.take())
    }

    async fn call_api(&self, method: &str, path: &str, body: &Value) -> Bill {
        self.recorder.take();
        let (status, response) = self.home.call_api(method, path, &[], body).await;
        assert!(status < 300, "{method} {path}: {status} {response}");
        bill_of(&self.recorder.take())
            .and(Unit::Api, 1.0)
            .and(Unit::Lambda, 1.0)
    }

    /// One event with all stream records since the last time, up to a record that contains the text.
    async fn changes_up_to(&self, text: &str) -> Value {
        let name = antumbra_stream_listener::NAME;
        eventually(text, async || {
            let mut all = self.events.lock().unwrap();
            let events = all.get(name).into_iter().flatten();
            let records: Vec<Value> = events
                .flat_map(|event| event["Records"].as_array().unwrap().clone())
                .collect();
            let last = |of: &Value| of["dynamodb"].to_string().contains(text);
            let complete = records.iter().any(last);
            complete.then(|| {
                all.remove(name);
                json!({ "Records": records })
            })
        })
        .await
    }

    /// The next event for a function.
    async fn event_of(&self, name: &str) -> Value {
        eventually(name, async || {
            let events = self.events.lock().unwrap().remove(name);
            events.map(|events| events[0].clone())
        })
        .await
    }

    /// A document of ten values with timestamps: a little less than a kilobyte.
    fn document(second: u32) -> Value {
        let value = |n: u32| {
            let of = json!({"value": 20 + n, "timestamp": 1_700_000_000 + second});
            (format!("temperature-{n}"), of)
        };
        Value::Object((0..10).map(value).collect())
    }

    /// The event of a rule.
    fn ruled(topic: &str, payload: &Value) -> Value {
        json!({
            "payload": STANDARD.encode(payload.to_string()),
            "topic": topic,
            "clientId": "device",
            "timestamp": 1_700_000_000_000_u64,
        })
    }

    /// A report that requests a response.
    pub(super) async fn report_over_mqtt(&self) -> Bill {
        self.report("asking", &json!({"clientToken": "t"})).await
    }

    pub(super) async fn report_without_response(&self) -> Bill {
        self.report("lamp", &json!({})).await
    }

    /// The second report of a device, with these members.
    async fn report(&self, thing: &str, members: &Value) -> Bill {
        let report = |second| {
            let mut payload = members.clone();
            payload["state"] = json!({"reported": Scene::document(second)});
            Scene::ruled(&format!("shadow/{thing}/update"), &payload)
        };
        let name = antumbra_shadow_requests::NAME;
        self.invoke(name, &report(1)).await;
        ruled(self.invoke(name, &report(2)).await)
    }

    pub(super) async fn report_over_http(&self) -> Bill {
        let path = "/v1/shadows/lamp/reported";
        self.call_api("PATCH", path, &Scene::document(3)).await
    }

    pub(super) async fn acknowledging_report(&self) -> Bill {
        let desired = json!({"temperature-0": {"value": 7}});
        self.call_api("PATCH", "/v1/shadows/lamp/desired", &desired)
            .await;
        let mut report = Scene::document(4);
        report["temperature-0"]["value"] = json!(7);
        self.call_api("PATCH", "/v1/shadows/lamp/reported", &report)
            .await
    }

    /// Batches of changes, each of another shadow: sent to a queue, sent to a device, and compared for a delta.
    pub(super) async fn notifications(&self) -> [Batched; 3] {
        let name = antumbra_stream_listener::NAME;
        self.call_api("PATCH", "/v1/shadows/mark/reported", &json!({"a": 1}))
            .await;
        self.changes_up_to("DS#mark").await;
        let mut counted = Vec::new();
        for id in ["queued", "watched", "compared"] {
            for number in 0..STREAM_BATCH {
                let path = format!("/v1/shadows/{id}-{number}/reported");
                self.call_api("PATCH", &path, &Scene::document(1)).await;
            }
            let last = format!("DS#{id}-{}\"", STREAM_BATCH - 1);
            let event = self.changes_up_to(&last).await;
            let records = event["Records"].as_array().unwrap();
            assert_eq!(records.len(), STREAM_BATCH as usize);
            let half = json!({"Records": records[..records.len() / 2]});
            // The first invocation resolves the queue's URL, which is cached.
            self.invoke(name, &event).await;
            let once = self.invoke(name, &half).await.and(Unit::Lambda, 1.0);
            let twice = self.invoke(name, &event).await.and(Unit::Lambda, 1.0);
            counted.push(Batched::of(STREAM_BATCH / 2, once, twice));
        }
        [counted[0], counted[1], counted[2]]
    }

    /// Batches of second reports, each of another shadow, recorded in the history and in the change feed.
    pub(super) async fn recorded_change(&self) -> Batched {
        for second in 1..=2 {
            for number in 0..STREAM_BATCH {
                let path = format!("/v1/shadows/noted-{number}/reported");
                self.call_api("PATCH", &path, &Scene::document(second))
                    .await;
            }
        }
        let name = antumbra_history_writer::NAME;
        let last = format!("DS#noted-{}\"", STREAM_BATCH - 1);
        let event = eventually(&last, async || {
            let all = self.events.lock().unwrap();
            let events = all.get(name).into_iter().flatten();
            let records = events.flat_map(|event| event["Records"].as_array().unwrap().clone());
            let (first, second): (Vec<Value>, Vec<Value>) = records
                .filter(|record| record["dynamodb"].to_string().contains("DS#noted-"))
                .partition(|record| record["eventName"] == "INSERT");
            let complete = second.len() == STREAM_BATCH as usize;
            complete.then(|| {
                [first, second].map(|records| json!({ "Records": with_same_ids(records) }))
            })
        });
        let [first, event] = event.await;
        // Readers compute differences that are not stored from the changes before.
        self.invoke(name, &first).await;
        let records = event["Records"].as_array().unwrap();
        let half = json!({"Records": records[..records.len() / 2]});
        // The first invocation reads the settings of the feed.
        self.invoke(name, &event).await;
        let once = self.invoke(name, &half).await.and(Unit::Lambda, 1.0);
        let twice = self.invoke(name, &event).await.and(Unit::Lambda, 1.0);
        Batched::of(STREAM_BATCH / 2, once, twice)
    }

    pub(super) async fn followed_change(&self) -> Bill {
        let path = "/v1/changes?cursor=oldest&limit=100";
        // The first request reads the settings of the feed, and finds the start.
        let (_, first) = self.home.call_api("GET", path, &[], &Value::Null).await;
        assert_eq!(first["changes"].as_array().unwrap().len(), 100);
        let next = format!(
            "/v1/changes?limit=100&cursor={}",
            first["cursor"].as_str().unwrap()
        );
        self.call_api("GET", &next, &Value::Null).await.times(0.01)
    }

    /// A batch of messages from a queue.
    fn batch(&self, queue: &str, bodies: impl Iterator<Item = Value>) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let sent = now.as_millis().max(self.sent.get() + 1);
        self.sent.set(sent);
        let record = |(number, body): (usize, Value)| {
            json!({
                "messageId": format!("{sent}-{number}"),
                "receiptHandle": "r",
                "body": body.to_string(),
                "attributes": {
                    "SentTimestamp": sent.to_string(),
                    "ApproximateFirstReceiveTimestamp": sent.to_string(),
                    "ApproximateReceiveCount": "1",
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
                "awsRegion": "us-east-1",
            })
        };
        let records: Vec<Value> = bodies.enumerate().map(record).collect();
        json!({ "Records": records })
    }

    pub(super) async fn inbox_message(&self) -> Batched {
        let name = antumbra_message_ingest::NAME;
        let batch = |epoch: u32, size: u32| {
            let message = move |n| {
                let text = "x".repeat(500);
                json!({"thingName": "sender", "epochTime": epoch + n, "text": text})
            };
            self.batch("antumbra-inbound", (0..size).map(message))
        };
        // The first invocation records the source, which happens once an hour.
        self.invoke(name, &batch(1_700_000_000, 1)).await;
        let half = QUEUE_BATCH / 2;
        let once = self.invoke(name, &batch(1_700_000_100, half)).await;
        let twice = self.invoke(name, &batch(1_700_000_200, QUEUE_BATCH)).await;
        Batched::of(half, queue_batch(once), queue_batch(twice))
    }

    pub(super) async fn inbox_get(&self) -> Bill {
        let topic = "request/next/sender/0";
        let event = Scene::ruled(topic, &json!({"token": "t"}));
        ruled(self.invoke("message-next", &event).await)
    }

    pub(super) async fn sensor_message(&self) -> Batched {
        for number in 0..QUEUE_BATCH {
            let place = json!({"city": "Poznań", "building": "A", "floor": "2", "room": "13"});
            let new = json!({"id": format!("door-{number}"), "location": place});
            self.call_api("POST", "/v1/sensors", &new).await;
        }
        let name = antumbra_sensor_ingest::NAME;
        let batch = |data: u32, size: u32| {
            let signal = |n| json!({"sensor_id": format!("door-{n}"), "data": data});
            self.batch("antumbra-signals", (0..size).map(signal))
        };
        self.invoke(name, &batch(0, QUEUE_BATCH)).await;
        let half = QUEUE_BATCH / 2;
        let once = self.invoke(name, &batch(1, half)).await;
        let twice = self.invoke(name, &batch(2, QUEUE_BATCH)).await;
        Batched::of(half, queue_batch(once), queue_batch(twice))
    }

    /// A sweep that finds no silent sensor, with its marker.
    pub(super) async fn sweep(&self) -> Bill {
        let name = antumbra_liveness_sweep::NAME;
        let function = self.functions.lock().unwrap()[name].clone();
        self.recorder.take();
        let sweeping = tokio::spawn(async move { function.invoke("{}".into()).await });
        let ingest = antumbra_sensor_ingest::NAME;
        let marker = self.event_of(ingest).await;
        let function = self.functions.lock().unwrap()[ingest].clone();
        function.invoke(marker.to_string().into()).await.unwrap();
        sweeping.await.unwrap().unwrap();
        // The number of checks of the marker depends on timing: count one.
        let mut seen = BTreeSet::new();
        let mut calls = self.recorder.take();
        calls.retain(|call| seen.insert(format!("{} {}", call.operation, call.body)));
        let bill = bill_of(&calls);
        queue_batch(bill.and(Unit::Lambda, 1.0))
    }

    /// A delivery for the change of a sensor with one linked client.
    pub(super) async fn delivery(&self) -> Bill {
        let url = self.endpoints.url("client");
        let new = json!({"id": "client", "name": "Client", "url": url, "mode": "latest"});
        self.call_api("POST", "/v1/clients", &new).await;
        for number in 0..QUEUE_BATCH {
            let path = format!("/v1/clients/client/sensors/door-{number}");
            self.call_api("PUT", &path, &Value::Null).await;
        }
        self.call_api("PATCH", "/v1/shadows/mark/reported", &json!({"a": 2}))
            .await;
        self.changes_up_to("DS#mark").await;
        let signal = |n| json!({"sensor_id": format!("door-{n}"), "data": 7});
        let batch = self.batch("antumbra-signals", (0..QUEUE_BATCH).map(signal));
        self.invoke(antumbra_sensor_ingest::NAME, &batch).await;
        self.call_api("PATCH", "/v1/shadows/mark/reported", &json!({"a": 3}))
            .await;
        let mut changes = self.changes_up_to("DS#mark").await;
        let records = changes["Records"].as_array_mut().unwrap();
        records.retain(|of| of["dynamodb"].to_string().contains("SENSOR#door"));
        let notified = self.invoke(antumbra_stream_listener::NAME, &changes).await;
        let notified = notified.and(Unit::Lambda, 1.0).each_of(QUEUE_BATCH);

        let name = antumbra_webhook_deliver::NAME;
        // Alone: deliveries are not collected, so batches are full only under load.
        let mut event = self.event_of(name).await;
        event["Records"].as_array_mut().unwrap().truncate(1);
        let sent = queue_batch(self.invoke(name, &event).await);
        self.endpoints.wait("client", 1).await;
        notified.plus(sent)
    }
}

/// Replaces the random ids of stream records by ones that are the same in every run: the compressed size of a segment
/// of the change feed, which contains them, may be near the limit of a write unit. With these names the segments of the four
/// partitions are not near it: they have 20, 21, 28 and 31 changes.
fn with_same_ids(mut records: Vec<Value>) -> Vec<Value> {
    let mut random = fastrand::Rng::with_seed(1);
    for record in &mut records {
        record["eventID"] = json!(format!("{:032x}", random.u128(..)));
    }
    records
}
