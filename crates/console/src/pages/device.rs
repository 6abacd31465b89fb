//! `/device`: one shadow: its state now or at any time, its changes, charts, differences, and what is desired of it.

mod compare;
mod edit;
mod plot;
mod recorded;
mod state;
mod time_bar;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::api;
use antumbra_service::history::StateAt;
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{DocumentSet, Shadow, ShadowId};
use antumbra_service::store::StoreError;
use antumbra_service::text::InvalidText;
use antumbra_shadow::Timestamp;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::future::join3;
use maud::{Markup, html};

use crate::chart::Span;
use crate::components::{
    Tone, badge, cmd, command, cut, cut_at, empty, error_note, id, note, number, quoted, size,
};
use crate::pages::fleet::open_leaves;
use crate::state::Console;
use crate::time;
use crate::view::{Failure, Nav, View, refused};

use recorded::Recorded;
pub(crate) use state::{lateness, panel as state_panel};
pub(crate) use timeline::{live_entry, values as change_values};

/// Names of shadows that a page links to.
const NAMES: usize = 20;

/// A range of the time bar.
#[derive(Clone, Copy)]
struct Range {
    /// Its name in the URL.
    name: &'static str,
    title: &'static str,
    minutes: u64,
}

impl Range {
    const fn new(name: &'static str, title: &'static str, minutes: u64) -> Range {
        Range {
            name,
            title,
            minutes,
        }
    }

    /// The times of the range. A past time stands in the middle, unless it is close to now.
    fn span(self, now: Timestamp, at: Option<Timestamp>) -> Span {
        let length = Duration::from_secs(self.minutes * 60).as_nanos() as i128;
        let now = now.nanoseconds();
        let to = at.map_or(now, |at| (at.nanoseconds() + length / 2).min(now));
        Span {
            from: Timestamp::from_nanoseconds((to - length).max(0)),
            to: Timestamp::from_nanoseconds(to),
        }
    }
}

const DEFAULT_RANGE: Range = Range::new("6h", "6 h", 6 * 60);
const RANGES: [Range; 6] = [
    Range::new("15m", "15 min", 15),
    Range::new("1h", "1 h", 60),
    DEFAULT_RANGE,
    Range::new("24h", "24 h", 24 * 60),
    Range::new("7d", "7 d", 7 * 24 * 60),
    Range::new("30d", "30 d", 30 * 24 * 60),
];

const PATH: &str = "/device";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route(PATH, get(show).post(edit::desire))
}

/// The shadow that the URL names.
pub(crate) fn shadow_of(view: &View) -> Result<ShadowId, InvalidText> {
    let id = view.get("id").unwrap_or_default();
    let name = view.get("name").unwrap_or(DEFAULT_NAME);
    ShadowId::named(id, name)
}

/// The shadow and what the URL asks for.
pub(crate) struct Device {
    shadow: ShadowId,
    names: Vec<String>,
    /// The shadow now, if it exists.
    current: Option<Shadow>,
    /// The time that the page shows, if it is not now, and the state then.
    past: Option<(Timestamp, StateAt)>,
    /// Times of the time bar.
    range: Range,
    span: Span,
    keeps_history: bool,
}

impl Device {
    /// The time that the page shows, if it is not now.
    fn at(&self) -> Option<Timestamp> {
        self.past.as_ref().map(|(at, _)| *at)
    }

    /// The state that the page shows.
    fn shown(&self) -> Option<&Shadow> {
        match &self.past {
            None => self.current.as_ref(),
            Some((_, StateAt::Existed(shadow))) => Some(shadow),
            Some(_) => None,
        }
    }

    /// Chooses the shortest range that holds all recorded changes, unless the URL names one.
    fn fit_range(&mut self, view: &View, recorded: &Recorded) {
        let times = || recorded.all.iter().map(|(time, _)| *time);
        if view.get("range").is_some() || recorded.stopped.is_some() || recorded.all.is_empty() {
            return;
        }
        for range in RANGES {
            let span = range.span(view.now, self.at());
            if times().all(|time| (span.from..=span.to).contains(&time)) {
                (self.range, self.span) = (range, span);
                return;
            }
        }
    }
}

/// The time in the URL; `None` for now.
fn shown_time(view: &View) -> Result<Option<Timestamp>, String> {
    let Some(text) = view.get("at").filter(|text| *text != "now") else {
        return Ok(None);
    };
    let parsed = time::parse(text, view.now, &view.zone);
    let parsed = parsed.filter(|at| at.nanoseconds() > 0);
    parsed.map(Some).ok_or_else(|| {
        let text = cut_at(text, 40);
        format!("{text:?} is not a time; type 14:05, -10m, or a date and time")
    })
}

/// The range that the URL names.
fn range_of(view: &View) -> Range {
    let mut ranges = RANGES.into_iter();
    let found = ranges.find(|range| view.get("range") == Some(range.name));
    found.unwrap_or(DEFAULT_RANGE)
}

