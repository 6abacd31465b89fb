//! Devices that report and get desired values, over MQTT and through the SDK, several writers each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_service::shadows::{DocumentSet, ShadowId, Shadows};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{moments, rule_event, until};
use crate::functions::{Function, Wiring};
use crate::world::{World, lock};

const FIELDS: [&str; 2] = ["temperature", "door"];
/// Things that each device does.
const ACTIONS: u64 = 8;
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Outcome of a request, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) device: String,
    pub(crate) field: &'static str,
    pub(crate) value: u64,
    /// In nanoseconds.
    pub(crate) time: i64,
    /// Client token of the MQTT request.
    pub(crate) token: Option<String>,
    /// The function was not interrupted.
    pub(crate) ended: bool,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(crate) struct DesiredValue {
    pub(crate) device: String,
    pub(crate) value: u64,
    pub(crate) outcome: Outcome,
}

/// An invalid request over MQTT.
#[derive(Debug, Clone)]
pub(crate) struct InvalidRequest {
    pub(crate) topic: String,
    /// The function was not interrupted.
    pub(crate) ended: bool,
    pub(crate) token: String,
}

/// All devices. Clones are the same.
#[derive(Clone)]
pub(crate) struct Devices {
    world: Arc<World>,
    requests: Arc<Function>,
    shadows: Arc<Shadows<DynamoDbShadows>>,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) measured: Vec<Measured>,
    pub(crate) desired_values: Vec<DesiredValue>,
    pub(crate) invalid: Vec<InvalidRequest>,
    counter: u64,
}

impl Devices {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> Devices {
        Devices {
            world: Arc::clone(world),
            requests: Arc::new(wiring.shadow_requests()),
            shadows: Arc::new(wiring.shadows(world.clock)),
            memory: Arc::default(),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let all = 0..self.world.profile.devices;
        all.map(|number| format!("device-{number}")).collect()
    }

    pub(crate) fn shadows(&self) -> impl Iterator<Item = ShadowId> {
        let ids = self.names().into_iter();
        ids.filter_map(|id| ShadowId::new(id).ok())
    }

    pub(crate) fn memory(&self) -> Memory {
        lock(&self.memory).clone()
    }

    pub(crate) fn start(&self, began: Instant) {
        for device in self.names() {
            let count = self.world.chance.between(1, ACTIONS) as usize;
            let skew = self.world.chance.between(0, 8000) as i64 - 4000;
            for moment in moments(&self.world, count) {
                // Now and then several writers meet.
                for _ in 0..*self.world.chance.pick(&[1, 1, 1, 2, 3]) {
                    let (devices, device) = (self.clone(), device.clone());
                    self.world.spawner.spawn(async move {
                        until(began, moment).await;
                        devices.act(&device, skew).await;
                    });
                }
            }
        }
    }

    async fn act(&self, device: &str, skew: i64) {
        match self.world.chance.below(12) {
            0..=3 => self.report_over_mqtt(device, skew).await,
            4..=5 => self.report(device, skew).await,
            6..=7 => self.desire(device).await,
            8 => self.desire_mode(device).await,
            9..=10 => self.report_desired(device).await,
            _ => self.send_invalid(device).await,
        }
    }

    fn count(&self) -> u64 {
        let mut memory = lock(&self.memory);
        memory.counter += 1;
        memory.counter
    }

    /// A measurement of now, or an earlier one that is sent only now.
    fn measure(&self, device: &str, skew: i64) -> Measured {
        let value = self.count();
        let ago = match self.world.chance.happens(0.3) {
            true => self.world.chance.between(0, 60_000) as i64,
            false => 0,
        };
        let milliseconds = self.world.clock.milliseconds() as i64 + skew - ago;
        Measured {
            device: device.to_owned(),
            field: self.world.chance.pick::<&str>(&FIELDS),
            value,
            // No two are of the same time.
            time: milliseconds * 1_000_000 + value as i64,
            token: None,
            ended: false,
            outcome: Outcome::Unknown,
        }
    }

