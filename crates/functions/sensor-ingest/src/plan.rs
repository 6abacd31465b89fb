//! What each message is, and which wait for which. Pure.

use std::collections::HashMap;

use antumbra_service::sensors::{InvalidSensor, SensorId, Signal, Value};
use antumbra_wire::signal::{self, Scalar, SignalError, SignalMessage};

use crate::arrival::IncomingSignal;
use crate::rules::Rules;

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// A sensor speaks.
    Signal(Signal),
    /// The sweep asks how far the queue was read.
    Marker,
    /// It can never be taken in.
    Refuse(Rejection),
}

/// Why a message can never be taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: &'static str,
    pub(crate) detail: String,
}

impl Rejection {
    pub(crate) fn new(reason: &'static str, detail: impl ToString) -> Rejection {
        Rejection {
            reason,
            detail: detail.to_string(),
        }
    }
}

impl From<SignalError> for Rejection {
    fn from(error: SignalError) -> Rejection {
        Rejection::new(error.reason(), error)
    }
}

impl From<InvalidSensor> for Rejection {
    fn from(error: InvalidSensor) -> Rejection {
        Rejection::new("Invalid", error)
    }
}

/// What a message is.
pub(crate) fn task(arrival: &IncomingSignal, rules: &Rules) -> Task {
    let text = match &arrival.text {
        Ok(text) => text,
        Err(not_text) => return Task::Refuse(Rejection::new("NotText", not_text)),
    };
    match signal::read(text, rules.allowed) {
        Ok(SignalMessage::Marker) => Task::Marker,
        Ok(SignalMessage::Signal(said)) => match to_signal(said, arrival, rules) {
            Ok(signal) => Task::Signal(signal),
            Err(refusal) => Task::Refuse(refusal),
        },
        Err(error) => Task::Refuse(error.into()),
    }
}

fn to_signal(
    said: signal::Signal,
    arrival: &IncomingSignal,
    rules: &Rules,
) -> Result<Signal, Rejection> {
    let id = SensorId::new(said.sensor_id)?;
    if let Some(pattern) = rules.ids.as_ref().filter(|ids| !ids.allows(id.as_str())) {
        let detail = format!("the sensor id does not match {}", pattern.as_str());
        return Err(Rejection::new("Invalid", detail));
    }
    let value = match said.data {
        Scalar::Number(number) => Value::number(&number)?,
        Scalar::Text(text) => Value::text(text)?,
        Scalar::Boolean(yes) => Value::Boolean(yes),
    };
    let time = said.ts.unwrap_or(arrival.time);
    let signal = Signal::new(
        id,
        value,
        Some(time),
        said.seq,
        arrival.sent,
        &arrival.number,
    );
    Ok(signal?)
}

/// Which messages wait for which: those of one lane are taken in one after another. A FIFO queue's group
/// is a lane, since nothing of it may be overtaken; elsewhere a sensor is.
pub(crate) fn lanes(arrivals: &[IncomingSignal], tasks: &[Task]) -> Vec<Vec<usize>> {
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    let mut of_key: HashMap<(bool, &str), usize> = HashMap::new();
    for (index, (arrival, task)) in arrivals.iter().zip(tasks).enumerate() {
        let key = match (&arrival.group, task) {
            (Some(group), _) => (true, group.as_str()),
            (None, Task::Signal(signal)) => (false, signal.sensor().as_str()),
            (None, _) => continue,
        };
        let lane = *of_key.entry(key).or_insert_with(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(index);
    }
    lanes
}
