//! A signal as the text of one queue message.
//!
//! ```json
//! {"sensor_id": "0xA", "data": 1, "ts": "2026-01-31T12:00:00Z", "seq": 7}
//! ```
//!
//! Parsed strictly: a repeated name or a value of another kind is rejected, so that a mistake is found where it is
//! made. Numbers are compared by value: `1.0` is 1. Further members are kept with the reading.
//!
//! The queue also carries the [marker](SignalMessage::Marker), which shows how far the queue was read.

use antumbra_shadow::{Document, DocumentError, Kind, Timestamp, View};
use serde_json::Value as Json;

use super::id::{InvalidSensor, SensorId};
use super::value::Value;
use crate::shadows::adapter::check_document;
use crate::store::StoreError;
use antumbra_shadow::word_enum;

/// The text of a marker.
pub const MARKER: &str = r#"{"marker":"liveness"}"#;
/// Bytes of a signal.
pub const SIGNAL_BYTES: usize = 8 * 1024;
/// Characters of a rejected value that an error shows.
const SHOWN_CHARS: usize = 40;
/// Start of the year 10000 in nanoseconds since 1970: years have four digits.
const TIME_END_NANOSECONDS: i128 = 253_402_300_800 * 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalMessage {
    Signal(SignalPayload),
    /// Sent by the liveness sweep. It carries nothing: only the queue's own sent time counts.
    Marker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalPayload {
    /// The sensor; it may not be registered.
    pub sensor_id: SensorId,
    pub data: Value,
    /// Time of the measurement by the device's clock.
    pub ts: Option<Timestamp>,
    /// The device's own count of messages.
    pub seq: Option<u64>,
    /// Further members, if there are any.
    pub fields: Option<Document>,
}

word_enum! {
    /// Values that a deployment accepts.
    #[derive(Default)]
    pub enum ValueType as "type of values" {
        /// 0 and 1, as locks send.
        #[default]
        Binary = "binary",
        /// Any number, text or boolean.
        Scalar = "scalar",
    }
}

/// Error of a text that is not a signal. A retry does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    #[error("the message has {bytes} bytes, the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error(transparent)]
    NotJson(#[from] DocumentError),
    #[error(transparent)]
    Sensor(#[from] InvalidSensor),
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A further member cannot be stored.
    #[error("{0}")]
    Unstorable(StoreError),
    #[error("{member} is {found}, expected {expected}")]
    Wrong {
        member: &'static str,
        expected: &'static str,
        found: String,
    },
}

impl SignalError {
    /// Returns the reason for the quarantine in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            SignalError::TooLarge { .. } => "TooLarge",
            SignalError::NotJson(_) => "NotJson",
            _ => "Invalid",
        }
    }
}

impl SignalMessage {
    pub fn parse(text: &str, allowed: ValueType) -> Result<SignalMessage, SignalError> {
        if text == MARKER {
            return Ok(SignalMessage::Marker);
        }
        if text.len() > SIGNAL_BYTES {
            return Err(SignalError::TooLarge {
                bytes: text.len(),
                limit: SIGNAL_BYTES,
            });
        }
        let document = Document::parse(text)?;
        let (mut sensor_id, mut data, mut ts, mut seq) = (None, None, None, None);
        let mut fields = Vec::new();
        for member in document.view().children() {
            match member.key().as_ref() {
                "sensor_id" => sensor_id = Some(parse_id(member)?),
                "data" => data = Some(parse_data(member, allowed)?),
                "ts" => ts = Some(parse_ts(member)?),
                "seq" => seq = Some(parse_seq(member)?),
                other => fields.push(format!("{}:{}", Json::from(other), member.to_json())),
            }
        }
        Ok(SignalMessage::Signal(SignalPayload {
            sensor_id: sensor_id.ok_or(SignalError::Missing("sensor_id"))?,
            data: data.ok_or(SignalError::Missing("data"))?,
            ts,
            seq,
            fields: further_fields(&fields)?,
        }))
    }
}

/// Parses the further members of a signal, given as the texts of their names and values.
fn further_fields(members: &[String]) -> Result<Option<Document>, SignalError> {
    if members.is_empty() {
        return Ok(None);
    }
    let fields = Document::parse(&format!("{{{}}}", members.join(",")))?;
    check_document(&fields).map_err(SignalError::Unstorable)?;
    Ok(Some(fields))
}

fn parse_id(view: View<'_>) -> Result<SensorId, SignalError> {
    let text = view.as_str().filter(|id| !id.is_empty());
    let text = text.ok_or_else(|| wrong("sensor_id", "a text that is not empty", view))?;
    Ok(SensorId::new(text).map_err(InvalidSensor::from)?)
}

fn parse_data(view: View<'_>, allowed: ValueType) -> Result<Value, SignalError> {
    match (allowed, view.kind()) {
        (ValueType::Binary, _) if !matches!(view.as_number(), Some("0" | "1")) => {
            Err(wrong("data", "0 or 1", view))
        }
        (_, Kind::Number | Kind::String | Kind::Bool) => Ok(Value::of(view)?),
        _ => Err(wrong("data", "a number, text or boolean", view)),
    }
}

/// Parses years of four digits, because keys are ordered by the text of a time.
fn parse_ts(view: View<'_>) -> Result<Timestamp, SignalError> {
    Timestamp::of(view)
        .filter(|instant| (0..TIME_END_NANOSECONDS).contains(&instant.nanoseconds()))
        .ok_or_else(|| {
            let expected = "RFC 3339 or a Unix time, between 1970 and 9999";
            wrong("ts", expected, view)
        })
}

fn parse_seq(view: View<'_>) -> Result<u64, SignalError> {
    let number = view.as_number().and_then(|number| number.parse().ok());
    number.ok_or_else(|| wrong("seq", "a whole number of 64 bits, not negative", view))
}

fn wrong(member: &'static str, expected: &'static str, view: View<'_>) -> SignalError {
    let found = match view.kind() {
        Kind::Object => "an object".to_owned(),
        Kind::Array => "an array".to_owned(),
        _ => shorten(&view.to_json()),
    };
    SignalError::Wrong {
        member,
        expected,
        found,
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
