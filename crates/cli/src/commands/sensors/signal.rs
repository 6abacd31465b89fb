//! `antumbra sensors signal`: what a sensor would put in its queue.

use antumbra_service::sensors::{SensorId, Value};
use antumbra_shadow::Document;
use antumbra_wire::signal::{SignalMessage, ValueType, read};
use clap::Args;
use serde::Serialize;

use super::{parsed_time, scalar};
use crate::connect::Connection;
use crate::error::CliError;
use crate::output::{FAINT, STRONG, json, styled};
use crate::queue;

#[derive(Debug, Args)]
pub(crate) struct Sent {
    /// The sensor's id.
    id: String,
    /// A number, true, false, or any other text.
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// When it was measured (RFC 3339); when it arrives, unless said.
    #[arg(long)]
    time: Option<String>,
    /// The device's own count of messages.
    #[arg(long)]
    sequence: Option<u64>,
    /// The queue: its name or its URL.
    #[arg(
        long,
        default_value = "antumbra-signals",
        env = "ANTUMBRA_SIGNALS_QUEUE"
    )]
    queue: String,
}

impl Sent {
    pub(crate) async fn run(
        self,
        connection: &Connection,
        as_json: bool,
    ) -> Result<String, CliError> {
        let text = self.text()?;
        let client = aws_sdk_sqs::Client::new(&connection.aws().await);
        let message = queue::send(&client, &self.queue, &text, &self.id).await?;
        if as_json {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Told<'a> {
                sensor: &'a str,
                sqs_message_id: &'a str,
            }
            return Ok(json(&Told {
                sensor: &self.id,
                sqs_message_id: &message,
            }));
        }
        let (id, queue) = (styled(STRONG, &self.id), styled(FAINT, &self.queue));
        Ok(format!("{id}  {} sent to {queue}", scalar(&self.value)?))
    }

    /// Refuses here what the other end of the queue would refuse, where nobody would see it.
    fn text(&self) -> Result<String, CliError> {
        #[derive(Serialize)]
        struct Signal<'a> {
            sensor_id: &'a str,
            data: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            ts: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            seq: Option<u64>,
        }
        SensorId::new(self.id.as_str())?;
        self.time.as_deref().map(parsed_time).transpose()?;
        let signal = Signal {
            sensor_id: &self.id,
            data: &scalar(&self.value)?,
            ts: self.time.as_deref(),
            seq: self.sequence,
        };
        let text = Document::from_value(&signal).map_err(CliError::invalid)?;
        let text = text.view().to_json();
        match read(&text, ValueType::Scalar).map_err(CliError::invalid)? {
            SignalMessage::Signal(_) => Ok(text),
            SignalMessage::Marker => Err(CliError::invalid("that is no signal")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, time: Option<&str>) -> Result<String, CliError> {
        let sent = Sent {
            id: "door-7".to_owned(),
            value: value.to_owned(),
            time: time.map(str::to_owned),
            sequence: Some(7),
            queue: String::new(),
        };
        sent.text()
    }

    #[test]
    fn a_signal_says_what_was_typed_to_the_last_digit() {
        let time = Some("2026-01-31T12:00:00Z");
        assert_eq!(
            text("12345678901234567890.5", time).unwrap(),
            r#"{"data":12345678901234567890.5,"sensor_id":"door-7","seq":7,"ts":"2026-01-31T12:00:00Z"}"#
        );
        assert!(text("open", None).unwrap().contains(r#""data":"open""#));
        assert!(text("1", Some("yesterday")).is_err());
        assert!(text(&"x".repeat(10_000), None).is_err());
    }
}
