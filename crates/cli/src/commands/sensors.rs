//! `antumbra sensors …`: sensors, their states and readings.

mod import;
mod render;
mod signal;

use antumbra_lambda_kit::FUNCTIONS;
use antumbra_lambda_kit::functions::EventSource;
use antumbra_local::progress::Progress;
use antumbra_service::access::IdRanges;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::purges::{PurgeQueue, purge_due};
use antumbra_service::sensors::{
    Address, Connection, Cursor, DEFAULT_LATEST, InvalidSensor, Location, LocationPrefix, Reading,
    ReadingStore, Sensor, SensorId, SensorPatch, SensorQuery, SensorStore, SensorType, Sensors,
    SilenceTimeout, StateStore, TimeRange, Unit, Value, Version,
};
use antumbra_shadow::{Document, Timestamp};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::CliError;
use crate::input::{Paging, time};
use crate::output::{CHANGED, styled};
use import::Import;
pub(crate) use signal::SendSignal;

#[derive(Debug, Subcommand)]
pub(crate) enum SensorsCommand {
    #[command(flatten)]
    Stored(StoredCommand),
    /// Send a signal to the queue, as a sensor does.
    ///
    /// Example: antumbra sensors signal xa7v9Dfadr7H 1
    Signal(SendSignal),
}

