//! `/v1/sensors` and `/v1/locations`: sensors, their states and readings. A sensor's entity tag is its version.

use antumbra_service::api::{
    self, NewReadings, NewSensor, ReadingPage, SensorPage, SensorPatch, SensorState,
};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::{LocationPrefix, RegisteredSensor, SensorId, Version};
use antumbra_shadow::Timestamp;
use axum::extract::State;
use axum::response::NoContent;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::conditions::IfMatch;
use crate::extract::{FromPath, Paging, Path, PathParameter, Query, limit, optional_time};
use crate::problem::{Code, Problem};
use crate::respond::{Created, ETag, Either, Json, Location};
use crate::services::{Api, Services};

/// Maximum number of readings in one request.
const MAX_READINGS: usize = 1000;
/// Latest time with a four-digit year.
const LATEST_TIME: &str = "9999-12-31T23:59:59.999999999Z";

pub(crate) const SENSOR_ID: PathParameter = PathParameter {
    name: "id",
    description: "Sensor id.",
    max_length: 64,
    pattern: Some("^[A-Za-z0-9_.:-]{1,64}$"),
    example: Some("xa7v9Dfadr7H"),
};

impl FromPath for SensorId {
    const PARAMETERS: &'static [PathParameter] = &[SENSOR_ID];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<SensorId, String> {
        parse_sensor_id(get("id"))
    }
}

pub(crate) fn parse_sensor_id(text: Option<&str>) -> Result<SensorId, String> {
    SensorId::new(text.unwrap_or_default()).map_err(|fault| fault.to_string())
}

const CITY: PathParameter = PathParameter {
    name: "city",
    description: "City, percent-encoded.",
    max_length: 100,
    pattern: None,
    example: Some("Poznań"),
};

impl FromPath for LocationPrefix {
    const PARAMETERS: &'static [PathParameter] = &[
        CITY,
        PathParameter {
            name: "building",
            description: "Building, percent-encoded.",
            example: Some("A"),
            ..CITY
        },
        PathParameter {
            name: "floor",
            description: "Floor, percent-encoded.",
            example: Some("2"),
            ..CITY
        },
        PathParameter {
            name: "room",
            description: "Room, percent-encoded.",
            example: Some("13"),
            ..CITY
        },
    ];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<LocationPrefix, String> {
        let city = get("city").unwrap_or_default();
        LocationPrefix::new(city, get("building"), get("floor"), get("room"))
            .map_err(|fault| fault.to_string())
    }
}

type TaggedSensor = (ETag, Json<api::Sensor>);

fn tagged(sensor: &RegisteredSensor) -> TaggedSensor {
    (ETag::new(sensor.version), Json(sensor.into()))
}

pub(crate) async fn register(
    State(api): Api,
    Json(new): Json<NewSensor>,
) -> Result<Either<Created<TaggedSensor>, TaggedSensor>, Problem> {
    let (sensor, created) = api.sensors.register_once(new.try_into()?).await?;
    if !created {
        return Ok(Either::B(tagged(&sensor)));
    }
    let location = Location::new("/v1/sensors", sensor.sensor.id.as_str());
    Ok(Either::A(Created(location, tagged(&sensor))))
}

pub(crate) async fn list(
    State(api): Api,
    Query(paging): Query<Paging>,
) -> Result<Json<SensorPage>, Problem> {
    let cursor = paging.cursor();
    let page = api.sensors.all(paging.limit()?, cursor.as_ref()).await?;
    Ok(Json(page.into()))
}

pub(crate) async fn in_location(
    State(api): Api,
    Path(location): Path<LocationPrefix>,
    Query(paging): Query<Paging>,
) -> Result<Json<SensorPage>, Problem> {
    let (limit, cursor) = (paging.limit()?, paging.cursor());
    let page = api
        .sensors
        .in_place(&location, limit, cursor.as_ref())
        .await?;
    Ok(Json(page.into()))
}

pub(crate) async fn get(
    State(api): Api,
    Path(id): Path<SensorId>,
) -> Result<TaggedSensor, Problem> {
    Ok(tagged(&api.sensors.get(&id).await?))
}

