//! `/live`: changes as they are written.

use std::collections::HashSet;
use std::sync::Arc;

use antumbra_registration::{Change, DiffCell, KeyAttributes, Pattern, ShadowRef};
use antumbra_service::history::{ChangedDocument, DocumentChange, Operation};
use antumbra_shadow::{Model, Patch, State, Timestamp};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::{
    Tone, badge, cmd, command, cut, cut_at, empty, error_note, live_state, note, number,
    shadow_link,
};
use crate::live::{LiveChange, RECENT, ShadowChange};
use crate::matches::{self, Explained, Match, Verdict};
use crate::pages::device::change_values;
use crate::state::Console;
use crate::view::{Nav, View};

/// Values of a change in the list, and when it is selected.
const VALUES: usize = 6;
const SELECTED_VALUES: usize = 50;
/// Registrations in the inspector.
const VERDICTS: usize = 12;
/// Characters of a document in the inspector.
const DOCUMENT_CHARS: usize = 4000;

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
    let Some([old, new]) = &documents else {
        return false;
    };
    let recorded = &change.change;
    let [old, new] = [Some(old.view()), Some(new.view())];
    let model = Model::default();
    let diff = DiffCell::new(old, new, &model);
    pattern.matches(&Change {
        key: "",
        key_attributes: KeyAttributes::default(),
        shadow: Some(ShadowRef {
            id: change.shadow.id(),
            name: change.shadow.name(),
            state: document.state,
        }),
        operation: recorded.operation,
        expired: false,
        version: u64::try_from(recorded.version.0).ok(),
        previous_version: None,
        client_token: recorded.client_token.as_deref(),
        timestamp: i64::try_from(recorded.time.nanoseconds()).ok(),
        old,
        new,
        diff: &diff,
        acknowledged: None,
    })
}

/// The newest changes of the feed. None if it is switched off or cannot be read.
pub(crate) async fn latest_of_feed(view: &View, limit: usize) -> Vec<LiveChange> {
    let Some(feed) = &view.console.services.feed else {
        return Vec::new();
    };
    let latest = feed.latest(limit).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the newest changes cannot be read");
        Vec::new()
    });
    let unknown = |change| LiveChange {
        of: ShadowChange::from(change),
        matches: None,
    };
    latest.into_iter().map(unknown).collect()
}

/// The newest changes, newest first: of the feed, and those that the reader saw.
async fn latest(view: &View) -> Vec<Arc<LiveChange>> {
    let mut all = view.console.live.recent();
    let seen: HashSet<String> = all.iter().map(|change| change.of.id.clone()).collect();
    let recorded = latest_of_feed(view, RECENT).await.into_iter();
    let recorded = recorded.filter(|change| !seen.contains(&change.of.id));
    all.extend(recorded.map(Arc::new));
    all.sort_by_key(|change| std::cmp::Reverse(change.of.change.time));
    all.truncate(RECENT);
    all
}

async fn show(view: View) -> Response {
    let filter = Filter::of(&view);
    let recent = latest(&view).await;
    let shown: Vec<&Arc<LiveChange>> = recent
        .iter()
        .filter(|change| filter.keeps(&change.of))
        .collect();
    let wanted = view.get("change");
    let selected = wanted.and_then(|id| recent.iter().find(|change| change.of.id == id));
    let inspector = match selected {
        Some(change) => Some(inspect(&view, &change.of).await),
        None => None,
    };
    let content = html! {
        div.head {
            h1 { "Live" } span.mute { "Changes as they are written" }
            span.push.soft { (live_state("Following")) }
        }
        div.stack data-events=(events(&view)) {
            (form(&view, &filter))
            @if let Some(fault) = &filter.fault { (error_note("The pattern cannot be used.", fault, &view)) }
            @if wanted.is_some() && selected.is_none() {
                (note(Tone::Plain, "The selected change is not among the newest any more.",
                    &html! { "The timeline of its device has it." }, &html! {}))
            }
            div.cols.cols-inspect[inspector.is_some()] {
                section.panel aria-label="Changes" {
                    div.held-back #held role="status" hidden {
                        span {} a href="#stream" { "Show them" } span.push.mute { "the list stands still while you read" }
                    }
                    @if shown.is_empty() { div #none-yet { (none(&view, recent.len())) } }
                    ol.stream #stream {
                        @for change in &shown {
                            (entry(&view, change, selected.is_some_and(|one| one.of.id == change.of.id)))
                        }
                    }
                    footer { span {
                        @if shown.len() < recent.len() { (number(shown.len() as i64)) " of the newest " (number(recent.len() as i64)) " changes pass the filter" }
                        @else { "The newest " (number(recent.len() as i64)) " changes, at most " (RECENT) }
                        ". The past of a device is on its own page."
                    } }
                }
                @if let Some(inspector) = &inspector { (inspector) }
            }
            (cmd(&command(&view, "changes follow")))
        }
    };
    view.page(Nav::Live, "Live", &content)
}

