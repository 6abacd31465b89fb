//! `/inbox`: sources, their messages, one message. Messages that could not be processed are in the quarantine.

mod model;
mod panels;

use std::sync::Arc;

use antumbra_service::inbox::{MessageDeleter as _, MessageId, Order, Source};
use axum::Router;
use axum::extract::Form;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{cmd, command, cut_at, empty, error_note, quoted};
use crate::state::Console;
use crate::view::{Nav, View};
use model::{Model, model};
use panels::{message_panel, messages_panel, sources};

const PATH: &str = "/inbox";
const DELETE: &str = "/inbox/delete";

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

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let model = model(view, asked).await;
    view.page(Nav::Inbox, "Inbox", &render(view, &model, failure.as_ref()))
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