/// Commands that read or write the table.
#[derive(Debug, Subcommand)]
pub(crate) enum StoredCommand {
    /// Register a sensor, with or without a location. A sensor that is registered already is refused.
    ///
    /// Example: antumbra sensors register xa7v9Dfadr7H Poznań A 2 13 --type lock --silence 3600
    Register {
        /// Sensor id: letters, digits, '-', '_', '.', ':'.
        id: String,
        #[command(flatten)]
        location: OptionalLocation,
        #[command(flatten)]
        details: Details,
    },
    /// Register many sensors from lines of JSON. Sensors that are registered already stay as they are.
    ///
    /// Example: antumbra sensors import @sensors.jsonl
    Import(Import),
    /// Move a sensor to another location.
    ///
    /// Example: antumbra sensors move xa7v9Dfadr7H Poznań A -1 P13
    Move {
        /// Sensor id.
        id: String,
        #[command(flatten)]
        location: LocationArguments,
        #[command(flatten)]
        expected: Expected,
    },
    /// Change a sensor, except for its location.
    ///
    /// Example: antumbra sensors update xa7v9Dfadr7H --silence 600
    Update {
        /// Sensor id.
        id: String,
        #[command(flatten)]
        details: Details,
        #[command(flatten)]
        expected: Expected,
    },
    /// Unregister a sensor and delete its state and links. Its readings are purged later.
    ///
    /// Example: antumbra sensors unregister xa7v9Dfadr7H
    Unregister {
        /// Sensor id.
        id: String,
        #[command(flatten)]
        expected: Expected,
    },
    /// Show a sensor and its state.
    ///
    /// Example: antumbra sensors show xa7v9Dfadr7H
    Show {
        /// Sensor id.
        id: String,
    },
    /// List sensors.
    ///
    /// Example: antumbra sensors list --connection lost --limit 20
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// List the sensors of a city, building, floor or room.
    ///
    /// Example: antumbra sensors in Poznań A 2
    In {
        /// City.
        city: String,
        /// Building.
        building: Option<String>,
        /// Floor.
        #[arg(allow_negative_numbers = true)]
        floor: Option<String>,
        /// Room.
        #[arg(allow_negative_numbers = true)]
        room: Option<String>,
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// Save a reading.
    ///
    /// Example: antumbra sensors read xa7v9Dfadr7H 21.5 --unit °C
    Read {
        /// Sensor id.
        id: String,
        /// Measured value: a number, true, false, or any other text.
        #[arg(allow_negative_numbers = true)]
        value: String,
        /// Unit, such as °C.
        #[arg(long)]
        unit: Option<String>,
        /// Measurement time (RFC 3339); now by default.
        #[arg(long, value_parser = time)]
        time: Option<Timestamp>,
        /// Sequence number that the device gave the reading.
        #[arg(long)]
        sequence: Option<u64>,
    },
    /// Show a sensor and its latest readings, newest first.
    ///
    /// Example: antumbra sensors latest xa7v9Dfadr7H --most 10
    Latest {
        /// Sensor id.
        id: String,
        /// Cursor of the previous page.
        #[arg(long)]
        cursor: Option<String>,
        /// Maximum number of readings.
        #[arg(long, default_value_t = DEFAULT_LATEST as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
        most: u32,
        /// Draw the readings.
        #[arg(long, conflicts_with = "json")]
        plot: bool,
    },
    /// Show the readings of a time range, oldest first unless --newest-first is given.
    ///
    /// Example: antumbra sensors between xa7v9Dfadr7H 2026-01-31T00:00:00Z 2026-02-01T00:00:00Z
    Between {
        /// Sensor id.
        id: String,
        /// Start of the range (RFC 3339).
        #[arg(value_parser = time)]
        from: Timestamp,
        /// End of the range (RFC 3339), not included.
        #[arg(value_parser = time)]
        to: Timestamp,
        /// Newest first.
        #[arg(long)]
        newest_first: bool,
        #[command(flatten)]
        paging: Paging,
        /// Draw the readings.
        #[arg(long, conflicts_with = "json")]
        plot: bool,
    },
    /// Show the latest state of a sensor.
    ///
    /// Example: antumbra sensors state xa7v9Dfadr7H
    State {
        /// Sensor id.
        id: String,
    },
    /// Delete the readings of unregistered sensors that are due for it.
    ///
    /// Example: antumbra sensors purge
    Purge,
}

impl StoredCommand {
    /// The error if the sensor does not exist.
    pub(crate) fn missing(&self) -> Option<String> {
        use StoredCommand as C;
        match self {
            C::Move { id, .. }
            | C::Update { id, .. }
            | C::Unregister { id, .. }
            | C::Show { id }
            | C::Read { id, .. }
            | C::Latest { id, .. }
            | C::Between { id, .. }
            | C::State { id } => Some(format!(
                "the sensor {id} does not exist; `antumbra sensors list` shows those that do"
            )),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LocationArguments {
    /// City.
    city: String,
    /// Building.
    building: String,
    /// Floor; may be negative.
    #[arg(allow_negative_numbers = true)]
    floor: String,
    /// Room.
    #[arg(allow_negative_numbers = true)]
    room: String,
}

impl LocationArguments {
    fn location(&self) -> Result<Location, InvalidSensor> {
        Location::new(&self.city, &self.building, &self.floor, &self.room)
    }
}

#[derive(Debug, Args)]
pub(crate) struct OptionalLocation {
    /// City; with it also building, floor and room.
    #[arg(requires = "room")]
    city: Option<String>,
    /// Building.
    building: Option<String>,
    /// Floor; may be negative.
    #[arg(allow_negative_numbers = true)]
    floor: Option<String>,
    /// Room.
    #[arg(allow_negative_numbers = true)]
    room: Option<String>,
}

impl OptionalLocation {
    fn location(&self) -> Result<Option<Location>, InvalidSensor> {
        match (&self.city, &self.building, &self.floor, &self.room) {
            (Some(city), Some(building), Some(floor), Some(room)) => {
                Location::new(city, building, floor, room).map(Some)
            }
            _ => Ok(None),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Details {
    /// Location in free text.
    #[arg(long)]
    address: Option<String>,
    /// Sensor type.
    #[arg(long = "type", value_name = "TYPE")]
    sensor_type: Option<String>,
    /// Seconds of silence after which the sensor is lost.
    #[arg(long, value_name = "SECONDS")]
    silence: Option<u64>,
}

impl Details {
    fn patch(self) -> Result<SensorPatch, InvalidSensor> {
        self.warn_about_a_short_silence();
        Ok(SensorPatch {
            address: self.address.map(Address::new).transpose()?,
            sensor_type: self.sensor_type.map(SensorType::new).transpose()?,
            silence_after: self.silence.map(SilenceTimeout::seconds).transpose()?,
        })
    }

    fn warn_about_a_short_silence(&self) {
        let mut sources = FUNCTIONS.iter().map(|function| function.event_source);
        let period = sources.find_map(|source| match source {
            EventSource::Schedule { period } => Some(period.as_secs()),
            _ => None,
        });
        if let (Some(silence), Some(period)) = (self.silence, period)
            && (1..period).contains(&silence)
        {
            anstream::eprintln!(
                "{} sensors are checked every {period} s, so a silence of {silence} s is noticed late",
                styled(CHANGED, "warning:"),
            );
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Start of the sensor id.
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Sensors of this type.
    #[arg(long = "type", value_name = "TYPE")]
    sensor_type: Option<String>,
    /// Sensors with this connection.
    #[arg(long, value_enum)]
    connection: Option<ConnectionArgument>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ConnectionArgument {
    Never,
    Online,
    Lost,
}

impl Filter {
    fn query(self, place: Option<LocationPrefix>) -> Result<SensorQuery, InvalidSensor> {
        Ok(SensorQuery {
            place,
            id_prefix: self.prefix,
            within: IdRanges::all(),
            sensor_type: self.sensor_type.map(SensorType::new).transpose()?,
            connection: self.connection.map(|connection| match connection {
                ConnectionArgument::Never => Connection::Never,
                ConnectionArgument::Online => Connection::Online,
                ConnectionArgument::Lost => Connection::Lost,
            }),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Expected {
    /// Change only if this version is stored.
    #[arg(long)]
    expected: Option<i64>,
}

impl Expected {
    fn version(&self) -> Option<Version> {
        self.expected.map(Version)
    }
}

pub(crate) async fn run<S: SensorStore + ReadingStore + StateStore + PurgeQueue>(
    command: StoredCommand,
    sensors: &Sensors<S>,
    json: bool,
) -> Result<String, CliError> {
    match command {
        StoredCommand::Register {
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
        StoredCommand::Import(import) => import.run(sensors, json).await,
        StoredCommand::Move {
            id,
            location,
            expected,
        } => {
            let (id, to) = (SensorId::new(id)?, location.location()?);
            let moved = sensors.move_to(&id, to, expected.version()).await?;
            Ok(render::sensor(&moved, json))
        }
        StoredCommand::Update {
            id,
            details,
            expected,
        } => {
            let (id, patch) = (SensorId::new(id)?, details.patch()?);
            let updated = sensors.update(&id, patch, expected.version()).await?;
            Ok(render::sensor(&updated, json))
        }
        StoredCommand::Unregister { id, expected } => {
            let id = SensorId::new(id)?;
            sensors.unregister(&id, expected.version()).await?;
            Ok(render::unregistered(&id, json))
        }
        StoredCommand::Show { id } => {
            let id = SensorId::new(id)?;
            let (registered, state) = (sensors.get(&id).await?, sensors.state(&id).await?);
            Ok(render::with_state(&registered, state, json))
        }
        StoredCommand::List { filter, paging } => {
            let (query, cursor) = (filter.query(None)?, paging.cursor());
            let page = sensors.list(&query, paging.limit(), cursor.as_ref());
            Ok(render::sensors(page.await?, json))
        }
        StoredCommand::In {
            city,
            building,
            floor,
            room,
            filter,
            paging,
        } => {
            let [building, floor, room] = [&building, &floor, &room].map(Option::as_deref);
            let place = LocationPrefix::new(&city, building, floor, room)?;
            let (query, cursor) = (filter.query(Some(place))?, paging.cursor());
            let page = sensors.list(&query, paging.limit(), cursor.as_ref());
            Ok(render::sensors(page.await?, json))
        }
        StoredCommand::Read {
            id,
            value,
            unit,
            time,
            sequence,
        } => {
            let id = SensorId::new(id)?;
            let time = time.unwrap_or_else(|| SystemClock.now());
            let unit = unit.map(Unit::new).transpose()?;
            let reading = Reading::new(scalar(&value)?, unit, time, sequence)?;
            let sensor = sensors.save(&id, std::slice::from_ref(&reading)).await?;
            Ok(render::readings(&sensor, &[reading], None, json))
        }
        StoredCommand::Latest {
            id,
            most,
            cursor,
            plot,
        } => {
            let (id, cursor) = (SensorId::new(id)?, cursor.map(Cursor));
            let latest = sensors.latest(&id, Some(most as usize), cursor.as_ref());
            let (registered, page) = latest.await?;
            match plot {
                true => Ok(render::plot(&registered, &page)),
                false => Ok(render::latest(&registered, page, json)),
            }
        }
        StoredCommand::Between {
            id,
            from,
            to,
            newest_first,
            paging,
            plot,
        } => {
            let id = SensorId::new(id)?;
            let (limit, cursor) = (paging.limit(), paging.cursor());
            let range = TimeRange {
                from,
                to,
                newest_first,
            };
            let page = sensors.in_range(&id, &range, limit, cursor.as_ref());
            let (sensor, page) = page.await?;
            match plot {
                true => Ok(render::plot(&sensor, &page)),
                false => Ok(render::readings(&sensor, &page.rows, page.next, json)),
            }
        }
        StoredCommand::State { id } => {
            let state = sensors.state(&SensorId::new(id)?).await?;
            Ok(render::state(state, json))
        }
        StoredCommand::Purge => {
            let progress = Progress::new("purge steps done");
            let more = || {
                progress.add(1);
                true
            };
            let ended = purge_due(sensors.store(), &SystemClock, more).await;
            Ok(render::purged(ended?, json))
        }
    }
}

/// Parses a JSON scalar; any other text is the value itself.
fn scalar(text: &str) -> Result<Value, InvalidSensor> {
    let document = Document::parse(&format!(r#"{{"value":{text}}}"#));
    // A text such as `1,"b":2` makes a second member.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_scalars_are_values_and_other_texts_are_texts() {
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
