//! The listener responds before its deadline, even if the channels do not.

use std::sync::Arc;
use std::time::Duration;

use antumbra_notify::{ChannelFactory, ClientsRoute, Listener};
use antumbra_registration::Target;
use antumbra_service::clients::{ClientId, LinkedClient, LinkedClients, Mode};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Delivery, DeliveryMessage, NewDeliveries, Queues};
use antumbra_service::notifications::Channel;
use antumbra_service::sensors::SensorId;
use antumbra_service::store::StoreError;
use antumbra_shadow::{Model, Timestamp};
use antumbra_testkit::{RecordingChannel, SendReply};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::channels::{Bench, Fakes, TIME, registrations};
use crate::stream::{Record, event_of, sequence_number};

fn to_queue(name: &str) -> Value {
    json!({ "name": name, "to": { "sqs": { "queue": name } } })
}

fn changes(count: u64) -> Vec<Record> {
    let change = |n: u64| Record::small(&format!("device-{}", n % 50), n);
    (0..count).map(change).collect()
}

#[tokio::test]
async fn an_outage_is_reported_and_leaves_time_for_undeliverable_notifications() {
    let bench = Bench::new(&[to_queue("away"), to_queue("missing"), to_queue("fine")]);
    bench
        .at("sqs away")
        .reply_to_key("device-7#", SendReply::Throttle);
    bench.at("sqs missing").deny("QueueDoesNotExist");
    let before = bench.clock.now();
    let summary = bench.handle_records(&changes(100)).await;
    assert_eq!(summary.resume_at, Some(sequence_number(7)));
    assert_eq!((summary.sent, summary.undeliverable), (198, 100));
    assert!(
        summary.retried > 10,
        "tried again while there was time: {}",
        summary.retried
    );
    let now = bench.clock.now();
    assert!(now < before.after(TIME), "in time");
    assert!(now > before.after(TIME / 2), "but not at once");
}

/// The timeout may be shorter than the reserve for undeliverable notifications; the batch is still processed.
#[tokio::test]
async fn little_time_is_enough_when_nothing_fails() {
    for time in [Duration::from_secs(3), Duration::from_millis(300)] {
        let bench = Bench::new(&[to_queue("fine"), to_queue("missing")]);
        bench.at("sqs missing").deny("QueueDoesNotExist");
        let summary = bench.handle_within(&event_of(&changes(100)), time).await;
        let done = (summary.sent, summary.undeliverable, summary.resume_at);
        assert_eq!(done, (100, 100, None), "{time:?}");
    }
}

#[tokio::test]
async fn without_time_the_whole_batch_fails() {
    let bench = Bench::new(&[to_queue("fine")]);
    let summary = bench
        .handle_within(&event_of(&changes(10)), Duration::ZERO)
        .await;
    assert_eq!(
        (summary.sent, summary.resume_at),
        (0, Some(sequence_number(0)))
    );
}

/// Time of the runtime; a paused runtime advances it while all tasks wait.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let start = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        start.after(self.0.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_queue_is_reported_in_time_and_delays_no_other() {
    for silent in ["silent", "vague"] {
        for silent_undeliverable in [false, true] {
            let channels = Fakes::default();
            channels.at("sqs silent").reply(|_| SendReply::Hang);
            // Responds late, and without a result for any message.
            let vague = channels.at("sqs vague");
            vague.reply(|_| SendReply::Omit);
            vague.set_delay(Duration::from_secs(7));
            if silent_undeliverable {
                channels.undeliverable.reply(|_| SendReply::Hang);
            }
            channels
                .at("sqs missing")
                .reply(|_| SendReply::deny("QueueDoesNotExist"));
            let only_later = json!({ "name": silent, "on": { "key": "device-4#" },
                                     "to": { "sqs": { "queue": silent } } });
            let only_first = json!({ "name": "missing", "on": { "key": "device-2#" },
                                     "to": { "sqs": { "queue": "missing" } } });
            let rules = registrations(&[only_later, only_first, to_queue("fine")]);
            let clock = RuntimeClock(Instant::now());
            let deadline = clock.now().after(TIME);
            let listener =
                Listener::new(rules, &channels, Model::default(), Arc::new(clock)).unwrap();
            let started = Instant::now();
            let event = event_of(&changes(40));
            let summary = listener.handle(&event, deadline);
            // Lambda would end the invocation here, with nothing reported.
            let summary = tokio::time::timeout(TIME, summary)
                .await
                .expect("in time")
                .unwrap();
            assert!(started.elapsed() > TIME / 2, "it was given its time");
            assert_eq!(channels.at("sqs fine").accepted().len(), 40);
            assert_eq!(summary.sent, 40);
            let lowest = if silent_undeliverable { 2 } else { 4 };
            assert_eq!(summary.resume_at, Some(sequence_number(lowest)));
        }
    }
}

