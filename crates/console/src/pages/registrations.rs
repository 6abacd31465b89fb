//! `/registrations`: the rules, and a test bench: which of them match a change, and which line decides.
//!
//! The change is a recorded one of a shadow, or typed. A draft of a pattern is tried on the same change, and on the changes
//! of the shadow in the last 24 hours. Nothing is saved: registrations are files.

mod bench;
mod code;
mod draft;
mod model;
mod subject;
mod summary;

use std::sync::Arc;

use antumbra_service::shadows::{ShadowId, State};
use axum::Router;
use axum::extract::RawForm;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};

use crate::components::{Tone, cmd, command, cut, cut_at, empty, error_note, note, number};
use crate::state::Console;
use crate::view::{Nav, View};
use bench::bench;
use model::{File, Model, model};
use summary::summary;

const PATH: &str = "/registrations";
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
    let content = match view.console.services.registrations.read() {
        Ok(files) => {
            let mut files: Vec<File> = files
                .iter()
                .map(|(file, text)| File {
                    summary: summary(file, text),
                    file: file.clone(),
                    text: text.clone(),
                })
                .collect();
            files.sort_by(|a, b| a.summary.name.cmp(&b.summary.name));
            render(view, &model(view, &asked, files).await)
        }
        Err(error) => html! {
            (head(view, 0))
            (error_note("The registrations cannot be read.", &error, view))
        },
    };
    view.page(Nav::Registrations, "Registrations", &content)
}

fn head(view: &View, count: usize) -> Markup {
    let files = match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", number(count as i64)),
    };
    html! {
        div.head {
            h1 { "Registrations" }
            span.mute {
                @match &view.console.place.registrations {
                    Some(directory) => { (files) " in " code { (directory) } "; the deployed ones may differ" }
                    None => { (files) ", as the stream listener uses them" }
                }
            }
        }
    }
}

fn render(view: &View, model: &Model<'_>) -> Markup {
    html! {
        (head(view, model.files.len()))
        div.stack {
            @if let Err(problems) = &model.loaded {
                (note(Tone::Bad, "The registrations have problems and match nothing.", &html! {
                    @for problem in problems.iter().take(20) { bdi { (cut_at(problem, 600)) } br; }
                }, &html! {}))
            }
            section.panel {
                @if model.files.is_empty() {
                    (empty("No registrations", &html! {
                        p { "A registration is a file that says which changes are sent where. Put one into the directory "
                            code { "registrations" } "; " code { "antumbra registrations schema" } " prints its schema." }
                    }))
                } @else {
                    (table(view, model))
                    @if model.files.len() > ROWS {
                        footer { span { "The first " (ROWS) " by name." } }
                    }
                }
            }
            (bench(view, model))
            (cmd(&command(view, "registrations explain change.json")))
        }
    }
}

fn table(view: &View, model: &Model<'_>) -> Markup {
    let asked = model.asked;
    let is_selected = |file: &File| asked.name.as_deref() == Some(file.summary.name.as_str());
    let shown = model.files.iter().enumerate();
    let shown = shown.filter(|(at, file)| *at < ROWS || is_selected(file));
    let shown = shown.map(|(_, file)| file);
    let link = |name: &str| {
        let mut parameters = vec![("name", name)];
        if !asked.is_long() {
            parameters.extend(asked.change_parameters());
        }
        format!("{}#bench", view.href(PATH, &parameters))
    };
    html! {
        table.fixed {
            colgroup { col; col class="wk p1"; col class="p2"; col class="w6"; col class="p1"; col class="w4"; }
            thead { tr {
                th { "Name" } th class="p1" { "Key" } th class="p2" { "Conditions" } th { "Target" }
                th class="p1" { "Sends to" } th { "State" }
            } }
            tbody {
                @for file in shown {
                    @let one = &file.summary;
                    tr aria-current=[is_selected(file).then_some("true")] {
                        td { a href=(link(&one.name)) title=[one.description.as_deref()] { bdi { (cut(&one.name)) } } }
                        td class="p1 mono soft" title=[one.key.as_deref()] {
                            @match &one.key { Some(key) => bdi { (cut(key)) } None => { "every shadow" } }
                        }
                        td class="p2 soft" title=(one.conditions) { bdi { (cut(&one.conditions)) } }
                        td { bdi { (cut(&one.target)) } }
                        td class="p1 mono soft" title=(one.sends_to) { bdi { (cut(&one.sends_to)) } }
                        td {
                            @if one.enabled { span.dot.ok { "on" } }
                            @else { span class="dot hollow mute" { "off" } }
                        }
                    }
                }
            }
        }
    }
}
