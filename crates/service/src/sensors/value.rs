//! Values of sensors: scalars.

use std::fmt;

use antumbra_shadow::{Kind, View, number};
use serde::{Serialize, Serializer};

use super::id::InvalidSensor;
use crate::text::InvalidText;

pub const TEXT_BYTES: usize = 1024;

/// A number with every digit it was sent with, a text, or a boolean. A `1` is not a `true`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// Canonical form of [`antumbra_shadow::number`], so that equal numbers are equal texts.
    Number(String),
    /// At most 1024 bytes.
    Text(String),
    Boolean(bool),
}

impl Value {
    pub fn whole(number: i64) -> Value {
        Value::Number(number.to_string())
    }

    /// Creates a number from its JSON text, with every digit.
    pub fn number(text: &str) -> Result<Value, InvalidSensor> {
        let is_number =
            serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok_and(|raw| {
                raw.get()
                    .starts_with(|c: char| c == '-' || c.is_ascii_digit())
            });
        if !is_number {
            return Err(InvalidSensor::Value("is not a number".to_owned()));
        }
        let text = number::canonical(text.trim());
        text.map(Value::Number)
            .map_err(|error| InvalidSensor::Value(format!("cannot be kept: {error}")))
    }

    pub fn text(text: impl Into<String>) -> Result<Value, InvalidSensor> {
        let text = text.into();
        if text.len() > TEXT_BYTES {
            let bytes = text.len();
            let (what, limit) = ("value", TEXT_BYTES);
            return Err(InvalidText::TooLong { what, bytes, limit }.into());
        }
        Ok(Value::Text(text))
    }

    /// Creates a value from a value of a document, whose numbers are canonical already.
    ///
    /// ```
    /// use antumbra_service::sensors::Value;
    /// use antumbra_shadow::Document;
    /// let said = Document::parse(r#"{"data":1.0}"#).unwrap();
    /// assert_eq!(Value::of(said.pointer("/data").unwrap()).unwrap(), Value::whole(1));
    /// ```
    pub fn of(view: View<'_>) -> Result<Value, InvalidSensor> {
        match view.kind() {
            Kind::Number => Ok(Value::Number(view.raw().to_owned())),
            Kind::String => Value::text(view.as_str().unwrap_or_default()),
            _ => view.as_bool().map(Value::Boolean).ok_or_else(|| {
                InvalidSensor::Value("is not a number, a text or a boolean".to_owned())
            }),
        }
    }

    /// Returns a text that is unique to the value and its type.
    pub fn mark(&self) -> String {
        match self {
            Value::Number(number) => format!("n:{number}"),
            Value::Text(text) => format!("s:{text}"),
            Value::Boolean(yes) => format!("b:{yes}"),
        }
    }

    /// Returns the marks of the other switch values if this is one of them (0, 1, false, true).
    pub fn other_switch_marks(&self) -> Option<Vec<&'static str>> {
        const SWITCH: [&str; 4] = ["n:0", "n:1", "b:false", "b:true"];
        let mark = self.mark();
        SWITCH
            .contains(&mark.as_str())
            .then(|| SWITCH.into_iter().filter(|other| *other != mark).collect())
    }
}

/// Formats the value as JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => f.write_str(number),
            Value::Boolean(yes) => yes.fmt(f),
            Value::Text(text) => match serde_json::to_string(text) {
                Ok(quoted) => f.write_str(&quoted),
                Err(_) => Err(fmt::Error),
            },
        }
    }
}

/// Serializes the scalar, with every digit if the format keeps them.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Boolean(yes) => serializer.serialize_bool(*yes),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Number(number) => {
                let raw = serde_json::value::RawValue::from_string(number.clone());
                raw.map_err(serde::ser::Error::custom)?
                    .serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_equal_when_they_are() {
        let number = |text| Value::number(text).unwrap();
        assert_eq!(number("1.50e1"), number("15"));
        assert_eq!(
            number("12345678901234567890.123456789").to_string(),
            "12345678901234567890.123456789"
        );
        for text in ["", "x", "1 2", "01", "+1", "NaN", "\"1\"", "true", "1e999"] {
            assert!(Value::number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn marks_tell_types_apart() {
        let all = [
            Value::whole(1),
            Value::Boolean(true),
            Value::text("1").unwrap(),
            Value::text("true").unwrap(),
            Value::text("").unwrap(),
        ];
        let marks: std::collections::BTreeSet<String> = all.iter().map(Value::mark).collect();
        assert_eq!(marks.len(), all.len());
        assert_eq!(
            Value::whole(1).other_switch_marks().unwrap(),
            ["n:0", "b:false", "b:true"]
        );
        assert_eq!(Value::whole(2).other_switch_marks(), None);
        assert_eq!(Value::text("1").unwrap().other_switch_marks(), None);
    }

    #[test]
    fn json_is_what_was_sent() {
        for json in [
            "0",
            "-21.5",
            "\"a\\\"b\"",
            "true",
            "99999999999999999999999.5",
        ] {
            let text = format!(r#"{{"v":{json}}}"#);
            let document = antumbra_shadow::Document::parse(&text).unwrap();
            let value = Value::of(document.pointer("/v").unwrap()).unwrap();
            assert_eq!(value.to_string(), json);
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
    }
}