/// One client linked to every sensor. Deliveries of the sensor `stuck` are never recorded.
#[derive(Default)]
struct Clients {
    queue: Arc<RecordingChannel>,
    undeliverable: Arc<RecordingChannel>,
}

struct Recorded;

#[async_trait]
impl LinkedClients for Recorded {
    async fn linked(&self, _: &SensorId) -> Result<Vec<LinkedClient>, StoreError> {
        Ok(vec![LinkedClient {
            client: ClientId::new("watch").unwrap(),
            mode: Mode::Every,
            removed: None,
        }])
    }
}

#[async_trait]
impl NewDeliveries for Recorded {
    async fn add(&self, delivery: &Delivery, _: Timestamp) -> Result<(), StoreError> {
        let sensor = delivery.sensor.as_ref().unwrap();
        match sensor.id.as_str() {
            "stuck" => std::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn add_due(&self, _: &Delivery, _: Timestamp) -> Result<DeliveryMessage, StoreError> {
        Err(StoreError::Throttled)
    }
}

impl ChannelFactory for Clients {
    fn channel(&self, _: &Target) -> Option<Arc<dyn Channel>> {
        None
    }

    fn clients(&self) -> Option<ClientsRoute> {
        Some(ClientsRoute {
            links: Arc::new(Recorded),
            deliveries: Arc::new(Recorded),
            queues: Queues {
                ordered: self.queue.clone(),
                unordered: self.queue.clone(),
            },
        })
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        self.undeliverable.clone()
    }
}

/// A change of a sensor's value.
fn sensor_change(sensor: &str, sequence: u64) -> Record {
    let image = |changes: u64| {
        Some(json!({
            "address": "", "changes": changes, "checkAt": 1_700_000_090_000_u64,
            "connection": "ONLINE", "contacts": 0, "deadline": 1_700_000_092_007_u64,
            "generation": "g-1", "lastSeen": 1_700_000_002_007_u64,
            "order": format!("2023-11-14T22:13:2{changes}.000000000Z#0000000000000000000{changes}"),
            "registeredAt": 1_700_000_000_000_u64, "sensorId": sensor, "silenceAfterMs": 90_000,
            "type": "sensor", "value": changes,
        }))
    };
    Record {
        old: image(1),
        new: image(2),
        ..Record::new(&format!("SENSOR#{sensor}"), "STATE", sequence)
    }
}

#[tokio::test(start_paused = true)]
async fn deliveries_are_queued_up_to_the_first_that_is_not_recorded_in_time() {
    let channels = Clients::default();
    let rule = json!({ "name": "clients", "on": { "key": "^SENSOR#[^#]+#STATE$" },
                       "send": ["old", "new"], "to": { "clients": {} } });
    let clock = RuntimeClock(Instant::now());
    let deadline = clock.now().after(TIME);
    let (rules, clock) = (registrations(&[rule]), Arc::new(clock));
    let listener = Listener::new(rules, &channels, Model::default(), clock).unwrap();
    let sensors = ["a", "b", "c", "stuck", "d"].into_iter().zip(0..);
    let records: Vec<Record> = sensors.map(|(id, n)| sensor_change(id, n)).collect();
    let event = event_of(&records);
    let summary = listener.handle(&event, deadline);
    let summary = tokio::time::timeout(TIME, summary).await.unwrap().unwrap();
    assert_eq!(summary.resume_at, Some(sequence_number(3)));
    let sent = channels.queue.accepted();
    let groups: Vec<&str> = sent.iter().map(|message| &message.key[..]).collect();
    assert_eq!(groups, ["watch/a", "watch/b", "watch/c"]);
    assert_eq!(summary.sent, 3);
}
