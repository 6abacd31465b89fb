//! `list`: lists the messages of a source, a page at a time: ids (one read) or whole messages (two reads).
//!
//! A page ends early if the response would become too large; its cursor continues from there.

use antumbra_service::inbox::{
    InboxMessage, ListRequest, MessageId, MessageIndex, MessageReader, Order, Page, Source,
    list as list_ids, shorten_page,
};
use antumbra_service::paging::Cursor;
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::limits::REQUEST_BYTES;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{page_limit, respond, source};
use crate::{OperationError, RequestContext};

const MAX_IDS: usize = 1000;
const MAX_BODIES: usize = 100;
/// Bytes of a response reserved for the cursor, which holds two names in twice their bytes, and the uuid.
const ENVELOPE_BYTES: usize = 4 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdsResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    message_ids: Vec<&'a str>,
    uuid: &'a str,
}

#[derive(Serialize)]
struct MessagesResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    messages: Vec<ListedMessage<'a>>,
    uuid: &'a str,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum ListedMessage<'a> {
    Whole {
        body: &'a RawValue,
        message_id: &'a str,
    },
    /// A message that fills a response of its own.
    TooLarge {
        error: &'a str,
        code: &'a str,
        message_id: &'a str,
    },
}

pub(crate) async fn list(
    inbox: &(impl MessageIndex + MessageReader),
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let source = source(request)?;
    let parameters = request.payload.list()?;
    let limit = page_limit(parameters.limit, MAX_IDS)?;
    let bodies = parameters.bodies;
    let request = ListRequest {
        from: parameters.from.map(MessageId::new).transpose()?,
        to: parameters.to.map(MessageId::new).transpose()?,
        order: match parameters.newest_first {
            true => Order::NewestFirst,
            false => Order::OldestFirst,
        },
        limit: if bodies { limit.min(MAX_BODIES) } else { limit },
        cursor: parameters.cursor.map(Cursor),
    };
    let page = list_ids(inbox, &source, &request).await?;
    if !bodies {
        return respond_ids(&source, &request, page);
    }
    let messages = match page.rows.is_empty() {
        true => Vec::new(),
        false => inbox.get_all(&source, &page.rows).await?,
    };
    respond_messages(&source, &request, page, &messages)
}

fn respond_ids(
    source: &Source,
    request: &ListRequest,
    page: Page<MessageId>,
) -> Result<String, OperationError> {
    let mut bytes = ENVELOPE_BYTES;
    let fits = |id: &&MessageId| {
        // Quotes, a comma, and every character escaped.
        bytes += 2 * id.as_str().len() + 3;
        bytes <= REQUEST_BYTES
    };
    let count = page.rows.iter().take_while(fits).count();
    let page = shorten_page(page, source, request, count);
    respond(&IdsResponse {
        cursor: page.next.as_ref().map(|cursor| cursor.0.as_str()),
        message_ids: page.rows.iter().map(MessageId::as_str).collect(),
        uuid: source.as_str(),
    })
}

fn respond_messages(
    source: &Source,
    request: &ListRequest,
    page: Page<MessageId>,
    messages: &[InboxMessage],
) -> Result<String, OperationError> {
    const MAX_BYTES: usize = REQUEST_BYTES - ENVELOPE_BYTES;
    let mut bytes_left = MAX_BYTES;
    let mut listed = Vec::new();
    let mut count = 0;
    let mut found = messages.iter().peekable();
    for id in &page.rows {
        // An id without a message was deleted between the two reads.
        if let Some(message) = found.next_if(|message| message.id == *id) {
            let message_id = id.as_str();
            let (entry, bytes) = match message.response_bytes() + 1 {
                bytes if bytes <= MAX_BYTES => {
                    let body = serde_json::from_str(message.body.as_json())?;
                    (ListedMessage::Whole { body, message_id }, bytes)
                }
                _ => {
                    let entry = ListedMessage::TooLarge {
                        error: "It needs a response of its own: get it",
                        code: "TooLarge",
                        message_id,
                    };
                    (entry, ENVELOPE_BYTES / 2)
                }
            };
            if bytes > bytes_left {
                break;
            }
            bytes_left -= bytes;
            listed.push(entry);
        }
        count += 1;
    }
    let next = shorten_page(page.clone(), source, request, count).next;
    respond(&MessagesResponse {
        cursor: next.as_ref().map(|cursor| cursor.0.as_str()),
        messages: listed,
        uuid: source.as_str(),
    })
}
