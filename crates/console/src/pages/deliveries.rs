//! `/deliveries`: webhook clients with the state of their circuits, deliveries with every attempt, redelivery.

mod attempts;
mod clients;
mod create;
mod inspector;
mod list;
mod model;
mod write;

use std::sync::Arc;

use antumbra_wire::items::ItemKind;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{cmd, command, empty, error_note, live_state, quoted};
use crate::live::{ChangedItem, Parts, live_text};
use crate::state::Console;
use crate::view::{Failure, Nav, View};
use model::{Model, model};

pub(crate) use attempts::LastAttempts;
pub(super) use list::event;

pub(crate) const PATH: &str = "/deliveries";
const REDELIVER: &str = "/deliveries/redeliver";
const REDELIVER_SINCE: &str = "/deliveries/redeliver-since";
const ENABLE: &str = "/deliveries/enable";
const TEST: &str = "/deliveries/test";
const CREATE: &str = "/deliveries/create";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(REDELIVER, post(write::redeliver))
        .route(REDELIVER_SINCE, post(write::redeliver_since))
        .route(ENABLE, post(write::enable))
        .route(TEST, post(write::test))
        .route(CREATE, post(create::create))
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
        view.href_with(PATH, &own, parameters)
    }
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    respond(&view, asked, None).await
}

async fn respond(view: &View, asked: Asked, failure: Option<Markup>) -> Response {
    let model = model(view, asked).await;
    let content = render(view, &model, failure.as_ref(), None);
    view.page(Nav::Deliveries, "Deliveries", &content)
}

/// The parts of the page that change.
pub(crate) async fn parts(view: &View) -> Parts {
    parts_of(view, &model(view, Asked::read(view)).await)
}

fn parts_of(view: &View, model: &Result<Model, Failure>) -> Parts {
    let model = match model {
        Ok(model) => model,
        Err(error) => {
            let error = error_note("The clients cannot be listed.", error, view);
            return vec![("clients", html! { div #clients data-part { (error) } })];
        }
    };
    if model.has_no_clients() {
        let none = html! {
            section.panel #clients data-part {
                (empty("No clients yet", &html! {
                    p { "A client is a webhook that receives the events of the sensors it is linked to." }
                    @if view.writes() { p { a.btn.primary href={ (view.href(PATH, &[("new", "1")])) "#new" } { "New client" } } }
                    (cmd(&command(view, "clients create 'Night watch' https://hooks.example.com/antumbra")))
                }))
            }
        };
        return vec![("clients", none)];
    }
    let mut parts = vec![
        ("clients", clients::clients(view, model)),
        ("deliveries", list::deliveries(view, model)),
    ];
    if let (None, Some(selected)) = (&model.plan, &model.selected) {
        let delivery = inspector::inspector(view, &model.asked, selected);
        parts.push(("delivery", delivery));
    }
    parts
}

/// Returns whether a change of an item may change the page.
pub(crate) fn shows(item: &ChangedItem) -> bool {
    matches!(item.kind, ItemKind::Delivery | ItemKind::ClientInfo)
}

fn head(view: &View) -> Markup {
    html! {
        div.head {
            h1 { "Deliveries" }
            span.mute { "Webhooks to the clients of sensors" }
            div.actions {
                span.soft { (live_state(live_text(view))) }
                @if view.writes() { a.btn href={ (view.href(PATH, &[("new", "1")])) "#new" } { "New client" } }
                @else { button.btn disabled title="start with --write" { "New client" } }
            }
        }
    }
}

/// The page, with the result of a write that failed, or with the panel of a new client.
fn render(
    view: &View,
    model: &Result<Model, Failure>,
    failure: Option<&Markup>,
    new: Option<&Markup>,
) -> Markup {
    let parts = parts_of(view, model);
    let is_asked = view.get("new").is_some() && new.is_none();
    let form = is_asked.then(|| create::form(view, &create::NewForm::default(), None));
    let above = html! {
        @if let Some(failure) = failure { (failure) }
        @if let Some(new) = new.or(form.as_ref()) { (new) }
    };
    let part = |wanted: &str| {
        let found = parts.iter().find(|(id, _)| *id == wanted);
        found.map(|(_, part)| part)
    };
    let model = match model {
        Ok(model) if !model.has_no_clients() => model,
        _ => {
            return html! {
                (head(view))
                div.stack data-events=[view.events(PATH, &[])] {
                    (above)
                    @for (_, part) in &parts { (part) }
                }
            };
        }
    };
    let asked = &model.asked;
    let has_aside = model.selected.is_some() || model.plan.is_some();
    let arguments = match asked.client.as_str() {
        "" => "clients list".to_owned(),
        client => format!("clients deliveries {}", quoted(client)),
    };
    html! {
        (head(view))
        // The client that is shown stays, also if another one needs attention meanwhile.
        div.stack data-events=[view.events(PATH, &[("client", &asked.client)])] {
            (above)
            @if let Some(held) = model.held { (clients::ask_enable(view, asked, held)) }
            @if let Some(part) = part("clients") { (part) }
            (list::filter(view, model))
            div class={ "cols" @if has_aside { " cols-inspect" } } {
                @if let Some(part) = part("deliveries") { (part) }
                @if let Some(plan) = &model.plan { (inspector::dry_run(view, asked, plan)) }
                @if let Some(part) = part("delivery") { (part) }
            }
            (cmd(&command(view, &arguments)))
        }
    }
}