async fn load(view: &View, shadow: ShadowId, at: Option<Timestamp>) -> Result<Device, Failure> {
    let services = &view.console.services;
    let range = range_of(view);
    let history = services.history.as_ref();
    let past = async {
        match (history, at) {
            (Some(history), Some(at)) => {
                let state = history.state_at(&shadow, at, view.now).await;
                state.map(|state| Some((at, state)))
            }
            _ => Ok(None),
        }
    };
    let (current, names, past) = join3(
        services.shadows.read(&shadow, DocumentSet::Both),
        services.shadows.list(shadow.id(), 2 * NAMES, None),
        past,
    )
    .await;
    let current = match current {
        Err(error) if error.is_not_found() => None,
        current => Some(current?),
    };
    let mut names: Vec<String> = names?
        .rows
        .iter()
        .map(|row| row.shadow.name().to_owned())
        .collect();
    names.sort_by_key(|name| (name != DEFAULT_NAME, name.clone()));
    names.dedup();
    names.truncate(NAMES);
    Ok(Device {
        names,
        current,
        past: past?,
        range,
        span: range.span(view.now, at),
        keeps_history: history.is_some(),
        shadow,
    })
}

async fn show(view: View) -> Response {
    match shadow_of(&view) {
        Ok(shadow) => respond(view, shadow, StatusCode::OK, None).await,
        Err(invalid) => refused(StatusCode::BAD_REQUEST, &invalid.to_string()),
    }
}

/// The page, with the result of a write that failed or was a preview. Its head is sent before the changes are read.
async fn respond(
    view: View,
    shadow: ShadowId,
    status: StatusCode,
    tried: Option<edit::Tried>,
) -> Response {
    let (at, fault) = match shown_time(&view) {
        Ok(at) => (at, None),
        Err(fault) => (None, Some(fault)),
    };
    let title = cut(shadow.id()).into_owned();
    let mut device = match load(&view, shadow.clone(), at).await {
        Ok(device) => device,
        Err(error) => {
            let content = html! {
                div.head { h1 { (id(shadow.id())) } }
                (error_note("The shadow cannot be read.", &error, &view))
            };
            return view.page_with(StatusCode::BAD_GATEWAY, Nav::Fleet, &title, &content);
        }
    };
    if view.get("as") == Some("json") {
        return json(&device);
    }
    let head = head(&view, &device);
    let started = view.start_page(Nav::Fleet, &title, &head);
    started.finish(status, async move {
        let recorded = recorded::load(&view, &device.shadow, device.span, at, device.shown()).await;
        if let Ok(Some(recorded)) = &recorded {
            device.fit_range(&view, recorded);
        }
        let compared = compare::load(&view, &device).await;
        content(&view, &device, &recorded, &compared, tried.as_ref(), fault)
    })
}

fn content(
    view: &View,
    device: &Device,
    recorded: &Result<Option<Recorded>, StoreError>,
    compared: &Option<Result<compare::Compared, String>>,
    tried: Option<&edit::Tried>,
    fault: Option<String>,
) -> Markup {
    let at = device.at();
    html! {
        div.stack #device data-events=[events(view, device)] {
            @if let Some(fault) = &fault { (error_note("The time cannot be read.", fault, view)) }
            (moment(view, device, recorded))
            @if let Ok(Some(recorded)) = recorded { (time_bar::panel(view, device, recorded)) }
            div.cols.cols-device {
                div.stack {
                    (state::panel(view, device.shown(), at.map(|at| (at, device.current.as_ref()))))
                    @if at.is_none() { (edit::panel(view, device, tried)) }
                }
                div.stack {
                    @match recorded {
                        Ok(Some(recorded)) => {
                            (plot::panel(view, device, recorded))
                            (timeline::panel(view, device, recorded))
                        }
                        Ok(None) => section.panel { (empty("The history is switched off", &html! {
                            p { "Set " code { "HISTORY_DAYS" } " to keep the changes of shadows." }
                        })) },
                        Err(error) => (error_note("The recorded changes cannot be read.", error, view)),
                    }
                }
            }
            @if device.keeps_history { (compare::panel(view, compared)) }
            (cmd(&shown_command(view, device)))
        }
    }
}

/// The event stream of the state now. The state that it sends is what this URL shows.
fn events(view: &View, device: &Device) -> Option<String> {
    let events = view.events(PATH, &[]);
    events.filter(|_| device.at().is_none())
}

