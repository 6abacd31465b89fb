//! `/inbox`: sources, their messages, one message. Messages that could not be processed are in the quarantine.

mod model;
mod outbound;
mod panels;
mod write;

use std::sync::Arc;

use antumbra_service::inbox::Order;
use antumbra_wire::items::ItemKind;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{cmd, command, empty, live_state, number, quoted};
use crate::live::{ChangedItem, Parts, live_text};
use crate::state::Console;
use crate::view::{Nav, View};
use model::{Model, model};
use panels::{message_panel, messages_panel, sources};

pub(crate) const PATH: &str = "/inbox";
const DELETE: &str = "/inbox/delete";
const SEND: &str = "/inbox/send";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(DELETE, post(write::delete))
        .route(SEND, post(write::send))
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
    /// A message to a device, as it was typed, and the key under which it is sent once.
    device: String,
    text: String,
    key: String,
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
            ..Asked::default()
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
        view.href_with(PATH, &own, parameters)
    }

    fn order(&self) -> Order {
        match self.order.as_str() {
            "oldest" => Order::OldestFirst,
            _ => Order::NewestFirst,
        }
    }
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let model = model(view, asked).await;
    view.page(Nav::Inbox, "Inbox", &render(view, &model, failure.as_ref()))
}

/// The parts of the page that change.
pub(crate) async fn parts(view: &View) -> Parts {
    parts_of(view, &model(view, Asked::read(view)).await)
}

fn parts_of(view: &View, model: &Model) -> Parts {
    let mut parts = match model.is_empty() {
        true => {
            let none = html! {
                section.panel #sources data-part {
                    (empty("No messages yet", &html! {
                        p { "A source appears with its first message in the inbound queue. Send one to try:" }
                        (cmd(&command(view, "messages send testThing")))
                    }))
                }
            };
            vec![("sources", none)]
        }
        // A message that is open stays as it is.
        false => vec![
            ("sources", sources(view, model)),
            ("messages", messages_panel(view, model)),
        ],
    };
    parts.push(("outbound", outbound::waiting(view, &model.outbound)));
    parts
}

/// Returns whether a change of an item may change the page.
pub(crate) fn shows(item: &ChangedItem) -> bool {
    matches!(item.kind, ItemKind::InboxMessage | ItemKind::InboxSource)
}

fn head(view: &View, model: &Model) -> Markup {
    let inbound = &view.console.services.failed_messages.urls.inbound;
    let inbound = inbound.rsplit('/').next().unwrap_or_default();
    html! {
        div.head {
            h1 { "Inbox" }
            nav.seg aria-label="Inbox" {
                a href=(view.href(PATH, &[])) aria-current="page" { "Messages" }
                a href=(view.href("/queues", &[("queue", "quarantine")])) {
                    "Quarantine" @if model.quarantined > 0 { ", " (number(model.quarantined)) }
                }
            }
            span.mute { "from " code { (inbound) } ", by source" }
            span.push.soft { (live_state(live_text(view))) }
        }
    }
}

fn render(view: &View, model: &Model, failure: Option<&Markup>) -> Markup {
    let asked = &model.asked;
    let parts = parts_of(view, model);
    let part = |wanted: &str| {
        let found = parts.iter().find(|(id, _)| *id == wanted);
        found.map(|(_, part)| part)
    };
    // What is open stays open when newer messages arrive.
    let shown = [
        ("source", asked.source.as_str()),
        ("message", &asked.message),
    ];
    html! {
        (head(view, model))
        div.stack data-events=[view.events(PATH, &shown)] {
            @if let Some(failure) = failure { (failure) }
            @if model.is_empty() {
                @if let Some(part) = part("sources") { (part) }
            } @else {
                div class="cols cols-inbox" {
                    @if let Some(part) = part("sources") { (part) }
                    @if let Some(part) = part("messages") { (part) }
                    (message_panel(view, model))
                }
            }
            (outbound::panel(view, model, part("outbound")))
            @if !asked.source.is_empty() {
                (cmd(&command(view, &format!("messages list {}", quoted(&asked.source)))))
            }
        }
    }
}
