//! Actors outside the system. Each records its actions: the reference for the final checks.

pub(crate) mod clients;
pub(crate) mod devices;
pub(crate) mod followers;
pub(crate) mod historians;
pub(crate) mod inbox;
pub(crate) mod lamps;
pub(crate) mod reports;
pub(crate) mod sensors;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::World;

/// Moments at which actors act, in order.
fn moments(world: &World, count: usize) -> Vec<Duration> {
    let span = world.profile.acting_span();
    let mut moments: Vec<Duration> = (0..count).map(|_| world.chance.within(span)).collect();
    moments.sort_unstable();
    moments
}

/// Waits until this long after the start.
async fn until(began: tokio::time::Instant, moment: Duration) {
    tokio::time::sleep_until(began + moment).await;
}

/// The event of an IoT rule for a message.
fn rule_event(world: &World, topic: &str, client: &str, payload: &str) -> Value {
    json!({
        "payload": STANDARD.encode(payload),
        "topic": topic,
        "clientId": client,
        "timestamp": world.clock.milliseconds(),
    })
}
