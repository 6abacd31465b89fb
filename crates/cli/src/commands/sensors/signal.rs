//! `antumbra sensors signal`: sends a signal as a sensor does.

use antumbra_lambda_kit::functions::queues;
use antumbra_service::sensors::{SensorError, SensorId, SignalMessage, Value, ValueType};
use antumbra_shadow::{Document, Timestamp};
use clap::Args;
use serde::Serialize;

use super::scalar;
use crate::connection::{Connection, Service};
use crate::error::CliError;
use crate::input::time;
use crate::output::{CHANGED, FAINT, STRONG, json, styled};
use crate::send_message::send_message;

/// Maximum time to look up the sensor, which the sender may not be allowed to.
const LOOKUP: std::time::Duration = std::time::Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct SendSignal {
    /// Sensor id.
    id: String,
    /// Measured value: a number, true, false, or any other text.
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// Measurement time (RFC 3339); the time of arrival by default.
    #[arg(long, value_parser = time)]
    time: Option<Timestamp>,
    /// Sequence number that the device gave the signal.
    #[arg(long)]
    sequence: Option<u64>,
    /// Queue name or URL [default: that of the deployment]
    #[arg(long, env = "ANTUMBRA_SIGNALS_QUEUE")]
    queue: Option<String>,
}

impl SendSignal {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        as_json: bool,
    ) -> Result<String, CliError> {
        let text = self.text()?;
        connection.check(Service::Sqs).await?;
        let client = aws_sdk_sqs::Client::new(&connection.aws().await);
        let queue = self.queue.clone();
        let queue = queue.unwrap_or_else(|| connection.queue(queues::SIGNALS));
        let message = send_message(&client, &queue, &text, &self.id).await?;
        self.warn_if_unknown(connection).await;
        if as_json {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Sent<'a> {
                sensor: &'a str,
                sqs_message_id: &'a str,
            }
            return Ok(json(&Sent {
                sensor: &self.id,
                sqs_message_id: &message,
            }));
        }
        let (id, queue) = (styled(STRONG, &self.id), styled(FAINT, &queue));
        Ok(format!("{id}  {} sent to {queue}", scalar(&self.value)?))
    }

    /// Warns if the sensor is not registered, as far as the table can be read.
    async fn warn_if_unknown(&self, connection: &Connection) {
        let sensors = connection.sensors().await;
        let Ok(id) = SensorId::new(self.id.as_str()) else {
            return;
        };
        let found = tokio::time::timeout(LOOKUP, sensors.get(&id)).await;
        if let Ok(Err(SensorError::NotFound)) = found {
            anstream::eprintln!(
                "{} {id} is not registered; unless AUTO_REGISTER is on, the signal ends in {}",
                styled(CHANGED, "warning:"),
                connection.queue(queues::QUARANTINE)
            );
        }
    }

    /// Formats the signal, and rejects it here if the consumer of the queue would reject it.
    fn text(&self) -> Result<String, CliError> {
        #[derive(Serialize)]
        struct Signal<'a> {
            sensor_id: &'a str,
            data: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            ts: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            seq: Option<u64>,
        }
        SensorId::new(self.id.as_str())?;
        let signal = Signal {
            sensor_id: &self.id,
            data: &scalar(&self.value)?,
            ts: self.time.map(|time| time.to_string()),
            seq: self.sequence,
        };
        let text = Document::from_value(&signal).map_err(CliError::invalid)?;
        let text = text.view().to_json();
        match SignalMessage::parse(&text, ValueType::Scalar).map_err(CliError::invalid)? {
            SignalMessage::Signal(_) => Ok(text),
            SignalMessage::Marker => Err(CliError::invalid(
                "the value makes a marker, which is not a signal",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, time: Option<&str>) -> Result<String, CliError> {
        let signal = SendSignal {
            id: "door-7".to_owned(),
            value: value.to_owned(),
            time: time.map(|time| Timestamp::parse(time).unwrap()),
            sequence: Some(7),
            queue: None,
        };
        signal.text()
    }

    #[test]
    fn numbers_of_a_signal_are_exact() {
        let time = Some("2026-01-31T12:00:00Z");
        assert_eq!(
            text("12345678901234567890.5", time).unwrap(),
            r#"{"data":12345678901234567890.5,"sensor_id":"door-7","seq":7,"ts":"2026-01-31T12:00:00Z"}"#
        );
        assert!(text("open", None).unwrap().contains(r#""data":"open""#));
        assert!(text(&"x".repeat(10_000), None).is_err());
    }
}
