//! `antumbra sensors import`: many sensors from lines of JSON.

use antumbra_service::sensors::{
    Address, InvalidSensor, Location, Sensor, SensorError, SensorId, SensorStore, SensorType,
    Sensors, SilenceTimeout, StoreError,
};
use clap::Args;
use futures_util::stream::{self, StreamExt as _};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::{CliError, Kind};
use crate::input::text;
use crate::output::{BAD, json, styled};
use crate::progress::Progress;

/// How many are registered at the same time.
const AT_ONCE: usize = 16;
/// How many refusals are told one by one.
const TOLD: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// @FILE, or - for standard input: one JSON object a line, with id and location (city, building, floor,
    /// room), and type, address and silenceAfterSeconds if wanted.
    lines: String,
}

/// A sensor as the other commands show it with --json; what the registry itself adds is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    id: String,
    location: Place,
    #[serde(default)]
    address: String,
    #[serde(default, rename = "type")]
    sensor_type: Option<String>,
    silence_after_seconds: Option<u64>,
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    #[serde(rename = "registeredAt")]
    _registered_at: Option<IgnoredAny>,
    #[serde(rename = "state")]
    _state: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    city: String,
    building: String,
    floor: String,
    room: String,
}

impl Line {
    fn sensor(self) -> Result<Sensor, InvalidSensor> {
        let Place {
            city,
            building,
            floor,
            room,
        } = &self.location;
        let location = Location::new(city, building, floor, room)?;
        let mut sensor = Sensor::new(SensorId::new(self.id)?, location);
        sensor.address = Address::new(self.address)?;
        if let Some(text) = self.sensor_type {
            sensor.sensor_type = SensorType::new(text)?;
        }
        if let Some(seconds) = self.silence_after_seconds {
            sensor.silence_after = SilenceTimeout::seconds(seconds)?;
        }
        Ok(sensor)
    }
}

impl Import {
    /// Registers all it can, and says which it could not and why. Done again, it changes nothing.
    pub(super) async fn run<S: SensorStore>(
        self,
        sensors: &Sensors<S>,
        as_json: bool,
    ) -> Result<String, CliError> {
        let text = text(&self.lines)?;
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let mut answers = stream::iter(lines)
            .map(|(at, line)| async move { (at + 1, register(sensors, line).await) })
            .buffered(AT_ONCE);
        let progress = Progress::new("lines");
        let (mut registered, mut refused) = (0_usize, 0_usize);
        while let Some((line, answer)) = answers.next().await {
            progress.step(1);
            match answer {
                Ok(()) => registered += 1,
                Err(failure) if failure.kind == Kind::Unavailable => return Err(failure),
                Err(failure) => {
                    refused += 1;
                    if refused <= TOLD {
                        let reason = failure.reason;
                        anstream::eprintln!("{} {reason}", styled(BAD, &format!("line {line}:")));
                    }
                }
            }
        }
        if refused > 0 {
            let all = registered + refused;
            return Err(CliError::failed(format!(
                "{refused} of {all} lines were refused, the others are registered"
            )));
        }
        if as_json {
            #[derive(Serialize)]
            struct Told {
                registered: usize,
            }
            return Ok(json(&Told { registered }));
        }
        Ok(format!("{registered} sensors are registered"))
    }
}

async fn register<S: SensorStore>(sensors: &Sensors<S>, line: &str) -> Result<(), CliError> {
    let line: Line = serde_json::from_str(line).map_err(CliError::invalid)?;
    let sensor = line.sensor()?;
    let mut tries = 0;
    loop {
        tries += 1;
        match sensors.register(sensor.clone()).await {
            Ok(_) => return Ok(()),
            // So many at once may be too fast for a while.
            Err(SensorError::Store(StoreError::Throttled)) if tries < 5 => {
                tokio::time::sleep(std::time::Duration::from_millis(200 << tries)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
