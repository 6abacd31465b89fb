//! Sensors that signal, fall silent and come back; unknown sensors, and invalid signals.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_queues::queue::NewMessage;
use antumbra_service::sensors::{Location, Sensor, SensorId, SilenceTimeout};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{moments, until};
use crate::functions::Wiring;
use crate::world::{World, lock};

/// Signals that each sensor sends at most during the faults.
const SIGNALS: u64 = 8;
/// Maximum lead of a device's clock over the queue's before it is ignored, in milliseconds.
const CLOCK_AHEAD: u64 = 5 * 60 * 1000;

/// A sensor, as it was registered.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) silence: Duration,
    /// In milliseconds.
    pub(crate) registered: u64,
    /// An operator unregisters it and registers it again.
    pub(crate) returns: bool,
}

/// A signal that the queue accepted.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    pub(crate) sensor: String,
    pub(crate) value: u64,
    /// Order of signals: the time in nanoseconds, and the sequence number within it.
    pub(crate) order: (u64, String),
    /// Time at which the queue accepted it, in milliseconds.
    pub(crate) sent: u64,
    /// The queue's id of it.
    pub(crate) message: String,
}

/// A message that can never be processed.
#[derive(Debug, Clone)]
pub(crate) struct InvalidSignal {
    pub(crate) body: String,
    pub(crate) reason: &'static str,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) sensors: Vec<Known>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) invalid: Vec<InvalidSignal>,
    counters: BTreeMap<String, u64>,
    unknown_sensors: u64,
}

/// A sensor for registration.
pub(super) fn sensor(id: &str, silence_seconds: u64) -> Sensor {
    let made = (
        SensorId::new(id),
        Location::new("Poznań", "A", "2", "21"),
        SilenceTimeout::seconds(silence_seconds),
    );
    let (Ok(sensor_id), Ok(location), Ok(silence_after)) = made else {
        panic!("no sensor is called {id}");
    };
    Sensor {
        silence_after,
        ..Sensor::new(sensor_id, location)
    }
}

/// All sensors. Clones are the same.
#[derive(Clone)]
pub(crate) struct SensorActors {
    world: Arc<World>,
    queue: &'static str,
    memory: Arc<Mutex<Memory>>,
}

impl SensorActors {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> SensorActors {
        SensorActors {
            world: Arc::clone(world),
            queue: wiring.signals,
            memory: Arc::default(),
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        lock(&self.memory).clone()
    }

    pub(crate) async fn register(&self, wiring: &Wiring) {
        let registry = wiring.sensors(self.world.clock);
        for number in 0..self.world.profile.sensors {
            let id = format!("lock-{number}");
            let seconds = self.world.chance.between(120, 400);
            let sensor = sensor(&id, seconds);
            let registered = self.world.clock.milliseconds();
            if let Err(error) = registry.register(sensor).await {
                panic!("{id} is not registered: {error}");
            }
            lock(&self.memory).sensors.push(Known {
                id,
                silence: Duration::from_secs(seconds),
                registered,
                returns: self.world.profile.returning_sensors && number == 0,
            });
        }
    }

    pub(crate) fn start(&self, began: Instant) {
        for sensor in self.memory().sensors {
            let count = self.world.chance.between(0, SIGNALS) as usize;
            let skew = self.world.chance.between(0, 8000) as i64 - 4000;
            for moment in moments(&self.world, count) {
                let (actors, id) = (self.clone(), sensor.id.clone());
                self.world.spawner.spawn(async move {
                    until(began, moment).await;
                    actors.act(&id, skew).await;
                });
            }
        }
    }

    /// Sends a last signal of some sensors after the faults.
    pub(crate) fn send_final_signals(&self) {
        for sensor in self.memory().sensors {
            if self.world.chance.happens(0.4) {
                self.signal(&sensor.id, 0);
            }
        }
    }