pub(crate) async fn update(
    State(api): Api,
    Path(id): Path<SensorId>,
    condition: IfMatch,
    Json(patch): Json<SensorPatch>,
) -> Result<TaggedSensor, Problem> {
    let patch = patch.try_into()?;
    let expected = expected_version(&api, &id, &condition).await?;
    let updated = api.sensors.update(&id, patch, expected).await;
    Ok(tagged(&updated.map_err(|error| condition.problem(error))?))
}

pub(crate) async fn move_to(
    State(api): Api,
    Path(id): Path<SensorId>,
    condition: IfMatch,
    Json(location): Json<api::Location>,
) -> Result<TaggedSensor, Problem> {
    let location = location.try_into()?;
    let expected = expected_version(&api, &id, &condition).await?;
    let moved = api.sensors.move_to(&id, location, expected).await;
    Ok(tagged(&moved.map_err(|error| condition.problem(error))?))
}

pub(crate) async fn unregister(
    State(api): Api,
    Path(id): Path<SensorId>,
    condition: IfMatch,
) -> Result<NoContent, Problem> {
    let expected = expected_version(&api, &id, &condition).await?;
    let unregistered = api.sensors.unregister(&id, expected).await;
    unregistered.map_err(|error| condition.problem(error))?;
    Ok(NoContent)
}

pub(crate) async fn state(
    State(api): Api,
    Path(id): Path<SensorId>,
) -> Result<Json<SensorState>, Problem> {
    Ok(Json(api.sensors.state(&id).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadingsQuery {
    /// Maximum number of readings: by default 10 latest readings, or 100 of a time range.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page. Requires the same `from` and `to`.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Readings at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Readings before this time.
    #[param(format = DateTime, example = "2026-02-01T12:00:00Z")]
    to: Option<String>,
}

pub(crate) async fn list_readings(
    State(api): Api,
    Path(id): Path<SensorId>,
    Query(query): Query<ReadingsQuery>,
) -> Result<Json<ReadingPage>, Problem> {
    let (from, to) = (
        optional_time("from", query.from)?,
        optional_time("to", query.to)?,
    );
    if from.is_none() && to.is_none() {
        if query.cursor.is_some() {
            let detail = "a cursor of readings requires the from and to that it was created with";
            return Err(Problem::new(Code::InvalidQuery, detail));
        }
        let most = query.limit.map(|most| limit(Some(most))).transpose()?;
        let (_, readings) = api.sensors.latest(&id, most).await?;
        return Ok(Json(ReadingPage::new(&id, &readings, None)));
    }
    let from = from.unwrap_or_default();
    let to = to
        .or_else(|| Timestamp::parse(LATEST_TIME))
        .unwrap_or_default();
    let (limit, cursor) = (limit(query.limit)?, query.cursor.map(Cursor));
    let page = api
        .sensors
        .between(&id, from, to, limit, cursor.as_ref())
        .await?;
    Ok(Json(ReadingPage::new(&id, &page.rows, page.next)))
}

pub(crate) async fn save_readings(
    State(api): Api,
    Path(id): Path<SensorId>,
    Json(new): Json<NewReadings>,
) -> Result<NoContent, Problem> {
    let count = new.readings.len();
    if !(1..=MAX_READINGS).contains(&count) {
        let detail = format!("a request must have 1 to {MAX_READINGS} readings, not {count}");
        return Err(Problem::new(Code::Invalid, detail));
    }
    let now = api.clock.now();
    let readings = new.readings.into_iter().enumerate();
    let readings = readings.map(|(at, reading)| {
        let invalid = |fault| Problem::new(Code::Invalid, format!("readings[{at}]: {fault}"));
        reading.into_reading(now).map_err(invalid)
    });
    let readings = readings.collect::<Result<Vec<_>, Problem>>()?;
    api.sensors.save(&id, &readings).await?;
    Ok(NoContent)
}

async fn expected_version(
    api: &Services,
    id: &SensorId,
    condition: &IfMatch,
) -> Result<Option<Version>, Problem> {
    condition
        .version(async || Ok(api.sensors.get(id).await?.version))
        .await
}
