//! `/inbox`: sources, their messages, one message. Messages that could not be processed are in the quarantine.

use std::sync::Arc;

use antumbra_service::inbox::{
    self, Contact, InboxMessage, ListRequest, MessageDeleter as _, MessageId, MessageReader as _,
    Order, Source, Sources as _,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::store::StoreError;
use axum::Router;
use axum::extract::Form;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{
    Tone, cmd, command, csrf, cut, cut_at, empty, error_note, note, quoted, size, write_button,
};
use crate::json;
use crate::state::Console;
use crate::time;
use crate::view::{Nav, View};

const PATH: &str = "/inbox";
const DELETE: &str = "/inbox/delete";
/// Sources and messages of a page.
const SOURCES: usize = 50;
const MESSAGES: usize = 30;
/// Characters of a body in the list.
const PREVIEW: usize = 64;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(DELETE, post(delete))
}

/// The state of the page, from its URL or from a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Asked {
    source: String,
    message: String,
    order: String,
    cursor: String,
    sources: String,
    /// Ask before the message is deleted.
    confirm: String,
}

impl Asked {
    fn read(view: &View) -> Asked {
        let get = |name: &str| view.get(name).unwrap_or_default().to_owned();
        Asked {
            source: get("source"),
            message: get("message"),
            order: get("order"),
            cursor: get("cursor"),
            sources: get("sources"),
            confirm: get("confirm"),
        }
    }

    fn href(&self, view: &View, parameters: &[(&str, &str)]) -> String {
        let own = [
            ("sources", self.sources.as_str()),
            ("source", &self.source),
            ("order", &self.order),
            ("cursor", &self.cursor),
            ("message", &self.message),
        ];
        let is_replaced = |name: &str| parameters.iter().any(|(key, _)| *key == name);
        let kept = own.into_iter().filter(|(name, _)| !is_replaced(name));
        let all: Vec<(&str, &str)> = kept.chain(parameters.iter().copied()).collect();
        view.href(PATH, &all)
    }

    fn order(&self) -> Order {
        match self.order.as_str() {
            "oldest" => Order::OldestFirst,
            _ => Order::NewestFirst,
        }
    }
}

/// Messages of a page, and the cursor of the next one.
type Listing = (Vec<InboxMessage>, Option<Cursor>);

struct Model {
    asked: Asked,
    sources: Result<Page<Contact>, StoreError>,
    /// The messages of the source; `None` without a source.
    messages: Option<Result<Listing, String>>,
    /// The message that is shown; `None` inside if it does not exist.
    message: Option<Result<Option<InboxMessage>, String>>,
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let model = model(view, asked).await;
    view.page(Nav::Inbox, "Inbox", &render(view, &model, failure.as_ref()))
}

async fn model(view: &View, mut asked: Asked) -> Model {
    let inbox = &view.console.services.messages;
    let cursor = cursor(&asked.sources);
    let sources = inbox.sources(SOURCES, cursor.as_ref()).await;
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
    }
}

fn cursor(text: &str) -> Option<Cursor> {
    Some(Cursor(text.to_owned())).filter(|cursor| !cursor.0.is_empty())
}

async fn messages(view: &View, asked: &Asked) -> Result<Listing, String> {
    let inbox = &view.console.services.messages;
    let source = Source::new(asked.source.clone()).map_err(|fault| fault.to_string())?;
    let request = ListRequest {
        from: None,
        to: None,
        order: asked.order(),
        limit: MESSAGES,
        cursor: cursor(&asked.cursor),
    };
    let page = inbox::list(inbox, &source, &request).await;
    let page = page.map_err(|error| error.to_string())?;
    let found = inbox.get_all(&source, &page.rows).await;
    Ok((found.map_err(|error| error.to_string())?, page.next))
}

