//! Sensors, their states and readings.

use antumbra_shadow::{Document, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::{BulkError, Time};
use crate::sensors::{
    self, Address, InvalidSensor, RegisteredSensor, SensorId, SensorType, SensorWithState,
    Sequence, SilenceTimeout, Unit, Value,
};

/// A location. Each part is 1 to 100 bytes of text without control characters and without leading or
/// trailing spaces.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Location {
    /// City.
    pub city: String,
    /// Building.
    pub building: String,
    /// Floor.
    pub floor: String,
    /// Room.
    pub room: String,
}

impl TryFrom<Location> for sensors::Location {
    type Error = InvalidSensor;

    fn try_from(location: Location) -> Result<sensors::Location, InvalidSensor> {
        let Location {
            city,
            building,
            floor,
            room,
        } = &location;
        sensors::Location::new(city, building, floor, room)
    }
}

impl From<&sensors::Location> for Location {
    fn from(location: &sensors::Location) -> Location {
        Location {
            city: location.city.to_string(),
            building: location.building.to_string(),
            floor: location.floor.to_string(),
            room: location.room.to_string(),
        }
    }
}

/// A sensor to register.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NewSensor {
    /// Sensor id: letters, digits, `-`, `_`, `.` and `:`, case-sensitive.
    pub id: String,
    /// Location, if the sensor has a fixed one.
    pub location: Option<Location>,
    /// Location in free text, at most 512 bytes.
    #[serde(default)]
    pub address: String,
    /// Sensor type, of the same characters as an id; `sensor` by default.
    #[serde(rename = "type")]
    pub sensor_type: Option<String>,
    /// Seconds of silence after which the sensor is lost; 3600 by default.
    pub silence_after_seconds: Option<u64>,
}

impl TryFrom<NewSensor> for sensors::Sensor {
    type Error = InvalidSensor;

    fn try_from(new: NewSensor) -> Result<sensors::Sensor, InvalidSensor> {
        let data = SensorData {
            location: new.location,
            address: new.address,
            sensor_type: new.sensor_type,
            silence_after_seconds: new.silence_after_seconds,
        };
        data.of(SensorId::new(new.id)?)
    }
}

/// Data of a sensor, to be replaced as a whole.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SensorData {
    /// Location, if the sensor has a fixed one.
    pub location: Option<Location>,
    /// Location in free text, at most 512 bytes.
    #[serde(default)]
    pub address: String,
    /// Sensor type, of the same characters as an id; `sensor` by default.
    #[serde(rename = "type")]
    pub sensor_type: Option<String>,
    /// Seconds of silence after which the sensor is lost; 3600 by default.
    pub silence_after_seconds: Option<u64>,
}

impl SensorData {
    /// Checks the data of a sensor.
    pub fn of(self, id: SensorId) -> Result<sensors::Sensor, InvalidSensor> {
        let location = self.location.map(TryInto::try_into).transpose()?;
        let mut sensor = sensors::Sensor::new(id, location);
        sensor.address = Address::new(self.address)?;
        if let Some(sensor_type) = self.sensor_type {
            sensor.sensor_type = SensorType::new(sensor_type)?;
        }
        if let Some(seconds) = self.silence_after_seconds {
            sensor.silence_after = SilenceTimeout::seconds(seconds)?;
        }
        Ok(sensor)
    }
}

/// Changes to a sensor. Absent members stay as they are.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SensorPatch {
    /// Location in free text, at most 512 bytes.
    pub address: Option<String>,
    /// Sensor type.
    #[serde(rename = "type")]
    pub sensor_type: Option<String>,
    /// Seconds of silence after which the sensor is lost.
    pub silence_after_seconds: Option<u64>,
}

impl TryFrom<SensorPatch> for sensors::SensorPatch {
    type Error = InvalidSensor;

    fn try_from(patch: SensorPatch) -> Result<sensors::SensorPatch, InvalidSensor> {
        let silence_after = patch.silence_after_seconds.map(SilenceTimeout::seconds);
        Ok(sensors::SensorPatch {
            address: patch.address.map(Address::new).transpose()?,
            sensor_type: patch.sensor_type.map(SensorType::new).transpose()?,
            silence_after: silence_after.transpose()?,
        })
    }
}

/// The description of a sensor, common to a registered sensor and a listed one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SensorDescription {
    /// Sensor id.
    pub id: String,
    /// Location, if the sensor has a fixed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Location in free text.
    pub address: String,
    /// Sensor type.
    #[serde(rename = "type")]
    pub sensor_type: String,
    /// Seconds of silence after which the sensor is lost.
    pub silence_after_seconds: u32,
}

impl From<&sensors::Sensor> for SensorDescription {
    fn from(sensor: &sensors::Sensor) -> SensorDescription {
        SensorDescription {
            id: sensor.id.to_string(),
            location: sensor.location.as_ref().map(Location::from),
            address: sensor.address.as_str().to_owned(),
            sensor_type: sensor.sensor_type.to_string(),
            silence_after_seconds: sensor.silence_after.as_seconds(),
        }
    }
}

/// A registered sensor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Sensor {
    /// The description.
    #[serde(flatten)]
    pub description: SensorDescription,
    /// Number of writes. In quotes, it is the sensor's entity tag.
    pub version: i64,
    /// Time of registration.
    pub registered_at: Time,
    /// Present if silence is noticed much later than `silenceAfterSeconds` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl From<&RegisteredSensor> for Sensor {
    fn from(registered: &RegisteredSensor) -> Sensor {
        Sensor {
            description: (&registered.sensor).into(),
            version: registered.version.0,
            registered_at: registered.registered_at.into(),
            warning: registered.sensor.silence_after.warning(),
        }
    }
}

