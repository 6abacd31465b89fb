//! `/v1/messages`: the inbox, source by source.

use antumbra_service::inbox::{
    InboxMessage, InvalidName, ListRequest, MessageId, Order, Page, Source, shorten_page,
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::api::Api;
use crate::openapi::Missing;
use crate::problem::{Code, Problem};
use crate::request::{PathParts, Queried, cursor, limit};

/// Messages that are read at once.
const CHUNK: usize = 25;
/// Bytes of messages that a page holds, after which it ends early: Lambda answers with 6 MB at most. One
/// message of the inbox is far smaller.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// A source of messages.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfSource {
    /// Who the messages are from, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[^$/+#][^/+#]*$",
        example = "testThing"
    )]
    uuid: String,
}

/// A message of a source.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path, rename_all = "camelCase")]
pub(crate) struct TheMessage {
    /// Who the message is from, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[^$/+#][^/+#]*$",
        example = "testThing"
    )]
    uuid: String,
    /// Which of the source's it is, percent-encoded.
    #[param(min_length = 1, max_length = 1024, pattern = "^[^/+#]+$")]
    message_id: String,
}

/// Which messages of a source.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct MessagesQuery {
    /// How many messages the page may hold. It may hold fewer, also before the last page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page starts: `next` of the page before.
    #[param(max_length = 16384, pattern = "^[0-9a-f]*$")]
    cursor: Option<String>,
    /// Not before this message id, which need not exist.
    #[param(min_length = 1, max_length = 1024, pattern = "^[^/+#]+$")]
    from: Option<String>,
    /// Not behind this message id, which need not exist.
    #[param(min_length = 1, max_length = 1024, pattern = "^[^/+#]+$")]
    to: Option<String>,
    /// The newest first.
    #[serde(default)]
    newest_first: bool,
    /// Whole messages in place of their ids alone.
    #[serde(default)]
    bodies: bool,
}

/// Lists the messages of a source.
#[utoipa::path(
    get, path = "/v1/messages/{uuid}", tag = "messages", operation_id = "list_messages",
    params(OfSource, MessagesQuery),
    responses((status = 200, description = "A page of messages, in the order of their ids.", body = MessagePage)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    PathParts(of): PathParts<OfSource>,
    Queried(query): Queried<MessagesQuery>,
) -> Result<Answer, Problem> {
    let source = Source::new(of.uuid)?;
    let (bodies, request) = (query.bodies, query.request()?);
    let listed = api.messages().list(&source, &request).await?;
    if bodies {
        return whole(&api, &source, request.order, listed).await;
    }
    let messages = listed.rows.iter().map(MessageEntry::id).collect();
    Answer::ok(&MessagePage::new(&source, messages, listed))
}

/// Reads as many messages as an answer holds, and goes on behind the last of them.
async fn whole(
    api: &Api,
    source: &Source,
    order: Order,
    listed: Page<MessageId>,
) -> Result<Answer, Problem> {
    let mut messages = Vec::new();
    let (mut seen, mut bytes) = (0, 0);
    'pages: for ids in listed.rows.chunks(CHUNK) {
        let mut found = api
            .messages()
            .get_all(source, ids)
            .await?
            .into_iter()
            .peekable();
        for id in ids {
            // What was deleted since it was listed is left out.
            if let Some(message) = found.next_if(|message| message.id == *id) {
                bytes += message.body.as_json().len();
                if bytes > PAGE_BYTES && !messages.is_empty() {
                    break 'pages;
                }
                messages.push(MessageEntry::whole(&message)?);
            }
            seen += 1;
        }
    }
    let listed = shorten_page(listed, source, order, seen);
    Answer::ok(&MessagePage::new(source, messages, listed))
}

/// Reads a message.
#[utoipa::path(
    get, path = "/v1/messages/{uuid}/{messageId}", tag = "messages", operation_id = "get_message",
    params(TheMessage),
    responses((status = 200, description = "The message, its numbers as they were written.", body = Message), Missing),
)]
pub(crate) async fn get(
    State(api): State<Api>,
    PathParts(named): PathParts<TheMessage>,
) -> Result<Answer, Problem> {
    let (source, id) = named.names()?;
    match api.messages().get(&source, &id).await? {
        Some(message) => Answer::ok(&Message {
            uuid: source.as_str().to_owned(),
            entry: MessageEntry::whole(&message)?,
        }),
        None => Err(Problem::new(Code::NotFound, "no such message")),
    }
}

/// Deletes a message.
#[utoipa::path(
    delete, path = "/v1/messages/{uuid}/{messageId}", tag = "messages", operation_id = "delete_message",
    params(TheMessage),
    responses((status = 204, description = "It is gone, or was not there.")),
)]
pub(crate) async fn delete(
    State(api): State<Api>,
    PathParts(named): PathParts<TheMessage>,
) -> Result<Answer, Problem> {
    let (source, id) = named.names()?;
    api.messages().delete(&source, &id, api.now()).await?;
    Ok(Answer::no_content())
}

impl TheMessage {
    fn names(self) -> Result<(Source, MessageId), Problem> {
        Ok((Source::new(self.uuid)?, MessageId::new(self.message_id)?))
    }
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
            cursor: cursor(self.cursor),
        })
    }
}

/// A page of messages.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessagePage {
    /// Who they are from.
    #[schema(example = "testThing")]
    uuid: String,
    /// The messages.
    messages: Vec<MessageEntry>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl MessagePage {
    fn new(source: &Source, messages: Vec<MessageEntry>, listed: Page<MessageId>) -> MessagePage {
        MessagePage {
            uuid: source.as_str().to_owned(),
            messages,
            next: listed.next.map(|cursor| cursor.0),
        }
    }
}

/// A message of a known source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageEntry {
    /// Which of the source's it is.
    #[schema(example = "1564669331-1564669332364-7d7efcff-bdcf-4d98-917e-d171d27cc0b4")]
    message_id: String,
    /// When it was taken in, where the message is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    received_at: Option<String>,
    /// When it will be removed, where it ever is and the message is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// What was sent, where the message is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    body: Option<Box<RawValue>>,
}

impl MessageEntry {
    fn id(id: &MessageId) -> MessageEntry {
        MessageEntry {
            message_id: id.as_str().to_owned(),
            received_at: None,
            expires_at: None,
            body: None,
        }
    }

    fn whole(message: &InboxMessage) -> Result<MessageEntry, Problem> {
        let body = RawValue::from_string(message.body.as_json().to_owned());
        Ok(MessageEntry {
            message_id: message.id.as_str().to_owned(),
            received_at: Some(message.received_at.to_string()),
            expires_at: message.expires_at.map(|time| time.to_string()),
            body: Some(body.map_err(Problem::internal)?),
        })
    }
}

/// A message.
#[derive(Serialize, ToSchema)]
pub(crate) struct Message {
    /// Who it is from.
    #[schema(example = "testThing")]
    uuid: String,
    #[serde(flatten)]
    entry: MessageEntry,
}

impl From<InvalidName> for Problem {
    fn from(fault: InvalidName) -> Problem {
        Problem::new(Code::InvalidPath, fault.to_string())
    }
}
