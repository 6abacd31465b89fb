//! `/v1/sensors/{id}/readings`: what a sensor measured.

use antumbra_service::sensors::{Reading, Sequence, Unit, Value};
use antumbra_shadow::{Document, Timestamp};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::api::Api;
use crate::openapi::Missing;
use crate::problem::{Code, Problem};
use crate::request::{JsonBody, PathParts, Queried, cursor, limit, time};
use crate::sensors::{ScalarShape, TheSensor};

/// Readings that one request may save.
const MOST_READINGS: usize = 1000;
/// The last instant whose year has four digits.
const LAST: &str = "9999-12-31T23:59:59.999999999Z";

/// Which readings.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadingsQuery {
    /// How many readings the page may hold: 10 of the latest, or 100 of a span, unless said otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page starts: `next` of the page before. Goes with `from` or `to`.
    #[param(max_length = 16384, pattern = "^[0-9a-f]*$")]
    cursor: Option<String>,
    /// Not before this time.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Before this time.
    #[param(format = DateTime, example = "2026-02-01T12:00:00Z")]
    to: Option<String>,
}

/// Reads what a sensor measured: the latest readings, the newest first; or, with `from` or `to`, those of
/// a span of time, the oldest first and page by page.
#[utoipa::path(
    get, path = "/v1/sensors/{id}/readings", tag = "sensors", operation_id = "list_readings",
    params(TheSensor, ReadingsQuery),
    responses((status = 200, description = "A page of readings.", body = ReadingPage), Missing),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    Queried(query): Queried<ReadingsQuery>,
) -> Result<Answer, Problem> {
    let id = sensor.id()?;
    let (from, to) = (time("from", query.from)?, time("to", query.to)?);
    if from.is_none() && to.is_none() {
        if query.cursor.is_some() {
            let detail = "a cursor of readings goes with the from and to it was given for";
            return Err(Problem::new(Code::InvalidQuery, detail));
        }
        let most = query.limit.map(|asked| limit(Some(asked))).transpose()?;
        let (_, readings) = api.sensors().latest(&id, most).await?;
        return Answer::ok(&ReadingPage::new(&id, readings, None)?);
    }
    let from = from.unwrap_or_default();
    let to = to.or_else(|| Timestamp::parse(LAST)).unwrap_or_default();
    let cursor = cursor(query.cursor);
    let page = api
        .sensors()
        .between(&id, from, to, limit(query.limit)?, cursor.as_ref())
        .await?;
    let next = page.next.map(|cursor| cursor.0);
    Answer::ok(&ReadingPage::new(&id, page.rows, next)?)
}

/// Saves what a sensor measured. The same reading again, by time and sequence, changes nothing.
#[utoipa::path(
    post, path = "/v1/sensors/{id}/readings", tag = "sensors", operation_id = "save_readings",
    params(TheSensor), request_body = NewReadings,
    responses((status = 204, description = "They are saved."), Missing),
)]
pub(crate) async fn save(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    JsonBody(new): JsonBody<NewReadings>,
) -> Result<Answer, Problem> {
    let id = sensor.id()?;
    let count = new.readings.len();
    if !(1..=MOST_READINGS).contains(&count) {
        let detail = format!("a request saves 1 to {MOST_READINGS} readings, not {count}");
        return Err(Problem::new(Code::Invalid, detail));
    }
    let now = api.now();
    let readings = new.readings.into_iter().enumerate();
    let readings = readings
        .map(|(at, reading)| {
            reading.reading(now).map_err(|problem| {
                Problem::new(
                    Code::Invalid,
                    format!("readings[{at}]: {}", problem.detail()),
                )
            })
        })
        .collect::<Result<Vec<_>, Problem>>()?;
    api.sensors().save(&id, &readings).await?;
    Ok(Answer::no_content())
}

/// Readings to be saved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReadings {
    /// The readings.
    #[schema(min_items = 1, max_items = 1000)]
    readings: Vec<NewReading>,
}

/// A reading to be saved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewReading {
    /// What was measured.
    #[schema(value_type = ScalarShape)]
    value: Box<RawValue>,
    /// In what, of at most 32 bytes.
    #[schema(nullable = false, min_length = 1, max_length = 32, example = "°C")]
    unit: Option<String>,
    /// When: RFC 3339, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970. Now
    /// unless said otherwise.
    #[schema(value_type = Option<String>, format = DateTime, nullable = false, example = "2026-01-31T12:00:00Z")]
    time: Option<Box<RawValue>>,
    /// Which of several at that time.
    #[schema(nullable = false, minimum = 0)]
    sequence: Option<u64>,
}

impl NewReading {
    fn reading(self, now: Timestamp) -> Result<Reading, Problem> {
        let value = alone(&self.value)?;
        let value = value.pointer("/v").map(Value::of).transpose()?;
        let value = value.ok_or_else(|| Problem::internal("a member is gone"))?;
        let time = match self.time.as_deref().filter(|raw| raw.get() != "null") {
            None => now,
            Some(raw) => {
                let time = alone(raw)?;
                let said = time.pointer("/v").and_then(Timestamp::of);
                let wrong = || Problem::new(Code::Invalid, "the time is no time");
                said.ok_or_else(wrong)?.0
            }
        };
        let unit = self.unit.map(Unit::new).transpose()?;
        Ok(Reading::new(value, unit, time, self.sequence)?)
    }
}

/// A value as the one member of a document, which keeps its digits.
fn alone(raw: &RawValue) -> Result<Document, Problem> {
    Ok(Document::parse(&format!("{{\"v\":{}}}", raw.get()))?)
}

/// A page of readings.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadingPage {
    /// The sensor's id.
    #[schema(example = "xa7v9Dfadr7H")]
    sensor: String,
    /// The readings.
    readings: Vec<ReadingAnswer>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A reading.
#[derive(Serialize, ToSchema)]
#[schema(as = Reading)]
struct ReadingAnswer {
    /// What was measured.
    #[schema(value_type = ScalarShape)]
    value: Box<RawValue>,
    /// In what.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "°C")]
    unit: Option<String>,
    /// When.
    #[schema(format = DateTime)]
    time: String,
    /// Which of several at that time, where the device numbers them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sequence: Option<u64>,
}

impl ReadingPage {
    fn new(
        id: &antumbra_service::sensors::SensorId,
        readings: Vec<Reading>,
        next: Option<String>,
    ) -> Result<ReadingPage, Problem> {
        let answer = |reading: Reading| {
            let value = RawValue::from_string(reading.value.to_string());
            Ok(ReadingAnswer {
                value: value.map_err(Problem::internal)?,
                unit: reading.unit.map(|unit| unit.as_str().to_owned()),
                time: reading.moment.time().to_string(),
                sequence: match reading.moment.sequence() {
                    Sequence::Number(number) => Some(*number),
                    _ => None,
                },
            })
        };
        Ok(ReadingPage {
            sensor: id.to_string(),
            readings: readings
                .into_iter()
                .map(answer)
                .collect::<Result<_, Problem>>()?,
            next,
        })
    }
}
