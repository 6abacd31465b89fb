//! Deliveries: what clients were told, attempt by attempt, and telling them again.

use antumbra_service::deliveries::{
    Attempt, DeliveryId, DeliveryRecord, HistoryQuery, RedeliverError, Status, Subject,
};
use antumbra_service::paging::Page;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::api::Api;
use crate::clients::TheClient;
use crate::openapi::Missing;
use crate::problem::{Code, Problem};
use crate::request::{PathParts, Queried, cursor, instant, limit, time};
use crate::sensors::TheSensor;

/// Which deliveries.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct DeliveriesQuery {
    /// How many deliveries the page may hold. It may hold fewer, also before the last page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page starts: `next` of the page before.
    #[param(max_length = 16384, pattern = "^[0-9a-f]*$")]
    cursor: Option<String>,
    /// Of what occurred at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Of what occurred before this time.
    #[param(format = DateTime, example = "2026-02-01T12:00:00Z")]
    to: Option<String>,
    /// Only those that have come to this.
    #[param(inline)]
    status: Option<StatusWord>,
    /// The oldest first, in place of the newest.
    #[serde(default)]
    oldest_first: bool,
}

/// What a delivery has come to.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DeliveryStatus)]
pub(crate) enum StatusWord {
    /// It waits for its next attempt, and none was made since it was queued.
    Pending,
    /// The client has it.
    Delivered,
    /// It failed and will be tried again.
    Failed,
    /// It failed for the last time.
    Dead,
    /// The client, or its link to the sensor, was gone.
    Skipped,
    /// A newer one made it pointless.
    Superseded,
    /// The client was disabled.
    Parked,
}

/// Both have the same words.
const STATUSES: [(StatusWord, Status); 7] = [
    (StatusWord::Pending, Status::Pending),
    (StatusWord::Delivered, Status::Delivered),
    (StatusWord::Failed, Status::Failed),
    (StatusWord::Dead, Status::Dead),
    (StatusWord::Skipped, Status::Skipped),
    (StatusWord::Superseded, Status::Superseded),
    (StatusWord::Parked, Status::Parked),
];

impl DeliveriesQuery {
    async fn answer(self, api: &Api, subject: Subject) -> Result<Answer, Problem> {
        let status = self.status.and_then(|word| {
            let found = STATUSES.iter().find(|(one, _)| *one as u8 == word as u8);
            found.map(|(_, status)| *status)
        });
        let query = HistoryQuery {
            subject,
            from: time("from", self.from)?,
            to: time("to", self.to)?,
            status,
            oldest_first: self.oldest_first,
            limit: limit(self.limit)?,
        };
        let cursor = cursor(self.cursor);
        let page = api.deliveries().list(&query, cursor.as_ref()).await?;
        Answer::ok(&DeliveryPage::from(page))
    }
}

/// A delivery.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TheDelivery {
    /// The delivery's id, which is the `webhook-id` of its requests.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[A-Za-z0-9_-]+$",
        example = "night-watch_019c13ffc8000000000011_85944171f73967e8"
    )]
    id: String,
}

/// Lists what a client was told.
#[utoipa::path(
    get, path = "/v1/clients/{id}/deliveries", tag = "deliveries", operation_id = "list_deliveries_of_client",
    params(TheClient, DeliveriesQuery),
    responses((status = 200, description = "A page of deliveries, each with its attempts.", body = DeliveryPage)),
)]
pub(crate) async fn of_client(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    Queried(query): Queried<DeliveriesQuery>,
) -> Result<Answer, Problem> {
    query.answer(&api, Subject::Client(client.id()?)).await
}

/// Lists what clients were told of a sensor. What became of a delivery a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/sensors/{id}/history", tag = "deliveries", operation_id = "list_deliveries_of_sensor",
    params(TheSensor, DeliveriesQuery),
    responses((status = 200, description = "A page of deliveries, each with its attempts.", body = DeliveryPage)),
)]
pub(crate) async fn of_sensor(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    Queried(query): Queried<DeliveriesQuery>,
) -> Result<Answer, Problem> {
    query.answer(&api, Subject::Sensor(sensor.id()?)).await
}

/// Queues a delivery again, whatever became of it.
#[utoipa::path(
    post, path = "/v1/deliveries/{id}/redeliver", tag = "deliveries", operation_id = "redeliver",
    params(TheDelivery),
    responses((status = 202, description = "It is queued.", body = Queued), Missing),
)]
pub(crate) async fn redeliver(
    State(api): State<Api>,
    PathParts(delivery): PathParts<TheDelivery>,
) -> Result<Answer, Problem> {
    let id: DeliveryId =
        delivery
            .id
            .parse()
            .map_err(|fault: antumbra_service::deliveries::InvalidDeliveryId| {
                Problem::new(Code::InvalidPath, fault.to_string())
            })?;
    api.deliveries().redeliver(&id).await?;
    Answer::accepted(&Queued {
        delivery: id.to_string(),
    })
}

/// From when on, and which.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SinceQuery {
    /// What occurred at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    since: String,
    /// Those that the client has got too.
    #[serde(default)]
    delivered: bool,
    /// Where to go on: `next` of the answer before.
    #[param(max_length = 16384, pattern = "^[0-9a-f]*$")]
    cursor: Option<String>,
}

