//! What the routes of sensors take and give.

use antumbra_service::sensors::{
    Address, Location, RegisteredSensor, Sensor, SensorId, SensorPatch, SensorType, SilenceTimeout,
    State,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Code, Problem};

/// A sensor.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TheSensor {
    /// The sensor's id.
    #[param(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_.:-]{1,64}$",
        example = "xa7v9Dfadr7H"
    )]
    id: String,
}

impl TheSensor {
    pub(crate) fn id(self) -> Result<SensorId, Problem> {
        SensorId::new(self.id).map_err(|fault| Problem::new(Code::InvalidPath, fault.to_string()))
    }
}

/// Where a sensor is. Each part is 1 to 100 bytes of any text without control characters and space
/// around it.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Location)]
pub(crate) struct LocationShape {
    /// The city.
    #[schema(min_length = 1, max_length = 100, example = "Poznań")]
    city: String,
    /// The building.
    #[schema(min_length = 1, max_length = 100, example = "A")]
    building: String,
    /// The floor.
    #[schema(min_length = 1, max_length = 100, example = "2")]
    floor: String,
    /// The room.
    #[schema(min_length = 1, max_length = 100, example = "13")]
    room: String,
}

impl LocationShape {
    pub(super) fn location(&self) -> Result<Location, Problem> {
        let LocationShape {
            city,
            building,
            floor,
            room,
        } = self;
        Ok(Location::new(city, building, floor, room)?)
    }
}

impl From<&Location> for LocationShape {
    fn from(location: &Location) -> LocationShape {
        LocationShape {
            city: location.city.to_string(),
            building: location.building.to_string(),
            floor: location.floor.to_string(),
            room: location.room.to_string(),
        }
    }
}

/// A sensor to be registered.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewSensor {
    /// Its id, of letters, digits, `-`, `_`, `.` and `:`; case matters.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_.:-]{1,64}$",
        example = "xa7v9Dfadr7H"
    )]
    id: String,
    /// Where it is.
    location: LocationShape,
    /// Where it is in free words, of at most 512 bytes.
    #[serde(default)]
    #[schema(max_length = 512, example = "3rd door on the left")]
    address: String,
    /// What kind of sensor it is, of the same characters as an id. `sensor` unless said otherwise.
    #[serde(rename = "type")]
    #[schema(
        nullable = false,
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_.:-]{1,64}$",
        example = "lock"
    )]
    sensor_type: Option<String>,
    /// Seconds of silence after which it is lost. An hour unless said otherwise.
    #[schema(nullable = false, minimum = 1, maximum = 31622400, example = 3600)]
    silence_after_seconds: Option<u64>,
}

impl NewSensor {
    pub(super) fn sensor(self) -> Result<Sensor, Problem> {
        let location = self.location.location()?;
        let mut sensor = Sensor::new(SensorId::new(self.id)?, location);
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

/// What is to be changed of a sensor. What is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SensorChange {
    /// Where it is in free words, of at most 512 bytes.
    #[schema(nullable = false, max_length = 512, example = "3rd door on the left")]
    address: Option<String>,
    /// What kind of sensor it is.
    #[serde(rename = "type")]
    #[schema(
        nullable = false,
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_.:-]{1,64}$",
        example = "lock"
    )]
    sensor_type: Option<String>,
    /// Seconds of silence after which it is lost.
    #[schema(nullable = false, minimum = 1, maximum = 31622400, example = 3600)]
    silence_after_seconds: Option<u64>,
}

impl SensorChange {
    pub(super) fn patch(self) -> Result<SensorPatch, Problem> {
        Ok(SensorPatch {
            address: self.address.map(Address::new).transpose()?,
            sensor_type: self.sensor_type.map(SensorType::new).transpose()?,
            silence_after: self
                .silence_after_seconds
                .map(SilenceTimeout::seconds)
                .transpose()?,
        })
    }
}

/// A sensor.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Sensor)]
pub(crate) struct SensorAnswer {
    /// Its id.
    #[schema(example = "xa7v9Dfadr7H")]
    id: String,
    /// Where it is.
    location: LocationShape,
    /// Where it is, in free words.
    address: String,
    /// What kind of sensor it is.
    #[serde(rename = "type")]
    #[schema(example = "lock")]
    sensor_type: String,
    /// Seconds of silence after which it is lost.
    #[schema(example = 3600)]
    silence_after_seconds: u32,
    /// How often it was written. In quotes, it is the sensor's entity tag.
    #[schema(minimum = 1)]
    version: i64,
    /// When it was registered.
    #[schema(format = DateTime)]
    registered_at: String,
}

impl From<&RegisteredSensor> for SensorAnswer {
    fn from(registered: &RegisteredSensor) -> SensorAnswer {
        let sensor = &registered.sensor;
        SensorAnswer {
            id: sensor.id.to_string(),
            location: (&sensor.location).into(),
            address: sensor.address.as_str().to_owned(),
            sensor_type: sensor.sensor_type.to_string(),
            silence_after_seconds: sensor.silence_after.as_seconds(),
            version: registered.version.0,
            registered_at: registered.registered_at.to_string(),
        }
    }
}

/// What a sensor last said, and whether it is heard.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SensorState)]
pub(crate) struct StateAnswer {
    /// The sensor's id.
    #[schema(example = "xa7v9Dfadr7H")]
    sensor: String,
    /// What it last said, by its own clock: a number, a text or a boolean.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ScalarShape>)]
    value: Option<Box<RawValue>>,
    /// When that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    measured_at: Option<String>,
    /// Since when it has been so; known of switches alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    since: Option<String>,
    /// When it was last heard.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    last_seen: Option<String>,
    /// `NEVER` heard, `ONLINE` or `LOST`.
    #[schema(example = "ONLINE")]
    connection: &'static str,
    /// When it was found lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    lost_at: Option<String>,
    /// When its silence will have lasted too long.
    #[schema(format = DateTime)]
    deadline: String,
    /// The number of what last occurred at it, as clients are told.
    sequence: u64,
}

/// A number, a text or a boolean. Numbers are kept exactly, to 38 digits.
#[derive(ToSchema)]
#[schema(as = Scalar)]
#[serde(untagged)]
#[derive(Serialize)]
#[allow(dead_code)]
pub(crate) enum ScalarShape {
    /// A number.
    Number(f64),
    /// A text of at most 1024 bytes.
    Text(String),
    /// Yes or no.
    Boolean(bool),
}

impl From<&State> for StateAnswer {
    fn from(state: &State) -> StateAnswer {
        let time = |time: Option<antumbra_shadow::Timestamp>| time.map(|time| time.to_string());
        let value = state.value.as_ref().map(|value| value.to_string());
        StateAnswer {
            sensor: state.sensor.to_string(),
            // A value is written as JSON.
            value: value.and_then(|value| RawValue::from_string(value).ok()),
            measured_at: time(state.moment.as_ref().map(|moment| moment.time())),
            since: time(state.since),
            last_seen: time(state.last_seen),
            connection: state.connection.as_str(),
            lost_at: time(state.lost_at),
            deadline: state.deadline.to_string(),
            sequence: state.sequence(),
        }
    }
}