fn json(device: &Device) -> Response {
    let Some(shadow) = device.shown().cloned() else {
        return (StatusCode::NOT_FOUND, "no such shadow").into_response();
    };
    let shadow = api::Shadow::new(&device.shadow, shadow);
    match serde_json::to_string_pretty(&shadow) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn shown_command(view: &View, device: &Device) -> String {
    let mut arguments = format!("shadow get {}", quoted(device.shadow.id()));
    if device.shadow.name() != DEFAULT_NAME {
        arguments.push_str(&format!(" --name {}", quoted(device.shadow.name())));
    }
    if let Some((at, _)) = &device.past {
        arguments.push_str(&format!(" --at {at}"));
    }
    command(view, &arguments)
}

fn head(view: &View, device: &Device) -> Markup {
    let parts: Vec<&str> = device.shadow.id().split('#').collect();
    let mut prefix = String::new();
    let mut crumbs = Vec::new();
    for part in parts.iter().take(parts.len() - 1).take(10) {
        prefix.push_str(part);
        prefix.push('#');
        crumbs.push((*part, prefix.clone()));
    }
    let model = view.console.services.shadows.model();
    let open = device
        .current
        .as_ref()
        .and_then(|shadow| shadow.delta.as_ref());
    let open = open.map_or(0, |delta| {
        open_leaves(delta.view(), &mut String::new(), model, &mut Vec::new())
    });
    let bytes = device.shown().map_or(0, |shadow| {
        let documents = [&shadow.reported, &shadow.desired].into_iter().flatten();
        documents.map(|held| held.document.as_str().len()).sum()
    });
    html! {
        div.head {
            ol.crumbs {
                li { a href=(view.href("/", &[])) { "Fleet" } }
                @for (part, prefix) in &crumbs {
                    li { a href=(view.href("/", &[("prefix", prefix)])) { bdi { (cut(part)) } } }
                }
            }
            h1 { (id(device.shadow.id())) }
            @if device.names.len() > 1 || device.shadow.name() != DEFAULT_NAME {
                nav.seg aria-label="Shadow name" {
                    @for name in &device.names {
                        a href=(view.href("/device", &[("id", device.shadow.id()), ("name", name)]))
                            aria-current=[(name == device.shadow.name()).then_some("page")] { bdi { (cut(name)) } }
                    }
                }
            }
            @if device.past.is_none() && open > 0 { (badge(Tone::Warn, format!("{} open", number(open as i64)))) }
            @if bytes > 0 { span.mute { (size(bytes)) } }
            div.actions {
                @if device.past.is_some() {
                    button.btn disabled title="Go back to now to edit" { "Edit desired" }
                } @else if view.writes() {
                    a.btn href={ (view.with(&[("edit", "1")])) "#edit" } aria-keyshortcuts="e" { "Edit desired" }
                } @else {
                    button.btn disabled title="start with --write" { "Edit desired" }
                }
                @if device.keeps_history { a.btn href="#diff" { "Compare" } }
                a.btn href=(view.with(&[("as", "json")])) { "JSON" }
            }
        }
    }
}

/// Note on the state at the time that is shown.
fn moment(view: &View, device: &Device, recorded: &Result<Option<Recorded>, StoreError>) -> Markup {
    let Some((at, state)) = &device.past else {
        return html! {
            @if device.current.is_none() {
                (note(Tone::Plain, "This shadow does not exist.",
                    &html! { "It appears with its first report, or when something is desired of it." }, &html! {}))
            }
        };
    };
    let when = view.at(*at);
    let back = html! { a.btn.small href=(view.with(&[("at", "")])) { "Back to now" } };
    match state {
        StateAt::Existed(shadow) => {
            let version = |held: &Option<antumbra_service::shadows::StoredDocument>| {
                held.as_ref().map_or("none".to_owned(), |held| {
                    format!("v{}", number(held.version.0))
                })
            };
            html! {
                div.note.info role="status" {
                    div { b { "State at " (when) } ", " (time::age(view.now, *at)) ": reported " (version(&shadow.reported))
                        ", desired " (version(&shadow.desired)) ". "
                        @match state::differing(view, shadow, device.current.as_ref()) {
                            0 => "No reported value differs from now.",
                            1 => "1 value differs from now.",
                            count => { (number(count as i64)) " values differ from now." }
                        } }
                    a href={ (view.with(&[("from", &at.to_string()), ("to", "now")])) "#diff" } { "Compare with now" }
                }
            }
        }
        StateAt::DidNotExist => html! {
            @let [_, next] = recorded.as_ref().ok().and_then(Option::as_ref).map_or([None; 2], |recorded| recorded.neighbours(Some(*at)));
            div.note role="status" {
                div {
                    b { "The shadow did not exist at " (when) "." }
                    @if let Some(next) = next { " " span.soft { "Its next change is of " (view.at(next)) "." } }
                }
                @if let Some(next) = next { a.btn.small href=(view.with(&[("at", &next.to_string())])) { "Show that change" } " " }
                (back)
            }
        },
        StateAt::BeforeRetention { since } => html! {
            div.note role="status" {
                div { b { "No state at " (when) "." } " " span.soft { "The history begins at " (view.at(*since)) "." } }
                a.btn.small href=(view.with(&[("at", &since.to_string())])) { "Show the oldest" }
            }
        },
        StateAt::NotRecorded => html! {
            div.note.warn role="status" {
                div { b { "The state at " (when) " is not recorded." } " "
                    span.soft { "A change around that time is missing, or was written a moment ago." } }
                (back)
            }
        },
    }
}