/// Queues again all deliveries to a client since a time that it did not get, the oldest first, but for those
/// that are still under way. It does a part of them; the caller goes on with `next` until there is none.
#[utoipa::path(
    post, path = "/v1/clients/{id}/redeliver", tag = "deliveries", operation_id = "redeliver_since",
    params(TheClient, SinceQuery),
    responses((status = 202, description = "A part of them is queued.", body = QueuedAgain), Missing),
)]
pub(crate) async fn redeliver_since(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    Queried(query): Queried<SinceQuery>,
) -> Result<Answer, Problem> {
    let since = instant("since", &query.since)?;
    let cursor = cursor(query.cursor);
    let queued = api
        .deliveries()
        .redeliver_since(&client.id()?, since, query.delivered, cursor.as_ref())
        .await?;
    Answer::accepted(&QueuedAgain {
        queued: queued.queued,
        next: queued.next.map(|cursor| cursor.0),
    })
}

/// Queues a delivery to a client that tells nothing but that it arrives.
#[utoipa::path(
    post, path = "/v1/clients/{id}/test", tag = "deliveries", operation_id = "test_client",
    params(TheClient),
    responses((status = 202, description = "It is queued.", body = Queued), Missing),
)]
pub(crate) async fn test(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
) -> Result<Answer, Problem> {
    let id = api.deliveries().test(&client.id()?).await?;
    Answer::accepted(&Queued {
        delivery: id.to_string(),
    })
}

/// Enables a client that was disabled, and queues what was kept for it meanwhile.
#[utoipa::path(
    post, path = "/v1/clients/{id}/enable", tag = "deliveries", operation_id = "enable_client",
    params(TheClient),
    responses((status = 200, description = "It is enabled.", body = Enabled), Missing),
)]
pub(crate) async fn enable(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
) -> Result<Answer, Problem> {
    let queued = api.deliveries().enable(&client.id()?).await?;
    Answer::ok(&Enabled { queued })
}

/// A delivery that was queued.
#[derive(Serialize, ToSchema)]
pub(crate) struct Queued {
    /// Its id.
    #[schema(example = "night-watch_019c13ffc8000000000011_85944171f73967e8")]
    delivery: String,
}

/// Deliveries that were queued.
#[derive(Serialize, ToSchema)]
pub(crate) struct QueuedAgain {
    /// How many.
    queued: usize,
    /// Where to go on; not there when all are queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// A client that was enabled.
#[derive(Serialize, ToSchema)]
pub(crate) struct Enabled {
    /// How many deliveries were kept for it, and are queued now.
    queued: usize,
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
#[schema(as = Deliveries)]
pub(crate) struct DeliveryPage {
    /// The deliveries.
    deliveries: Vec<DeliveryAnswer>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// What a client was told of.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
struct DeliveryAnswer {
    /// Its id, which is the `webhook-id` of its requests.
    #[schema(example = "night-watch_019c13ffc8000000000011_85944171f73967e8")]
    id: String,
    /// Who was told.
    #[schema(example = "night-watch")]
    client: String,
    /// Where it occurred; not there for a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "xa7v9Dfadr7H")]
    sensor: Option<String>,
    /// What occurred.
    #[serde(rename = "type")]
    #[schema(example = "state.changed")]
    kind: &'static str,
    /// Its number among all that occurred at the sensor.
    sequence: u64,
    /// When it occurred.
    #[schema(format = DateTime)]
    occurred_at: String,
    /// What there is to say of it.
    #[schema(value_type = Object)]
    data: Box<RawValue>,
    /// What it has come to.
    #[schema(value_type = StatusWord)]
    status: &'static str,
    /// Its attempts, the oldest first; of very many the newest.
    attempts: Vec<AttemptAnswer>,
    /// When something happened to it last.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// One attempt at a delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
struct AttemptAnswer {
    /// When it began.
    #[schema(format = DateTime)]
    at: String,
    /// Which it was since the delivery was queued, from 1 on.
    number: u32,
    /// What the endpoint answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 503)]
    status: Option<u16>,
    /// How long it took.
    latency_milliseconds: u64,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
}

impl From<&Attempt> for AttemptAnswer {
    fn from(attempt: &Attempt) -> AttemptAnswer {
        AttemptAnswer {
            at: attempt.at.to_string(),
            number: attempt.turn,
            status: attempt.status,
            latency_milliseconds: attempt.latency_ms,
            error: attempt.error.clone(),
        }
    }
}

impl From<DeliveryRecord> for DeliveryAnswer {
    fn from(record: DeliveryRecord) -> DeliveryAnswer {
        let delivery = record.delivery;
        DeliveryAnswer {
            id: delivery.id.to_string(),
            client: delivery.id.client().to_string(),
            sensor: delivery.sensor.map(|sensor| sensor.id.to_string()),
            kind: delivery.kind.as_str(),
            sequence: delivery.sequence,
            occurred_at: delivery.occurred_at.to_string(),
            data: delivery.data,
            status: record.status.as_str(),
            attempts: record.attempts.iter().map(AttemptAnswer::from).collect(),
            updated_at: record.updated.to_string(),
        }
    }
}

impl From<Page<DeliveryRecord>> for DeliveryPage {
    fn from(page: Page<DeliveryRecord>) -> DeliveryPage {
        DeliveryPage {
            deliveries: page.rows.into_iter().map(DeliveryAnswer::from).collect(),
            next: page.next.map(|cursor| cursor.0),
        }
    }
}

impl From<RedeliverError> for Problem {
    fn from(error: RedeliverError) -> Problem {
        match error {
            RedeliverError::NotFound => Problem::new(Code::NotFound, "no such delivery"),
            RedeliverError::Client(error) => error.into(),
            RedeliverError::Store(error) => error.into(),
            RedeliverError::Queue(_) => Problem::unavailable(error),
        }
    }
}
