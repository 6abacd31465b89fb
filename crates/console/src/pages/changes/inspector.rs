//! The selected change, beside the list: its values, the registrations that match it, its documents.

use antumbra_shadow::{Document, Model, State, Timestamp};
use maud::{Markup, html};

use super::{milliseconds, states};
use crate::components::{cut, number, shadow_link};
use crate::json;
use crate::live::ShadowChange;
use crate::matches::{self, Explained, Match, Verdict};
use crate::pages::device::change_values;
use crate::subject::Subject;
use crate::time;
use crate::view::View;

/// Values of the change.
const VALUES: usize = 50;
/// Registrations that are listed.
const VERDICTS: usize = 12;

pub(super) async fn inspect(view: &View, change: &ShadowChange) -> Markup {
    let recorded = &change.change;
    let matcher = &view.console.matcher;
    let explained = matcher.explain(view, &change.shadow, recorded.time).await;
    let state = recorded
        .documents
        .first()
        .map_or(State::Reported, |document| document.state);
    let subject = explained.subjects.iter().find(|one| one.state() == state);
    let measured = measured(change, view.console.services.shadows.model());
    let version = recorded.version.0;
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
                dt { "Document" } dd {
                    (states(change)) ", "
                    @if version > 1 { "v" (number(version - 1)) " to " }
                    "v" (number(version)) ", " (recorded.operation.as_str())
                }
                dt { "Written" } dd { (milliseconds(view, recorded.time)) ", " (view.ago(recorded.time)) }
                @if let Some(measured) = measured {
                    dt { "Measured" } dd { (milliseconds(view, measured)) " by the device, " (apart(recorded.time, measured)) }
                }
                @if let Some(token) = &recorded.client_token { dt { "Client token" } dd.mono { bdi { (cut(token)) } } }
                dt { "Id" } dd.mono { bdi { (cut(&change.id)) } }
                dt { "State then" } dd { a href=(view.href("/device", &[("id", id), ("name", name), ("at", &at)])) { "show" } }
            } }
            div.body.stack { h3 { "Changes" } (change_values(recorded, VALUES)) }
            div.body.stack { h3 { "Registrations" } (verdicts(view, change, &explained)) }
            @if let Some(subject) = subject { (document(view, subject, &explained.notification)) }
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
        @if explained.subjects.is_empty() {
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

/// The document after the change, the one before it, or the notification of the first registration that matches.
fn document(view: &View, subject: &Subject, notification: &str) -> Markup {
    let kinds = [
        ("", "new", "New"),
        ("old", "old", "Old"),
        (
            "notification",
            "notification",
            "Notification, without its id",
        ),
    ];
    let kinds = kinds
        .into_iter()
        .filter(|(value, ..)| *value != "notification" || !notification.is_empty());
    let kinds: Vec<(&str, &str, &str)> = kinds.collect();
    let wanted = view.get("doc").unwrap_or_default();
    let chosen = kinds.iter().find(|(value, ..)| *value == wanted);
    let (chosen, _, title) = chosen.copied().unwrap_or(kinds[0]);
    let text = |document: &Option<Document>| document.as_ref().map(|one| one.as_str().to_owned());
    let shown = match chosen {
        "old" => text(&subject.old),
        "notification" => Some(notification.to_owned()),
        _ => text(&subject.new),
    };
    html! {
        div.body.stack {
            div.line {
                h3 { (title) }
                nav.seg.push aria-label="Document" {
                    @for (value, word, _) in &kinds {
                        a href=(view.with(&[("doc", *value)])) aria-current=[(*value == chosen).then_some("true")] { (word) }
                    }
                }
            }
            @match shown {
                Some(text) => (json::pretty(&text)),
                None => p.mute { "There was no document." },
            }
        }
    }
}

/// The newest time that a device gave to a changed value.
fn measured(change: &ShadowChange, model: &Model) -> Option<Timestamp> {
    let documents = change.change.documents.iter();
    let leaves = documents.flat_map(|document| document.values.iter().flatten());
    let times = leaves.filter_map(|leaf| {
        let json = leaf.new.as_ref().filter(|json| json.starts_with('{'))?;
        model.time(Document::parse(json).ok()?.view())
    });
    times.max()
}

/// `1.4 s before` the write.
fn apart(written: Timestamp, measured: Timestamp) -> String {
    let nanoseconds = written.nanoseconds() - measured.nanoseconds();
    let word = if nanoseconds < 0 { "after" } else { "before" };
    match nanoseconds.abs() {
        ..10_000_000_000 => format!("{:.1} s {word}", nanoseconds.abs() as f64 / 1e9),
        _ => format!("{} {word}", time::duration(nanoseconds)),
    }
}
