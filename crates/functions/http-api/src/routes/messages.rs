//! `/v1/messages`: the inbox by source.

use std::time::Duration;

use antumbra_service::api::{
    Message, MessageEntry, MessagePage, OutboundMessage, SentMessage, SourcePage,
};
use antumbra_service::inbox::{
    self, ListRequest, MessageDeleter as _, MessageId, MessageReader as _, Order, OutboundError,
    OutboundQueue as _, Page, Source, Sources as _,
};
use antumbra_service::paging::Cursor;
use axum::Extension;
use axum::extract::State;
use axum::response::NoContent;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::{FromPath, Paging, Path, PathParameter, Query, limit};
use crate::idempotency::RequestId;
use crate::problem::{Code, Problem};
use crate::respond::{Accepted, Json};
use crate::services::{Api, Services};

/// Messages per read.
const READ_MESSAGES: usize = 25;
/// Size of the bodies after which a page ends early: a Lambda response holds 6 MB, and a single message is
/// far smaller.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Time for which the outbound queue is tried.
const SEND_TIME: Duration = Duration::from_secs(10);

const SOURCE: PathParameter = PathParameter {
    name: "uuid",
    description: "Source of the messages, percent-encoded.",
    max_length: 128,
    pattern: Some("^[^$/+#][^/+#]*$"),
    example: Some("testThing"),
};

impl FromPath for Source {
    const PARAMETERS: &'static [PathParameter] = &[SOURCE];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<Source, String> {
        Source::new(get("uuid").unwrap_or_default()).map_err(|fault| fault.to_string())
    }
}

impl FromPath for (Source, MessageId) {
    const PARAMETERS: &'static [PathParameter] = &[
        SOURCE,
        PathParameter {
            name: "messageId",
            description: "Message id, percent-encoded.",
            max_length: 1024,
            pattern: Some("^[^/+#]+$"),
            example: None,
        },
    ];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<(Source, MessageId), String> {
        let id = MessageId::new(get("messageId").unwrap_or_default());
        Ok((
            Source::from_path(&get)?,
            id.map_err(|fault| fault.to_string())?,
        ))
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct MessagesQuery {
    /// Maximum number of messages. A page can be shorter, also before the last one.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    #[param(max_length = 16384, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Smallest message id; it need not exist.
    #[param(min_length = 1, max_length = 1024, pattern = "^[^/+#]+$")]
    from: Option<String>,
    /// Largest message id; it need not exist.
    #[param(min_length = 1, max_length = 1024, pattern = "^[^/+#]+$")]
    to: Option<String>,
    /// Newest first instead of oldest first.
    #[serde(default)]
    newest_first: bool,
    /// Return whole messages instead of their ids.
    #[serde(default)]
    bodies: bool,
}

impl MessagesQuery {
    fn request(self) -> Result<ListRequest, Problem> {
        let bound = |id: Option<String>| {
            let id = id.map(MessageId::new).transpose();
            id.map_err(|fault| Problem::new(Code::InvalidQuery, fault.to_string()))
        };
        Ok(ListRequest {
            from: bound(self.from)?,
            to: bound(self.to)?,
            order: match self.newest_first {
                true => Order::NewestFirst,
                false => Order::OldestFirst,
            },
            limit: limit(self.limit)?,
            cursor: self.cursor.map(Cursor),
        })
    }
}

pub(crate) async fn sources(
    State(api): Api,
    Query(paging): Query<Paging>,
) -> Result<Json<SourcePage>, Problem> {
    let (limit, cursor) = (paging.limit()?, paging.cursor());
    let page = api.messages.sources(limit, cursor.as_ref()).await?;
    Ok(Json(page.into()))
}

pub(crate) async fn list(
    State(api): Api,
    Path(source): Path<Source>,
    Query(query): Query<MessagesQuery>,
) -> Result<Json<MessagePage>, Problem> {
    let (bodies, request) = (query.bodies, query.request()?);
    let page = inbox::list(&api.messages, &source, &request).await?;
    let (messages, page) = match bodies {
        true => read_bodies(&api, &source, &request, page).await?,
        false => (page.rows.iter().map(MessageEntry::from).collect(), page),
    };
    Ok(Json(MessagePage {
        uuid: source.as_str().to_owned(),
        messages,
        next_cursor: page.next.map(|cursor| cursor.0),
    }))
}

/// Reads as many messages of the page as a response can hold, and shortens the page to them.
async fn read_bodies(
    api: &Services,
    source: &Source,
    request: &ListRequest,
    page: Page<MessageId>,
) -> Result<(Vec<MessageEntry>, Page<MessageId>), Problem> {
    let mut messages = Vec::new();
    let (mut seen, mut bytes) = (0, 0);
    'pages: for ids in page.rows.chunks(READ_MESSAGES) {
        let found = api.messages.get_all(source, ids).await?;
        let mut found = found.into_iter().peekable();
        for id in ids {
            // A message that was deleted since the listing is left out.
            if let Some(message) = found.next_if(|message| message.id == *id) {
                bytes += message.body.as_json().len();
                if bytes > PAGE_BYTES && !messages.is_empty() {
                    break 'pages;
                }
                messages.push(MessageEntry::from(&message));
            }
            seen += 1;
        }
    }
    Ok((messages, inbox::shorten_page(page, source, request, seen)))
}

pub(crate) async fn get(
    State(api): Api,
    Path((source, id)): Path<(Source, MessageId)>,
) -> Result<Json<Message>, Problem> {
    let message = api.messages.get(&source, &id).await?;
    let message = message.ok_or_else(|| Problem::new(Code::NotFound, "no such message"))?;
    Ok(Json(Message::new(&source, &message)))
}

pub(crate) async fn delete(
    State(api): Api,
    Path((source, id)): Path<(Source, MessageId)>,
) -> Result<NoContent, Problem> {
    api.messages.delete(&source, &id, api.clock.now()).await?;
    Ok(NoContent)
}

pub(crate) async fn send(
    State(api): Api,
    Path(device): Path<Source>,
    request: Option<Extension<RequestId>>,
    Json(OutboundMessage { message }): Json<OutboundMessage>,
) -> Result<Accepted<Json<SentMessage>>, Problem> {
    let key = match request {
        // A request that has to run again sends the same key.
        Some(Extension(request)) => request.derive_id("http-"),
        None => format!("http-{}", uuid::Uuid::new_v4().simple()),
    };
    let until = api.clock.now().after(SEND_TIME);
    let sent = api.outbound.send(&device, &key, &message, until).await;
    sent.map_err(|error| match error {
        OutboundError::TooLarge { .. } => Problem::new(Code::TooLarge, error.to_string()),
        OutboundError::Late => Problem::unavailable(error.to_string()),
        OutboundError::InvalidKey | OutboundError::Rejected(_) => Problem::internal(error),
    })?;
    Ok(Accepted(Json(SentMessage {
        uuid: device.as_str().to_owned(),
        idempotency_key: key,
    })))
}
