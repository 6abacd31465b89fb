//! `/deliveries`: webhook clients with the state of their circuits, deliveries with every attempt, redelivery.

mod clients;
mod inspector;
mod list;
mod model;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{cmd, command, empty, error_note, quoted};
use crate::state::Console;
use crate::view::{Nav, View};
use model::{Model, model};

pub(super) use list::event;

const PATH: &str = "/deliveries";
const REDELIVER: &str = "/deliveries/redeliver";
const REDELIVER_SINCE: &str = "/deliveries/redeliver-since";
const ENABLE: &str = "/deliveries/enable";
const TEST: &str = "/deliveries/test";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(REDELIVER, post(write::redeliver))
        .route(REDELIVER_SINCE, post(write::redeliver_since))
        .route(ENABLE, post(write::enable))
        .route(TEST, post(write::test))
}

/// The state of the page, from its URL or from a form.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Asked {
    client: String,
    sensor: String,
    status: String,
    delivery: String,
    cursor: String,
    /// Show what a redelivery since this time would queue.
    since: String,
    /// Ask before the client is enabled.
    enable: String,
    clients_cursor: String,
}

impl Asked {
    fn read(view: &View) -> Asked {
        let get = |name: &str| view.get(name).unwrap_or_default().to_owned();
        Asked {
            client: get("client"),
            sensor: get("sensor"),
            status: get("status"),
            delivery: get("delivery"),
            cursor: get("cursor"),
            since: get("since"),
            enable: get("enable"),
            clients_cursor: get("clients"),
        }
    }

    /// A link to this page with other values; those that narrow the list stay.
    fn href(&self, view: &View, parameters: &[(&str, &str)]) -> String {
        let own = [
            ("clients", self.clients_cursor.as_str()),
            ("client", &self.client),
            ("sensor", &self.sensor),
            ("status", &self.status),
            ("cursor", &self.cursor),
        ];
        let is_replaced = |name: &str| parameters.iter().any(|(key, _)| *key == name);
        let kept = own.into_iter().filter(|(name, _)| !is_replaced(name));
        let all: Vec<(&str, &str)> = kept.chain(parameters.iter().copied()).collect();
        view.href(PATH, &all)
    }
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let content = match model(view, asked).await {
        Ok(model) => render(view, &model, failure.as_ref()),
        Err(error) => html! {
            (head())
            (error_note("The clients cannot be listed.", &error, view))
        },
    };
    view.page(Nav::Deliveries, "Deliveries", &content)
}

fn head() -> Markup {
    html! {
        div.head {
            h1 { "Deliveries" }
            span.mute { "Webhooks to the clients of sensors" }
        }
    }
}

fn render(view: &View, model: &Model, failure: Option<&Markup>) -> Markup {
    let asked = &model.asked;
    if model.clients.is_empty() && asked.clients_cursor.is_empty() {
        return html! {
            (head())
            div.stack {
                @if let Some(failure) = failure { (failure) }
                section.panel {
                    (empty("No clients yet", &html! {
                        p { "A client is a webhook that receives the events of the sensors it is linked to." }
                        (cmd(&command(view, "clients create 'Night watch' https://hooks.example.com/antumbra")))
                    }))
                }
            }
        };
    }
    let has_aside = model.selected.is_some() || model.plan.is_some();
    let arguments = match asked.client.as_str() {
        "" => "clients list".to_owned(),
        client => format!("clients deliveries {}", quoted(client)),
    };
    html! {
        (head())
        div.stack {
            @if let Some(failure) = failure { (failure) }
            @if let Some(held) = model.held { (clients::ask_enable(view, asked, held)) }
            (clients::clients(view, model))
            (list::filter(view, model))
            div class={ "cols" @if has_aside { " cols-inspect" } } {
                (list::deliveries(view, model))
                @if let Some(plan) = &model.plan { (inspector::dry_run(view, asked, plan)) }
                @else if let Some(selected) = &model.selected { (inspector::inspector(view, asked, selected)) }
            }
            (cmd(&command(view, &arguments)))
        }
    }
}
