//! `/live`: changes as they are written.

use std::sync::Arc;

use antumbra_registration::{Change, DiffCell, KeyAttributes, Pattern, ShadowRef};
use antumbra_service::history::{ChangedDocument, Operation, StateAt};
use antumbra_service::shadows::{Shadow, ShadowId};
use antumbra_shadow::{Model, Patch, State, Timestamp};
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::{
    Tone, badge, cmd, command, cut, cut_at, empty, error_note, live_state, number, shadow_link,
};
use crate::live::ShadowChange;
use crate::pages::device::change_values;
use crate::state::Console;
use crate::view::{Nav, View};

/// Values of a change in the list, and when it is selected.
const VALUES: usize = 6;
const SELECTED_VALUES: usize = 50;
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
            Some(pattern) => matches(pattern, change, document),
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
fn matches(pattern: &Pattern, change: &ShadowChange, document: &ChangedDocument) -> bool {
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

async fn show(view: View) -> Response {
    let filter = Filter::of(&view);
    let recent = view.console.live.recent();
    let shown: Vec<&Arc<ShadowChange>> = recent
        .iter()
        .filter(|change| filter.keeps(change))
        .collect();
    let selected = view.get("change");
    let selected = selected.and_then(|id| recent.iter().find(|change| change.id == id));
    let inspector = match selected {
        Some(change) => Some(inspect(&view, change).await),
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
            div.cols.cols-inspect[inspector.is_some()] {
                section.panel aria-label="Changes" {
                    div.held-back #held role="status" hidden {
                        span {} a href="#stream" { "Show them" } span.push.mute { "the list stands still while you read" }
                    }
                    @if shown.is_empty() { div #none-yet { (empty("No changes yet", &html! {
                        p { "They appear here as soon as something writes. Report a value from a terminal to see one." }
                        (cmd(&command(&view, "shadow report lamp-7 '{\"led\":{\"value\":\"on\"}}'")))
                    })) } }
                    ol.stream #stream {
                        @for change in &shown {
                            (entry(&view, change, selected.is_some_and(|one| one.id == change.id)))
                        }
                    }
                    footer { span { "Changes since this page or another one was opened, at most " (crate::live::RECENT) ". The past of a device is on its own page." } }
                }
                @if let Some(inspector) = &inspector { (inspector) }
            }
            (cmd(&command(&view, "changes follow")))
        }
    };
    view.page(Nav::Live, "Live", &content)
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
pub(crate) fn entry(view: &View, change: &ShadowChange, is_selected: bool) -> Markup {
    let recorded = &change.change;
    html! {
        li id={ "c" (change.id) } data-into="stream" aria-current=[is_selected.then_some("true")] {
            a.soft href=(view.with(&[("change", &change.id), ("page", "")])) { (milliseconds(view, recorded.time)) }
            div {
                (shadow_link(view, &change.shadow))
                span.sub { (states(change)) " v" (number(recorded.version.0)) " " (operation(recorded.operation)) }
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
    let document = document_after(view, &change.shadow, recorded.time).await;
    let state = recorded
        .documents
        .first()
        .map_or(State::Reported, |document| document.state);
    let held = document.as_ref().and_then(|shadow| match state {
        State::Reported => shadow.reported.as_ref(),
        State::Desired => shadow.desired.as_ref(),
    });
    let at = recorded.time.to_string();
    let (id, name) = (change.shadow.id(), change.shadow.name());
    html! {
        aside.panel aria-label="Selected change" {
            header {
                h2 { "Change" }
                span.push {
                    a.btn.small href=(view.href("/registrations", &[("id", id), ("name", name), ("at", &at), ("state", state.as_str())])) { "Try in test bench" } " "
                    a.btn.small.quiet href=(view.with(&[("change", "")])) aria-label="Close the selected change" { "Close" }
                }
            }
            div.body.stack { dl.kv {
                dt { "Shadow" } dd { (shadow_link(view, &change.shadow)) }
                dt { "Document" } dd { (states(change)) ", v" (number(recorded.version.0)) ", " (recorded.operation.as_str()) }
                dt { "Written" } dd { (milliseconds(view, recorded.time)) ", " (view.ago(recorded.time)) }
                @if let Some(token) = &recorded.client_token { dt { "Client token" } dd.mono { bdi { (cut(token)) } } }
                dt { "State then" } dd { a href=(view.href("/device", &[("id", id), ("name", name), ("at", &at)])) { "show" } }
            } }
            div.body.stack { h3 { "Changes" } (change_values(recorded, SELECTED_VALUES)) }
            @if let Some(held) = held {
                div.body.stack {
                    h3 { "New" }
                    pre.json { bdi { (cut_at(&pretty(held.document.as_str()), DOCUMENT_CHARS)) } }
                }
            }
        }
    }
}

/// The shadow after a change; unknown if its history does not reach so far.
async fn document_after(view: &View, shadow: &ShadowId, at: Timestamp) -> Option<Shadow> {
    let history = view.console.services.history.as_ref()?;
    match history.state_at(shadow, at, view.now).await {
        Ok(StateAt::Existed(shadow)) => Some(*shadow),
        _ => None,
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
