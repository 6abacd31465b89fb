//! `/v1/queues`: failed messages and their redrive.

use antumbra_service::api::{FailedMessages, FailedQueues, RedriveResults};
use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{FromPath, Path, PathParameter, Query, limit};
use crate::failed_messages::{QueueName, RedriveRequest};
use crate::problem::{Code, Problem};
use crate::respond::Json;
use crate::services::Api;

/// The queue that a path names, if there is one.
pub(crate) struct NamedQueue(Option<QueueName>);

impl FromPath for NamedQueue {
    const PARAMETERS: &'static [PathParameter] = &[PathParameter {
        name: "queue",
        description: "`undeliverable`: notifications that can never be sent. `quarantine`: messages that can never be \
                      processed. `dead-letters`: webhook deliveries after their last attempt.",
        max_length: 64,
        pattern: None,
        example: Some("quarantine"),
    }];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<NamedQueue, String> {
        let name = get("queue").unwrap_or_default();
        let mut all = QueueName::ALL.into_iter();
        Ok(NamedQueue(all.find(|queue| queue.as_str() == name)))
    }
}

impl NamedQueue {
    fn queue(&self) -> Result<QueueName, Problem> {
        let detail = "no such queue; there are undeliverable, quarantine and dead-letters";
        self.0.ok_or_else(|| Problem::new(Code::NotFound, detail))
    }
}

pub(crate) async fn list(State(api): Api) -> Result<Json<FailedQueues>, Problem> {
    Ok(Json(api.failed_messages.queues().await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesQuery {
    /// Maximum number of messages. Fewer are returned if they are large.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

pub(crate) async fn messages(
    State(api): Api,
    Path(queue): Path<NamedQueue>,
    Query(query): Query<MessagesQuery>,
) -> Result<Json<FailedMessages>, Problem> {
    let (queue, limit) = (queue.queue()?, limit(query.limit)?);
    Ok(Json(api.failed_messages.messages(queue, limit).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct RedriveQuery {
    /// Id of the only message to redrive.
    #[param(max_length = 128)]
    message_id: Option<String>,
    /// Maximum number of messages.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    limit: Option<usize>,
    /// Queue for messages of unknown source.
    #[param(inline)]
    to: Option<Destination>,
    /// Delete failed MQTT requests, which their senders have repeated, instead of leaving them.
    #[serde(default)]
    drop_requests: bool,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum Destination {
    Inbound,
    Signals,
}

pub(crate) async fn redrive(
    State(api): Api,
    Path(queue): Path<NamedQueue>,
    Query(query): Query<RedriveQuery>,
) -> Result<Json<RedriveResults>, Problem> {
    let queue = queue.queue()?;
    let urls = &api.failed_messages.urls;
    let to = query.to.map(|to| match to {
        Destination::Inbound => urls.inbound.clone(),
        Destination::Signals => urls.signals.clone(),
    });
    let request = RedriveRequest {
        only: query.message_id,
        reason: None,
        limit: limit(Some(query.limit.unwrap_or(1000)))?,
        to,
        drop_requests: query.drop_requests,
    };
    let is_single = request.only.is_some();
    let done = api.failed_messages.redrive(queue, request).await?;
    if is_single && done.results.is_empty() {
        let detail = "no such message among those that can be received now; a message behind another one of its FIFO \
                      group cannot";
        return Err(Problem::new(Code::NotFound, detail));
    }
    Ok(Json(done))
}