    /// Sends a signal of some overdue sensors at the last moment.
    pub(crate) fn break_silence(&self) {
        let now = self.world.clock.milliseconds();
        let memory = self.memory();
        for sensor in &memory.sensors {
            let signals = memory
                .signals
                .iter()
                .filter(|signal| signal.sensor == sensor.id);
            let since = signals.map(|signal| signal.sent).max();
            let until = since.unwrap_or(sensor.registered) + sensor.silence.as_millis() as u64;
            if until <= now && self.world.chance.happens(0.7) {
                self.signal(&sensor.id, 0);
            }
        }
    }

    async fn act(&self, id: &str, skew: i64) {
        match self.world.chance.below(10) {
            0..=6 => self.signal(id, skew),
            // A burst, faster than it can be processed.
            7..=8 => {
                for _ in 0..self.world.chance.between(2, 5) {
                    self.signal(id, skew);
                    let pause = self.world.chance.within(Duration::from_millis(30));
                    tokio::time::sleep(pause).await;
                }
            }
            _ => self.send_invalid(),
        }
    }

    fn signal(&self, id: &str, skew: i64) {
        let chance = &self.world.chance;
        let now = self.world.clock.milliseconds();
        let number = {
            let mut memory = lock(&self.memory);
            let counter = memory.counters.entry(id.to_owned()).or_default();
            *counter += 1;
            *counter
        };
        let value = chance.between(0, 1);
        let mut body = json!({"sensor_id": id, "data": value});
        let mut time = None;
        if chance.happens(0.7) {
            let ago = match chance.happens(0.2) {
                true => chance.between(0, 60_000) as i64,
                false => 0,
            };
            let ahead = match chance.happens(0.05) {
                true => 2 * CLOCK_AHEAD as i64,
                false => 0,
            };
            let milliseconds = (now as i64 + skew - ago + ahead) as u64;
            body["ts"] = json!(milliseconds);
            time = Some(milliseconds).filter(|time| *time <= now + CLOCK_AHEAD);
        }
        // A sequence number has a meaning only together with a time.
        let numbered = time.is_some() && chance.happens(0.7);
        if numbered {
            body["seq"] = json!(number);
        }
        let copies = match numbered && self.world.draws_fault(0.2) {
            true => 2,
            false => 1,
        };
        for _ in 0..copies {
            let message = self.send(id, body.to_string());
            let sequence = match numbered {
                true => format!("{number:020}"),
                false => format!("@{}", self.substitute_sequence(&message)),
            };
            lock(&self.memory).signals.push(Signal {
                sensor: id.to_owned(),
                value,
                order: (time.unwrap_or(now) * 1_000_000, sequence),
                sent: now,
                message,
            });
        }
    }

    /// Substitute for a missing sequence number: the message id, or the position in a FIFO queue.
    fn substitute_sequence(&self, message: &str) -> String {
        let number = message.rsplit('-').next().unwrap_or_default();
        match self.queue.ends_with(".fifo") {
            true => format!("{number:0>20}"),
            false => message.to_owned(),
        }
    }

    fn send(&self, group: &str, body: String) -> String {
        self.world.trace.step("signal", || body.clone());
        let fifo = self.queue.ends_with(".fifo");
        let message = NewMessage {
            body,
            group: fifo.then(|| group.to_owned()),
            ..NewMessage::default()
        };
        self.world.cloud.send(self.queue, message)
    }

    fn send_invalid(&self) {
        let number = {
            let mut memory = lock(&self.memory);
            memory.unknown_sensors += 1;
            memory.unknown_sensors
        };
        let (body, reason): (Value, _) = match self.world.chance.below(3) {
            0 => (
                json!({"sensor_id": format!("stranger-{number}"), "data": 1}),
                "UnknownSensor",
            ),
            1 => (
                json!({"sensor_id": "lock-0", "data": 7, "seq": number}),
                "Invalid",
            ),
            _ => (json!(number), "NotJson"),
        };
        let body = body.to_string();
        self.send("invalid", body.clone());
        lock(&self.memory)
            .invalid
            .push(InvalidSignal { body, reason });
    }
}
