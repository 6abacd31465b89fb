//! `/device`: one shadow: its state, its past, and what is desired of it.

use std::sync::Arc;

use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{ShadowId, Update};
use antumbra_service::text::InvalidText;
use antumbra_shadow::Document;
use axum::extract::Form;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, response::IntoResponse};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{csrf, error_note, id, write_button};
use crate::state::Console;
use crate::view::{Nav, View, refused};

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/device", get(show).post(desire))
}

/// The shadow that the URL names.
fn shadow_of(view: &View) -> Result<ShadowId, InvalidText> {
    let id = view.get("id").unwrap_or_default();
    let name = view.get("name").unwrap_or(DEFAULT_NAME);
    ShadowId::named(id, name)
}

async fn show(view: View) -> Response {
    match shadow_of(&view) {
        Ok(shadow) => view.page(
            Nav::Fleet,
            shadow.id(),
            &render(&view, &shadow, "{}", &html! {}),
        ),
        Err(invalid) => refused(StatusCode::BAD_REQUEST, &invalid.to_string()),
    }
}

fn render(view: &View, shadow: &ShadowId, patch: &str, result: &Markup) -> Markup {
    html! {
        div.head { h1 { (id(shadow.id())) } }
        section.panel #edit {
            header { h2 { "Edit desired" } }
            form.body.stack method="post" action=(view.with(&[])) {
                (csrf(view))
                textarea.field name="patch" rows="5" aria-label="Desired, as JSON" spellcheck="false" { (patch) }
                div.filter { span.push { (write_button(view, "primary", "Send")) } }
            }
            (result)
        }
    }
}

#[derive(Deserialize)]
struct Desire {
    patch: String,
}

async fn desire(view: View, Form(form): Form<Desire>) -> Response {
    let shadow = match shadow_of(&view) {
        Ok(shadow) => shadow,
        Err(invalid) => return refused(StatusCode::BAD_REQUEST, &invalid.to_string()),
    };
    let written = match Document::parse(&form.patch) {
        Ok(document) => {
            let update = Update::desire(shadow.clone(), document);
            let written = view.console.services.shadows.update(update).await;
            written.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match written {
        Ok(_) => view.redirect(&view.device(&shadow), html! { b.ok { "Written" } }),
        Err(error) => {
            let note = error_note("Desired was not written.", &error, &view);
            let content = render(&view, &shadow, &form.patch, &note);
            view.page_with(
                StatusCode::UNPROCESSABLE_ENTITY,
                Nav::Fleet,
                shadow.id(),
                &content,
            )
            .into_response()
        }
    }
}
