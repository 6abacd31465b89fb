//! The changes of the shadow, newest first. Runs of similar changes fold.

use antumbra_service::history::{Operation, RecordedChange};
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::{State, Timestamp};
use maud::{Markup, html};

use super::Device;
use super::recorded::Recorded;
use crate::components::{Tone, badge, counted, cut, diff, empty, number};
use crate::matches::{self, Match};
use crate::time;
use crate::view::View;

/// Values of a change that are shown.
const VALUES: usize = 8;
/// Newest changes, which never fold.
const UNFOLDED: usize = 5;
/// Similar changes in a row that fold.
const RUN: usize = 4;

pub(super) fn panel(view: &View, device: &Device, recorded: &Recorded) -> Markup {
    let path = shown_path(view);
    let at = device.at();
    let shown = &recorded.shown;
    let list = List {
        view,
        shadow: &device.shadow,
        recorded,
        at,
        current: at.and_then(|at| {
            let mut times = shown.iter().map(|change| change.time);
            times.find(|time| *time <= at)
        }),
    };
    let oldest = shown.last().filter(|_| recorded.has_older);
    html! {
        section.panel {
            header {
                h2 { "Timeline" }
                @if let Some(at) = at { span.mute { "around " (view.at(at)) } }
                form.filter.push method="get" action="/device" {
                    (view.kept(&["id", "name", "range", "tz", "time", "at", "chart"]))
                    label.sr for="path" { "Path" }
                    input.field.mono #path name="path" value=[path] placeholder="path, e.g. /temp" size="14";
                    button.btn.small { "Filter" }
                }
            }
            @if shown.is_empty() {
                (empty("No changes in this range", &html! { p { "Choose a longer range above, or another path." } }))
            }
            ol.timeline #timeline {
                @for group in grouped(shown) {
                    @match group {
                        [change] => (list.entry(change)),
                        changes => (list.folded(changes)),
                    }
                }
            }
            footer {
                span { (extent(view, recorded)) }
                @if let Some(oldest) = oldest {
                    a.btn.small.push href=(view.with(&[("at", &oldest.time.to_string())])) { "Older changes" }
                }
            }
        }
    }
}

/// The path that the URL filters the changes by.
pub(super) fn shown_path(view: &View) -> Option<&str> {
    view.get("path").filter(|path| path.starts_with('/'))
}

/// Says how far the changes were read.
fn extent(view: &View, recorded: &Recorded) -> Markup {
    let count = counted(recorded.all.len(), "change", "changes");
    html! {
        @match recorded.stopped {
            None => { (count) " in this range" }
            Some(stopped) => {
                "The newest " (count) " of this range were read, back to " (view.at(stopped))
                ". Choose a shorter range or an earlier time for those before."
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

/// The list of changes on a page.
struct List<'a> {
    view: &'a View,
    shadow: &'a ShadowId,
    recorded: &'a Recorded,
    /// The time that the page shows, if it is not now, and the time of the change before it.
    at: Option<Timestamp>,
    current: Option<Timestamp>,
}

impl List<'_> {
    fn folded(&self, changes: &[RecordedChange]) -> Markup {
        let view = self.view;
        let (_, fields) = signature(&changes[0]);
        let names: Vec<String> = fields
            .iter()
            .take(4)
            .map(|(_, name)| format!("/{name}"))
            .collect();
        let (newest, oldest) = (changes[0].time, changes[changes.len() - 1].time);
        let is_open = self
            .current
            .is_some_and(|time| (oldest..=newest).contains(&time));
        html! {
            li { details open[is_open] {
                summary.line {
                    span { (view.at(oldest)) " to " (view.at(newest)) } " "
                    span.mute { (number(changes.len() as i64)) " changes of " bdi { (cut(&names.join(", "))) } }
                }
                ol { @for change in changes { (self.entry(change)) } }
            } }
        }
    }

    fn entry(&self, change: &RecordedChange) -> Markup {
        let matches = self.recorded.matches.get(&change.time);
        let matches = matches.map_or(&[][..], Vec::as_slice);
        let is_current = self.current == Some(change.time);
        let when = match self.at {
            _ if is_current => html! { "shown" },
            Some(at) => {
                let apart = change.time.nanoseconds() - at.nanoseconds();
                let word = if apart > 0 { "later" } else { "earlier" };
                let text = format!("{} {word}", time::duration(apart.abs()));
                self.view.time(change.time, &text)
            }
            None => self.view.ago(change.time),
        };
        rendered(self.view, self.shadow, change, matches, is_current, &when)
    }
}

/// A change that was just written, if the page shows its path. Live updates add it at the top.
pub(crate) fn live_entry(
    view: &View,
    shadow: &ShadowId,
    change: &RecordedChange,
    matches: &[Match],
) -> Option<Markup> {
    let mut change = change.clone();
    if let Some(path) = shown_path(view)
        && !change.keep_path(path)
    {
        return None;
    }
    let when = view.ago(change.time);
    Some(rendered(view, shadow, &change, matches, false, &when))
}

fn rendered(
    view: &View,
    shadow: &ShadowId,
    change: &RecordedChange,
    matches: &[Match],
    is_current: bool,
    when: &Markup,
) -> Markup {
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
                " " span.when { (when) }
            }
            (values(change, VALUES))
            @if !matches.is_empty() { p.sends { "matches " (matches::links(view, shadow, change.time, matches)) } }
        }
    }
}

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
