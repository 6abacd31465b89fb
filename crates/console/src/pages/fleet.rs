//! `/`: the shadows by id, with what changed last and what does not follow.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::paging::Cursor;
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{
    DocumentSet, Read, ReadConsistency, ShadowId, ShadowStore as _, Snapshot, StoredDocument,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Model, Timestamp, View as DocumentView, delta};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use crate::components::{
    Tone, badge, cmd, command, counted, cut, empty, error_note, live_state, number, pointer,
    quoted, shadow_link, size,
};
use crate::pages::device::lateness;
use crate::state::Console;
use crate::tree::{Cell, Content, Timed, tree};
use crate::view::{Failure, Nav, View};

/// Shadows of a page: their documents are at most 100 keys, which one call reads.
const PAGE: usize = 50;
/// Shadows that a filter reads.
const FILTERED: usize = 1000;
/// Pointers of a delta that a row names.
const POINTERS: usize = 4;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/", get(show))
}

/// A shadow in the list.
#[derive(Debug, Clone)]
pub(crate) struct FleetRow {
    pub(crate) shadow: ShadowId,
    newest: Option<(String, Cell)>,
    open: usize,
    open_pointers: Vec<String>,
    reported: Option<i64>,
    desired: Option<i64>,
    changed: Option<Timestamp>,
    bytes: usize,
}

impl FleetRow {
    /// `None` for a shadow that was deleted a moment ago.
    pub(crate) fn new(shadow: &ShadowId, snapshot: &Snapshot, model: &Model) -> Option<FleetRow> {
        if snapshot.is_absent() {
            return None;
        }
        let document = |held: &Option<StoredDocument>| {
            held.as_ref()
                .map(|held| held.document.clone())
                .unwrap_or_default()
        };
        let (reported, desired) = (document(&snapshot.reported), document(&snapshot.desired));
        let delta = delta(&desired, &reported, model);
        let mut open_pointers = Vec::new();
        let open = open_leaves(delta.view(), &mut String::new(), model, &mut open_pointers);
        let held = [&snapshot.reported, &snapshot.desired]
            .into_iter()
            .flatten();
        Some(FleetRow {
            shadow: shadow.clone(),
            newest: snapshot
                .reported
                .as_ref()
                .and_then(|held| newest(held, model)),
            open,
            open_pointers,
            reported: snapshot.reported.as_ref().map(|held| held.version.0),
            desired: snapshot.desired.as_ref().map(|held| held.version.0),
            changed: held.map(|held| held.timestamp).max(),
            bytes: reported.as_str().len() + desired.as_str().len(),
        })
    }
}

/// Counts the values of a delta, and collects the pointers of the first ones.
pub(crate) fn open_leaves(
    view: DocumentView<'_>,
    path: &mut String,
    model: &Model,
    pointers: &mut Vec<String>,
) -> usize {
    let is_root = path.is_empty();
    if !is_root && (!view.is_container() || view.is_empty_container() || model.time(view).is_some())
    {
        if pointers.len() < POINTERS {
            pointers.push(path.clone());
        }
        return 1;
    }
    let mut count = 0;
    for (index, child) in view.children().enumerate() {
        let length = path.len();
        match view.kind() {
            antumbra_shadow::Kind::Array => antumbra_shadow::pointer::push_index(path, index),
            _ => antumbra_shadow::pointer::push_key(path, &child.key()),
        }
        count += open_leaves(child, path, model, pointers);
        path.truncate(length);
    }
    count
}

/// The reported value that changed last.
fn newest(held: &StoredDocument, model: &Model) -> Option<(String, Cell)> {
    let times = held.leaf_times();
    let timed = Timed {
        document: &held.document,
        times: Some(&times),
    };
    let rows = tree(Some(timed), None, None, &Default::default(), model, None).rows;
    let leaves = rows.into_iter().filter_map(|row| match row.content {
        Content::Leaf { reported, .. } => Some((row.pointer, reported?)),
        Content::Branch { .. } => None,
    });
    // The first of several that changed together.
    leaves.reduce(|best, next| match next.1.written > best.1.written {
        true => next,
        false => best,
    })
}

