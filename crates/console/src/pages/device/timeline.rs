//! The changes of the shadow, newest first. Runs of similar changes fold.

use antumbra_service::history::{Operation, RecordedChange};
use antumbra_shadow::{State, Timestamp};
use maud::{Markup, html};

use super::Device;
use crate::components::{Tone, badge, cut, diff, empty, number};
use crate::view::View;

/// Changes in the list, before similar ones fold.
const SHOWN: usize = 100;
/// Values of a change that are shown.
const VALUES: usize = 8;
/// Newest changes, which never fold.
const UNFOLDED: usize = 5;
/// Changes above the one that is shown.
const LATER: usize = 3;
/// Similar changes in a row that fold.
const RUN: usize = 4;

pub(super) fn panel(view: &View, device: &Device) -> Markup {
    let path = view.get("path").filter(|path| path.starts_with('/'));
    let at = device.past.as_ref().map(|(at, _)| *at);
    // A past moment is near the top, below a few later changes.
    let later = device
        .changes
        .iter()
        .filter(|change| at.is_some_and(|at| change.time > at));
    let changes = &device.changes[later.count().saturating_sub(LATER)..];
    let selected: Vec<RecordedChange> = match path {
        None => changes.iter().take(SHOWN).cloned().collect(),
        Some(path) => {
            let kept = changes
                .iter()
                .cloned()
                .filter_map(|mut change| change.keep_path(path).then_some(change));
            kept.take(SHOWN).collect()
        }
    };
    let current = at.and_then(|at| {
        selected
            .iter()
            .map(|change| change.time)
            .find(|time| *time <= at)
    });
    let oldest = selected.last().map(|change| change.time);
    let more = oldest.filter(|_| selected.len() == SHOWN || device.has_older);
    html! {
        section.panel {
            header {
                h2 { "Timeline" }
                @if let Some(at) = at { span.mute { "around " (view.at(at)) } }
                form.filter.push method="get" action="/device" {
                    @for name in ["id", "name", "range", "tz", "time", "at", "chart"] {
                        @if let Some(value) = view.get(name) { input type="hidden" name=(name) value=(value); }
                    }
                    label.sr for="path" { "Path" }
                    input.field.mono #path name="path" value=[path] placeholder="path, e.g. /temp" size="14";
                    button.btn.small { "Filter" }
                }
            }
            @if selected.is_empty() {
                (empty("No changes in this range", &html! { p { "Choose a longer range above, or another path." } }))
            }
            ol.timeline #timeline {
                @for group in grouped(&selected) {
                    @match group {
                        [change] => (entry(view, change, current == Some(change.time))),
                        changes => (folded(view, changes, current)),
                    }
                }
            }
            footer {
                span { @if device.has_older { "The newest " (number(device.changes.len() as i64)) " changes of this range were read." }
                    @else { (number(device.changes.len() as i64)) " changes in this range" } }
                @if let Some(oldest) = more {
                    a.btn.small.push href=(view.with(&[("at", &oldest.to_string())])) { "Older changes" }
                }
            }
        }
    }
}

/// Changes are similar by these: the documents, and the first parts of the pointers.
fn signature(change: &RecordedChange) -> (bool, Vec<(State, &str)>) {
    let mut fields = Vec::new();
    for document in &change.documents {
        for leaf in document.values.iter().flatten() {
            let first = leaf.pointer.split('/').nth(1).unwrap_or_default();
            if !fields.contains(&(document.state, first)) {
                fields.push((document.state, first));
            }
        }
    }
    fields.sort_by_key(|(_, first)| *first);
    (change.operation == Operation::Modify, fields)
}

/// Groups of one, and runs of similar changes.
fn grouped(changes: &[RecordedChange]) -> Vec<&[RecordedChange]> {
    let mut groups = Vec::new();
    let (newest, rest) = changes.split_at(changes.len().min(UNFOLDED));
    groups.extend(newest.chunks(1));
    for run in rest.chunk_by(|a, b| signature(a) == signature(b)) {
        match run.len() >= RUN && run[0].operation == Operation::Modify {
            true => groups.push(run),
            false => groups.extend(run.chunks(1)),
        }
    }
    groups
}

fn folded(view: &View, changes: &[RecordedChange], current: Option<Timestamp>) -> Markup {
    let (_, fields) = signature(&changes[0]);
    let names: Vec<String> = fields
        .iter()
        .take(4)
        .map(|(_, name)| format!("/{name}"))
        .collect();
    let (newest, oldest) = (changes[0].time, changes[changes.len() - 1].time);
    let is_open = current.is_some_and(|time| (oldest..=newest).contains(&time));
    html! {
        li { details open[is_open] {
            summary.line {
                span { (view.at(oldest)) " to " (view.at(newest)) } " "
                span.mute { (number(changes.len() as i64)) " changes of " bdi { (cut(&names.join(", "))) } }
            }
            ol { @for change in changes { (entry(view, change, current == Some(change.time))) } }
        } }
    }
}

/// One change. Live updates add it at the top.
pub(crate) fn entry(view: &View, change: &RecordedChange, is_current: bool) -> Markup {
    let states: Vec<State> = change
        .documents
        .iter()
        .map(|document| document.state)
        .collect();
    let is_desired = states.as_slice() == [State::Desired];
    html! {
        li.by-desired[is_desired].at[is_current] aria-current=[is_current.then_some("true")] {
            div.line {
                a href=(view.with(&[("at", &change.time.to_string()), ("page", "")])) { (view.at(change.time)) } " "
                @for (at, state) in states.iter().enumerate() {
                    @if at > 0 { ", " }
                    span class=(if *state == State::Desired { "want" } else { "" }) { (state.as_str()) }
                }
                " v" (number(change.version.0)) " "
                @match change.operation {
                    Operation::Insert => (badge(Tone::Ok, "insert")),
                    Operation::Remove => (badge(Tone::Bad, "remove")),
                    Operation::Modify => {}
                }
                @if let Some(token) = &change.client_token { " " span.mute { "by " bdi { (cut(token)) } } }
                " " span.when { @if is_current { "shown" } @else { (view.ago(change.time)) } }
            }
            (values(change, VALUES))
        }
    }
}

/// The values that a change changed.
pub(crate) fn values(change: &RecordedChange, limit: usize) -> Markup {
    html! {
        @for document in &change.documents {
            @match &document.values {
                Some(values) => (diff(values, limit)),
                None => p.mute { "The values are too many to show, or the state before is not recorded." },
            }
        }
    }
}
