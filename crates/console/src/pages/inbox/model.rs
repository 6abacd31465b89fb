//! The reads of the page: sources, the messages of one, one message.

use antumbra_service::inbox::{
    self, Contact, InboxMessage, ListRequest, MessageId, MessageReader as _, Source, Sources as _,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::redrive::QueueError;
use antumbra_service::store::StoreError;
use futures_util::future;

use super::Asked;
use crate::pages::queues;
use crate::view::{Failure, View, cursor};

/// Sources and messages of a page.
const SOURCES: usize = 50;
const MESSAGES: usize = 30;

/// Messages of a page, and the cursor of the next one.
type Listing = (Vec<InboxMessage>, Option<Cursor>);

pub(super) struct Model {
    pub(super) asked: Asked,
    pub(super) sources: Result<Page<Contact>, StoreError>,
    /// The messages of the source; `None` without a source.
    pub(super) messages: Option<Result<Listing, Failure>>,
    /// The message that is shown; `None` inside if it does not exist.
    pub(super) message: Option<Result<Option<InboxMessage>, Failure>>,
    /// Messages that wait in the outbound queue, and those that were received and not deleted yet.
    pub(super) outbound: Result<(u64, u64), QueueError>,
    /// About how many messages are in quarantine.
    pub(super) quarantined: u64,
}

impl Model {
    /// Returns whether no message ever arrived.
    pub(super) fn is_empty(&self) -> bool {
        let has_no_source = self.sources.as_ref().is_ok_and(|page| page.rows.is_empty());
        has_no_source && self.asked.source.is_empty()
    }
}

pub(super) async fn model(view: &View, mut asked: Asked) -> Model {
    let inbox = &view.console.services.messages;
    let cursor = cursor(&asked.sources);
    let (sources, outbound, quarantined) = future::join3(
        inbox.sources(SOURCES, cursor.as_ref()),
        view.console.services.outbound_messages.count(),
        queues::quarantined(view),
    )
    .await;
    if let (true, Ok(page)) = (asked.source.is_empty(), &sources) {
        let first = page.rows.first();
        asked.source = first.map_or(String::new(), |first| first.source.to_string());
    }
    let messages = match asked.source.as_str() {
        "" => None,
        _ => Some(messages(view, &asked).await),
    };
    if let (true, Some(Ok((messages, _)))) = (asked.message.is_empty(), &messages) {
        let first = messages.first();
        asked.message = first.map_or(String::new(), |first| first.id.to_string());
    }
    let message = match asked.message.as_str() {
        "" => None,
        id => Some(message(view, &asked.source, id, messages.as_ref()).await),
    };
    Model {
        asked,
        sources,
        messages,
        message,
        outbound,
        quarantined,
    }
}

async fn messages(view: &View, asked: &Asked) -> Result<Listing, Failure> {
    let inbox = &view.console.services.messages;
    let source = Source::new(asked.source.clone())?;
    let request = ListRequest {
        from: None,
        to: None,
        order: asked.order(),
        limit: MESSAGES,
        cursor: cursor(&asked.cursor),
    };
    let page = inbox::list(inbox, &source, &request).await?;
    Ok((inbox.get_all(&source, &page.rows).await?, page.next))
}

async fn message(
    view: &View,
    source: &str,
    id: &str,
    listed: Option<&Result<Listing, Failure>>,
) -> Result<Option<InboxMessage>, Failure> {
    if let Some(Ok((messages, _))) = listed
        && let Some(found) = messages.iter().find(|message| message.id.as_str() == id)
    {
        return Ok(Some(found.clone()));
    }
    let source = Source::new(source)?;
    let id = MessageId::new(id)?;
    Ok(view.console.services.messages.get(&source, &id).await?)
}
