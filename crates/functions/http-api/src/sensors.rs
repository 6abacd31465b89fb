//! `/v1/sensors`: the registry, and the latest state. A sensor's entity tag is its version.

mod shape;

use antumbra_service::sensors::moment::milliseconds;
use antumbra_service::sensors::{InvalidSensor, SensorError, SensorId, Version};
use axum::extract::State;

use crate::answer::{Answer, segment};
use crate::api::Api;
use crate::locations::RowPage;
use crate::openapi::{Changed, IfMatch, IfNoneMatch, Missing};
use crate::problem::{Code, Problem};
use crate::request::{Conditions, JsonBody, Paging, PathParts, Queried};
pub(crate) use shape::{LocationShape, ScalarShape, StateAnswer, TheSensor};
use shape::{NewSensor, SensorAnswer, SensorChange};

/// Registers a sensor. The same again changes nothing.
#[utoipa::path(
    post, path = "/v1/sensors", tag = "sensors", operation_id = "register_sensor",
    request_body = NewSensor,
    responses(
        (status = 201, description = "It is registered.", body = SensorAnswer, headers(("ETag" = String), ("Location" = String))),
        (status = 200, description = "It was registered already, just so.", body = SensorAnswer, headers(("ETag" = String))),
        (status = 409, description = "Another sensor has this id, or the same request is under way.", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn register(
    State(api): State<Api>,
    JsonBody(new): JsonBody<NewSensor>,
) -> Result<Answer, Problem> {
    let begin = api.now();
    let registered = api.sensors().register(new.sensor()?).await?;
    let tag = registered.version.to_string();
    let body = SensorAnswer::from(&registered);
    // What was there before this request is not new. Times are kept to the millisecond.
    let answer = if milliseconds(registered.registered_at) < milliseconds(begin) {
        Answer::ok(&body)?
    } else {
        let id = segment(registered.sensor.id.as_str());
        Answer::created(&body, format!("/v1/sensors/{id}"))?
    };
    Ok(answer.tagged(&tag))
}

/// Lists all sensors, by id. One that was registered a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/sensors", tag = "sensors", operation_id = "list_sensors", params(Paging),
    responses((status = 200, description = "A page of sensors, with their states.", body = RowPage)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    let cursor = paging.cursor();
    let page = api.sensors().all(paging.limit()?, cursor.as_ref()).await?;
    Answer::ok(&RowPage::from(page))
}

/// Reads a sensor.
#[utoipa::path(
    get, path = "/v1/sensors/{id}", tag = "sensors", operation_id = "get_sensor",
    params(TheSensor, IfNoneMatch),
    responses(
        (status = 200, description = "The sensor.", body = SensorAnswer, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn get(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    let registered = api.sensors().get(&sensor.id()?).await?;
    let tag = registered.version.to_string();
    if conditions.has(&tag) {
        return Ok(Answer::not_modified(&tag));
    }
    Ok(Answer::ok(&SensorAnswer::from(&registered))?.tagged(&tag))
}

/// Changes a sensor where it stands.
#[utoipa::path(
    patch, path = "/v1/sensors/{id}", tag = "sensors", operation_id = "update_sensor",
    params(TheSensor, IfMatch), request_body = SensorChange,
    responses(
        (status = 200, description = "The sensor as it is now.", body = SensorAnswer, headers(("ETag" = String))),
        Missing, Changed,
    ),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    conditions: Conditions,
    JsonBody(change): JsonBody<SensorChange>,
) -> Result<Answer, Problem> {
    let (id, patch) = (sensor.id()?, change.patch()?);
    let expected = expected(&api, &id, &conditions).await?;
    let registered = api.sensors().update(&id, patch, expected).await;
    let registered = registered.map_err(|error| on_condition(error, &conditions))?;
    let tag = registered.version.to_string();
    Ok(Answer::ok(&SensorAnswer::from(&registered))?.tagged(&tag))
}

/// Moves a sensor. Its old place no longer lists it.
#[utoipa::path(
    post, path = "/v1/sensors/{id}/move", tag = "sensors", operation_id = "move_sensor",
    params(TheSensor, IfMatch), request_body = LocationShape,
    responses(
        (status = 200, description = "The sensor as it is now.", body = SensorAnswer, headers(("ETag" = String))),
        Missing, Changed,
    ),
)]
pub(crate) async fn move_to(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    conditions: Conditions,
    JsonBody(location): JsonBody<LocationShape>,
) -> Result<Answer, Problem> {
    let (id, location) = (sensor.id()?, location.location()?);
    let expected = expected(&api, &id, &conditions).await?;
    let registered = api.sensors().move_to(&id, location, expected).await;
    let registered = registered.map_err(|error| on_condition(error, &conditions))?;
    let tag = registered.version.to_string();
    Ok(Answer::ok(&SensorAnswer::from(&registered))?.tagged(&tag))
}

/// Unregisters a sensor: it, its state and its links are gone at once, its readings a little later.
#[utoipa::path(
    delete, path = "/v1/sensors/{id}", tag = "sensors", operation_id = "unregister_sensor",
    params(TheSensor, IfMatch),
    responses((status = 204, description = "It is gone."), Missing, Changed),
)]
pub(crate) async fn unregister(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    let id = sensor.id()?;
    let expected = expected(&api, &id, &conditions).await?;
    let gone = api.sensors().unregister(&id, expected).await;
    gone.map_err(|error| on_condition(error, &conditions))?;
    Ok(Answer::no_content())
}

/// Reads a sensor's latest state.
#[utoipa::path(
    get, path = "/v1/sensors/{id}/state", tag = "sensors", operation_id = "get_sensor_state",
    params(TheSensor),
    responses((status = 200, description = "What it last said, and whether it is heard.", body = StateAnswer), Missing),
)]
pub(crate) async fn state(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
) -> Result<Answer, Problem> {
    let state = api.sensors().state(&sensor.id()?).await?;
    Answer::ok(&StateAnswer::from(&state))
}

async fn expected(
    api: &Api,
    id: &SensorId,
    conditions: &Conditions,
) -> Result<Option<Version>, Problem> {
    let stored = async || Ok(api.sensors().get(id).await?.version.0.unsigned_abs());
    let version = conditions.version(stored).await?;
    Ok(version.map(|version| Version(i64::try_from(version).unwrap_or(i64::MAX))))
}

/// A conflict with what the caller expects is another thing than one with other writers.
fn on_condition(error: SensorError, conditions: &Conditions) -> Problem {
    match error {
        SensorError::Conflict { .. } if conditions.if_match.is_some() => {
            Problem::new(Code::PreconditionFailed, error.to_string())
        }
        error => error.into(),
    }
}

impl From<SensorError> for Problem {
    fn from(error: SensorError) -> Problem {
        match error {
            SensorError::AlreadyRegistered => Problem::new(Code::AlreadyExists, error.to_string()),
            SensorError::NotFound => Problem::new(Code::NotFound, "no such sensor"),
            SensorError::Conflict { .. } => {
                Problem::new(Code::Conflict, error.to_string()).with_retry()
            }
            SensorError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidSensor> for Problem {
    fn from(fault: InvalidSensor) -> Problem {
        Problem::new(Code::Invalid, fault.to_string())
    }
}