/// Reads shadows for the list, in the order of their ids.
pub(crate) async fn read_rows(
    console: &Console,
    shadows: &[ShadowId],
) -> Result<Vec<FleetRow>, StoreError> {
    let reads: Vec<Read> = shadows
        .iter()
        .map(|shadow| Read {
            shadow: shadow.clone(),
            parts: DocumentSet::Both,
        })
        .collect();
    let store = console.services.shadows.store();
    let model = console.services.shadows.model();
    let found = store.read_many(&reads, ReadConsistency::Strong).await;
    let mut rows = Vec::new();
    for (shadow, found) in shadows.iter().zip(found) {
        match found {
            Ok(snapshot) => rows.extend(FleetRow::new(shadow, &snapshot, model)),
            // The index lists a deleted shadow for a moment.
            Err(StoreError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

/// Conditions of the form. Those beside the prefix have no index.
struct Filter {
    is_main_only: bool,
    since: Option<Timestamp>,
    open_only: bool,
}

impl Filter {
    fn of(view: &View) -> Filter {
        let hours = match view.get("since") {
            Some("hour") => Some(1),
            Some("day") => Some(24),
            _ => None,
        };
        let since = hours.map(|hours| {
            let back = Duration::from_secs(hours * 3600).as_nanos() as i128;
            Timestamp::from_nanoseconds(view.now.nanoseconds() - back)
        });
        Filter {
            is_main_only: view.get("name") == Some(DEFAULT_NAME),
            since,
            open_only: view.get("open").is_some(),
        }
    }

    fn is_set(&self) -> bool {
        self.is_main_only || self.since.is_some() || self.open_only
    }

    fn keeps(&self, row: &FleetRow) -> bool {
        (!self.is_main_only || row.shadow.name() == DEFAULT_NAME)
            && self.since.is_none_or(|since| row.changed >= Some(since))
            && (!self.open_only || row.open > 0)
    }
}

/// A page of the list.
struct Fleet {
    rows: Vec<FleetRow>,
    /// Shadows that were read, and the first and the last of them.
    read: usize,
    first: Option<ShadowId>,
    last: Option<ShadowId>,
    next: Option<Cursor>,
}

async fn load(view: &View, prefix: &str, filter: &Filter) -> Result<Fleet, Failure> {
    let mut fleet = Fleet {
        rows: Vec::new(),
        read: 0,
        first: None,
        last: None,
        next: view.get("cursor").map(|cursor| Cursor(cursor.to_owned())),
    };
    let shadows = &view.console.services.shadows;
    loop {
        let page = shadows
            .list_by_prefix(prefix, PAGE, fleet.next.as_ref())
            .await?;
        let rows = read_rows(&view.console, &page.rows).await?;
        fleet.read += page.rows.len();
        fleet.first = fleet.first.or_else(|| page.rows.first().cloned());
        fleet.last = page.rows.last().cloned().or(fleet.last);
        fleet
            .rows
            .extend(rows.into_iter().filter(|row| filter.keeps(row)));
        fleet.next = page.next;
        let is_full = fleet.rows.len() >= PAGE || !filter.is_set() && !fleet.rows.is_empty();
        if is_full || fleet.read >= FILTERED || fleet.next.is_none() {
            return Ok(fleet);
        }
    }
}

async fn show(view: View) -> Response {
    let prefix = view.get("prefix").unwrap_or_default();
    let filter = Filter::of(&view);
    let found = load(&view, prefix, &filter).await;
    let content = html! {
        div.head {
            h1 { "Fleet" }
            span.mute { "Shadows by id" }
            span.push.soft {
                (live_state("Live"))
                @match view.get("live") {
                    Some("0") => { ", " a href=(view.with(&[("live", "")])) aria-keyshortcuts="p" { "resume" } }
                    _ => { ", " a href=(view.with(&[("live", "0")])) aria-keyshortcuts="p" { "pause" } }
                }
            }
        }
        div.stack #fleet data-events=(events(&view, found.as_ref().ok())) {
            (form(&view, prefix, &filter))
            @match &found {
                Ok(fleet) => (list(&view, prefix, &filter, fleet)),
                Err(error) => (error_note("The shadows cannot be read.", error, &view)),
            }
            (cmd(&command(&view, &match prefix {
                "" => "shadow list".to_owned(),
                prefix => format!("shadow list --prefix {}", quoted(prefix)),
            })))
        }
    };
    view.page(Nav::Fleet, "Fleet", &content)
}

/// The event stream of this page; none if it is paused.
fn events(view: &View, fleet: Option<&Fleet>) -> String {
    let [from, to] = fleet.map_or([None, None], |fleet| extent(view, fleet));
    let is_past_the_end = view.get("cursor").is_some() && from.is_none();
    if view.get("live") == Some("0") || fleet.is_some() && is_past_the_end {
        return String::new();
    }
    let get = |name: &str| view.get(name).unwrap_or_default();
    let filter = ["prefix", "name", "since", "open"].map(|name| (name, get(name)));
    let extent = [
        ("page", "fleet"),
        ("from", from.unwrap_or_default()),
        ("to", to.unwrap_or_default()),
    ];
    view.href(crate::live::PATH, &[&extent[..], &filter].concat())
}

/// The least and the greatest id that this page of the list can show; `None` where no other page is before or behind it.
fn extent<'f>(view: &View, fleet: &'f Fleet) -> [Option<&'f str>; 2] {
    // Very long ids are listed in no order.
    let listed = fleet.rows.iter().map(|row| &row.shadow);
    let ids = || listed.clone().chain(&fleet.first).chain(&fleet.last);
    let from = ids().map(ShadowId::id).min();
    let to = ids().map(ShadowId::id).max();
    [
        from.filter(|_| view.get("cursor").is_some()),
        to.filter(|_| fleet.next.is_some()),
    ]
}

/// A row for live updates; `None` if it belongs to another page of the list.
pub(crate) fn live_row(view: &View, row: &FleetRow) -> Option<Markup> {
    let id = row.shadow.id();
    let is_here = id.starts_with(view.get("prefix").unwrap_or_default())
        && view.get("from").is_none_or(|from| id >= from)
        && view.get("to").is_none_or(|to| id <= to);
    is_here.then(|| render_row(view, row, Filter::of(view).keeps(row)))
}

fn form(view: &View, prefix: &str, filter: &Filter) -> Markup {
    let selected = |name: &str, value: &str| view.get(name).unwrap_or_default() == value;
    html! {
        form.filter method="get" action="/" role="search" {
            label.wide { "Id prefix "
                input.field name="prefix" value=(prefix) autocomplete="off" spellcheck="false" aria-keyshortcuts="/"; }
            label { "Name " select.field name="name" {
                option value="" selected[!filter.is_main_only] { "any" }
                option value="main" selected[filter.is_main_only] { "main" }
            } }
            label { "Changed " select.field name="since" {
                option value="" selected[selected("since", "")] { "any time" }
                option value="hour" selected[selected("since", "hour")] { "last hour" }
                option value="day" selected[selected("since", "day")] { "last day" }
            } }
            label { input type="checkbox" name="open" value="1" checked[filter.open_only]; " Open delta only" }
            (view.kept(&["tz", "time"]))
            button.btn { "Filter" }
        }
    }
}

fn list(view: &View, prefix: &str, filter: &Filter, fleet: &Fleet) -> Markup {
    if fleet.rows.is_empty() {
        return html! { section.panel { (nothing(view, prefix, filter, fleet)) } };
    }
    html! {
        section.panel data-rows {
            header {
                (crumbs(view, prefix))
                nav.line aria-label="Next level" {
                    @for (part, next) in next_levels(prefix, &fleet.rows) {
                        a.badge.edge href=(view.href("/", &[("prefix", &next)])) { bdi { (cut(&part)) } }
                    }
                }
            }
            div.held-back #held role="status" hidden {
                span { } a href=(view.with(&[])) { "Show them" }
            }
            table.fixed {
                colgroup { col; col.w8.p1; col.wc.p2; col.wd; col.w4.p2; col.w4.p2; col.wc.p1; col.w4.p3; }
                thead { tr {
                    th { "Shadow" } th.p1 { "Newest value" } th.p2 { "Field" } th { "Delta" }
                    th.num.p2 { "Reported" } th.num.p2 { "Desired" } th.p1 { "Last change" } th.num.p3 { "Size" }
                } }
                tbody { @for row in &fleet.rows { (render_row(view, row, true)) } }
            }
            footer {
                span {
                    (counted(fleet.rows.len(), "shadow", "shadows"))
                    @if let Some(first) = fleet.rows.first() { " from " code { bdi { (cut(first.shadow.id())) } } }
                    @if filter.is_set() { (stopped(fleet)) }
                }
                span.push {
                    @if view.get("cursor").is_some() { a.btn.small href=(view.with(&[("cursor", "")])) { "First page" } " " }
                    @if let Some(next) = &fleet.next {
                        a.btn.small rel="next" href=(view.with(&[("cursor", &next.0)])) { "Next page" }
                    }
                }
            }
        }
    }
}

/// Says where a filter stopped.
fn stopped(fleet: &Fleet) -> Markup {
    html! {
        "; " (counted(fleet.read, "shadow was", "shadows were")) " read"
        @if let (Some(_), Some(last)) = (&fleet.next, &fleet.last) {
            ", up to " code { bdi { (cut(last.id())) } } ". There are more."
        }
    }
}

fn nothing(view: &View, prefix: &str, filter: &Filter, fleet: &Fleet) -> Markup {
    if prefix.is_empty() && !filter.is_set() {
        let report = command(view, "shadow report lamp-7 '{\"led\":{\"value\":\"on\"}}'");
        return empty(
            "No shadows yet",
            &html! {
                p { "A shadow appears with its first report. Send one from a terminal; this page shows it within a second." }
                (cmd(&report))
                @if view.console.place.options.starts_with("--local") {
                    p { "Or let twenty devices and six sensors report for five minutes:" }
                    (cmd(&command(view, "demo --into-local")))
                }
            },
        );
    }
    let title = match filter.is_set() {
        true => "No shadow here passes the filter",
        false => "No shadow has an id that starts like this",
    };
    empty(
        title,
        &html! {
            @if filter.is_set() {
                p { (counted(fleet.read, "shadow was", "shadows were")) " read"
                    @if let (Some(_), Some(last)) = (&fleet.next, &fleet.last) {
                        ", up to " code { bdi { (cut(last.id())) } } ". There are more"
                    }
                    "." }
            }
            p {
                @if let Some(next) = &fleet.next {
                    a.btn href=(view.with(&[("cursor", &next.0)])) { "Read the next 1,000" } " "
                }
                a.btn.quiet href=(view.href("/", &[])) { "Clear filter" }
            }
        },
    )
}

fn crumbs(view: &View, prefix: &str) -> Markup {
    let mut parts = Vec::new();
    let mut path = String::new();
    for part in prefix.split_inclusive('#') {
        path.push_str(part);
        parts.push((part.trim_end_matches('#').to_owned(), path.clone()));
    }
    let last = parts.len();
    html! {
        ol.crumbs {
            li { a href=(view.href("/", &[])) { "All shadows" } }
            @for (at, (part, path)) in parts.iter().enumerate() {
                @if at + 1 == last { li aria-current="location" { bdi { (cut(part)) } } }
                @else { li { a href=(view.href("/", &[("prefix", path)])) { bdi { (cut(part)) } } } }
            }
        }
    }
}

/// The parts of ids that follow the prefix on this page.
fn next_levels(prefix: &str, rows: &[FleetRow]) -> Vec<(String, String)> {
    let mut levels: Vec<(String, String)> = Vec::new();
    let start = prefix.rfind('#').map_or(0, |at| at + 1);
    for row in rows {
        let id = row.shadow.id();
        let Some(rest) = id.get(start..) else {
            continue;
        };
        if let Some((part, _)) = rest.split_once('#') {
            let next = format!("{}{part}#", &id[..start]);
            if next != prefix && !levels.iter().any(|(_, known)| *known == next) {
                levels.push((part.to_owned(), next));
            }
        }
    }
    levels.truncate(20);
    levels
}

/// Id of the row's element.
fn row_id(shadow: &ShadowId) -> String {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(shadow);
    format!("r{hash:016x}")
}

/// One row; live updates replace it by its id. The filter of the page may leave it out.
fn render_row(view: &View, row: &FleetRow, is_kept: bool) -> Markup {
    let value = |cell: &Cell| {
        html! {
            bdi.val { (cell.text) @if let Some(unit) = &cell.unit { " " (cut(unit)) } }
        }
    };
    let version = |version: Option<i64>| {
        html! {
            @match version { Some(version) => { "v" (number(version)) }, None => { span.mute { "none" } } }
        }
    };
    let pointers = row.open_pointers.join(" ");
    html! {
        tr id=(row_id(&row.shadow)) data-left-out[!is_kept] {
            td title=(cut(row.shadow.id())) {
                (shadow_link(view, &row.shadow))
                span.sub.only-narrow {
                    @if let Some((_, cell)) = &row.newest { (value(cell)) ", " }
                    @if let Some(changed) = row.changed { (view.ago(changed)) }
                }
            }
            td.p1 { @if let Some((_, cell)) = &row.newest { (value(cell)) } }
            td.p2 title=[row.newest.as_ref().map(|(path, _)| cut(path))] {
                @if let Some((path, _)) = &row.newest { (pointer(path)) }
            }
            td {
                @if row.open > 0 {
                    (badge(Tone::Warn, format!("{} open", number(row.open as i64)))) " "
                    span.ptr.p1 title=(cut(&pointers)) { bdi { (cut(&pointers)) } }
                }
            }
            td.num.p2.soft { (version(row.reported)) }
            td.num.p2.soft { (version(row.desired)) }
            td.p1.soft {
                @if let Some(changed) = row.changed { (view.ago(changed)) }
                @if let Some((_, cell)) = &row.newest { " " (lateness(cell)) }
            }
            td.num.p3.soft { (size(row.bytes)) }
        }
    }
}
