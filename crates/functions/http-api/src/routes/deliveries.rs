//! Deliveries to clients: history, redelivery, tests and release of held deliveries.

use antumbra_service::api::{DeliveryPage, EnabledClient, QueuedDelivery, RedeliveryProgress};
use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{DeliveryId, HistoryQuery, InvalidDeliveryId, Status, Subject};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::SensorId;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::{FromPath, Path, PathParameter, Query, limit, optional_time, time};
use crate::problem::Problem;
use crate::respond::{Accepted, Json};
use crate::services::{Api, Services};

impl FromPath for DeliveryId {
    const PARAMETERS: &'static [PathParameter] = &[PathParameter {
        name: "id",
        description: "Delivery id, sent as `webhook-id`.",
        max_length: 128,
        pattern: Some("^[A-Za-z0-9_:-]+$"),
        example: Some("night-watch_019c13ffc8000000000011_85944171f73967e8"),
    }];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<DeliveryId, String> {
        let id = get("id").unwrap_or_default().parse();
        id.map_err(|fault: InvalidDeliveryId| fault.to_string())
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct DeliveriesQuery {
    /// Maximum number of deliveries. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Events at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    from: Option<String>,
    /// Events before this time.
    #[param(format = DateTime, example = "2026-02-01T12:00:00Z")]
    to: Option<String>,
    /// Deliveries with this status.
    #[param(inline)]
    status: Option<Status>,
    /// Oldest first instead of newest first.
    #[serde(default)]
    oldest_first: bool,
}

async fn list(
    api: &Services,
    subject: Subject,
    query: DeliveriesQuery,
) -> Result<Json<DeliveryPage>, Problem> {
    let cursor = query.cursor.map(Cursor);
    let query = HistoryQuery {
        subject,
        from: optional_time("from", query.from)?,
        to: optional_time("to", query.to)?,
        status: query.status,
        oldest_first: query.oldest_first,
        limit: limit(query.limit)?,
    };
    let page = api.deliveries.list(&query, cursor.as_ref()).await?;
    // The history outlives its client or sensor; only an empty one may be that of an unknown id.
    if page.rows.is_empty() && cursor.is_none() {
        match &query.subject {
            Subject::Client(client) => drop(api.clients.get(client).await?),
            Subject::Sensor(sensor) => drop(api.sensors.get(sensor).await?),
        }
    }
    Ok(Json(page.into()))
}

pub(crate) async fn of_client(
    State(api): Api,
    Path(client): Path<ClientId>,
    Query(query): Query<DeliveriesQuery>,
) -> Result<Json<DeliveryPage>, Problem> {
    list(&api, Subject::Client(client), query).await
}

pub(crate) async fn of_sensor(
    State(api): Api,
    Path(sensor): Path<SensorId>,
    Query(query): Query<DeliveriesQuery>,
) -> Result<Json<DeliveryPage>, Problem> {
    list(&api, Subject::Sensor(sensor), query).await
}

pub(crate) async fn redeliver(
    State(api): Api,
    Path(id): Path<DeliveryId>,
) -> Result<Accepted<Json<QueuedDelivery>>, Problem> {
    api.deliveries.redeliver(&id).await?;
    Ok(Accepted(Json(id.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RedeliverQuery {
    /// Events at this time or later.
    #[param(format = DateTime, example = "2026-01-31T12:00:00Z")]
    since: String,
    /// Include deliveries that succeeded.
    #[serde(default)]
    delivered: bool,
    /// `nextCursor` of the previous response.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
}

pub(crate) async fn redeliver_since(
    State(api): Api,
    Path(client): Path<ClientId>,
    Query(query): Query<RedeliverQuery>,
) -> Result<Accepted<Json<RedeliveryProgress>>, Problem> {
    let since = time("since", &query.since)?;
    let cursor = query.cursor.map(Cursor);
    let progress = api
        .deliveries
        .redeliver_since(&client, since, query.delivered, cursor.as_ref())
        .await?;
    Ok(Accepted(Json(progress.into())))
}

pub(crate) async fn test(
    State(api): Api,
    Path(client): Path<ClientId>,
) -> Result<Accepted<Json<QueuedDelivery>>, Problem> {
    let id = api.deliveries.test(&client).await?;
    Ok(Accepted(Json(id.into())))
}

pub(crate) async fn enable(
    State(api): Api,
    Path(client): Path<ClientId>,
) -> Result<Json<EnabledClient>, Problem> {
    Ok(Json(api.deliveries.enable(&client).await?.into()))
}
