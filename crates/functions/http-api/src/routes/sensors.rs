//! `/v1/sensors` and `/v1/locations`: sensors, their states and readings. A sensor's entity tag is its version.

use antumbra_service::access::{IdRanges, Resource};
use antumbra_service::api::{
    self, NewReadings, NewSensor, NewSignals, ReadingPage, SensorData, SensorPage, SensorPatch,
    SensorState, SignalResult, SignalResults,
};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::{
    Connection, LocationPrefix, Outcome, RegisteredSensor, SensorId, SensorQuery, SensorType,
    SignalMessage, TimeRange, ValueType, Version,
};
use antumbra_shadow::Timestamp;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::NoContent;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::access::CallerGrants;
use crate::conditions::IfMatch;
use crate::extract::{
    FromPath, Path, PathParameter, Query, check_count, limit, optional_time, parse_json,
};
use crate::idempotency::RequestId;
use crate::problem::{Code, Problem};
use crate::respond::{Created, ETag, Either, Json, Location};
use crate::services::{Api, Services};

/// Maximum number of signals in one request.
const MAX_SIGNALS: usize = 100;
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

fn created(sensor: &RegisteredSensor) -> Created<TaggedSensor> {
    let location = Location::new("/v1/sensors", sensor.sensor.id.as_str());
    Created(location, tagged(sensor))
}

/// The id in the body of [`register`].
pub(crate) fn registered_id(body: &[u8]) -> Result<Vec<Option<String>>, Problem> {
    parse_json(body).map(|new: NewSensor| vec![Some(new.id)])
}

pub(crate) async fn register(
    State(api): Api,
    request: Option<Extension<RequestId>>,
    Json(new): Json<NewSensor>,
) -> Result<Created<TaggedSensor>, Problem> {
    let request = request.map(|Extension(request)| request.derive_id(""));
    let registered = match request {
        Some(request) => api.sensors.register_once(new.try_into()?, &request).await?,
        None => api.sensors.register(new.try_into()?).await?,
    };
    Ok(created(&registered))
}

pub(crate) async fn put(
    State(api): Api,
    Path(id): Path<SensorId>,
    condition: IfMatch,
    Json(data): Json<SensorData>,
) -> Result<Either<Created<TaggedSensor>, TaggedSensor>, Problem> {
    let sensor = data.of(id)?;
    if condition.is_given() {
        let expected = expected_version(&api, &sensor.id, &condition).await?;
        let replaced = api.sensors.replace(&sensor, expected).await;
        let replaced = replaced.map_err(|error| condition.problem(error))?;
        return Ok(Either::B(tagged(&replaced)));
    }
    let (sensor, is_new) = api.sensors.put(sensor).await?;
    Ok(match is_new {
        true => Either::A(created(&sensor)),
        false => Either::B(tagged(&sensor)),
    })
}

/// Selection of sensors.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SensorsQuery {
    /// Maximum number of entries. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page. Requires the same selection.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Start of the sensor id.
    #[serde(default)]
    #[param(max_length = 64, example = "xa7")]
    prefix: String,
    /// Sensors of this type.
    #[serde(rename = "type")]
    #[param(max_length = 64, example = "lock")]
    sensor_type: Option<String>,
    /// Sensors with this connection.
    #[param(inline)]
    connection: Option<SelectedConnection>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum SelectedConnection {
    Never,
    Online,
    Lost,
}

impl From<SelectedConnection> for Connection {
    fn from(selected: SelectedConnection) -> Connection {
        match selected {
            SelectedConnection::Never => Connection::Never,
            SelectedConnection::Online => Connection::Online,
            SelectedConnection::Lost => Connection::Lost,
        }
    }
}

async fn list_selected(
    api: &Services,
    place: Option<LocationPrefix>,
    within: IdRanges,
    query: SensorsQuery,
) -> Result<Json<SensorPage>, Problem> {
    let (limit, cursor) = (limit(query.limit)?, query.cursor.map(Cursor));
    let sensor_type = query.sensor_type.map(SensorType::new).transpose();
    let query = SensorQuery {
        place,
        id_prefix: query.prefix,
        within,
        sensor_type: sensor_type
            .map_err(|fault| Problem::new(Code::InvalidQuery, fault.to_string()))?,
        connection: query.connection.map(Connection::from),
    };
    let page = api.sensors.list(&query, limit, cursor.as_ref()).await?;
    Ok(Json(page.into()))
}