async fn message(
    view: &View,
    source: &str,
    id: &str,
    listed: Option<&Result<Listing, String>>,
) -> Result<Option<InboxMessage>, String> {
    if let Some(Ok((messages, _))) = listed
        && let Some(found) = messages.iter().find(|message| message.id.as_str() == id)
    {
        return Ok(Some(found.clone()));
    }
    let source = Source::new(source).map_err(|fault| fault.to_string())?;
    let id = MessageId::new(id).map_err(|fault| fault.to_string())?;
    let found = view.console.services.messages.get(&source, &id).await;
    found.map_err(|error| error.to_string())
}

async fn delete(view: View, Form(asked): Form<Asked>) -> Response {
    let names = Source::new(asked.source.clone()).and_then(|source| {
        let id = MessageId::new(asked.message.clone())?;
        Ok((source, id))
    });
    let deleted = match names {
        Ok((source, id)) => {
            let inbox = &view.console.services.messages;
            let deleted = inbox.delete(&source, &id, view.console.now()).await;
            deleted.map_err(|error| error.to_string())
        }
        Err(fault) => Err(fault.to_string()),
    };
    match deleted {
        Ok(()) => {
            let message = html! { span { b.ok { "Deleted:" } " message " code { (cut_at(&asked.message, 60)) } } };
            let href = Asked {
                message: String::new(),
                ..asked
            }
            .href(&view, &[]);
            view.redirect(&href, message)
        }
        Err(error) => {
            let failure = error_note("The message was not deleted.", &error, &view);
            respond(&view, asked, Some(failure)).await
        }
    }
}

fn render(view: &View, model: &Model, failure: Option<&Markup>) -> Markup {
    let asked = &model.asked;
    let inbound = &view.console.services.failed_messages.urls.inbound;
    let inbound = inbound.rsplit('/').next().unwrap_or_default();
    let head = html! {
        div.head {
            h1 { "Inbox" }
            nav.seg aria-label="Inbox" {
                a href=(view.href(PATH, &[])) aria-current="page" { "Messages" }
                a href=(view.href("/queues", &[("queue", "quarantine")])) { "Quarantine" }
            }
            span.mute { "from " code { (inbound) } ", by source" }
        }
    };
    let is_empty = model
        .sources
        .as_ref()
        .is_ok_and(|page| page.rows.is_empty());
    if is_empty && asked.source.is_empty() {
        return html! {
            (head)
            div.stack {
                section.panel {
                    (empty("No messages yet", &html! {
                        p { "A source appears with its first message in the inbound queue. Send one to try:" }
                        (cmd(&command(view, "messages send testThing")))
                    }))
                }
            }
        };
    }
    let list = format!("messages list {}", quoted(&asked.source));
    html! {
        (head)
        div.stack {
            @if let Some(failure) = failure { (failure) }
            div class="cols cols-inbox" {
                (sources(view, model))
                (messages_panel(view, model))
                (message_panel(view, model))
            }
            @if !asked.source.is_empty() { (cmd(&command(view, &list))) }
        }
    }
}

/// Contact is recorded to the hour.
fn contact(view: &View, hour: antumbra_shadow::Timestamp) -> Markup {
    let this_hour = view.now.nanoseconds() - hour.nanoseconds() < 3_600_000_000_000;
    html! {
        "last contact "
        @if this_hour { (view.time(hour, "this hour")) } @else { (view.ago(hour)) }
    }
}

fn sources(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    html! {
        section.panel {
            header {
                form.filter method="get" action=(PATH) {
                    label.sr for="source" { "Source" }
                    input class="field mono" #source name="source" placeholder="source" size="12" spellcheck="false"
                        autocomplete="off" aria-keyshortcuts="/";
                    button.btn.small { "Open" }
                }
            }
            @match &model.sources {
                Err(error) => (error_note("The sources cannot be listed.", error, view)),
                Ok(page) => {
                    nav aria-label="Sources" {
                        @for row in &page.rows {
                            @let source = row.source.as_str();
                            a.pick href=(view.href(PATH, &[("sources", &asked.sources), ("source", source)]))
                                aria-current=[(asked.source == source).then_some("true")] {
                                bdi.id { (cut(source)) } span.sub { (contact(view, row.last_contact)) }
                            }
                        }
                    }
                    footer {
                        span { (page.rows.len()) " sources; contact is kept to the hour" }
                        @if let Some(next) = &page.next { a class="btn small push" href=(view.href(PATH, &[("sources", &next.0)])) { "More" } }
                    }
                }
            }
        }
    }
}

