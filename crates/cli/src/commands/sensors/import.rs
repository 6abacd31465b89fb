//! `antumbra sensors import`: registers many sensors from lines of JSON.

use antumbra_local::progress::Progress;
use antumbra_service::api::NewSensor;
use antumbra_service::sensors::{Sensor, SensorError, SensorStore, Sensors, StoreError};
use clap::Args;
use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::error::{CliError, ExitStatus};
use crate::input::text;
use crate::output::{self, BAD, styled};

/// Sensors that are registered at the same time.
const CONCURRENCY: usize = 16;
/// Errors that are shown one by one.
const MAX_SHOWN_ERRORS: usize = 20;
/// Attempts to register a sensor while DynamoDB throttles.
const ATTEMPTS: u32 = 5;
/// Members that `antumbra sensors … --json` shows and registration does not take.
const IGNORED_MEMBERS: [&str; 3] = ["version", "registeredAt", "state"];

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// @FILE, or - for standard input: one JSON object a line, with id and location (city, building, floor,
    /// room), and optionally type, address and silenceAfterSeconds. Lines of `sensors … --json` work too.
    lines: String,
}

impl Import {
    /// Registers all valid lines and shows the errors of the others. Repeating it changes nothing.
    pub(super) async fn run<S: SensorStore>(
        self,
        sensors: &Sensors<S>,
        json: bool,
    ) -> Result<String, CliError> {
        let text = text(&self.lines)?;
        if !self.lines.starts_with(['@', '-', '{']) {
            return Err(CliError::invalid(format!(
                "{} is not JSON; write @{} for the lines of a file, or - for standard input",
                self.lines, self.lines
            )));
        }
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let progress = Progress::of(lines.clone().count(), "lines imported");
        let mut results = stream::iter(lines)
            .map(|(at, line)| async move { (at + 1, register(sensors, line).await) })
            .buffered(CONCURRENCY);
        let (mut registered, mut failed) = (0_usize, 0_usize);
        while let Some((line, result)) = results.next().await {
            progress.add(1);
            match result {
                Ok(()) => registered += 1,
                Err(error) if error.status == ExitStatus::Unavailable => return Err(error),
                Err(error) => {
                    failed += 1;
                    if failed <= MAX_SHOWN_ERRORS {
                        progress.clear();
                        let line = styled(BAD, &format!("line {line}:"));
                        anstream::eprintln!("{line} {}", error.reason);
                    }
                }
            }
        }
        if failed > 0 {
            let all = registered + failed;
            return Err(CliError::failed(format!(
                "{failed} of {all} lines are invalid; the others are registered"
            )));
        }
        match json {
            true => Ok(output::json(&json!({ "registered": registered }))),
            false => Ok(format!("{registered} sensors are registered")),
        }
    }
}

fn parse(line: &str) -> Result<Sensor, CliError> {
    let mut members: Map<String, Value> = serde_json::from_str(line).map_err(CliError::invalid)?;
    for member in IGNORED_MEMBERS {
        members.remove(member);
    }
    let sensor = NewSensor::deserialize(Value::Object(members)).map_err(CliError::invalid)?;
    Ok(sensor.try_into()?)
}

async fn register<S: SensorStore>(sensors: &Sensors<S>, line: &str) -> Result<(), CliError> {
    let sensor = parse(line)?;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match sensors.register(sensor.clone()).await {
            Ok(_) => return Ok(()),
            // An earlier import that was interrupted may have registered it.
            Err(SensorError::AlreadyRegistered)
                if sensors.get(&sensor.id).await?.sensor == sensor =>
            {
                return Ok(());
            }
            Err(SensorError::Store(StoreError::Throttled)) if attempt < ATTEMPTS => {
                tokio::time::sleep(std::time::Duration::from_millis(200 << attempt)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
