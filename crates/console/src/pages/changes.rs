//! `/live`: changes as they are written.

mod inspector;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use antumbra_registration::Pattern;
use antumbra_service::history::feed::{EarlierChanges, FeedChange, FeedError, FeedStart};
use antumbra_service::history::{ChangedDocument, Operation};
use antumbra_service::paging::Cursor;
use antumbra_shadow::{Model, Patch, State, Timestamp};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::{
    Tone, badge, cmd, command, counted, empty, error_note, live_state, note, number, shadow_link,
};
use crate::live::{LiveChange, RECENT, ShadowChange};
use crate::matches;
use crate::pages::device::change_values;
use crate::state::Console;
use crate::subject::Subject;
use crate::view::{Nav, View};

/// Values of a change in the list.
const VALUES: usize = 6;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/live", get(show))
}

/// The changes that the page shows.
pub(crate) struct Filter {
    prefix: String,
    state: Option<State>,
    /// JSON Pointer: values there or below.
    path: String,
    /// Pattern as in registrations, on the values that changed.
    pattern: Option<Pattern>,
    /// Reason why the pattern cannot be used; then nothing passes.
    fault: Option<String>,
}

impl Filter {
    pub(crate) fn of(view: &View) -> Filter {
        let pattern = view.get("pattern").map(Pattern::of_change);
        let (pattern, fault) = match pattern {
            Some(Ok(pattern)) => (Some(pattern), None),
            Some(Err(fault)) => (None, Some(fault.to_string())),
            None => (None, None),
        };
        Filter {
            pattern,
            fault,
            prefix: view.get("prefix").unwrap_or_default().to_owned(),
            state: view.get("state").and_then(|state| state.parse().ok()),
            path: view
                .get("path")
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_owned(),
        }
    }

