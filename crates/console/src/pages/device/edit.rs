//! Edits the desired document.

use antumbra_service::shadows::{ClientToken, DocumentSet, ShadowError, ShadowId, Update, Version};
use antumbra_shadow::{Document, Mode, Patch, PatchedLeaf, merge};
use axum::extract::Form;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Device, respond, shadow_of};
use crate::components::{csrf, diff, error_note, number, write_button};
use crate::view::{View, refused};

/// Values of a preview.
const VALUES: usize = 100;
/// Bytes of the values of a preview.
const PREVIEW_BYTES: usize = 256 * 1024;

#[derive(Deserialize)]
pub(super) struct Desire {
    patch: String,
    #[serde(rename = "if-version")]
    if_version: Option<i64>,
    #[serde(rename = "do")]
    action: Option<String>,
}

/// An edit that was not written.
pub(super) struct Tried {
    patch: String,
    result: Result<Vec<PatchedLeaf>, String>,
}

pub(super) async fn desire(view: View, Form(form): Form<Desire>) -> Response {
    let shadow = match shadow_of(&view) {
        Ok(shadow) => shadow,
        Err(invalid) => return refused(StatusCode::BAD_REQUEST, &invalid.to_string()),
    };
    let is_preview = form.action.as_deref() == Some("preview");
    let document = Document::parse(&form.patch).map_err(|error| error.to_string());
    let result = match document {
        Err(fault) => Err(fault),
        Ok(document) if is_preview => preview(&view, &shadow, &document)
            .await
            .map_err(|error| error.to_string()),
        Ok(document) => match write(&view, &shadow, document, form.if_version).await {
            Ok(response) => return response,
            Err(error) if error.is_conflict() => Err(format!(
                "{error}. Somebody else wrote meanwhile; your text is kept below. Look at the state and send it again."
            )),
            Err(error) => Err(error.to_string()),
        },
    };
    let status = match &result {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let tried = Tried {
        patch: form.patch,
        result,
    };
    respond(view, shadow, status, Some(tried)).await
}

async fn write(
    view: &View,
    shadow: &ShadowId,
    document: Document,
    if_version: Option<i64>,
) -> Result<Response, ShadowError> {
    let mut update =
        Update::desire(shadow.clone(), document).client_token(ClientToken::new("console")?);
    if let Some(version) = if_version {
        update = update.expected(Version(version));
    }
    let result = view.console.services.shadows.update(update).await?;
    let version = result.version(antumbra_shadow::State::Desired);
    let message = match result.written {
        true => html! { span { b.ok { "Written:" } " desired v" (number(version.0)) } },
        false => html! { span { b { "Nothing to write:" } " desired is already like this" } },
    };
    Ok(view.redirect(&view.device(shadow), message))
}

/// The values that would change.
async fn preview(
    view: &View,
    shadow: &ShadowId,
    sent: &Document,
) -> Result<Vec<PatchedLeaf>, ShadowError> {
    let shadows = &view.console.services.shadows;
    let stored = match shadows.read(shadow, DocumentSet::Desired).await {
        Err(error) if error.is_not_found() => Document::default(),
        stored => stored?
            .desired
            .map(|held| held.document)
            .unwrap_or_default(),
    };
    let model = shadows.model();
    let merged = merge(&stored, sent, Mode::Patch, model, view.now).document;
    let patch = Patch::between(&stored, &merged, model, PREVIEW_BYTES);
    let leaves = patch.and_then(|patch| patch.leaves(model, PREVIEW_BYTES).ok().flatten());
    Ok(leaves.unwrap_or_default())
}

pub(super) fn panel(view: &View, device: &Device, tried: Option<&Tried>) -> Markup {
    if tried.is_none() && view.get("edit").is_none() && device.current.is_some() {
        return html! {};
    }
    let version = device
        .current
        .as_ref()
        .and_then(|shadow| shadow.desired.as_ref());
    let version = version.map_or(0, |held| held.version.0);
    let patch = tried.map_or("{\n  \n}", |tried| tried.patch.as_str());
    let action = view.href(
        "/device",
        &[
            ("id", device.shadow.id()),
            ("name", device.shadow.name()),
            ("edit", "1"),
        ],
    );
    html! {
        section.panel #edit {
            header { h2 { "Edit desired" } span.mute { "fields left out stay, " code { "null" } " removes" } }
            form.body.stack method="post" action={ (action) "#edit" } {
                (csrf(view))
                textarea.field name="patch" rows="6" aria-label="Desired, as JSON" spellcheck="false" { (patch) }
                div.filter {
                    label { input type="checkbox" name="if-version" value=(version) checked; " Only if desired is still "
                        @if version == 0 { "absent" } @else { "v" (number(version)) } }
                    span.push {
                        @if view.writes() { button.btn name="do" value="preview" { "Preview" } " " }
                        (write_button(view, "primary", "Send"))
                    }
                }
            }
            @match tried.map(|tried| &tried.result) {
                None => {}
                Some(Err(fault)) => div.body { (error_note("Desired was not written.", fault, view)) },
                Some(Ok(values)) => div.body.stack role="status" {
                    @if values.is_empty() { p { "This changes nothing." } }
                    @else { p { b { "Preview" } ", not written" } (diff(values, VALUES)) }
                },
            }
        }
    }
}
