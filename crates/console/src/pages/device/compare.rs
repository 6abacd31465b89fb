//! The difference of two moments.

use antumbra_service::history::{ChangedDocument, StateAt};
use antumbra_shadow::{PatchedLeaf, State, Timestamp};
use maud::{Markup, html};

use super::Device;
use crate::components::{cut, error_note, number, plain_value, pointer};
use crate::time;
use crate::view::View;

/// Rows of the table.
const ROWS: usize = 200;

/// Two moments and what differs.
pub(super) struct Compared {
    from: Timestamp,
    to: Timestamp,
    documents: Result<Vec<ChangedDocument>, String>,
}

/// Compares the moments of the URL, if it has any.
pub(super) async fn load(view: &View, device: &Device) -> Option<Result<Compared, String>> {
    let history = view.console.services.history.as_ref()?;
    let from = view.get("from")?;
    let parse = |text: &str| {
        let parsed = time::parse(text, view.now, &view.zone);
        parsed
            .ok_or_else(|| format!("{text:?} is not a time; type 14:05, -10m, or a date and time"))
    };
    let times = parse(from).and_then(|from| Ok([from, parse(view.get("to").unwrap_or("now"))?]));
    let mut times = match times {
        Ok(times) => times,
        Err(fault) => return Some(Err(fault)),
    };
    times.sort();
    let difference = history.difference(&device.shadow, times, view.now).await;
    let documents = match difference {
        Ok(Ok(documents)) => Ok(documents),
        Ok(Err(StateAt::BeforeRetention { since })) => {
            Err(format!("The history begins at {since}."))
        }
        Ok(Err(_)) => Err(
            "A change around one of the moments is not recorded, or was written just now."
                .to_owned(),
        ),
        Err(error) => return Some(Err(error.to_string())),
    };
    Some(Ok(Compared {
        from: times[0],
        to: times[1],
        documents,
    }))
}

pub(super) fn panel(
    view: &View,
    _device: &Device,
    compared: &Option<Result<Compared, String>>,
) -> Markup {
    html! {
        section.panel #diff {
            header {
                h2 { "Difference of two moments" }
                form.filter.push method="get" action="/device#diff" {
                    @for name in ["id", "name", "range", "tz", "time", "at", "chart"] {
                        @if let Some(value) = view.get(name) { input type="hidden" name=(name) value=(value); }
                    }
                    label { "From " input.field.mono name="from" value=(view.get("from").unwrap_or("-1h")) size="11"; }
                    label { "To " input.field.mono name="to" value=(view.get("to").unwrap_or("now")) size="11"; }
                    button.btn { "Compare" }
                }
            }
            @match compared {
                None => {}
                Some(Err(fault)) => (error_note("The moments cannot be compared.", fault, view)),
                Some(Ok(Compared { documents: Err(fault), .. })) => (error_note("The moments cannot be compared.", fault, view)),
                Some(Ok(Compared { from, to, documents: Ok(documents) })) => (table(view, *from, *to, documents)),
            }
        }
    }
}

fn table(view: &View, from: Timestamp, to: Timestamp, documents: &[ChangedDocument]) -> Markup {
    let leaves: Vec<(State, &PatchedLeaf)> = documents
        .iter()
        .flat_map(|document| {
            document
                .values
                .iter()
                .flatten()
                .map(|leaf| (document.state, leaf))
        })
        .collect();
    let is_cut = documents.iter().any(|document| document.values.is_none());
    let count =
        |wanted: fn(&PatchedLeaf) -> bool| leaves.iter().filter(|(_, leaf)| wanted(leaf)).count();
    let added = count(|leaf| leaf.old.is_none());
    let removed = count(|leaf| leaf.new.is_none());
    html! {
        table.fixed {
            colgroup { col.w-field; col; col; col.w6.p1; }
            thead { tr {
                th { "Field" } th { (view.at(from)) } th { (view.at(to)) } th.p1 { "Document" }
            } }
            tbody { @for (state, leaf) in leaves.iter().take(ROWS) { (row(*state, leaf)) } }
        }
        footer {
            span { (number(added as i64)) " added, " (number((leaves.len() - added - removed) as i64)) " updated, "
                (number(removed as i64)) " removed"
                @if leaves.len() > ROWS { "; the first " (ROWS) " are shown" }
                @if is_cut { "; a document differs in too many values to show" } }
        }
    }
}

fn row(state: State, leaf: &PatchedLeaf) -> Markup {
    let (class, sign, word) = match (&leaf.old, &leaf.new) {
        (None, _) => ("add", "+", "added"),
        (_, None) => ("del", "−", "removed"),
        _ => ("upd", "~", "updated"),
    };
    let text = |json: &String| html! { bdi { (cut(&plain_value(json))) } };
    html! {
        tr class=(class) {
            td { span.sign aria-hidden="true" { (sign) } " " span.sr { (word) } (pointer(&leaf.pointer)) }
            td.val { @match &leaf.old { Some(old) => del { (text(old)) }, None => span.mute { "absent" } } }
            td.val { @match &leaf.new { Some(new) => ins { (text(new)) }, None => span.mute { "absent" } } }
            td.p1.soft { (state.as_str()) }
        }
    }
}