    async fn report_over_mqtt(&self, device: &str, skew: i64) {
        let mut measured = self.measure(device, skew);
        let number = measured.value;
        let token = format!("t{number}");
        let reported = json!({measured.field: value_of(&measured)});
        let payload = json!({"state": {"reported": reported}, "clientToken": token});
        measured.token = Some(token);
        lock(&self.memory).measured.push(measured);
        let topic = format!("shadow/{device}/update");
        let event = rule_event(&self.world, &topic, device, &payload.to_string());
        // QoS 1 delivers at least once.
        if self.world.draws_fault(0.2) {
            let (devices, event) = (self.clone(), event.clone());
            let later = self.world.chance.within(Duration::from_secs(20));
            self.world.spawner.spawn(async move {
                tokio::time::sleep(later).await;
                let requests = &devices.requests;
                requests.invoke_asynchronously(&devices.world, &event).await;
            });
        }
        let requests = &self.requests;
        let ended = requests.invoke_asynchronously(&self.world, &event).await;
        self.remember(number, |measured| measured.ended = ended);
    }

    /// Updates the record of a measurement.
    fn remember(&self, number: u64, note: impl FnOnce(&mut Measured)) {
        let mut memory = lock(&self.memory);
        let mut all = memory.measured.iter_mut();
        if let Some(measured) = all.find(|measured| measured.value == number) {
            note(measured);
        }
    }

    async fn report(&self, device: &str, skew: i64) {
        let measured = self.measure(device, skew);
        let number = measured.value;
        let document = json!({measured.field: value_of(&measured)});
        lock(&self.memory).measured.push(measured);
        if self.sdk_report(device, &document).await {
            self.remember(number, |measured| measured.outcome = Outcome::Accepted);
        }
    }

    async fn sdk_report(&self, device: &str, document: &Value) -> bool {
        let Ok(shadow) = ShadowId::new(device) else {
            return false;
        };
        let work = self.shadows.report(&shadow, document);
        let done = self.world.invoke("device", SETTLE_TIMEOUT, work).await;
        matches!(done, Some(Ok(_)))
    }

    /// Desires a mode, which the device never reports, or withdraws it.
    async fn desire_mode(&self, device: &str) {
        let Ok(shadow) = ShadowId::new(device) else {
            return;
        };
        let mode = self.world.chance.happens(0.5).then(|| self.count());
        let document = json!({"mode": mode});
        let work = self.shadows.desire(&shadow, &document);
        self.world.invoke("application", SETTLE_TIMEOUT, work).await;
    }

    async fn desire(&self, device: &str) {
        let value = self.count();
        lock(&self.memory).desired_values.push(DesiredValue {
            device: device.to_owned(),
            value,
            outcome: Outcome::Unknown,
        });
        let Ok(shadow) = ShadowId::new(device) else {
            return;
        };
        let document = json!({"setting": value});
        let work = self.shadows.desire(&shadow, &document);
        let done = self.world.invoke("application", SETTLE_TIMEOUT, work).await;
        if matches!(done, Some(Ok(_))) {
            let mut memory = lock(&self.memory);
            let mut all = memory.desired_values.iter_mut();
            if let Some(desired) = all.find(|desired| desired.value == value) {
                desired.outcome = Outcome::Accepted;
            }
        }
    }

    /// Reports the desired value as reached.
    pub(crate) async fn report_desired(&self, device: &str) {
        let Ok(shadow) = ShadowId::new(device) else {
            return;
        };
        let work = self.shadows.read(&shadow, DocumentSet::Both);
        let Some(Ok(found)) = self.world.invoke("device", SETTLE_TIMEOUT, work).await else {
            return;
        };
        let desired = found.desired.map(|held| held.document.to_string());
        let desired: Value = serde_json::from_str(&desired.unwrap_or_default()).unwrap_or_default();
        if let Some(setting) = desired.get("setting") {
            self.sdk_report(device, &json!({"setting": setting})).await;
        }
    }

    async fn send_invalid(&self, device: &str) {
        let token = format!("n{}", self.count());
        let payload = match self.world.chance.below(3) {
            0 => json!({"state": 7, "clientToken": token}),
            1 => json!({"state": {"reported": [1]}, "clientToken": token}),
            _ => json!({"clientToken": token}),
        };
        let topic = format!("shadow/{device}/update");
        let event = rule_event(&self.world, &topic, device, &payload.to_string());
        let requests = &self.requests;
        let ended = requests.invoke_asynchronously(&self.world, &event).await;
        lock(&self.memory).invalid.push(InvalidRequest {
            topic,
            ended,
            token,
        });
    }
}

fn value_of(measured: &Measured) -> Value {
    json!({"value": measured.value, "timestamp": measured.time})
}
