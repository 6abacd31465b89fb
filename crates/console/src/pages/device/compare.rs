//! The difference of two moments: the values that differ, how often they changed between, and who wrote them last.

use std::collections::{HashMap, HashSet};

use antumbra_service::history::{ChangeQuery, RecordedChange, StateAt};
use antumbra_service::shadows::{Shadow, StoredDocument};
use antumbra_service::store::StoreError;
use antumbra_shadow::{Patch, PatchedLeaf, State, Timestamp};
use maud::{Markup, html};

use super::Device;
use super::state::values_of;
use crate::components::{cut, error_note, number, plain_value, pointer};
use crate::time;
use crate::view::View;

/// Rows of the table.
const ROWS: usize = 200;
/// Bytes of the values that differ.
const VALUES_BYTES: usize = 1024 * 1024;
/// Changes between the moments that are counted.
const BETWEEN: usize = 500;

/// A moment, and the shadow then.
struct Moment {
    at: Timestamp,
    shadow: Option<Shadow>,
}

impl Moment {
    fn held(&self, state: State) -> Option<&StoredDocument> {
        let shadow = self.shadow.as_ref()?;
        match state {
            State::Reported => shadow.reported.as_ref(),
            State::Desired => shadow.desired.as_ref(),
        }
    }
}

/// Two moments and what differs.
pub(super) struct Compared {
    moments: [Moment; 2],
    /// Values that differ, by document. `None` if they are too many.
    differing: Vec<(State, Option<Vec<PatchedLeaf>>)>,
    /// Values that do not, with their text.
    same: Vec<(State, String, String)>,
    /// Changes between the moments, newest first.
    between: Vec<RecordedChange>,
    has_more: bool,
}

/// Compares the moments of the URL, if it has any.
pub(super) async fn load(view: &View, device: &Device) -> Option<Result<Compared, String>> {
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
    let compared = compare(view, device, times).await;
    Some(compared.unwrap_or_else(|error| Err(error.to_string())))
}

async fn compare(
    view: &View,
    device: &Device,
    times: [Timestamp; 2],
) -> Result<Result<Compared, String>, StoreError> {
    let services = &view.console.services;
    let Some(history) = &services.history else {
        return Ok(Err("The history is switched off.".to_owned()));
    };
    let mut moments = Vec::new();
    for at in times {
        let shadow = match history.state_at(&device.shadow, at, view.now).await? {
            StateAt::Existed(shadow) => Some(*shadow),
            StateAt::DidNotExist => None,
            StateAt::BeforeRetention { since } => {
                return Ok(Err(format!("The history begins at {since}.")));
            }
            StateAt::NotRecorded => {
                let reason =
                    "A change around one of the moments is not recorded, or was written just now.";
                return Ok(Err(reason.to_owned()));
            }
        };
        moments.push(Moment { at, shadow });
    }
    let Ok(moments) = <[Moment; 2]>::try_from(moments) else {
        return Ok(Err("A moment is missing.".to_owned()));
    };
    let query = ChangeQuery {
        shadow: device.shadow.clone(),
        from: Some(times[0]),
        to: Some(times[1]),
        path: None,
    };
    let between = history.changes(&query, BETWEEN, None, view.now).await?;
    let (mut differing, mut same) = (Vec::new(), Vec::new());
    let model = services.shadows.model();
    for state in [State::Reported, State::Desired] {
        let held = [&moments[0], &moments[1]].map(|moment| moment.held(state));
        let [old, new] =
            held.map(|held| held.map(|held| held.document.clone()).unwrap_or_default());
        let patch = Patch::between(&old, &new, model, VALUES_BYTES);
        let values = patch.and_then(|patch| patch.leaves(model, VALUES_BYTES).ok().flatten());
        // A unit or a time is part of the value that is shown in one row.
        let changed = values.iter().flatten().map(|leaf| &*leaf.pointer);
        let changed =
            changed.flat_map(|at| [Some(at), at.rsplit_once('/').map(|(above, _)| above)]);
        let changed: HashSet<&str> = changed.flatten().collect();
        let before: HashMap<String, String> = values_of(view, held[0]).collect();
        let kept = values_of(view, held[1]).filter(|(pointer, text)| {
            before.get(pointer) == Some(text) && !changed.contains(&**pointer)
        });
        same.extend(kept.map(|(pointer, text)| (state, pointer, text)));
        if values.as_ref().is_none_or(|values| !values.is_empty()) {
            differing.push((state, values));
        }
    }
    Ok(Ok(Compared {
        moments,
        differing,
        same,
        between: between.rows,
        has_more: between.next.is_some(),
    }))
}