fn none(view: &View, read: usize) -> Markup {
    if read > 0 {
        let detail = html! {
            p { "None of the newest " (number(read as i64)) " changes passes. New ones appear here." }
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
            @for kept in ["tz", "time"] {
                @if let Some(value) = view.get(kept) { input type="hidden" name=(kept) value=(value); }
            }
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
                    (states(of)) " v" (number(recorded.version.0)) " " (operation(recorded.operation))
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
        Operation::Insert => badge(Tone::Ok, "insert"),
        Operation::Remove => badge(Tone::Bad, "remove"),
        Operation::Modify => html! {},
    }
}

/// The selected change, beside the list.
async fn inspect(view: &View, change: &ShadowChange) -> Markup {
    let recorded = &change.change;
    let matcher = &view.console.matcher;
    let explained = matcher.explain(view, &change.shadow, recorded.time).await;
    let state = recorded
        .documents
        .first()
        .map_or(State::Reported, |document| document.state);
    let documents = explained.changes.iter().find(|one| one.state == state);
    let at = recorded.time.to_string();
    let (id, name) = (change.shadow.id(), change.shadow.name());
    html! {
        aside.panel aria-label="Selected change" {
            header {
                h2 { "Change" }
                span.push {
                    a.btn.small href=(matches::bench(view, &change.shadow, recorded.time, state, None)) { "Try in test bench" } " "
                    a.btn.small.quiet href=(view.with(&[("change", ""), ("doc", "")])) aria-label="Close the selected change" { "Close" }
                }
            }
            div.body.stack { dl.kv {
                dt { "Shadow" } dd { (shadow_link(view, &change.shadow)) }
                dt { "Document" } dd { (states(change)) ", v" (number(recorded.version.0)) ", " (recorded.operation.as_str()) }
                dt { "Written" } dd { (milliseconds(view, recorded.time)) ", " (view.ago(recorded.time)) }
                @if let Some(token) = &recorded.client_token { dt { "Client token" } dd.mono { bdi { (cut(token)) } } }
                dt { "Id" } dd.mono { bdi { (cut(&change.id)) } }
                dt { "State then" } dd { a href=(view.href("/device", &[("id", id), ("name", name), ("at", &at)])) { "show" } }
            } }
            div.body.stack { h3 { "Changes" } (change_values(recorded, SELECTED_VALUES)) }
            div.body.stack { h3 { "Registrations" } (verdicts(view, change, &explained)) }
            @if let Some(documents) = documents { (document(view, documents)) }
        }
    }
}

/// The registrations that match the change, and those whose key does.
fn verdicts(view: &View, change: &ShadowChange, explained: &Explained) -> Markup {
    let is_other_key = |one: &Verdict| {
        let unmet = one.unmet.as_deref();
        unmet.is_some_and(|unmet| unmet.starts_with("on.key"))
    };
    let (others, mut shown): (Vec<&Verdict>, Vec<&Verdict>) =
        explained.verdicts.iter().partition(|one| is_other_key(one));
    shown.sort_by_key(|one| one.unmet.is_some());
    let rest = others.len() + shown.len().saturating_sub(VERDICTS);
    let at = change.change.time;
    let name = |one: &Verdict| {
        let Match { name, state, .. } = &one.one;
        html! { a href=(matches::bench(view, &change.shadow, at, *state, Some(name))) { bdi { (cut(name)) } } }
    };
    html! {
        @if explained.changes.is_empty() {
            p.mute { "The documents before and after this change are not recorded, or not yet." }
        } @else if explained.verdicts.is_empty() {
            p.mute { "There are no registrations, or they have problems." }
        }
        ul {
            @for one in shown.iter().take(VERDICTS) {
                li.line {
                    @match &one.unmet {
                        None => { b.ok { "matches" } " " (name(one)) " " span.when { bdi { (cut(&one.one.target)) } } }
                        Some(unmet) => { span.mute { "no" } " " (name(one)) " " span.when { bdi { (cut(unmet)) } } }
                    }
                }
            }
            @if rest > 0 { li.mute { (number(rest as i64)) " more do not match" } }
        }
    }
}

/// The document after the change, or before it.
fn document(view: &View, change: &DocumentChange) -> Markup {
    let is_old = view.get("doc") == Some("old");
    let shown = match is_old {
        true => &change.old,
        false => &change.new,
    };
    html! {
        div.body.stack {
            div.line {
                h3 { @if is_old { "Old" } @else { "New" } }
                nav.seg.push aria-label="Document" {
                    a href=(view.with(&[("doc", "")])) aria-current=[(!is_old).then_some("true")] { "new" }
                    a href=(view.with(&[("doc", "old")])) aria-current=[is_old.then_some("true")] { "old" }
                }
            }
            @match shown {
                Some(document) => pre.json { bdi { (cut_at(&pretty(document.as_str()), DOCUMENT_CHARS)) } },
                None => p.mute { "There was no document." },
            }
        }
    }
}

/// JSON over several lines. Numbers stay as they are.
fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<&serde_json::value::RawValue>(json);
    let mut text = String::new();
    let Ok(value) = value else {
        return json.to_owned();
    };
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    for c in value.get().chars() {
        if is_string {
            text.push(c);
            is_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                depth += 1;
                text.push(c);
                line(&mut text, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c => {
                is_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_numbers_keep_their_digits() {
        assert_eq!(
            pretty(r#"{"a":{"b":9007199254740993.10,"c":"x\"{,"},"d":[1]}"#),
            "{\n  \"a\": {\n    \"b\": 9007199254740993.10,\n    \"c\": \"x\\\"{,\"\n  },\n  \"d\": [\n    1\n  ]\n}"
        );
    }
}