/// A sensor in a listing, with its state.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SensorSummary {
    /// The description.
    #[serde(flatten)]
    pub description: SensorDescription,
    /// Latest state; absent if the sensor was unregistered meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<SensorState>,
}

impl From<SensorWithState> for SensorSummary {
    fn from(row: SensorWithState) -> SensorSummary {
        SensorSummary {
            description: (&row.sensor).into(),
            state: row.state.map(SensorState::from),
        }
    }
}

page! {
    /// A page of sensors: within a location ordered by building, floor, room and id, otherwise by id.
    SensorPage { sensors: SensorSummary } from SensorWithState
}

/// The latest state of a sensor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SensorState {
    /// Sensor id.
    pub sensor: String,
    /// Newest value by measurement time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Scalar>))]
    pub value: Option<Value>,
    /// Measurement time of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<Time>,
    /// Time since when the value has been the same; known for switches only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Time of the last signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
    /// `NEVER` (no signal yet), `ONLINE` or `LOST`.
    pub connection: &'static str,
    /// Time when the loss was detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<Time>,
    /// Time after which silence means that the sensor is lost.
    pub deadline: Time,
    /// Sequence number of the sensor's last event.
    pub sequence: u64,
}

impl From<sensors::State> for SensorState {
    fn from(state: sensors::State) -> SensorState {
        SensorState {
            sensor: state.sensor.to_string(),
            measured_at: state.moment.as_ref().map(|moment| moment.time().into()),
            since: state.since.map(Time::from),
            last_seen: state.last_seen.map(Time::from),
            connection: state.connection.as_str(),
            lost_at: state.lost_at.map(Time::from),
            deadline: state.deadline.into(),
            sequence: state.sequence(),
            value: state.value,
        }
    }
}

/// A number, a text or a boolean. Numbers are exact, up to 38 digits. Describes the JSON only.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A text of at most 1024 bytes.
    Text(String),
    /// A boolean.
    Boolean(bool),
}

/// Readings to save.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NewReadings {
    /// The readings.
    pub readings: Vec<NewReading>,
}

/// A reading to save.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NewReading {
    /// Measured value.
    #[cfg_attr(feature = "openapi", schema(value_type = Scalar))]
    pub value: Box<RawValue>,
    /// Unit, at most 32 bytes.
    pub unit: Option<String>,
    /// Measurement time: RFC 3339, or a number of seconds, milliseconds, microseconds or nanoseconds since
    /// 1970. The current time by default.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub time: Option<Box<RawValue>>,
    /// Sequence number, which distinguishes readings of the same time.
    pub sequence: Option<u64>,
}

impl NewReading {
    /// Checks the reading; its time is `now` unless it carries one.
    pub fn into_reading(self, now: Timestamp) -> Result<sensors::Reading, String> {
        // A document keeps every digit of a number.
        let member = |raw: &RawValue| {
            Document::parse(&format!("{{\"v\":{}}}", raw.get())).map_err(|fault| fault.to_string())
        };
        let text = |fault: InvalidSensor| fault.to_string();
        let value = member(&self.value)?;
        let value = value
            .pointer("/v")
            .map(Value::of)
            .transpose()
            .map_err(text)?;
        let value = value.ok_or("value is missing")?;
        let time = match self.time.as_deref().filter(|raw| raw.get() != "null") {
            None => now,
            Some(raw) => {
                let time = member(raw)?;
                let parsed = time.pointer("/v").and_then(Timestamp::of);
                parsed.ok_or("time is neither RFC 3339 nor a number of seconds since 1970")?
            }
        };
        let unit = self.unit.map(Unit::new).transpose();
        let unit = unit.map_err(|fault| text(fault.into()))?;
        sensors::Reading::new(value, unit, time, self.sequence).map_err(text)
    }
}

/// A reading.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Reading {
    /// Measured value.
    #[cfg_attr(feature = "openapi", schema(value_type = Scalar))]
    pub value: Value,
    /// Unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Measurement time.
    pub time: Time,
    /// Sequence number, if the device numbers its readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Further members of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub fields: Option<Document>,
}

impl From<&sensors::Reading> for Reading {
    fn from(reading: &sensors::Reading) -> Reading {
        Reading {
            value: reading.value.clone(),
            unit: reading.unit.as_ref().map(|unit| unit.as_str().to_owned()),
            time: reading.moment.time().into(),
            sequence: match reading.moment.sequence() {
                Sequence::Number(number) => Some(*number),
                _ => None,
            },
            fields: reading.fields.clone(),
        }
    }
}

/// A sensor and a page of its readings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ReadingPage {
    /// The sensor.
    pub sensor: Sensor,
    /// The readings of this page.
    pub readings: Vec<Reading>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl ReadingPage {
    /// Represents readings of a sensor.
    pub fn new(
        sensor: &RegisteredSensor,
        readings: &[sensors::Reading],
        next: Option<crate::paging::Cursor>,
    ) -> ReadingPage {
        ReadingPage {
            sensor: sensor.into(),
            readings: readings.iter().map(Reading::from).collect(),
            next_cursor: next.map(|cursor| cursor.0),
        }
    }
}

/// Signals to record.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NewSignals {
    /// The signals, at most 100, as the messages of the signals queue: `sensor_id`, `data`, and optionally `ts` and `seq`.
    /// Further members are kept with the reading.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub signals: Vec<Box<RawValue>>,
}

/// Results of signals, in the order of the request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SignalResults {
    /// The results.
    pub results: Vec<SignalResult>,
}

/// The result of one signal.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SignalResult {
    /// HTTP status that the signal alone would have.
    pub status: u16,
    /// Effect on the state, if the signal was recorded: `first`, `changed`, `same`, `stale` or `duplicate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// The problem, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<BulkError>,
}
