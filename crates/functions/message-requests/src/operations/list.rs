//! `list`: the messages of a source, a page at a time; their ids, or all of them.
//!
//! A page ends early where an answer would become too large; its cursor goes on from there.

use antumbra_service::inbox::{
    InboxMessage, ListRequest, MessageId, MessageIndex, MessageReader, Order, Page, Source, list,
    shorten_page,
};
use antumbra_service::paging::Cursor;
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::{InboxResponse, ListedMessage};
use antumbra_wire::limits::REQUEST_BYTES;

use super::get::raw;
use crate::serve::{InboxOperation, OperationError, RequestContext, source};

/// Messages in a page unless asked for otherwise.
const DEFAULT_LIMIT: usize = 100;
/// Messages in a page of ids.
const MAX_IDS: usize = 1000;
/// Messages in a page of bodies.
const MAX_BODIES: usize = 100;
/// Bytes of an answer that are kept for what is not a message: the cursor, which holds two names in
/// twice their bytes, and the uuid.
const ENVELOPE_BYTES: usize = 4 * 1024;

/// One read for ids, two for bodies.
#[derive(Debug, Clone)]
pub struct ListMessages<P>(pub P);

impl<P: MessageIndex + MessageReader> InboxOperation for ListMessages<P> {
    fn operation(&self) -> Operation {
        Operation::List
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let source = source(asked.named)?;
        let members = asked.members.list()?;
        let limit = members.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_IDS).contains(&limit) {
            return Err(OperationError::Bad(format!("limit must be 1 to {MAX_IDS}")));
        }
        let request = ListRequest {
            from: members.from.map(MessageId::new).transpose()?,
            to: members.to.map(MessageId::new).transpose()?,
            order: match members.newest_first {
                true => Order::NewestFirst,
                false => Order::OldestFirst,
            },
            limit: if members.bodies {
                limit.min(MAX_BODIES)
            } else {
                limit
            },
            cursor: members.cursor.map(Cursor),
        };
        let page = list(&self.0, &source, &request).await?;
        if members.bodies {
            let messages = match page.rows.is_empty() {
                true => Vec::new(),
                false => self.0.get_all(&source, &page.rows).await?,
            };
            whole(&source, request.order, page, &messages)
        } else {
            Ok(ids(&source, request.order, page))
        }
    }
}

fn ids(source: &Source, order: Order, page: Page<MessageId>) -> String {
    let mut bytes = ENVELOPE_BYTES;
    let fits = |id: &&MessageId| {
        // Quotes, a comma, and every character escaped.
        bytes += 2 * id.as_str().len() + 3;
        bytes <= REQUEST_BYTES
    };
    let count = page.rows.iter().take_while(fits).count();
    let page = shorten_page(page, source, order, count);
    let ids: Vec<&str> = page.rows.iter().map(MessageId::as_str).collect();
    InboxResponse::Ids {
        cursor: page.next.as_ref().map(|cursor| cursor.0.as_str()),
        message_ids: &ids,
        uuid: source.as_str(),
    }
    .to_json()
}

/// A page with bodies. One that fills an answer of its own stands there by name.
fn whole(
    source: &Source,
    order: Order,
    page: Page<MessageId>,
    messages: &[InboxMessage],
) -> Result<String, OperationError> {
    let mut room = REQUEST_BYTES - ENVELOPE_BYTES;
    let mut listed = Vec::new();
    let mut count = 0;
    let mut found = messages.iter().peekable();
    for id in &page.rows {
        // One that was deleted in between is passed over.
        if let Some(message) = found.next_if(|message| message.id == *id) {
            let bytes = message.answer_bytes() + 1;
            let entry = if bytes > REQUEST_BYTES - ENVELOPE_BYTES {
                ListedMessage::Name {
                    error: "It needs an answer of its own: get it",
                    code: "TooLarge",
                    message_id: id.as_str(),
                }
            } else {
                ListedMessage::Whole {
                    body: raw(message.body.as_json())?,
                    message_id: id.as_str(),
                }
            };
            let bytes = match entry {
                ListedMessage::Name { .. } => ENVELOPE_BYTES / 2,
                ListedMessage::Whole { .. } => bytes,
            };
            if bytes > room {
                break;
            }
            room -= bytes;
            listed.push(entry);
        }
        count += 1;
    }
    let next = shorten_page(page.clone(), source, order, count).next;
    Ok(InboxResponse::Messages {
        cursor: next.as_ref().map(|cursor| cursor.0.as_str()),
        messages: &listed,
        uuid: source.as_str(),
    }
    .to_json())
}
