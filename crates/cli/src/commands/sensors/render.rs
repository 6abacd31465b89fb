//! What the sensor commands print. Their JSON is that of the HTTP API.

use antumbra_service::paging::Page;
use antumbra_service::sensors::{
    Connection, Cursor, Location, Reading, RegisteredSensor, Sensor, SensorId, SensorWithState,
    Sequence, State, Value,
};
use antumbra_shadow::Timestamp;
use serde::Serialize;

use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, json, styled, table};

#[derive(Serialize)]
struct LocationJson<'a> {
    city: &'a str,
    building: &'a str,
    floor: &'a str,
    room: &'a str,
}

impl<'a> From<&'a Location> for LocationJson<'a> {
    fn from(location: &'a Location) -> LocationJson<'a> {
        LocationJson {
            city: location.city.as_str(),
            building: location.building.as_str(),
            floor: location.floor.as_str(),
            room: location.room.as_str(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SensorJson<'a> {
    id: &'a str,
    location: LocationJson<'a>,
    address: &'a str,
    #[serde(rename = "type")]
    sensor_type: &'a str,
    silence_after_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registered_at: Option<String>,
}

impl<'a> From<&'a Sensor> for SensorJson<'a> {
    fn from(sensor: &'a Sensor) -> SensorJson<'a> {
        SensorJson {
            id: sensor.id.as_str(),
            location: (&sensor.location).into(),
            address: sensor.address.as_str(),
            sensor_type: sensor.sensor_type.as_str(),
            silence_after_seconds: sensor.silence_after.as_seconds(),
            version: None,
            registered_at: None,
        }
    }
}

impl<'a> From<&'a RegisteredSensor> for SensorJson<'a> {
    fn from(registered: &'a RegisteredSensor) -> SensorJson<'a> {
        SensorJson {
            version: Some(registered.version.0),
            registered_at: Some(registered.registered_at.to_string()),
            ..(&registered.sensor).into()
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateJson<'a> {
    sensor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<String>,
    connection: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_at: Option<String>,
    deadline: String,
    sequence: u64,
}

impl<'a> From<&'a State> for StateJson<'a> {
    fn from(state: &'a State) -> StateJson<'a> {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        StateJson {
            sensor: state.sensor.as_str(),
            value: state.value.as_ref(),
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

#[derive(Serialize)]
struct ReadingJson<'a> {
    value: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

impl<'a> From<&'a Reading> for ReadingJson<'a> {
    fn from(reading: &'a Reading) -> ReadingJson<'a> {
        ReadingJson {
            value: &reading.value,
            unit: reading.unit.as_ref().map(|unit| unit.as_str()),
            time: reading.moment.time().to_string(),
            sequence: match reading.moment.sequence() {
                Sequence::Number(number) => Some(*number),
                _ => None,
            },
        }
    }
}

pub(super) fn sensor(registered: &RegisteredSensor, as_json: bool) -> String {
    if as_json {
        return json(&SensorJson::from(registered));
    }
    let Sensor {
        id,
        location,
        address,
        sensor_type,
        silence_after,
    } = &registered.sensor;
    let mut facts = vec![
        vec!["location".to_owned(), location.to_string()],
        vec!["type".to_owned(), sensor_type.to_string()],
        vec![
            "silence".to_owned(),
            format!("lost after {} s", silence_after.as_seconds()),
        ],
    ];
    if !address.as_str().is_empty() {
        facts.insert(1, vec!["address".to_owned(), address.as_str().to_owned()]);
    }
    let version = format!("version {}", registered.version);
    let head = styled(STRONG, id.as_str());
    format!("{head}  {}\n{}", styled(FAINT, &version), table(&facts))
}

pub(super) fn whole(registered: &RegisteredSensor, state: &State, as_json: bool) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        sensor: SensorJson<'a>,
        state: StateJson<'a>,
    }
    if as_json {
        return json(&Whole {
            sensor: registered.into(),
            state: state.into(),
        });
    }
    let sensor = sensor(registered, false);
    format!("{sensor}\n{}", table(&facts(state)))
}

pub(super) fn state(state: &State, as_json: bool) -> String {
    if as_json {
        return json(&StateJson::from(state));
    }
    let head = styled(STRONG, state.sensor.as_str());
    format!("{head}\n{}", table(&facts(state)))
}

fn facts(state: &State) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["connection".to_owned(), connection(state.connection)]];
    let mut fact = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            rows.push(vec![name.to_owned(), text]);
        }
    };
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    fact("value", state.value.as_ref().map(Value::to_string));
    fact("since", time(state.since));
    fact("last seen", time(state.last_seen));
    fact("lost", time(state.lost_at));
    fact("occurrences", Some(state.sequence().to_string()));
    rows
}

fn connection(connection: Connection) -> String {
    let style = match connection {
        Connection::Online => GOOD,
        Connection::Lost => BAD,
        Connection::Never => CHANGED,
    };
    styled(style, connection.as_str())
}

pub(super) fn unregistered(id: &SensorId, as_json: bool) -> String {
    #[derive(Serialize)]
    struct Unregistered<'a> {
        unregistered: &'a str,
    }
    if as_json {
        let unregistered = id.as_str();
        return json(&Unregistered { unregistered });
    }
    format!("{}  unregistered", styled(STRONG, id.as_str()))
}

pub(super) fn rows(page: &Page<SensorWithState>, as_json: bool) -> String {
    #[derive(Serialize)]
    struct RowJson<'a> {
        #[serde(flatten)]
        sensor: SensorJson<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<StateJson<'a>>,
    }
    #[derive(Serialize)]
    struct Rows<'a> {
        sensors: Vec<RowJson<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<&'a str>,
    }
    if as_json {
        return json(&Rows {
            sensors: page
                .rows
                .iter()
                .map(|row| RowJson {
                    sensor: (&row.sensor).into(),
                    state: row.state.as_ref().map(StateJson::from),
                })
                .collect(),
            next: page.next.as_ref().map(|cursor| cursor.0.as_str()),
        });
    }
    if page.rows.is_empty() && page.next.is_none() {
        return "no sensors there".to_owned();
    }
    let row = |row: &SensorWithState| {
        let state = row.state.as_ref();
        let value = state.and_then(|state| state.value.as_ref());
        vec![
            styled(STRONG, row.sensor.id.as_str()),
            row.sensor.location.to_string(),
            state.map_or(String::new(), |state| connection(state.connection)),
            value.map_or(String::new(), Value::to_string),
        ]
    };
    let listed: Vec<_> = page.rows.iter().map(row).collect();
    with_next(table(&listed), page.next.as_ref())
}

