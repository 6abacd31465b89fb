//! `antumbra demo --into-local`: a small fleet that lives in the running local stack, to look at in the console.

use std::time::Duration;

use antumbra_service::sensors::{Location, Sensor, SensorId};
use antumbra_service::shadows::{ShadowId, Update};
use antumbra_shadow::Document;
use serde_json::{Value, json};
use tokio::time::{Instant, interval_at};

use crate::connection::{Connection, Service};
use crate::error::CliError;
use crate::output::{FAINT, print, styled};
use crate::send_message::send_message;
use crate::signals::Signals;

/// Time between two rounds of reports.
const ROUND: Duration = Duration::from_millis(500);
const ROUNDS_PER_SECOND: u64 = 2;
/// Rounds after which something is desired, and those after which the device follows.
const DESIRE_EVERY: u64 = 20;
const FOLLOW_AFTER: u64 = 12;
const SIGNALS: &str = "antumbra-signals";

/// Ids of the devices; the last part tells their kind.
const DEVICES: [&str; 20] = [
    "House A#Attic#Fan",
    "House A#Attic#Smoke detector",
    "House A#Basement#Heat pump",
    "House A#Bathroom#Thermostat",
    "House A#Bedroom#Thermostat",
    "House A#Entrance#Lock",
    "House A#Garage#Charger",
    "House A#Garage#Door",
    "House A#Hall#Thermostat",
    "House A#Kitchen#Freezer",
    "House A#Kitchen#Fridge",
    "House A#Living room#Lamp",
    "House A#Utility#Electricity meter",
    "House A#Utility#Water meter",
    "House B#Cellar#Water detector",
    "House B#Hall#Lamp",
    "House B#Office#Thermostat",
    "House C#Porch#Lamp",
    "House C#Porch#Lock",
    "House C#Roof#Solar inverter",
];

/// Sensors by room.
const SENSORS: [(&str, &str, &str); 6] = [
    ("smoke-1", "0", "hall"),
    ("smoke-2", "1", "office"),
    ("door-1", "0", "entrance"),
    ("leak-1", "-1", "cellar"),
    ("motion-1", "1", "corridor"),
    ("motion-2", "2", "attic"),
];

pub(super) async fn run(connection: &Connection, seconds: u64) -> Result<(), CliError> {
    connection.check(Service::DynamoDb).await?;
    let shadows = connection.shadows(true).await?;
    let sensors = connection.sensors().await;
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    for (id, floor, room) in SENSORS {
        let location = Location::new("Poznań", "A", floor, room).map_err(CliError::invalid)?;
        let sensor = Sensor::new(SensorId::new(id).map_err(CliError::invalid)?, location);
        sensors.put(sensor).await.map_err(CliError::failed)?;
    }
    print(&format!(
        "{} devices and {} sensors report for {seconds} s; {}",
        DEVICES.len(),
        SENSORS.len(),
        styled(FAINT, "look at the console, stop with Ctrl-C")
    ))?;
    let mut signals = Signals::listen().map_err(CliError::unavailable)?;
    let mut rounds = interval_at(Instant::now(), ROUND);
    for round in 0..seconds * ROUNDS_PER_SECOND {
        tokio::select! {
            _ = rounds.tick() => {}
            () = signals.next() => return Ok(()),
        }
        let mut updates = Vec::new();
        for (number, id) in DEVICES.iter().enumerate() {
            let number = number as u64;
            // Every device once at the start, then a few in every round.
            if round == 0 || (round + number * 7).is_multiple_of(5 + number % 4) {
                updates.push(Update::report(
                    shadow(id)?,
                    document(&state(id, number, round))?,
                ));
            }
        }
        let target = DEVICES[(round / DESIRE_EVERY) as usize % DEVICES.len()];
        let wanted = json!({ "mode": if round % (2 * DESIRE_EVERY) < DESIRE_EVERY { "eco" } else { "normal" } });
        match round % DESIRE_EVERY {
            0 => updates.push(Update::desire(shadow(target)?, document(&wanted)?)),
            FOLLOW_AFTER => updates.push(Update::report(shadow(target)?, document(&wanted)?)),
            _ => {}
        }
        for result in shadows.update_many(&updates).await {
            result.map_err(CliError::failed)?;
        }
        let (sensor, _, _) = SENSORS[(round % SENSORS.len() as u64) as usize];
        let signal = json!({ "sensor_id": sensor, "data": u8::from(wave(round, 37) > 70) });
        send_message(&sqs, SIGNALS, &signal.to_string(), sensor).await?;
    }
    Ok(())
}

fn shadow(id: &str) -> Result<ShadowId, CliError> {
    ShadowId::new(id).map_err(CliError::invalid)
}

fn document(value: &Value) -> Result<Document, CliError> {
    Document::from_value(value).map_err(CliError::invalid)
}

/// A number from 0 to 99 that rises and falls.
fn wave(round: u64, period: u64) -> u64 {
    let at = round % (2 * period);
    let up = if at < period { at } else { 2 * period - at };
    up * 99 / period
}

/// The state of a device in a round, by its kind.
fn state(id: &str, number: u64, round: u64) -> Value {
    let kind = id.rsplit('#').next().unwrap_or(id);
    let tenths = |base: i64, reach: i64, period: u64| {
        let offset = wave(round + number * 13, period) as i64 * reach / 99;
        (base + offset) as f64 / 10.0
    };
    let network = json!({ "rssi": { "value": -50 - (wave(round, 11) / 5) as i64, "unit": "dBm" } });
    match kind {
        "Thermostat" => json!({
            "temp": { "value": tenths(190, 25, 60), "unit": "°C" }, "target": { "value": 21 }, "network": network
        }),
        "Freezer" => json!({
            "temp": { "value": tenths(-190, 20, 45), "unit": "°C" }, "door": "closed",
            "compressor": { "running": !round.is_multiple_of(3), "power": { "value": tenths(1100, 200, 30), "unit": "W" } },
            "firmware": "4.2.1", "network": network
        }),
        "Fridge" => {
            json!({ "temp": { "value": tenths(30, 20, 40), "unit": "°C" }, "door": "closed" })
        }
        "Lamp" => {
            json!({ "led": if wave(round + number, 20) > 50 { "on" } else { "off" }, "brightness": wave(round, 50) })
        }
        "Lock" | "Door" => {
            json!({ "bolt": if wave(round + number, 40) > 85 { "open" } else { "locked" }, "battery": 87 })
        }
        "Electricity meter" => {
            json!({ "energy": { "value": 48213.0 + round as f64 / 100.0, "unit": "kWh" } })
        }
        "Water meter" => {
            json!({ "volume": { "value": 612.0 + (round / 8) as f64 / 1000.0, "unit": "m³" } })
        }
        "Charger" | "Solar inverter" | "Heat pump" => json!({
            "power": { "value": tenths(50, 90, 70), "unit": "kW" }, "session": { "energy": round as f64 / 50.0 }
        }),
        "Fan" => {
            let speed = ["off", "low", "high"][(wave(round, 30) / 34) as usize];
            json!({ "speed": speed })
        }
        _ => json!({ "alarm": wave(round + number, 90) > 97, "battery": 64 }),
    }
}
