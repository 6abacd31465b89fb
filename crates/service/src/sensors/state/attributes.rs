//! Attributes of a state, in the item of a table or in the image of a stream. Their names are defined only
//! here.

use std::borrow::Cow;

use antumbra_shadow::{Timestamp, View};

use super::State;
use crate::sensors::id::{Generation, InvalidSensor, SensorId, SensorType};
use crate::sensors::reading_time::{ReadingTime, from_milliseconds};
use crate::sensors::sensor::{Address, SilenceTimeout};
use crate::sensors::value::Value;
use crate::text::InvalidText;

mod names {
    pub const SENSOR: &str = "sensorId";
    pub const GENERATION: &str = "generation";
    pub const REGISTERED_AT: &str = "registeredAt";
    pub const ADDRESS: &str = "address";
    pub const TYPE: &str = "type";
    pub const SILENCE_AFTER: &str = "silenceAfterMs";
    pub const VALUE: &str = "value";
    pub const ORDER: &str = "order";
    /// A map with one member, the time, under the mark of the value.
    pub const SINCE: &str = "since";
    pub const LAST_SEEN: &str = "lastSeen";
    pub const DEADLINE: &str = "deadline";
    pub const CONNECTION: &str = "connection";
    pub const LOST_AT: &str = "lostAt";
    /// 0; exists only while a signal is awaited.
    pub const AWAITED: &str = "awaited";
    /// A map with one member, 0, under the mark of the value.
    pub const MARKS: &str = "marks";
    pub const CHANGES: &str = "changes";
    pub const CONTACTS: &str = "contacts";
    pub const CHECK_AT: &str = "checkAt";
}

pub use names::*;

/// Attributes by name, with DynamoDB's types.
pub trait Attributes {
    fn text(&self, name: &str) -> Option<Cow<'_, str>>;
    /// Digits of a number.
    fn number(&self, name: &str) -> Option<Cow<'_, str>>;
    fn boolean(&self, name: &str) -> Option<bool>;
    /// Text in a map.
    fn member(&self, name: &str, member: &str) -> Option<Cow<'_, str>>;
}

