//! Parses each message into what is to be done with it. Pure.

use antumbra_lambda_kit::batch::Rejection;
use antumbra_service::sensors::{InvalidSensor, SensorId, Signal, Value};
use antumbra_wire::signal::{self, Scalar, SignalMessage};

use crate::arrival::IncomingSignal;
use crate::rules::Rules;

/// The task for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Record the signal of a sensor.
    Signal(Signal),
    /// Record how far the queue was read; the liveness sweep sent it.
    Marker,
    /// Quarantine it.
    Reject(Rejection),
}

/// Parses a message.
pub(crate) fn task(message: &IncomingSignal, rules: &Rules) -> Task {
    let text = match &message.text {
        Ok(text) => text,
        Err(not_text) => return Task::Reject(Rejection::new("NotText", not_text)),
    };
    match signal::read(text, rules.allowed) {
        Ok(SignalMessage::Marker) => Task::Marker,
        Ok(SignalMessage::Signal(parsed)) => match to_signal(parsed, message, rules) {
            Ok(signal) => Task::Signal(signal),
            Err(error) => Task::Reject(Rejection::new("Invalid", error)),
        },
        Err(error) => Task::Reject(Rejection::new(error.reason(), error)),
    }
}

#[derive(Debug, thiserror::Error)]
enum InvalidSignal {
    #[error(transparent)]
    Sensor(#[from] InvalidSensor),
    #[error("the sensor id does not match {0}")]
    Id(String),
}

fn to_signal(
    parsed: signal::Signal,
    message: &IncomingSignal,
    rules: &Rules,
) -> Result<Signal, InvalidSignal> {
    let id = SensorId::new(parsed.sensor_id)?;
    if let Some(pattern) = rules.ids.as_ref().filter(|ids| !ids.allows(id.as_str())) {
        return Err(InvalidSignal::Id(pattern.as_str().to_owned()));
    }
    let value = match parsed.data {
        Scalar::Number(number) => Value::number(&number)?,
        Scalar::Text(text) => Value::text(text)?,
        Scalar::Boolean(yes) => Value::Boolean(yes),
    };
    let time = parsed.ts.unwrap_or(message.time);
    Ok(Signal::new(
        id,
        value,
        Some(time),
        parsed.seq,
        message.sent,
        &message.number,
    )?)
}
