//! A new client. Its secret is shown once, on the page that answers the form.

use std::time::Duration;

use antumbra_service::clients::{ClientError, ClientId, Created, Mode, NewClient, RequestKey};
use axum::extract::Form;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::model::model;
use super::{Asked, CREATE, PATH, render};
use crate::components::{cmd, command, csrf, cut, error_note, quoted, write_button};
use crate::security::random;
use crate::view::{Nav, View};

/// Time for which a form that is sent twice creates one client.
const REPEATED: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewForm {
    name: String,
    url: String,
    mode: String,
    id: String,
    /// Id of the client if none is typed.
    chosen: String,
    /// Key under which the form creates one client, also if it is sent twice.
    key: String,
}

pub(super) async fn create(view: View, Form(form): Form<NewForm>) -> Response {
    let (panel, client) = match create_client(&view, &form).await {
        Ok(created) => (
            created_panel(&view, &created),
            created.client.id.to_string(),
        ),
        Err(error) => (self::form(&view, &form, Some(&error)), String::new()),
    };
    let asked = Asked {
        client,
        ..Asked::default()
    };
    let model = model(&view, asked).await;
    let content = render(&view, &model, None, Some(&panel));
    view.page(Nav::Deliveries, "Deliveries", &content)
}

async fn create_client(view: &View, form: &NewForm) -> Result<Created, ClientError> {
    let id = match form.id.trim() {
        "" => form.chosen.as_str(),
        id => id,
    };
    let id = ClientId::new(id).map_err(|fault| ClientError::Invalid(fault.to_string()))?;
    let mode: Mode = form.mode.parse().unwrap_or_default();
    let new = NewClient {
        id: Some(id),
        name: form.name.trim().to_owned(),
        url: form.url.trim().to_owned(),
        mode,
        requested: Some(RequestKey {
            by: format!("console {}", form.key),
            until: view.now.after(REPEATED),
        }),
    };
    view.console.services.clients.create(new).await
}

/// The form, with the reason why no client was created.
pub(super) fn form(view: &View, typed: &NewForm, error: Option<&ClientError>) -> Markup {
    let or_new = |typed: &str, new: fn() -> String| match typed {
        "" => new(),
        typed => typed.to_owned(),
    };
    let mode: Mode = typed.mode.parse().unwrap_or_default();
    html! {
        section.panel #new aria-label="New client" {
            header {
                h2 { "New client" } span.mute { "a webhook for the events of the sensors that it is linked to" }
                span.push { a class="btn small quiet" href=(view.href(PATH, &[])) data-close { "Close" } }
            }
            form.body.stack method="post" action={ (CREATE) "#new" } {
                (csrf(view))
                input type="hidden" name="chosen" value=(or_new(&typed.chosen, || ClientId::random().to_string()));
                input type="hidden" name="key" value=(or_new(&typed.key, random));
                @if let Some(error) = error { (error_note("The client was not created.", error, view)) }
                label.cap for="name" { "Name" }
                input.field #name name="name" value=(typed.name) required placeholder="Night watch" autocomplete="off";
                label.cap for="url" { "URL" }
                input.field.mono #url name="url" value=(typed.url) required placeholder="https://hooks.example.com/antumbra"
                    spellcheck="false" autocomplete="off";
                label.cap for="client-id" { "Id" }
                input.field.mono #client-id name="id" value=(typed.id) placeholder="chosen if left empty" spellcheck="false" autocomplete="off";
                div.filter {
                    label { "Mode "
                        select.field name="mode" {
                            option value="latest" selected[mode == Mode::Latest] { "latest: an event replaces an earlier one that waits" }
                            option value="every" selected[mode == Mode::Every] { "every: all events, in order per sensor" }
                        }
                    }
                    span.push { (write_button(view, "primary", "Create")) }
                }
            }
        }
    }
}

/// The client with its secret.
fn created_panel(view: &View, created: &Created) -> Markup {
    let client = &created.client;
    let id = client.id.as_str();
    let link = command(view, &format!("clients link {} SENSOR", quoted(id)));
    html! {
        section.panel #new aria-label="New client" {
            header {
                h2 { "Created: " bdi { (cut(&client.name)) } }
                span.push { a class="btn small quiet" href=(view.href(PATH, &[("client", id)])) data-close { "Close" } }
            }
            div.body.stack {
                p role="status" { "Deliveries are signed with this secret. It is shown only here: give it to the receiver now." }
                (cmd(created.secret.reveal()))
                dl.kv {
                    dt { "Id" } dd.mono { (id) }
                    dt { "URL" } dd.mono { bdi { (cut(&client.url)) } }
                    dt { "Mode" } dd { (client.mode) }
                }
                p.soft { "Link it to the sensors whose events it should get:" }
                (cmd(&link))
            }
        }
    }
}