/// The image of an item in a stream record.
impl Attributes for View<'_> {
    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.as_number().map(Cow::Borrowed)
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    fn member(&self, name: &str, member: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.get(member)?.as_str()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored state's {0} cannot be read")]
pub struct UnreadableState(pub &'static str);

impl State {
    pub fn read(item: &impl Attributes) -> Result<State, UnreadableState> {
        let time = |name| Ok::<_, UnreadableState>(optional(item, name)?.map(from_milliseconds));
        let value = value(item)?;
        let since = value
            .as_ref()
            .and_then(|value| item.member(SINCE, &value.mark()))
            .map(|text| Timestamp::parse(&text).ok_or(UnreadableState(SINCE)))
            .transpose()?;
        let moment = item
            .text(ORDER)
            .map(|text| ReadingTime::parse(&text).ok_or(UnreadableState(ORDER)))
            .transpose()?;
        Ok(State {
            sensor: word(item, SENSOR, SensorId::new)?,
            generation: word(item, GENERATION, Generation::new)?,
            registered_at: time(REGISTERED_AT)?.ok_or(UnreadableState(REGISTERED_AT))?,
            address: word(item, ADDRESS, Address::new)?,
            sensor_type: word(item, TYPE, SensorType::new)?,
            silence_after: silence(item)?,
            value,
            moment,
            since,
            last_seen: time(LAST_SEEN)?,
            deadline: time(DEADLINE)?.ok_or(UnreadableState(DEADLINE))?,
            connection: item
                .text(CONNECTION)
                .and_then(|word| word.parse().ok())
                .ok_or(UnreadableState(CONNECTION))?,
            lost_at: time(LOST_AT)?,
            changes: count(item, CHANGES)?,
            contacts: count(item, CONTACTS)?,
            check_at: time(CHECK_AT)?,
        })
    }
}

fn word<T>(
    item: &impl Attributes,
    name: &'static str,
    parse: impl Fn(String) -> Result<T, InvalidText>,
) -> Result<T, UnreadableState> {
    let text = item.text(name).ok_or(UnreadableState(name))?;
    parse(text.into_owned()).map_err(|_| UnreadableState(name))
}

fn value(item: &impl Attributes) -> Result<Option<Value>, UnreadableState> {
    let unreadable = |_: InvalidSensor| UnreadableState(VALUE);
    if let Some(number) = item.number(VALUE) {
        return Value::number(&number).map(Some).map_err(unreadable);
    }
    if let Some(text) = item.text(VALUE) {
        return Value::text(text).map(Some).map_err(unreadable);
    }
    Ok(item.boolean(VALUE).map(Value::Boolean))
}

fn silence(item: &impl Attributes) -> Result<SilenceTimeout, UnreadableState> {
    let unreadable = UnreadableState(SILENCE_AFTER);
    let milliseconds = optional(item, SILENCE_AFTER)?.and_then(|ms| u64::try_from(ms).ok());
    let seconds = milliseconds.ok_or(unreadable.clone())? / 1000;
    SilenceTimeout::seconds(seconds).map_err(|_| unreadable)
}

fn optional(item: &impl Attributes, name: &'static str) -> Result<Option<i64>, UnreadableState> {
    let number = item.number(name);
    number
        .map(|digits| digits.parse().map_err(|_| UnreadableState(name)))
        .transpose()
}

fn count(item: &impl Attributes, name: &'static str) -> Result<u64, UnreadableState> {
    let count = optional(item, name)?.and_then(|count| u64::try_from(count).ok());
    count.ok_or(UnreadableState(name))
}

#[cfg(test)]
mod tests {
    use antumbra_shadow::Document;

    use super::*;

    const IMAGE: &str = r#"{"PK":"SENSOR#lock","SK":"STATE","sensorId":"lock","generation":"g1",
        "registeredAt":1700000000000,"address":"Main St 1","type":"lock","silenceAfterMs":3600000,
        "value":1,"order":"2026-01-31T12:00:00.500000000Z#00000000000000000017",
        "since":{"n:1":"2026-01-31T11:00:00.000000000Z"},"lastSeen":1769860800123,
        "deadline":1769864400123,"connection":"ONLINE","awaited":0,"marks":{"n:1":0},
        "changes":3,"contacts":2,"checkAt":1769864400123,"liveShard":"LIVE#1"}"#;

    #[test]
    fn an_image_is_a_state() {
        let image = Document::parse(IMAGE).unwrap();
        let state = State::read(&image.view()).unwrap();
        assert_eq!(state.value, Some(Value::whole(1)));
        assert_eq!(state.sequence(), 4);
        assert_eq!(state.since.unwrap().to_string(), "2026-01-31T11:00:00Z");
        assert_eq!(
            state.last_seen.unwrap().to_string(),
            "2026-01-31T12:00:00.123Z"
        );
        assert_eq!(
            (state.lost_at, state.silence_after.as_seconds()),
            (None, 3600)
        );
    }

    #[test]
    fn what_is_no_state_says_where() {
        for (name, other) in [
            (SENSOR, "\"a b\""),
            (GENERATION, "7"),
            (REGISTERED_AT, "\"x\""),
            (ADDRESS, "null"),
            (TYPE, "\"\""),
            (SILENCE_AFTER, "0"),
            (ORDER, "\"yesterday\""),
            (SINCE, r#"{"n:1":"soon"}"#),
            (LAST_SEEN, "1.5"),
            (DEADLINE, "\"1\""),
            (CONNECTION, "\"FINE\""),
            (CHANGES, "-1"),
            (CONTACTS, "null"),
        ] {
            let image: serde_json::Value = serde_json::from_str(IMAGE).unwrap();
            let mut image = image.as_object().unwrap().clone();
            image.insert(name.to_owned(), serde_json::from_str(other).unwrap());
            let image = Document::from_value(&image).unwrap();
            assert_eq!(
                State::read(&image.view()),
                Err(UnreadableState(name)),
                "{name}"
            );
        }
    }
}
