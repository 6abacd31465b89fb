//! A signal of a sensor, as the text of one queue message.
//!
//! ```json
//! {"sensor_id": "0xA", "data": 1, "ts": "2026-01-31T12:00:00Z", "seq": 7}
//! ```
//!
//! Read strictly: a member too many, a name that stands twice, or a value of another kind is refused, so
//! that a mistake is found where it is made and not in a state that never changes. Numbers count by
//! their value: `1.0` is 1.
//!
//! The queue also carries the [marker](SignalMessage::Marker), which shows how far the queue was read.

use antumbra_shadow::{Document, DocumentError, Kind, Timestamp, View};

use crate::limits;

/// The text of a marker.
pub const MARKER: &str = r#"{"marker":"liveness"}"#;

/// What the text of a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalMessage {
    /// A sensor speaks.
    Signal(Signal),
    /// The liveness sweep asks how far the queue was read. It says nothing else; the queue's own sent
    /// time counts, so that nobody can claim more than is so.
    Marker,
}

/// What a sensor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Who. Whether such a sensor can exist is for the registry to say.
    pub sensor_id: String,
    /// What it says.
    pub data: Scalar,
    /// When it measured, by its own clock.
    pub ts: Option<Timestamp>,
    /// Its own count of messages.
    pub seq: Option<u64>,
}

/// A value without parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A number in its one written form, exact.
    Number(String),
    /// A text.
    Text(String),
    /// True or false.
    Boolean(bool),
}

/// Which values a deployment lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValueType {
    /// 0 and 1, as locks send.
    #[default]
    Binary,
    /// Any number, text or boolean.
    Scalar,
}

/// A text that names no set of values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`binary` or `scalar` is expected")]
pub struct UnknownAllowed;

impl std::str::FromStr for ValueType {
    type Err = UnknownAllowed;

    fn from_str(text: &str) -> Result<ValueType, UnknownAllowed> {
        match text {
            "binary" => Ok(ValueType::Binary),
            "scalar" => Ok(ValueType::Scalar),
            _ => Err(UnknownAllowed),
        }
    }
}

/// Why a text is no signal. None of these goes away by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// More text than a signal can need.
    #[error("the message has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// It is not a JSON object.
    #[error(transparent)]
    NotJson(#[from] DocumentError),
    /// A member that must be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A member no signal has.
    #[error("{0:?} is not part of a signal: sensor_id, data, ts and seq are")]
    Unknown(String),
    /// A member that says something else than it may.
    #[error("{member} is {found}, expected {expected}")]
    Wrong {
        /// Its name.
        member: &'static str,
        /// What may stand there.
        expected: &'static str,
        /// What does.
        found: String,
    },
}

impl SignalError {
    /// One word for whoever sorts what was refused.
    pub fn reason(&self) -> &'static str {
        match self {
            SignalError::TooLarge { .. } => "TooLarge",
            SignalError::NotJson(_) => "NotJson",
            SignalError::Missing(_) | SignalError::Unknown(_) | SignalError::Wrong { .. } => {
                "Invalid"
            }
        }
    }
}

/// Reads the text of a message.
///
/// ```
/// use antumbra_wire::signal::{Scalar, SignalMessage, ValueType, read};
///
/// let text = r#"{"sensor_id":"0xA","data":1}"#;
/// let Ok(SignalMessage::Signal(signal)) = read(text, ValueType::Binary) else { panic!() };
/// assert_eq!(signal.data, Scalar::Number("1".to_owned()));
/// let refused = read(r#"{"sensor_id":"0xA","data":2}"#, ValueType::Binary).unwrap_err();
/// assert_eq!(refused.to_string(), "data is 2, expected 0 or 1");
/// ```
pub fn read(text: &str, allowed: ValueType) -> Result<SignalMessage, SignalError> {
    if text == MARKER {
        return Ok(SignalMessage::Marker);
    }
    if text.len() > limits::SIGNAL_BYTES {
        return Err(SignalError::TooLarge {
            bytes: text.len(),
            limit: limits::SIGNAL_BYTES,
        });
    }
    let document = Document::parse(text)?;
    let (mut sensor_id, mut data, mut ts, mut seq) = (None, None, None, None);
    for member in document.view().children() {
        match member.key().as_ref() {
            "sensor_id" => sensor_id = Some(read_id(member)?),
            "data" => data = Some(read_data(member, allowed)?),
            "ts" => ts = Some(read_ts(member)?),
            "seq" => seq = Some(read_seq(member)?),
            other => return Err(SignalError::Unknown(shorten(other))),
        }
    }
    Ok(SignalMessage::Signal(Signal {
        sensor_id: sensor_id.ok_or(SignalError::Missing("sensor_id"))?,
        data: data.ok_or(SignalError::Missing("data"))?,
        ts,
        seq,
    }))
}

fn read_id(view: View<'_>) -> Result<String, SignalError> {
    let text = view.as_str().filter(|id| !id.is_empty());
    text.map(|id| id.into_owned())
        .ok_or_else(|| wrong("sensor_id", "a text that is not empty", view))
}

fn read_data(view: View<'_>, allowed: ValueType) -> Result<Scalar, SignalError> {
    match allowed {
        ValueType::Binary => match view.as_number() {
            Some(number @ ("0" | "1")) => Ok(Scalar::Number(number.to_owned())),
            _ => Err(wrong("data", "0 or 1", view)),
        },
        ValueType::Scalar => {
            let number = view.as_number().map(|n| Scalar::Number(n.to_owned()));
            let text = || view.as_str().map(|text| Scalar::Text(text.into_owned()));
            let boolean = || view.as_bool().map(Scalar::Boolean);
            let scalar = number.or_else(text).or_else(boolean);
            scalar.ok_or_else(|| wrong("data", "a number, text or boolean", view))
        }
    }
}

/// Years that four digits can name, which is what keys are ordered by.
fn read_ts(view: View<'_>) -> Result<Timestamp, SignalError> {
    let instant = Timestamp::of(view).map(|(instant, _)| instant);
    instant
        .filter(|instant| (0..limits::TIME_END_NANOSECONDS).contains(&instant.nanoseconds()))
        .ok_or_else(|| {
            let expected = "RFC 3339 or a Unix time, between 1970 and 9999";
            wrong("ts", expected, view)
        })
}

fn read_seq(view: View<'_>) -> Result<u64, SignalError> {
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

/// Enough of a text to recognise it by.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(limits::SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