fn messages_panel(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let is_oldest = asked.order() == Order::OldestFirst;
    html! {
        section.panel {
            header {
                h2.mono { bdi { (cut(&asked.source)) } }
                nav class="seg push" aria-label="Order" {
                    a href=(asked.href(view, &[("order", ""), ("cursor", ""), ("message", "")])) aria-current=[(!is_oldest).then_some("true")] { "Newest first" }
                    a href=(asked.href(view, &[("order", "oldest"), ("cursor", ""), ("message", "")])) aria-current=[is_oldest.then_some("true")] { "Oldest first" }
                }
            }
            @match &model.messages {
                None => {}
                Some(Err(error)) => (error_note("The messages cannot be listed.", error, view)),
                Some(Ok((messages, next))) => {
                    @if messages.is_empty() {
                        (empty("No messages", &html! { p { "All messages of this source were deleted, or have expired." } }))
                    }
                    nav aria-label="Messages" {
                        @for message in messages {
                            @let id = message.id.as_str();
                            a.pick href=(asked.href(view, &[("message", id)])) aria-current=[(asked.message == id).then_some("true")] {
                                span.line { code { bdi { (cut_at(id, 40)) } } " " span.when { (view.ago(message.received_at)) } }
                                span class="sub mono" { bdi { (cut_at(message.body.as_json(), PREVIEW)) } }
                            }
                        }
                    }
                    footer {
                        span { (messages.len()) " messages" @if next.is_some() { " of more" } }
                        @if let Some(next) = next {
                            a class="btn small push" href=(asked.href(view, &[("cursor", &next.0), ("message", "")])) {
                                @if is_oldest { "Newer" } @else { "Older" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn message_panel(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let message = match &model.message {
        Some(Ok(Some(message))) => message,
        other => {
            return html! {
                section.panel {
                    header { h2 { "Message" } }
                    @match other {
                        Some(Err(error)) => (error_note("The message cannot be read.", error, view)),
                        Some(Ok(_)) => (empty("No such message", &html! { p { "It was deleted, or has expired." } })),
                        None => (empty("No message selected", &html! {})),
                    }
                }
            };
        }
    };
    html! {
        section.panel {
            header {
                h2 { "Message" }
                span.push {
                    @if view.writes() { a class="btn small danger" href=(asked.href(view, &[("confirm", "delete")])) { "Delete…" } }
                    @else { (write_button(view, "small danger", "Delete…")) }
                }
            }
            @if !asked.confirm.is_empty() {
                (note(Tone::Warn, "Delete this message?", &html! { "It cannot be restored, and is not stored again if its queue delivers it again." }, &html! {
                    form.line method="post" action=(DELETE) {
                        (csrf(view))
                        @for (name, value) in [("source", &asked.source), ("message", &asked.message), ("order", &asked.order), ("cursor", &asked.cursor), ("sources", &asked.sources)] {
                            input type="hidden" name=(name) value=(value);
                        }
                        (write_button(view, "small danger", "Delete"))
                        a.btn.small href=(asked.href(view, &[])) { "Cancel" }
                    }
                }))
            }
            div.body { dl.kv {
                dt { "Message id" } dd.mono { bdi { (cut_at(message.id.as_str(), 600)) } }
                dt { "Received" } dd { (view.at(message.received_at)) ", " (time::age(view.now, message.received_at)) }
                dt { "Expires" } dd { @match message.expires_at { Some(time) => (view.ago(time)), None => { "never" } } }
                dt { "Size" } dd { (size(message.body.as_json().len())) }
            } }
            div.body { (json::pretty(message.body.as_json())) }
            footer { span { "Digits are shown exactly as they were sent." } }
        }
    }
}