pub(crate) async fn list(
    State(api): Api,
    grants: CallerGrants,
    Query(query): Query<SensorsQuery>,
) -> Result<Json<SensorPage>, Problem> {
    list_selected(&api, None, grants.readable(Resource::Sensors), query).await
}

pub(crate) async fn in_location(
    State(api): Api,
    Path(location): Path<LocationPrefix>,
    Query(query): Query<SensorsQuery>,
) -> Result<Json<SensorPage>, Problem> {
    list_selected(&api, Some(location), IdRanges::all(), query).await
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct ReadingsQuery {
    /// Maximum number of readings: by default 10 latest readings, or 100 of a time range.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page. Requires the same `from`, `to` and `newestFirst`.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Readings at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Readings before this time.
    #[param(format = DateTime, example = "2026-02-01T12:00:00Z")]
    to: Option<String>,
    /// Readings of a time range newest first instead of oldest first. Without a range they always are.
    #[serde(default)]
    newest_first: bool,
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
    let cursor = query.cursor.map(Cursor);
    if from.is_none() && to.is_none() {
        let most = query.limit.map(|most| limit(Some(most))).transpose()?;
        let (sensor, page) = api.sensors.latest(&id, most, cursor.as_ref()).await?;
        return Ok(Json(ReadingPage::new(&sensor, &page.rows, page.next)));
    }
    let range = TimeRange {
        from: from.unwrap_or_default(),
        to: to
            .or_else(|| Timestamp::parse(LATEST_TIME))
            .unwrap_or_default(),
        newest_first: query.newest_first,
    };
    let limit = limit(query.limit)?;
    let page = api.sensors.in_range(&id, &range, limit, cursor.as_ref());
    let (sensor, page) = page.await?;
    Ok(Json(ReadingPage::new(&sensor, &page.rows, page.next)))
}

pub(crate) async fn save_readings(
    State(api): Api,
    Path(id): Path<SensorId>,
    Json(new): Json<NewReadings>,
) -> Result<NoContent, Problem> {
    check_count("readings", new.readings.len(), MAX_READINGS)?;
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

/// The ids in the body of [`record_signals`]. Signals that the handler rejects have none.
pub(crate) fn signalled_ids(body: &[u8]) -> Result<Vec<Option<String>>, Problem> {
    let NewSignals { signals } = parse_json(body)?;
    let id = |signal: &RawValue| match SignalMessage::parse(signal.get(), ValueType::Scalar) {
        Ok(SignalMessage::Signal(payload)) => Some(Some(payload.sensor_id.to_string())),
        Ok(SignalMessage::Marker) | Err(_) => None,
    };
    Ok(signals.iter().filter_map(|signal| id(signal)).collect())
}

/// Records signals, in the given order. One that fails does not affect the others.
pub(crate) async fn record_signals(
    State(api): Api,
    Json(NewSignals { signals }): Json<NewSignals>,
) -> Result<Json<SignalResults>, Problem> {
    check_count("signals", signals.len(), MAX_SIGNALS)?;
    let request = uuid::Uuid::new_v4();
    let mut results = Vec::with_capacity(signals.len());
    for (at, signal) in signals.iter().enumerate() {
        // Signals of one moment are ordered by their ids.
        let id = format!("{request}-{at:03}");
        results.push(match record_signal(&api, signal.get(), &id).await {
            Ok(outcome) => SignalResult {
                status: StatusCode::OK.as_u16(),
                outcome: Some(outcome.as_str()),
                error: None,
            },
            Err(problem) => SignalResult {
                status: problem.code().status().as_u16(),
                outcome: None,
                error: Some(problem.in_bulk()),
            },
        });
    }
    Ok(Json(SignalResults { results }))
}

async fn record_signal(api: &Services, text: &str, id: &str) -> Result<Outcome, Problem> {
    let invalid = |fault: String| Problem::new(Code::Invalid, fault);
    match SignalMessage::parse(text, api.signal_values) {
        Ok(SignalMessage::Signal(payload)) => Ok(api.sensors.signal(payload, id).await?),
        Ok(SignalMessage::Marker) => Err(invalid("a marker is not a signal".to_owned())),
        Err(error) => Err(invalid(error.to_string())),
    }
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
