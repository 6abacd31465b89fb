//! `/registrations`: the rules, and a test bench: which of them match a change, and which line decides.
//!
//! The change is a recorded one of a shadow, or typed. A draft of a pattern is tried on the same change, and on the changes
//! of the shadow in the last 24 hours. Nothing is saved: registrations are files.

mod bench;
mod code;
mod draft;
mod model;
mod summary;
mod table;

use std::sync::Arc;

use antumbra_service::notifications::suspension::Suspension;
use antumbra_service::shadows::{ShadowId, State};
use antumbra_wire::items::ItemKind;
use axum::Router;
use axum::extract::RawForm;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::components::{Tone, cmd, command, counted, cut_at, error_note, live_state, note};
use crate::live::{ChangedItem, Parts, ShadowChange, live_text};
use crate::state::Console;
use crate::view::{Nav, View};
use bench::bench;
use model::{Model, files, model, recorded_changes, suspensions};
use table::table;

pub(crate) const PATH: &str = "/registrations";
const TRY: &str = "/registrations/try";

/// Registrations that are listed, in the table and in each part of the result.
const ROWS: usize = 200;

/// Texts up to this size are in the URL.
const URL_BYTES: usize = 6 * 1024;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(TRY, post(show_long))
}

async fn show(view: View) -> Response {
    let asked = Asked::read(|name| view.get(name).map(str::to_owned));
    respond(&view, asked).await
}

/// The same for texts that are too long for a URL.
async fn show_long(view: View, RawForm(form): RawForm) -> Response {
    let fields: Vec<(String, String)> = form_urlencoded::parse(&form).into_owned().collect();
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let asked = Asked::read(|name| field(name).filter(|value| !value.is_empty()));
    respond(&view, asked).await
}

/// The state of the page, from its URL.
#[derive(Debug, Clone, Default)]
struct Asked {
    /// Name of the selected registration.
    name: Option<String>,
    shadow: Option<String>,
    shadow_name: Option<String>,
    /// A recorded change: `reported@TIME`.
    change: Option<String>,
    /// State of a typed change.
    state: Option<String>,
    /// Key of an item that is not a shadow.
    key: Option<String>,
    old: Option<String>,
    new: Option<String>,
    draft: Option<String>,
}

impl Asked {
    fn read(get: impl Fn(&str) -> Option<String>) -> Asked {
        // A link from another page to a recorded change of a shadow.
        if let (Some(id), Some(at)) = (get("id"), get("at")) {
            let state = get("state").unwrap_or_else(|| State::Reported.to_string());
            return Asked {
                shadow: Some(id),
                shadow_name: get("name"),
                change: Some(format!("{state}@{at}")),
                ..Asked::default()
            };
        }
        Asked {
            name: get("name"),
            shadow: get("shadow"),
            shadow_name: get("sname"),
            change: get("change"),
            state: get("state"),
            key: get("key"),
            old: get("old"),
            new: get("new"),
            draft: get("draft"),
        }
    }

    fn is_typed(&self) -> bool {
        self.old.is_some() || self.new.is_some()
    }

    /// The parameters that name the change.
    fn change_parameters(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("shadow", &self.shadow),
            ("sname", &self.shadow_name),
            ("change", &self.change),
            ("state", &self.state),
            ("key", &self.key),
            ("old", &self.old),
            ("new", &self.new),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    /// Returns whether the change is too long for a URL.
    fn is_long(&self) -> bool {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        bytes(&self.old) + bytes(&self.new) > URL_BYTES
    }

    fn shadow(&self) -> Result<Option<ShadowId>, String> {
        let Some(id) = &self.shadow else {
            return Ok(None);
        };
        let shadow = match &self.shadow_name {
            Some(name) => ShadowId::named(id.clone(), name.clone()),
            None => ShadowId::new(id.clone()),
        };
        shadow.map(Some).map_err(|fault| fault.to_string())
    }
}

async fn respond(view: &View, asked: Asked) -> Response {
    let suspensions = suspensions(view).await;
    let content = match files(view) {
        Ok(files) => {
            let model = model(view, &asked, files).await;
            render(view, &model, &suspensions)
        }
        Err(error) => html! {
            (head(view, 0))
            div.stack data-events=[view.events(PATH, &[])] { (unreadable(view, &error)) }
        },
    };
    view.page(Nav::Registrations, "Registrations", &content)
}

fn unreadable(view: &View, error: &str) -> Markup {
    let error = error_note("The registrations cannot be read.", &error, view);
    html! { div #registrations data-part { (error) } }
}

/// The parts of the page that change: states of registrations, and recorded changes to choose from.
pub(crate) async fn parts(view: &View) -> Parts {
    let asked = Asked::read(|name| view.get(name).map(str::to_owned));
    let mut parts = match files(view) {
        Ok(files) => {
            let suspensions = suspensions(view).await;
            vec![("registrations", table(view, &asked, &files, &suspensions))]
        }
        Err(error) => return vec![("registrations", unreadable(view, &error))],
    };
    if let Ok(Some(shadow)) = asked.shadow() {
        let recorded = recorded_changes(view, &shadow).await.unwrap_or_default();
        parts.push(("recorded", bench::recorded(view, &asked, &recorded)));
    }
    parts
}

/// Returns whether a change of an item may change the page.
pub(crate) fn shows(item: &ChangedItem) -> bool {
    item.kind == ItemKind::Suspension
}

/// Returns whether a change of a shadow may change the page.
pub(crate) fn shows_shadow(view: &View, change: &ShadowChange) -> bool {
    let asked = Asked::read(|name| view.get(name).map(str::to_owned));
    matches!(asked.shadow(), Ok(Some(shadow)) if shadow == change.shadow)
}

fn head(view: &View, count: usize) -> Markup {
    let files = counted(count, "file", "files");
    html! {
        div.head {
            h1 { "Registrations" }
            span.mute {
                @match &view.console.place.registrations {
                    Some(directory) => { (files) " in " code { (directory) } "; the deployed ones may differ" }
                    None => { (files) ", as the stream listener uses them" }
                }
            }
            span.push.soft { (live_state(live_text(view))) }
        }
    }
}

fn render(view: &View, model: &Model<'_>, suspensions: &[Suspension]) -> Markup {
    // The change that is explained stays when newer ones are recorded.
    let change = model
        .chosen()
        .map(|(state, time)| format!("{state}@{time}"));
    let change = change.filter(|_| view.get("at").is_none());
    let shown: Vec<(&str, &str)> = change.iter().map(|change| ("change", &**change)).collect();
    let asked = Asked {
        change: change.clone().or(model.asked.change.clone()),
        ..model.asked.clone()
    };
    html! {
        (head(view, model.files.len()))
        div.stack data-events=[view.events(PATH, &shown)] {
            @if let Err(problems) = &model.loaded {
                (note(Tone::Bad, "The registrations have problems and match nothing.", &html! {
                    @for problem in problems.iter().take(20) { bdi { (cut_at(problem, 600)) } br; }
                }, &html! {}))
            }
            (table(view, &asked, &model.files, suspensions))
            (bench(view, model))
            (cmd(&command(view, "registrations explain change.json")))
        }
    }
}
