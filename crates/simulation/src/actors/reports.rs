//! Devices whose reports overtake each other: plain and timestamped values and nulls, in several shadows, on
//! several connections, with times of the device and of the rule.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::shadows::ShadowId;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{moments, rule_event, until};
use crate::functions::{Function, Wiring};
use crate::world::{World, lock};

/// Maximum number of bursts of a device, and of reports in one.
const BURSTS: u64 = 5;
const BURST: u64 = 5;
/// Longest pause between two reports of a burst.
const PAUSE: Duration = Duration::from_millis(40);
/// Maximum difference of a device's clock and of the rules engine's, in milliseconds.
const SKEW: u64 = 4000;
const RULE_SKEW: u64 = 300;
/// Maximum age of a measurement when it is sent, in milliseconds.
const AGE: u64 = 60_000;
/// Longest delay of a message that is delivered again.
const DUPLICATE_DELAY: Duration = Duration::from_secs(20);

/// A valid update over MQTT without a version.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) thing: String,
    /// Name of the shadow in its item's key.
    pub(crate) name: &'static str,
    pub(crate) token: String,
    /// The time that orders its plain values and nulls, in nanoseconds.
    pub(crate) time: i64,
    pub(crate) state: Value,
    /// The last invocation succeeded.
    pub(crate) ended: bool,
}

impl Report {
    /// The topic of a response.
    pub(crate) fn topic(&self, kind: &str) -> String {
        match self.name {
            CLASSIC => format!("shadow/{}/update/{kind}", self.thing),
            name => format!("shadow/{}/name/{name}/update/{kind}", self.thing),
        }
    }
}

/// The unnamed shadow, by its name in items.
const CLASSIC: &str = "main";
const SHADOWS: [&str; 3] = [CLASSIC, CLASSIC, "room"];

/// Source of the time of a report (spec: order).
#[derive(Debug, Clone, Copy)]
enum TimeSource {
    Payload,
    UserProperty,
    Rule,
}

/// A connection of a device: its clock, and the source of its reports' times.
#[derive(Debug, Clone)]
struct Connection {
    thing: String,
    client: String,
    skew: i64,
}

/// All devices that report in bursts. Clones are the same.
#[derive(Clone)]
pub(crate) struct ReportActors {
    world: Arc<World>,
    requests: Arc<Function>,
    reports: Arc<Mutex<Vec<Report>>>,
    /// Number of device times so far.
    times: Arc<Mutex<i64>>,
}

impl ReportActors {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> ReportActors {
        ReportActors {
            world: Arc::clone(world),
            requests: Arc::new(wiring.shadow_requests()),
            reports: Arc::default(),
            times: Arc::default(),
        }
    }

    pub(crate) fn shadows(&self) -> impl Iterator<Item = ShadowId> {
        let things = 0..self.world.profile.meters;
        let names = [CLASSIC, "room"];
        let all = things.flat_map(move |thing| names.map(|name| (format!("meter-{thing}"), name)));
        all.filter_map(|(thing, name)| ShadowId::named(thing, name).ok())
    }

    pub(crate) fn reports(&self) -> Vec<Report> {
        lock(&self.reports).clone()
    }

    pub(crate) fn start(&self, began: Instant) {
        let chance = &self.world.chance;
        for number in 0..self.world.profile.meters {
            let connections: Vec<Connection> = (0..chance.between(1, 2))
                .map(|connection| Connection {
                    thing: format!("meter-{number}"),
                    client: format!("meter-{number}-{connection}"),
                    skew: self.around(SKEW),
                })
                .collect();
            let count = chance.between(1, BURSTS) as usize;
            for moment in moments(&self.world, count) {
                // Now and then both connections send at once.
                let both = chance.happens(0.3);
                let first = chance.below(connections.len());
                let order = connections.iter().skip(first).chain(&connections);
                for connection in order.take(1 + usize::from(both)) {
                    let (actors, connection) = (self.clone(), connection.clone());
                    self.world.spawner.spawn(async move {
                        until(began, moment).await;
                        actors.send_burst(&connection).await;
                    });
                }
            }
        }
    }

    /// A difference of clocks, in either direction.
    fn around(&self, most: u64) -> i64 {
        self.world.chance.between(0, 2 * most) as i64 - most as i64
    }

