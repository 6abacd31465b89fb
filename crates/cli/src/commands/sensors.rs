//! `antumbra sensors …`: the registry, its readings and states on the command line.

mod import;
mod render;
mod signal;

use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::sensors::{
    Address, Cursor, DEFAULT_LATEST, InvalidSensor, Location, LocationPrefix, PurgeQueue, Reading,
    ReadingStore, Sensor, SensorError, SensorId, SensorPatch, SensorStore, SensorType, Sensors,
    SilenceTimeout, Unit, Value, Version, purge_due,
};
use antumbra_shadow::{Document, Timestamp};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::progress::Progress;
use import::Import;
pub(crate) use signal::Sent;

#[derive(Debug, Subcommand)]
pub(crate) enum SensorsCommand {
    #[command(flatten)]
    Act(Verb),
    /// Say something as a sensor does: put a signal in the queue that sensors speak to.
    ///
    /// Example: antumbra sensors signal xa7v9Dfadr7H 1
    Signal(Sent),
}

/// What the registry, the readings and the states are asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Register a sensor; the same again changes nothing.
    ///
    /// Example: antumbra sensors register xa7v9Dfadr7H Poznań A 2 13 --type lock --silence 3600
    Register {
        /// The sensor's id: letters, digits, '-', '_', '.', ':'.
        id: String,
        #[command(flatten)]
        location: Where,
        #[command(flatten)]
        details: Details,
    },
    /// Register many sensors from lines of JSON; those that are there stay as they are.
    ///
    /// Example: antumbra sensors import @sensors.jsonl
    Import(Import),
    /// Take a sensor elsewhere.
    ///
    /// Example: antumbra sensors move xa7v9Dfadr7H Poznań A -1 P13
    Move {
        /// The sensor's id.
        id: String,
        #[command(flatten)]
        location: Where,
        #[command(flatten)]
        expected: Expected,
    },
    /// Change a sensor where it stands.
    ///
    /// Example: antumbra sensors update xa7v9Dfadr7H --silence 600
    Update {
        /// The sensor's id.
        id: String,
        #[command(flatten)]
        details: Details,
        #[command(flatten)]
        expected: Expected,
    },
    /// Take a sensor away with its state and its links; its readings are purged later.
    ///
    /// Example: antumbra sensors unregister xa7v9Dfadr7H
    Unregister {
        /// The sensor's id.
        id: String,
        #[command(flatten)]
        expected: Expected,
    },
    /// Show a sensor and its state.
    ///
    /// Example: antumbra sensors show xa7v9Dfadr7H
    Show {
        /// The sensor's id.
        id: String,
    },
    /// List all sensors.
    ///
    /// Example: antumbra sensors list --limit 20
    List(Paging),
    /// List the sensors in a city, or down to a building, a floor, a room.
    ///
    /// Example: antumbra sensors in Poznań A 2
    In {
        /// The city.
        city: String,
        /// The building.
        building: Option<String>,
        /// The floor.
        #[arg(allow_negative_numbers = true)]
        floor: Option<String>,
        /// The room.
        #[arg(allow_negative_numbers = true)]
        room: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Save a reading.
    ///
    /// Example: antumbra sensors read xa7v9Dfadr7H 21.5 --unit °C
    Read {
        /// The sensor's id.
        id: String,
        /// A number, true, false, or any other text.
        #[arg(allow_negative_numbers = true)]
        value: String,
        /// The unit, such as °C.
        #[arg(long)]
        unit: Option<String>,
        /// When it was measured (RFC 3339); now, unless said otherwise.
        #[arg(long)]
        time: Option<String>,
        /// The device's own number of the reading.
        #[arg(long)]
        sequence: Option<u64>,
    },
    /// Show a sensor and its latest readings, newest first.
    ///
    /// Example: antumbra sensors latest xa7v9Dfadr7H --most 10
    Latest {
        /// The sensor's id.
        id: String,
        /// How many at most.
        #[arg(long, default_value_t = DEFAULT_LATEST as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
        most: u32,
    },
    /// Show the readings from a time until just before another, oldest first.
    ///
    /// Example: antumbra sensors between xa7v9Dfadr7H 2026-01-31T00:00:00Z 2026-02-01T00:00:00Z
    Between {
        /// The sensor's id.
        id: String,
        /// The first time (RFC 3339).
        from: String,
        /// The time that ends it, itself not included (RFC 3339).
        to: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show what a sensor last said, and whether it talks.
    ///
    /// Example: antumbra sensors state xa7v9Dfadr7H
    State {
        /// The sensor's id.
        id: String,
    },
    /// Delete what unregistered sensors left behind, as far as it is due.
    ///
    /// Example: antumbra sensors purge
    Purge,
}

#[derive(Debug, Args)]
pub(crate) struct Where {
    /// The city.
    city: String,
    /// The building.
    building: String,
    /// The floor; may be negative.
    #[arg(allow_negative_numbers = true)]
    floor: String,
    /// The room.
    #[arg(allow_negative_numbers = true)]
    room: String,
}

impl Where {
    fn location(&self) -> Result<Location, InvalidSensor> {
        Location::new(&self.city, &self.building, &self.floor, &self.room)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Details {
    /// The address in free words.
    #[arg(long)]
    address: Option<String>,
    /// The sensor's type.
    #[arg(long = "type", value_name = "TYPE")]
    sensor_type: Option<String>,
    /// Seconds of silence after which it is lost.
    #[arg(long, value_name = "SECONDS")]
    silence: Option<u64>,
}

impl Details {
    fn patch(self) -> Result<SensorPatch, InvalidSensor> {
        Ok(SensorPatch {
            address: self.address.map(Address::new).transpose()?,
            sensor_type: self.sensor_type.map(SensorType::new).transpose()?,
            silence_after: self.silence.map(SilenceTimeout::seconds).transpose()?,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Expected {
    /// Only if this version is stored.
    #[arg(long)]
    expected: Option<i64>,
}

impl Expected {
    fn version(&self) -> Option<Version> {
        self.expected.map(Version)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Paging {
    /// How many rows to show at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on where an earlier listing stopped.
    #[arg(long)]
    cursor: Option<String>,
}

impl Paging {
    fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone().map(Cursor)
    }
}

pub(crate) async fn run<S: SensorStore + ReadingStore + PurgeQueue>(
    command: Verb,
    sensors: &Sensors<S>,
    json: bool,
) -> Result<String, CliError> {
    match command {
        Verb::Register {
            id,
            location,
            details,
        } => {
            let mut sensor = Sensor::new(SensorId::new(id)?, location.location()?);
            let patch = details.patch()?;
            sensor.address = patch.address.unwrap_or_default();
            sensor.sensor_type = patch.sensor_type.unwrap_or_default();
            sensor.silence_after = patch.silence_after.unwrap_or_default();
            let registered = sensors.register(sensor).await?;
            Ok(render::sensor(&registered, json))
        }
        Verb::Import(import) => import.run(sensors, json).await,
        Verb::Move {
            id,
            location,
            expected,
        } => {
            let (id, to) = (SensorId::new(id)?, location.location()?);
            let moved = sensors.move_to(&id, to, expected.version()).await?;
            Ok(render::sensor(&moved, json))
        }
        Verb::Update {
            id,
            details,
            expected,
        } => {
            let (id, patch) = (SensorId::new(id)?, details.patch()?);
            let updated = sensors.update(&id, patch, expected.version()).await?;
            Ok(render::sensor(&updated, json))
        }
        Verb::Unregister { id, expected } => {
            let id = SensorId::new(id)?;
            sensors.unregister(&id, expected.version()).await?;
            Ok(render::unregistered(&id, json))
        }
        Verb::Show { id } => {
            let id = SensorId::new(id)?;
            let (registered, state) = (sensors.get(&id).await?, sensors.state(&id).await?);
            Ok(render::whole(&registered, &state, json))
        }
        Verb::List(paging) => {
            let cursor = paging.cursor();
            let page = sensors.all(paging.limit as usize, cursor.as_ref()).await?;
            Ok(render::rows(&page, json))
        }
        Verb::In {
            city,
            building,
            floor,
            room,
            paging,
        } => {
            let [building, floor, room] = [&building, &floor, &room].map(Option::as_deref);
            let place = LocationPrefix::new(&city, building, floor, room)?;
            let cursor = paging.cursor();
            let limit = paging.limit as usize;
            let page = sensors.in_place(&place, limit, cursor.as_ref()).await?;
            Ok(render::rows(&page, json))
        }
        Verb::Read {
            id,
            value,
            unit,
            time,
            sequence,
        } => {
            let id = SensorId::new(id)?;
            let time = time.map(|text| parsed_time(&text)).transpose()?;
            let time = time.unwrap_or_else(|| SystemClock.now());
            let unit = unit.map(Unit::new).transpose()?;
            let reading = Reading::new(scalar(&value)?, unit, time, sequence)?;
            sensors.save(&id, std::slice::from_ref(&reading)).await?;
            Ok(render::readings(&id, &[reading], None, json))
        }
        Verb::Latest { id, most } => {
            let id = SensorId::new(id)?;
            let (registered, readings) = sensors.latest(&id, Some(most as usize)).await?;
            Ok(render::latest(&registered, &readings, json))
        }
        Verb::Between {
            id,
            from,
            to,
            paging,
        } => {
            let id = SensorId::new(id)?;
            let (from, to) = (parsed_time(&from)?, parsed_time(&to)?);
            let (limit, cursor) = (paging.limit as usize, paging.cursor());
            let page = sensors
                .between(&id, from, to, limit, cursor.as_ref())
                .await?;
            let next = page.next.as_ref();
            Ok(render::readings(&id, &page.rows, next, json))
        }
        Verb::State { id } => {
            let state = sensors.state(&SensorId::new(id)?).await?;
            Ok(render::state(&state, json))
        }
        Verb::Purge => {
            let progress = Progress::new("steps of purges");
            let more = || {
                progress.step(1);
                true
            };
            let ended = purge_due(sensors.store(), &SystemClock, more).await;
            Ok(render::purged(ended.map_err(SensorError::Store)?, json))
        }
    }
}

/// What stands there as JSON, if that is a scalar; otherwise the text itself.
fn scalar(text: &str) -> Result<Value, InvalidSensor> {
    let document = Document::parse(&format!(r#"{{"value":{text}}}"#));
    // More than one member is a text that only begins like a value.
    let value = document
        .ok()
        .filter(|document| document.view().children().count() == 1);
    let value = value
        .as_ref()
        .and_then(|document| document.pointer("/value"));
    match value.filter(|value| !value.is_container()).map(Value::of) {
        Some(Ok(value)) => Ok(value),
        _ => Value::text(text),
    }
}

fn parsed_time(text: &str) -> Result<Timestamp, CliError> {
    let fault = || CliError::invalid(format!("{text:?} is not an RFC 3339 time"));
    Timestamp::parse(text).ok_or_else(fault)
}

impl From<InvalidSensor> for CliError {
    fn from(error: InvalidSensor) -> CliError {
        CliError::invalid(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_looks_like() {
        for (text, value) in [
            ("21.50", Value::number("21.5").unwrap()),
            ("-1", Value::whole(-1)),
            ("true", Value::Boolean(true)),
            ("\"1\"", Value::text("1").unwrap()),
            ("open", Value::text("open").unwrap()),
            ("", Value::text("").unwrap()),
            ("null", Value::text("null").unwrap()),
            ("[1]", Value::text("[1]").unwrap()),
            ("1,\"b\":2", Value::text("1,\"b\":2").unwrap()),
        ] {
            assert_eq!(scalar(text).unwrap(), value, "{text}");
        }
    }
}