pub(super) fn panel(view: &View, compared: &Option<Result<Compared, String>>) -> Markup {
    html! {
        section.panel #diff {
            header {
                h2 { "Difference of two moments" }
                form.filter.push method="get" action="/device#diff" {
                    (view.kept(&["id", "name", "range", "tz", "time", "at", "chart"]))
                    label { "From " input.field.mono name="from" value=(view.get("from").unwrap_or("-1h")) size="11"; }
                    label { "To " input.field.mono name="to" value=(view.get("to").unwrap_or("now")) size="11"; }
                    button.btn { "Compare" }
                }
            }
            @match compared {
                None => {}
                Some(Err(fault)) => (error_note("The moments cannot be compared.", fault, view)),
                Some(Ok(compared)) => (table(view, compared)),
            }
        }
    }
}

/// The version of the reported document, or of the desired one if nothing was reported.
fn version(moment: &Moment) -> Option<i64> {
    let mut states = [State::Reported, State::Desired].into_iter();
    states.find_map(|state| Some(moment.held(state)?.version.0))
}

fn table(view: &View, compared: &Compared) -> Markup {
    let documents = compared.differing.iter();
    let leaves: Vec<(State, &PatchedLeaf)> = documents
        .flat_map(|(state, values)| values.iter().flatten().map(|leaf| (*state, leaf)))
        .collect();
    let is_cut = compared
        .differing
        .iter()
        .any(|(_, values)| values.is_none());
    let count =
        |wanted: fn(&PatchedLeaf) -> bool| leaves.iter().filter(|(_, leaf)| wanted(leaf)).count();
    let added = count(|leaf| leaf.old.is_none());
    let removed = count(|leaf| leaf.new.is_none());
    let shows_same = view.get("same").is_some();
    html! {
        table.fixed {
            colgroup { col.w-field; col; col; col.w6.p1; col.w8.p1; col.w8.p2; }
            thead { tr {
                th { "Field" }
                @for moment in &compared.moments {
                    th { (view.at(moment.at)) @if let Some(version) = version(moment) { " " span.mute { "v" (number(version)) } } }
                }
                th.p1 { "Document" } th.p1 { "Changes between" } th.p2 { "Last client token" }
            } }
            tbody {
                @for (state, leaf) in leaves.iter().take(ROWS) { (row(*state, leaf, compared)) }
                @if shows_same {
                    @for (state, path, text) in compared.same.iter().take(ROWS) {
                        tr {
                            td { span.sign aria-hidden="true" { "=" } " " span.sr { "the same " } (pointer(path)) }
                            td.val { bdi { (cut(text)) } } td.val.mute { "same" }
                            td.p1.soft { (state.as_str()) } td.p1 {} td.p2 {}
                        }
                    }
                }
            }
        }
        footer {
            span { (number(added as i64)) " added, " (number((leaves.len() - added - removed) as i64)) " updated, "
                (number(removed as i64)) " removed, " (number(compared.same.len() as i64)) " the same"
                @if leaves.len() > ROWS { "; the first " (ROWS) " are shown" }
                @if is_cut { "; a document differs in too many values to show" }
                @if compared.has_more { "; only the newest " (BETWEEN) " changes between were counted" } }
            @if shows_same { a.push href={ (view.with(&[("same", "")])) "#diff" } { "Hide fields that are the same" } }
            @else if !compared.same.is_empty() { a.push href={ (view.with(&[("same", "1")])) "#diff" } { "Show fields that are the same" } }
        }
    }
}

/// The number of changes of a value between the moments, and the client token of the newest one.
fn between(compared: &Compared, state: State, pointer: &str) -> (usize, Option<String>) {
    let touches = |change: &&RecordedChange| {
        let documents = change.documents.iter().filter(|one| one.state == state);
        let mut leaves = documents.flat_map(|document| document.values.iter().flatten());
        leaves.any(|leaf| leaf.pointer == pointer)
    };
    let changes: Vec<&RecordedChange> = compared.between.iter().filter(touches).collect();
    let token = changes
        .first()
        .and_then(|newest| newest.client_token.clone());
    (changes.len(), token)
}

fn row(state: State, leaf: &PatchedLeaf, compared: &Compared) -> Markup {
    let (class, sign, word) = match (&leaf.old, &leaf.new) {
        (None, _) => ("add", "+", "added"),
        (_, None) => ("del", "−", "removed"),
        _ => ("upd", "~", "updated"),
    };
    let text = |json: &String| html! { bdi { (cut(&plain_value(json))) } };
    let (changes, token) = between(compared, state, &leaf.pointer);
    html! {
        tr class=(class) {
            td { span.sign aria-hidden="true" { (sign) } " " span.sr { (word) } (pointer(&leaf.pointer)) }
            td.val { @match &leaf.old { Some(old) => del { (text(old)) }, None => span.mute { "absent" } } }
            td.val { @match &leaf.new { Some(new) => ins { (text(new)) }, None => span.mute { "absent" } } }
            td.p1.soft { (state.as_str()) }
            td.p1.num.soft { (number(changes as i64)) @if compared.has_more { "+" } }
            td.p2.mono.soft { @if let Some(token) = &token { bdi { (cut(token)) } } }
        }
    }
}