    async fn send_burst(&self, connection: &Connection) {
        let chance = &self.world.chance;
        let name = *chance.pick(&SHADOWS);
        let source = *chance.pick(&[
            TimeSource::Payload,
            TimeSource::UserProperty,
            TimeSource::Rule,
            TimeSource::Rule,
        ]);
        for _ in 0..chance.between(1, BURST) {
            let state = self.state(connection);
            let own_time = self.device_time(connection);
            let sent = || self.publish(connection, name, source, own_time, state.clone());
            sent();
            // QoS 1 delivers at least once; the rule sees the second one at its own time.
            if self.world.draws_fault(0.1) {
                tokio::time::sleep(chance.within(PAUSE)).await;
                sent();
            }
            tokio::time::sleep(chance.within(PAUSE)).await;
        }
    }

    /// Sends a report; the rule invokes the function asynchronously.
    fn publish(
        &self,
        connection: &Connection,
        name: &'static str,
        source: TimeSource,
        own_time: i64,
        state: Value,
    ) {
        let rule_time = self.world.clock.milliseconds() as i64 + self.around(RULE_SKEW);
        let mut reports = lock(&self.reports);
        let index = reports.len();
        let report = Report {
            thing: connection.thing.clone(),
            name,
            token: format!("m{index}"),
            time: match source {
                TimeSource::Payload | TimeSource::UserProperty => own_time,
                TimeSource::Rule => rule_time * 1_000_000,
            },
            state,
            ended: false,
        };
        let mut payload = json!({"state": report.state, "clientToken": report.token});
        if let TimeSource::Payload = source {
            payload["timestamp"] = json!(own_time);
        }
        let topic = report.topic("");
        let topic = topic.trim_end_matches('/');
        let payload = payload.to_string();
        let mut event = rule_event(&self.world, topic, &connection.client, &payload);
        event["timestamp"] = json!(rule_time);
        if let TimeSource::UserProperty = source {
            event["userTimestamp"] = json!([own_time.to_string()]);
        }
        self.world
            .trace
            .step("report", || format!("{topic} {} {payload}", report.time));
        reports.push(report);
        drop(reports);
        // Lambda invokes at least once.
        let twice = self.world.draws_fault(0.1);
        for again in 0..1 + u32::from(twice) {
            let (actors, event) = (self.clone(), event.clone());
            self.world.begin_work();
            let later = self.world.chance.within(DUPLICATE_DELAY) * again;
            self.world.spawner.spawn(async move {
                tokio::time::sleep(later).await;
                let (world, requests) = (&actors.world, &actors.requests);
                let ended = requests.invoke_asynchronously(world, &event);
                let ended = ended.await;
                lock(&actors.reports)[index].ended |= ended;
                actors.world.end_work();
            });
        }
    }

    /// A time of the device, of now or of an earlier measurement. No two are the same.
    fn device_time(&self, connection: &Connection) -> i64 {
        let chance = &self.world.chance;
        let ago = match chance.happens(0.2) {
            true => chance.between(0, AGE) as i64,
            false => 0,
        };
        let milliseconds = self.world.clock.milliseconds() as i64 + connection.skew - ago;
        milliseconds * 1_000_000 + self.unique_microsecond() * 1_000
    }

    fn unique_microsecond(&self) -> i64 {
        let mut count = lock(&self.times);
        *count += 1;
        // Rules have whole milliseconds.
        *count % 998 + 1
    }

    /// The state of an update: reported, desired or both.
    fn state(&self, connection: &Connection) -> Value {
        let chance = &self.world.chance;
        let mut state = Map::new();
        let parts: &[&str] = chance.pick::<&[&str]>(&[
            &["reported"],
            &["reported"],
            &["reported"],
            &["desired"],
            &["reported", "desired"],
        ]);
        for part in parts {
            let document = match chance.happens(0.05) {
                true => Value::Null,
                false => self.document(connection),
            };
            state.insert((*part).to_owned(), document);
        }
        Value::Object(state)
    }

    /// Few places and few values, so that values collide and repeat.
    fn document(&self, connection: &Connection) -> Value {
        let chance = &self.world.chance;
        let value = || json!(chance.between(0, 2));
        let mut document = Map::new();
        for _ in 0..chance.between(1, 2) {
            let (name, member) = match chance.below(12) {
                0..=2 => ("led", value()),
                3 => ("led", Value::Null),
                4 => ("fan", json!({"speed": value()})),
                5 => ("fan", json!({"mode": value(), "speed": null})),
                6 => ("fan", value()),
                7 => ("fan", Value::Null),
                8 => ("list", json!([value(), value()])),
                9 => (
                    "temperature",
                    json!({"value": value(), "timestamp": self.device_time(connection)}),
                ),
                10 => (
                    "room",
                    json!({"temperature": {"value": value(), "timestamp": self.device_time(connection)}}),
                ),
                _ => (*chance.pick(&["temperature", "room"]), Value::Null),
            };
            document.insert(name.to_owned(), member);
        }
        Value::Object(document)
    }
}