    pub(crate) fn keeps(&self, change: &ShadowChange) -> bool {
        let is_below = |pointer: &str| {
            let rest = pointer.strip_prefix(self.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut documents = change.change.documents.iter();
        let is_matched = |document: &ChangedDocument| match &self.pattern {
            Some(pattern) => passes(pattern, change, document),
            None => true,
        };
        self.fault.is_none()
            && change.shadow.id().starts_with(&self.prefix)
            && documents.any(|document| {
                self.state.is_none_or(|state| state == document.state)
                    && is_matched(document)
                    && (self.path.is_empty()
                        || document
                            .values
                            .iter()
                            .flatten()
                            .any(|leaf| is_below(&leaf.pointer)))
            })
    }
}

/// Returns whether a pattern matches the change of a document, by the values that changed.
fn passes(pattern: &Pattern, change: &ShadowChange, document: &ChangedDocument) -> bool {
    let value = |json: &Option<String>| {
        let json = json
            .clone()
            .and_then(|json| RawValue::from_string(json).ok());
        json.into_iter().collect::<Vec<_>>()
    };
    let leaves = document.values.iter().flatten();
    let leaves: Vec<_> = leaves
        .map(|leaf| (&leaf.pointer, value(&leaf.old), value(&leaf.new)))
        .collect();
    let patch = serde_json::to_string(&leaves).ok();
    let documents = patch.and_then(|text| Patch::parse(&text).ok()?.documents().ok());
    let Some([old, new]) = documents else {
        return false;
    };
    let recorded = &change.change;
    let subject = Subject {
        key: String::new(),
        shadow: Some((change.shadow.clone(), document.state)),
        operation: recorded.operation,
        version: u64::try_from(recorded.version.0).ok(),
        client_token: recorded.client_token.clone(),
        time: recorded.time,
        old: Some(old),
        new: Some(new),
    };
    subject.with(&Model::default(), |change| pattern.matches(change))
}

/// Changes of the feed before a position. None if it is switched off.
pub(crate) async fn of_feed(
    view: &View,
    start: &FeedStart,
    limit: usize,
) -> Result<EarlierChanges, FeedError> {
    match &view.console.services.feed {
        Some(feed) => feed.before(start, limit).await,
        None => Ok(EarlierChanges::default()),
    }
}

/// A change whose matches are not known.
pub(crate) fn unmatched(change: FeedChange) -> LiveChange {
    LiveChange {
        of: ShadowChange::from(change),
        matches: None,
    }
}

/// Changes that a page shows, newest first.
#[derive(Default)]
struct Listed {
    changes: Vec<Arc<LiveChange>>,
    /// Position before them in the feed, if it has earlier ones.
    before: Option<Cursor>,
    /// Days for which the feed is kept.
    kept_days: u32,
}

/// The changes before a position of the feed.
async fn earlier(view: &View, before: &str) -> Result<Listed, FeedError> {
    let read = of_feed(view, &FeedStart::parse(before), RECENT).await?;
    let changes = read.changes.into_iter().map(unmatched);
    Ok(Listed {
        changes: changes.map(Arc::new).collect(),
        before: read.before,
        kept_days: read.kept_days,
    })
}

/// The newest changes: of the feed, and those that the reader saw and that are not in the feed yet.
async fn newest(view: &View) -> Result<Listed, FeedError> {
    let recent = view.console.live.recent();
    let mut listed = earlier(view, "now").await?;
    let recorded: HashSet<&str> = listed.changes.iter().map(|one| &*one.of.id).collect();
    let oldest = listed.changes.last().map(|one| one.of.change.time);
    let is_later = |change: &Arc<LiveChange>| {
        // Earlier ones are on the pages before, if there are any.
        let is_before = oldest.is_some_and(|oldest| change.of.change.time < oldest);
        !recorded.contains(&*change.of.id) && (!is_before || listed.before.is_none())
    };
    let unrecorded: Vec<_> = recent.iter().filter(|one| is_later(one)).cloned().collect();
    // The reader knows the matches.
    let known: HashMap<&str, &Arc<LiveChange>> =
        recent.iter().map(|one| (&*one.of.id, one)).collect();
    for change in &mut listed.changes {
        if let Some(seen) = known.get(&*change.of.id) {
            *change = Arc::clone(seen);
        }
    }
    listed.changes.extend(unrecorded);
    listed
        .changes
        .sort_by_key(|change| std::cmp::Reverse(change.of.change.time));
    Ok(listed)
}

async fn show(view: View) -> Response {
    let filter = Filter::of(&view);
    let before = view.get("before");
    let (listed, fault) = match before {
        Some(before) => match earlier(&view, before).await {
            Ok(listed) => (listed, None),
            Err(fault) => (Listed::default(), Some(fault)),
        },
        None => match newest(&view).await {
            Ok(listed) => (listed, None),
            // The reader may still see changes.
            Err(fault) => {
                let changes = view.console.live.recent();
                let listed = Listed {
                    changes,
                    ..Listed::default()
                };
                (listed, Some(fault))
            }
        },
    };
    let read = listed.changes.len();
    let shown: Vec<&Arc<LiveChange>> = listed
        .changes
        .iter()
        .filter(|change| filter.keeps(&change.of))
        .collect();
    let wanted = view.get("change");
    let selected = wanted.and_then(|id| listed.changes.iter().find(|change| change.of.id == id));
    let inspector = match selected {
        Some(change) => Some(inspector::inspect(&view, &change.of).await),
        None => None,
    };
    let content = html! {
        div.head {
            h1 { "Live" }
            @match before {
                None => {
                    span.mute { "Changes as they are written" }
                    span.push.soft { (live_state("Following")) span #behind {} }
                }
                Some(_) => {
                    span.mute { "Earlier changes" }
                    span.push { a.btn href=(view.with(&[("before", ""), ("change", ""), ("doc", "")])) { "Newest changes" } }
                }
            }
        }
        div.stack data-events=[before.is_none().then(|| events(&view))] {
            (form(&view, &filter))
            @if let Some(fault) = &filter.fault { (error_note("The pattern cannot be used.", fault, &view)) }
            @if let Some(fault) = &fault { (error_note("The change feed cannot be read.", fault, &view)) }
            @if wanted.is_some() && selected.is_none() {
                (note(Tone::Plain, "The selected change is not among these any more.",
                    &html! { "The timeline of its device has it." }, &html! {}))
            }
            div.cols.cols-inspect[inspector.is_some()] {
                section.panel aria-label="Changes" {
                    div.held-back #held role="status" hidden {
                        span {} a href="#stream" { "Show them" } span.push.mute { "the list stands still while you read" }
                    }
                    @if shown.is_empty() { div #none-yet { (none(&view, read)) } }
                    ol.stream #stream {
                        @for change in &shown {
                            (entry(&view, change, selected.is_some_and(|one| one.of.id == change.of.id)))
                        }
                    }
                    (footer(&view, &listed, shown.len()))
                }
                @if let Some(inspector) = &inspector { (inspector) }
            }
            (cmd(&command(&view, "changes follow")))
        }
    };
    view.page(Nav::Live, "Live", &content)
}

fn footer(view: &View, listed: &Listed, shown: usize) -> Markup {
    let read = listed.changes.len();
    let of = match view.get("before") {
        Some(_) => "",
        None => "the newest ",
    };
    html! {
        @if read > 0 { footer {
            span {
                @if shown < read { (number(shown as i64)) " of " (of) (counted(read, "change passes", "changes pass")) " the filter" }
                @else { (counted(read, "change", "changes")) @if !of.is_empty() { ", the newest" } }
                @if listed.kept_days > 0 { "; the feed is kept for " (counted(listed.kept_days as usize, "day", "days")) }
            }
            @if let Some(before) = &listed.before {
                a.btn.small.push #older href=(view.with(&[("before", &before.0), ("change", ""), ("doc", "")])) { "Older" }
            }
        } }
    }
}

fn none(view: &View, read: usize) -> Markup {
    if read > 0 {
        let detail = html! {
            p {
                "None of " (counted(read, "change", "changes")) " passes."
                @if view.get("before").is_none() { " New ones appear here." }
            }
            p { a.btn.quiet href=(view.href("/live", &[])) { "Clear filter" } }
        };
        return empty("No change here passes the filter", &detail);
    }
    empty(
        "No changes yet",
        &html! {
            p { "They appear here as soon as something writes. Report a value from a terminal to see one." }
            (cmd(&command(view, "shadow report lamp-7 '{\"led\":{\"value\":\"on\"}}'")))
        },
    )
}

fn events(view: &View) -> String {
    let get = |name: &str| view.get(name).unwrap_or_default();
    view.href(
        crate::live::PATH,
        &[
            ("page", "live"),
            ("prefix", get("prefix")),
            ("state", get("state")),
            ("path", get("path")),
            ("pattern", get("pattern")),
        ],
    )
}

fn form(view: &View, filter: &Filter) -> Markup {
    html! {
        form.filter method="get" action="/live" role="search" {
            label.wide { "Id prefix " input.field name="prefix" value=(filter.prefix) placeholder="all shadows" spellcheck="false" aria-keyshortcuts="/"; }
            label.wide { "Path " input.field name="path" value=(filter.path) placeholder="e.g. /temp" spellcheck="false"; }
            label.wide { "Pattern " input.field name="pattern" value=(view.get("pattern").unwrap_or_default())
                placeholder="e.g. {\"new\":{\"temp\":{\"value\":[{\"numeric\":[\">\",-15]}]}}}" spellcheck="false"; }
            label { "State " select.field name="state" {
                option value="" selected[filter.state.is_none()] { "both" }
                @for state in [State::Reported, State::Desired] {
                    option value=(state.as_str()) selected[filter.state == Some(state)] { (state.as_str()) }
                }
            } }
            (view.kept(&["tz", "time"]))
            button.btn { "Filter" }
            span.push { button.btn type="button" data-pause aria-keyshortcuts="p" aria-pressed="false" hidden { "Pause" } }
        }
    }
}

/// One change in the list; live updates add it at the top.
pub(crate) fn entry(view: &View, change: &LiveChange, is_selected: bool) -> Markup {
    let LiveChange { of, matches } = change;
    let recorded = &of.change;
    html! {
        li id={ "c" (of.id) } data-into="stream" aria-current=[is_selected.then_some("true")] {
            a.soft href=(view.with(&[("change", &of.id), ("page", ""), ("doc", "")])) { (milliseconds(view, recorded.time)) }
            div {
                (shadow_link(view, &of.shadow))
                span.sub {
                    (states(of)) " v" (number(recorded.version.0)) (operation(recorded.operation))
                    @if let Some(matches) = matches { (matches::count(view, &of.shadow, recorded.time, matches)) }
                }
            }
            div { (change_values(recorded, VALUES)) }
        }
    }
}

/// An entry for another list than that of this page.
pub(crate) fn into_list(list: &str, entry: Markup) -> String {
    let text = entry.into_string();
    match text.strip_prefix("<li") {
        Some(rest) => format!("<li data-into=\"{list}\"{rest}"),
        None => text,
    }
}

fn milliseconds(view: &View, at: Timestamp) -> Markup {
    let millisecond = at.nanoseconds().rem_euclid(1_000_000_000) / 1_000_000;
    view.time(at, &format!("{}.{millisecond:03}", view.exact_text(at)))
}

fn states(change: &ShadowChange) -> Markup {
    html! {
        @for (at, document) in change.change.documents.iter().enumerate() {
            @if at > 0 { ", " }
            span class=(if document.state == State::Desired { "want" } else { "" }) { (document.state.as_str()) }
        }
    }
}

fn operation(operation: Operation) -> Markup {
    match operation {
        Operation::Insert => html! { " " (badge(Tone::Ok, "insert")) },
        Operation::Remove => html! { " " (badge(Tone::Bad, "remove")) },
        Operation::Modify => html! {},
    }
}