pub(super) fn latest(registered: &RegisteredSensor, readings: &[Reading], as_json: bool) -> String {
    #[derive(Serialize)]
    struct Latest<'a> {
        sensor: SensorJson<'a>,
        readings: Vec<ReadingJson<'a>>,
    }
    if as_json {
        return json(&Latest {
            sensor: registered.into(),
            readings: readings.iter().map(ReadingJson::from).collect(),
        });
    }
    let sensor = sensor(registered, false);
    format!("{sensor}\n{}", table_of(readings))
}

pub(super) fn readings(
    id: &SensorId,
    readings: &[Reading],
    next: Option<&Cursor>,
    as_json: bool,
) -> String {
    #[derive(Serialize)]
    struct Readings<'a> {
        sensor: &'a str,
        readings: Vec<ReadingJson<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<&'a str>,
    }
    if as_json {
        return json(&Readings {
            sensor: id.as_str(),
            readings: readings.iter().map(ReadingJson::from).collect(),
            next: next.map(|cursor| cursor.0.as_str()),
        });
    }
    with_next(table_of(readings), next)
}

fn table_of(readings: &[Reading]) -> String {
    if readings.is_empty() {
        return "no readings".to_owned();
    }
    let row = |reading: &Reading| {
        let unit = reading.unit.as_ref().map_or("", |unit| unit.as_str());
        vec![
            reading.moment.time().to_string(),
            reading.value.to_string(),
            unit.to_owned(),
        ]
    };
    table(&readings.iter().map(row).collect::<Vec<_>>())
}

fn with_next(listed: String, next: Option<&Cursor>) -> String {
    match next {
        Some(cursor) => format!(
            "{listed}\n{}",
            styled(FAINT, &format!("--cursor {}", cursor.0))
        ),
        None => listed,
    }
}

pub(super) fn purged(ended: usize, as_json: bool) -> String {
    #[derive(Serialize)]
    struct Purged {
        ended: usize,
    }
    if as_json {
        return json(&Purged { ended });
    }
    match ended {
        1 => "1 purge ended".to_owned(),
        _ => format!("{ended} purges ended"),
    }
}
