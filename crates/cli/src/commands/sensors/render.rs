//! Output of `antumbra sensors`.

use antumbra_local::progress::width;
use antumbra_service::api;
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::{
    Connection, Reading, RegisteredSensor, Sensor, SensorId, SensorWithState, State, Value,
};
use antumbra_shadow::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::output::{self, BAD, CHANGED, FAINT, GOOD, STRONG, page, styled, table};

pub(super) fn sensor(registered: &RegisteredSensor, json: bool) -> String {
    if json {
        return output::json(&api::Sensor::from(registered));
    }
    let Sensor {
        id,
        location,
        address,
        sensor_type,
        silence_after,
    } = &registered.sensor;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let location = location.iter();
    let mut rows: Vec<_> = location
        .map(|location| row("location", location.to_string()))
        .collect();
    if !address.as_str().is_empty() {
        rows.push(row("address", address.as_str().to_owned()));
    }
    rows.push(row("type", sensor_type.to_string()));
    rows.push(row(
        "silence",
        format!("lost after {} s", silence_after.as_seconds()),
    ));
    rows.extend(silence_after.warning().map(|text| row("warning", text)));
    let version = format!("version {}", registered.version);
    let title = styled(STRONG, id.as_str());
    format!("{title}  {}\n{}", styled(FAINT, &version), table(&rows))
}

pub(super) fn with_state(registered: &RegisteredSensor, state: State, json: bool) -> String {
    #[derive(Serialize)]
    struct WithState {
        sensor: api::Sensor,
        state: api::SensorState,
    }
    if json {
        return output::json(&WithState {
            sensor: registered.into(),
            state: state.into(),
        });
    }
    format!(
        "{}\n{}",
        sensor(registered, false),
        table(&state_rows(&state))
    )
}

pub(super) fn state(state: State, json: bool) -> String {
    if json {
        return output::json(&api::SensorState::from(state));
    }
    let title = styled(STRONG, state.sensor.as_str());
    format!("{title}\n{}", table(&state_rows(&state)))
}

fn state_rows(state: &State) -> Vec<Vec<String>> {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let rows = [
        ("connection", Some(connection(state.connection))),
        ("value", state.value.as_ref().map(Value::to_string)),
        ("since", time(state.since)),
        ("last seen", time(state.last_seen)),
        ("lost", time(state.lost_at)),
        ("sequence", Some(state.sequence().to_string())),
    ];
    let present = rows
        .into_iter()
        .filter_map(|(name, value)| Some(vec![name.to_owned(), value?]));
    present.collect()
}

fn connection(connection: Connection) -> String {
    let style = match connection {
        Connection::Online => GOOD,
        Connection::Lost => BAD,
        Connection::Never => CHANGED,
    };
    styled(style, connection.as_str())
}

pub(super) fn unregistered(id: &SensorId, json: bool) -> String {
    match json {
        true => output::json(&json!({ "unregistered": id.as_str() })),
        false => format!("{}  unregistered", styled(STRONG, id.as_str())),
    }
}

pub(super) fn sensors(sensors: Page<SensorWithState>, json: bool) -> String {
    if json {
        return output::json(&api::SensorPage::from(sensors));
    }
    let row = |row: &SensorWithState| {
        let state = row.state.as_ref();
        let value = state.and_then(|state| state.value.as_ref());
        vec![
            styled(STRONG, row.sensor.id.as_str()),
            row.sensor
                .location
                .as_ref()
                .map_or(String::new(), ToString::to_string),
            state.map_or(String::new(), |state| connection(state.connection)),
            value.map_or(String::new(), Value::to_string),
        ]
    };
    let rows: Vec<_> = sensors.rows.iter().map(row).collect();
    page(&rows, sensors.next.as_ref(), "no sensors")
}

pub(super) fn latest(registered: &RegisteredSensor, latest: Page<Reading>, json: bool) -> String {
    let text = readings(registered, &latest.rows, latest.next, json);
    match json {
        true => text,
        false => format!("{}\n{text}", sensor(registered, false)),
    }
}

pub(super) fn readings(
    sensor: &RegisteredSensor,
    readings: &[Reading],
    next: Option<Cursor>,
    json: bool,
) -> String {
    if json {
        return output::json(&api::ReadingPage::new(sensor, readings, next));
    }
    let row = |reading: &Reading| {
        let unit = reading.unit.as_ref().map_or("", |unit| unit.as_str());
        let time = reading.moment.time().to_string();
        vec![time, reading.value.to_string(), unit.to_owned()]
    };
    let rows: Vec<_> = readings.iter().map(row).collect();
    page(&rows, next.as_ref(), "no readings")
}

/// Formats readings as a picture, with the units that they have.
pub(super) fn plot(sensor: &RegisteredSensor, readings: &Page<Reading>) -> String {
    let units = readings
        .rows
        .iter()
        .filter_map(|reading| reading.unit.as_ref());
    let units: std::collections::BTreeSet<&str> = units.map(|unit| unit.as_str()).collect();
    let units = units.into_iter().collect::<Vec<_>>().join(", ");
    let count = format!("{} readings  {units}", readings.rows.len());
    let title = styled(STRONG, sensor.sensor.id.as_str());
    let picture = crate::plot::plot(&readings.rows, width());
    let picture = picture.unwrap_or_else(|| styled(FAINT, "no readings with a number"));
    let next = readings
        .next
        .as_ref()
        .map(|Cursor(next)| format!("\n{} --cursor {next}", styled(FAINT, "next page:")));
    format!(
        "{title}  {}\n{picture}{}",
        styled(FAINT, count.trim_end()),
        next.unwrap_or_default()
    )
}

pub(super) fn purged(count: usize, json: bool) -> String {
    match json {
        true => output::json(&json!({ "purged": count })),
        false => format!("readings of {count} unregistered sensors purged"),
    }
}
