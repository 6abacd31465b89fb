//! Edits the desired document.

use antumbra_service::shadows::{ClientToken, DocumentSet, ShadowError, ShadowId, Update, Version};
use antumbra_shadow::{Changes, Document, Mode, Patch, PatchedLeaf, Verdict, merge};
use axum::extract::Form;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Device, respond, shadow_of};
use crate::components::{Tone, csrf, cut, diff, error_note, note, number, pointer, write_button};
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
    result: Result<Preview, NotWritten>,
}

/// The result that an edit would have.
struct Preview {
    /// Values that would change.
    values: Vec<PatchedLeaf>,
    /// Values that would stay, because what is stored is newer.
    stale: Vec<String>,
}

enum NotWritten {
    Fault(String),
    /// The document does not have this version any more.
    Conflict(i64),
}

pub(super) async fn desire(view: View, Form(form): Form<Desire>) -> Response {
    let shadow = match shadow_of(&view) {
        Ok(shadow) => shadow,
        Err(invalid) => return refused(StatusCode::BAD_REQUEST, &invalid.to_string()),
    };
    let is_preview = form.action.as_deref() == Some("preview");
    let result = match Document::parse(&form.patch) {
        Err(fault) => Err(NotWritten::Fault(fault.to_string())),
        Ok(document) if is_preview => preview(&view, &shadow, &document)
            .await
            .map_err(|error| NotWritten::Fault(error.to_string())),
        Ok(document) => match write(&view, &shadow, document, form.if_version).await {
            Ok(response) => return response,
            Err(error) => Err(match form.if_version {
                Some(version) if error.is_conflict() => NotWritten::Conflict(version),
                _ => NotWritten::Fault(error.to_string()),
            }),
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
    let stale = result.desired_changes.as_ref().map(stale);
    let stale = stale.unwrap_or_default();
    let message = html! { span {
        @if result.written { b.ok { "Written:" } " desired v" (number(version.0)) }
        @else { b { "Nothing to write:" } " desired is already like this" }
        @if let Some(first) = stale.first() {
            "; " b.warn { "kept: stale" } " " bdi.ptr { (cut(first)) }
            @if stale.len() > 1 { " and " (number(stale.len() as i64 - 1)) " more" }
        }
    } };
    Ok(view.redirect(&view.device(shadow), message))
}

/// Pointers of values that stay because what is stored is newer.
fn stale(changes: &Changes) -> Vec<String> {
    let mut stale = Vec::new();
    changes.for_each(|change| {
        if change.verdict == Verdict::Stale && stale.len() < VALUES {
            stale.push(change.pointer.to_owned());
        }
    });
    stale
}

async fn preview(view: &View, shadow: &ShadowId, sent: &Document) -> Result<Preview, ShadowError> {
    let shadows = &view.console.services.shadows;
    let stored = match shadows.read(shadow, DocumentSet::Desired).await {
        Err(error) if error.is_not_found() => Document::default(),
        stored => stored?
            .desired
            .map(|held| held.document)
            .unwrap_or_default(),
    };
    let model = shadows.model();
    let merged = merge(&stored, sent, Mode::Patch, model, view.now);
    let patch = Patch::between(&stored, &merged.document, model, PREVIEW_BYTES);
    let leaves = patch.and_then(|patch| patch.leaves(model, PREVIEW_BYTES).ok().flatten());
    Ok(Preview {
        values: leaves.unwrap_or_default(),
        stale: stale(&merged.changes),
    })
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
            header {
                h2 { "Edit desired" } span.mute { "fields left out stay, " code { "null" } " removes" }
                @if device.current.is_some() {
                    span.push { a class="btn small quiet" href=(view.with(&[("edit", "")])) data-close { "Close" } }
                }
            }
            form.body.stack #edit-form method="post" action={ (action) "#edit" } {
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
                Some(Err(NotWritten::Fault(fault))) => div.body { (error_note("Desired was not written.", fault, view)) },
                Some(Err(NotWritten::Conflict(edited))) => div.body { (conflict(view, device, *edited)) },
                Some(Ok(preview)) => div.body.stack role="status" {
                    @if preview.values.is_empty() { p { "This changes nothing." } }
                    @else { p { b { "Preview" } ", not written" } (diff(&preview.values, VALUES)) }
                    @if !preview.stale.is_empty() {
                        ul.diff { @for at in &preview.stale {
                            li { span.sign aria-hidden="true" { "=" } (pointer(at)) span { b.warn { "kept: stale" } ", what is stored is newer" } }
                        } }
                    }
                },
            }
        }
    }
}

/// Another write came first. The form below has the new version already.
fn conflict(view: &View, device: &Device, edited: i64) -> Markup {
    let current = device.current.as_ref();
    let Some(held) = current.and_then(|shadow| shadow.desired.as_ref()) else {
        let detail = "The document does not exist any more. Your text is kept.";
        return error_note("Desired was not written: conflict.", &detail, view);
    };
    let version = format!("v{}", number(held.version.0));
    let (id, name) = (device.shadow.id(), device.shadow.name());
    let at = held.timestamp.to_string();
    let change = view.href("/device", &[("id", id), ("name", name), ("at", &at)]);
    let detail = html! {
        "You edited v" (number(edited)) "; it is now " (version) ", written " (view.ago(held.timestamp))
        @if let Some(token) = &held.client_token { " by client token " code { bdi { (cut(token.as_str())) } } }
        ". Your text is kept."
    };
    let actions = html! {
        a.btn.small href=(change) { "Show " (version) }
        button.btn.small form="edit-form" { "Apply to " (version) }
    };
    note(
        Tone::Bad,
        "Desired was not written: conflict.",
        &detail,
        &actions,
    )
}
