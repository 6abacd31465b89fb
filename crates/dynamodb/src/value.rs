//! Attribute values: building and reading them, and the serde forms of derived items.

use antumbra_service::deliveries::milliseconds as as_text;
use antumbra_service::sensors::reading_time::{from_milliseconds, milliseconds};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::table::Item;

pub(crate) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A time for people to read, with milliseconds.
pub(crate) fn time(time: Timestamp) -> AttributeValue {
    text(as_text(time))
}

/// A time to compare, in milliseconds since 1970.
pub(crate) fn epoch_milliseconds(time: Timestamp) -> AttributeValue {
    number(milliseconds(time))
}

/// A time at which an item expires, in seconds since 1970.
pub(crate) fn epoch_seconds(time: Timestamp) -> AttributeValue {
    number(seconds(time))
}

pub(crate) fn seconds(time: Timestamp) -> i64 {
    let seconds = time.nanoseconds().div_euclid(1_000_000_000);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

pub(crate) fn read_text<'a>(item: &'a Item, name: &str) -> Result<&'a str, StoreError> {
    let value = item.get(name).and_then(|value| value.as_s().ok());
    value
        .map(String::as_str)
        .ok_or_else(|| corrupt(name, "not a string"))
}

pub(crate) fn read_number<T: std::str::FromStr>(item: &Item, name: &str) -> Result<T, StoreError> {
    optional_number(item, name)?.ok_or_else(|| corrupt(name, "missing"))
}

pub(crate) fn optional_number<T: std::str::FromStr>(
    item: &Item,
    name: &str,
) -> Result<Option<T>, StoreError> {
    let Some(value) = item.get(name) else {
        return Ok(None);
    };
    let digits = value.as_n().ok().and_then(|digits| digits.parse().ok());
    digits
        .map(Some)
        .ok_or_else(|| corrupt(name, "not a number"))
}

/// The error of a stored item that this code did not write. It does not repeat the item's content.
pub(crate) fn corrupt(attribute: &str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("a stored item's {attribute} is {reason}"))
}

/// Encodes a derived item. An attribute without a value is left out; serde would write a NULL.
pub(crate) fn to_item<T: Serialize>(value: &T) -> Result<Item, StoreError> {
    let item = serde_dynamo::aws_sdk_dynamodb_1::to_item(value);
    let mut item: Item = item.map_err(|error| StoreError::Invalid(error.to_string()))?;
    item.retain(|_, value| !value.is_null());
    Ok(item)
}

/// Decodes a derived item; `what` names it in the error.
pub(crate) fn from_item<T: DeserializeOwned>(what: &str, item: Item) -> Result<T, StoreError> {
    serde_dynamo::aws_sdk_dynamodb_1::from_item(item).map_err(|error| {
        tracing::debug!(%error, what, "a stored item cannot be decoded");
        StoreError::Unavailable(format!("a stored {what} cannot be decoded"))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextTime(pub(crate) Timestamp);

impl Serialize for TextTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&as_text(self.0))
    }
}

impl<'de> Deserialize<'de> for TextTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = Timestamp::parse(&text).map(TextTime);
        time.ok_or_else(|| D::Error::custom("not a time"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochMilliseconds(pub(crate) Timestamp);

impl Serialize for EpochMilliseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(milliseconds(self.0))
    }
}

impl<'de> Deserialize<'de> for EpochMilliseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EpochMilliseconds, D::Error> {
        i64::deserialize(deserializer).map(|time| EpochMilliseconds(from_milliseconds(time)))
    }
}
