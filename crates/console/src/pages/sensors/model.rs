//! The reads of the page: the sensors of a place, and everything about one.

use std::time::Duration;

use antumbra_service::clients::Link;
use antumbra_service::deliveries::{DeliveryRecord, HistoryQuery, Subject};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::{
    Connection, LocationPrefix, Reading, RegisteredSensor, SensorId, SensorQuery, SensorWithState,
    State,
};
use antumbra_shadow::Timestamp;
use futures_util::future;

use super::LEVELS;
use crate::view::{Failure, View};

/// Sensors that one page reads.
pub(super) const READ: usize = 1000;

/// Readings of a chart, read in pages of the largest size.
const READINGS: usize = 5000;

/// Deliveries from which occurrences are shown, and links.
const DELIVERIES: usize = 100;
const LINKS: usize = 20;

/// Time that the chart shows.
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Model {
    pub(super) place: Option<LocationPrefix>,
    pub(super) sensors: Result<Listed, Failure>,
    pub(super) selected: Option<Result<Selected, Failure>>,
}

pub(super) struct Listed {
    pub(super) rows: Vec<SensorWithState>,
    pub(super) next: Option<Cursor>,
}

/// A sensor with everything about it.
pub(super) struct Selected {
    pub(super) sensor: RegisteredSensor,
    pub(super) state: State,
    /// Oldest first.
    pub(super) readings: Vec<Reading>,
    pub(super) has_more_readings: bool,
    pub(super) links: Vec<Link>,
    pub(super) deliveries: Vec<DeliveryRecord>,
}

fn place(view: &View) -> Result<Option<LocationPrefix>, Failure> {
    let [city, building, floor, room] = LEVELS.map(|level| view.get(level));
    let Some(city) = city else {
        return Ok(None);
    };
    Ok(Some(LocationPrefix::new(city, building, floor, room)?))
}

pub(super) async fn model(view: &View) -> Model {
    let listed = async {
        match place(view) {
            Ok(place) => (place.clone(), list(view, place).await),
            Err(fault) => (None, Err(fault)),
        }
    };
    let selected = async {
        match view.get("id") {
            None => None,
            Some(id) => Some(selected(view, id).await),
        }
    };
    let ((place, sensors), selected) = future::join(listed, selected).await;
    Model {
        place,
        sensors,
        selected,
    }
}

async fn list(view: &View, place: Option<LocationPrefix>) -> Result<Listed, Failure> {
    let connection = match view.get("show") {
        Some("lost") => Some(Connection::Lost),
        Some("never") => Some(Connection::Never),
        _ => None,
    };
    let query = SensorQuery {
        place,
        connection,
        ..SensorQuery::default()
    };
    let cursor = view.get("cursor").map(|cursor| Cursor(cursor.to_owned()));
    let page = view
        .console
        .services
        .sensors
        .list(&query, READ, cursor.as_ref())
        .await?;
    Ok(Listed {
        rows: page.rows,
        next: page.next,
    })
}

async fn selected(view: &View, id: &str) -> Result<Selected, Failure> {
    let services = &view.console.services;
    let id = SensorId::new(id)?;
    let query = HistoryQuery {
        limit: DELIVERIES,
        ..HistoryQuery::of(Subject::Sensor(id.clone()))
    };
    let (state, readings, links, deliveries) = future::join4(
        services.sensors.state(&id),
        readings_of_day(view, &id),
        services.clients.links_of_sensor(&id, LINKS, None),
        services.deliveries.list(&query, None),
    )
    .await;
    let (sensor, readings, has_more_readings) = readings?;
    Ok(Selected {
        sensor,
        state: state?,
        readings,
        has_more_readings,
        links: links?.rows,
        deliveries: deliveries?.rows,
    })
}

/// The sensor, its readings of the last 24 hours, and whether there are more.
async fn readings_of_day(
    view: &View,
    id: &SensorId,
) -> Result<(RegisteredSensor, Vec<Reading>, bool), Failure> {
    let from = Timestamp::from_nanoseconds(view.now.nanoseconds() - DAY.as_nanos() as i128);
    // Clocks of sensors may be ahead.
    let to = view.now.after(Duration::from_secs(60));
    let sensors = &view.console.services.sensors;
    let (mut readings, mut cursor) = (Vec::new(), None);
    loop {
        let (sensor, page) = sensors.between(id, from, to, 1000, cursor.as_ref()).await?;
        readings.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() || readings.len() >= READINGS {
            return Ok((sensor, readings, cursor.is_some()));
        }
    }
}
