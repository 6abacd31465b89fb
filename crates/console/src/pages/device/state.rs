//! The documents as one tree, with the age of every value.

use std::collections::HashMap;

use antumbra_service::shadows::{Shadow, StoredDocument};
use antumbra_shadow::{Document, LeafTimes, Timestamp};
use maud::{Markup, html};

use crate::components::{Tone, badge, counted, cut, number, size};
use crate::time;
use crate::tree::{Cell, Content, Row, Timed, tree};
use crate::view::View;

/// Rows of a page.
const ROWS: usize = 200;

/// The state now; or the state at a time, beside the shadow as it is now.
pub(crate) fn panel(
    view: &View,
    shadow: Option<&Shadow>,
    past: Option<(Timestamp, Option<&Shadow>)>,
) -> Markup {
    let Some(shadow) = shadow else {
        return html! { section.panel #state hidden {} };
    };
    let opened: Vec<&str> = view.get_all("show").collect();
    let all = rows_of(view, shadow, past.map(|(_, current)| current), &opened);
    let now = past.map(|(_, current)| Now::of(view, current));
    let wanted = view.get("fields");
    let is_wanted = |row: &&Row| match (wanted, &row.content) {
        (Some("open"), Content::Leaf { is_open, .. }) => *is_open,
        (Some("changed"), Content::Leaf { reported, .. }) => now
            .as_ref()
            .is_some_and(|now| !now.is_same(row, reported.as_ref())),
        (Some("open" | "changed"), Content::Branch { .. }) => false,
        _ => true,
    };
    let is_flat = matches!(wanted, Some("open" | "changed"));
    let rows: Vec<&Row> = all.rows.iter().filter(is_wanted).collect();
    let start: usize = view
        .get("row")
        .and_then(|row| row.parse().ok())
        .unwrap_or(0);
    let start = start.min(rows.len().saturating_sub(1));
    let shown = &rows[start..(start + ROWS).min(rows.len())];
    let open = all
        .rows
        .iter()
        .filter(|row| matches!(row.content, Content::Leaf { is_open: true, .. }))
        .count();
    html! {
        section.panel #state {
            header {
                @match past {
                    Some((at, _)) => h2 { "State at " (view.at(at)) },
                    None => { h2 { "State" } span.mute { (versions(view, shadow)) } }
                }
                (fields(view, past.is_some()))
            }
            table.tree.fixed {
                @if past.is_some() {
                    colgroup { col.w-field; col; col.p1; col; col.w6.p1; }
                    thead { tr { th { "Field" } th { "Reported" } th.p1 { "Desired" } th { "Now" } th.p1 { "Age then" } } }
                } @else {
                    colgroup { col.w-field; col; col.p1; col.w6; col.w4.p1; }
                    thead { tr { th { "Field" } th { "Reported" } th.p1 { "Desired" } th { "Age" } th.p1 { "Clock" } } }
                }
                tbody {
                    @for row in shown {
                        @match (past, &now) {
                            (Some((at, _)), Some(now)) => (past_row(view, row, at, now, is_flat)),
                            _ => (row_now(view, row, is_flat)),
                        }
                    }
                }
            }
            footer {
                @if rows.len() > shown.len() {
                    span { "Rows " (number(start as i64 + 1)) " to " (number((start + shown.len()) as i64)) " of " (number(rows.len() as i64)) "." }
                }
                @match past {
                    Some((at, _)) => span { "Ages are measured back from " (view.at(at)) "." },
                    None => span { (counted(all.leaves, "value", "values"))
                        @if open > 0 { ", " (number(open as i64)) " not yet as desired" }
                        ". Age is by the device's clock where the device sent a timestamp, else by the server's." }
                }
                span.push {
                    @if start > 0 { a.btn.small href=(view.with(&[("row", &start.saturating_sub(ROWS).to_string())])) { "Previous rows" } " " }
                    @if start + shown.len() < rows.len() {
                        a.btn.small href=(view.with(&[("row", &(start + ROWS).to_string())])) { "Next rows" }
                    }
                }
            }
        }
    }
}

fn fields(view: &View, is_past: bool) -> Markup {
    let (value, name) = match is_past {
        true => ("changed", "Different from now"),
        false => ("open", "Open delta"),
    };
    let is_chosen = view.get("fields") == Some(value);
    html! {
        nav.seg.push aria-label="Fields" {
            a href=(view.with(&[("fields", ""), ("row", "")])) aria-current=[(!is_chosen).then_some("true")] { "All" }
            a href=(view.with(&[("fields", value), ("row", "")])) aria-current=[is_chosen.then_some("true")] { (name) }
        }
    }
}

fn versions(view: &View, shadow: &Shadow) -> Markup {
    let one = |held: &Option<StoredDocument>| {
        html! {
            @match held {
                Some(held) => { b.soft { "v" (number(held.version.0)) } " " (view.ago(held.timestamp)) },
                None => "none",
            }
        }
    };
    html! { "reported " (one(&shadow.reported)) ", desired " (one(&shadow.desired)) }
}

/// The rows of the state now; or of a past state, with rows for the values that exist only now.
fn rows_of(
    view: &View,
    shadow: &Shadow,
    now: Option<Option<&Shadow>>,
    opened: &[&str],
) -> crate::tree::Tree {
    let model = view.console.services.shadows.model();
    let times = |held: &StoredDocument| now.is_none().then(|| held.leaf_times());
    let later = now.flatten().and_then(|now| now.reported.as_ref());
    let (reported, desired) = (shadow.reported.as_ref(), shadow.desired.as_ref());
    let (reported_times, desired_times) = (reported.and_then(times), desired.and_then(times));
    let no_delta = Document::default();
    tree(
        reported.map(|held| timed(held, reported_times.as_ref())),
        desired.map(|held| timed(held, desired_times.as_ref())),
        later.map(|held| timed(held, None)),
        shadow.delta.as_ref().unwrap_or(&no_delta),
        model,
        view.get("fields").is_none().then_some(opened),
    )
}

fn timed<'a>(held: &'a StoredDocument, times: Option<&'a LeafTimes>) -> Timed<'a> {
    Timed {
        document: &held.document,
        times,
    }
}

/// The reported values of a shadow as it is now, by pointer.
struct Now(HashMap<String, String>);

impl Now {
    fn of(view: &View, current: Option<&Shadow>) -> Now {
        let Some(shadow) = current else {
            return Now(Default::default());
        };
        Now(values_of(view, shadow.reported.as_ref()).collect())
    }

    fn is_same(&self, row: &Row, then: Option<&Cell>) -> bool {
        self.0.get(&row.pointer) == then.map(|cell| &cell.text)
    }
}

/// The values of a document by pointer, in its order.
pub(super) fn values_of(
    view: &View,
    held: Option<&StoredDocument>,
) -> impl Iterator<Item = (String, String)> + use<> {
    let model = view.console.services.shadows.model();
    let document = held.map(|held| timed(held, None));
    let rows = tree(document, None, None, &Document::default(), model, None).rows;
    rows.into_iter().filter_map(|row| match row.content {
        Content::Leaf {
            reported: Some(cell),
            ..
        } => Some((row.pointer, cell.text)),
        _ => None,
    })
}

/// Counts the reported values of a past state that are others now, and those that only one of the two has.
pub(super) fn differing(view: &View, then: &Shadow, current: Option<&Shadow>) -> usize {
    let [then, now] = [Some(then), current].map(|shadow| Now::of(view, shadow).0);
    let changed = then
        .iter()
        .filter(|(at, value)| now.get(*at) != Some(value));
    let added = now.keys().filter(|at| !then.contains_key(*at));
    changed.count() + added.count()
}

fn name(view: &View, row: &Row, is_flat: bool) -> Markup {
    let shown = match is_flat {
        true => row.pointer.trim_start_matches('/'),
        false => &row.name,
    };
    let shown = cut(shown);
    html! {
        @match &row.content {
            Content::Branch { leaves, is_shut: true, .. } => {
                a.twig.shut.mono href=(view.with(&[("show", &row.pointer)])) title=(cut(&row.pointer)) { bdi { (shown) } }
                " " span.mute { (counted(*leaves, "value", "values")) }
            }
            Content::Branch { .. } => span.twig.mono { bdi { (shown) } },
            Content::Leaf { reported: Some(Cell { number: Some(pointer), .. }), .. } => {
                a.leaf.mono href=(view.with(&[("chart", pointer)]))
                    aria-current=[view.get_all("chart").any(|one| one == pointer).then_some("true")] { bdi { (shown) } }
            }
            Content::Leaf { .. } => span.leaf.mono { bdi { (shown) } },
        }
    }
}

fn value(view: &View, cell: &Cell, class: &str) -> Markup {
    html! {
        @if let Some(bytes) = cell.cut_bytes { a href=(view.with(&[("as", "json")])) { (size(bytes)) } " " }
        bdi class={ "val " (class) } title=[(cell.text.chars().count() > 24).then_some(&cell.text)] { (cell.text) }
        @if let Some(unit) = &cell.unit { " " span.unit { bdi { (cut(unit)) } } }
    }
}

fn depth(row: &Row, is_flat: bool) -> String {
    format!("d{}", if is_flat { 0 } else { row.depth })
}

/// The row of an object or array; its values are below.
fn branch(view: &View, row: &Row, is_flat: bool) -> Markup {
    html! {
        tr class=(depth(row, is_flat)) {
            td title=(cut(&row.pointer)) { (name(view, row, is_flat)) }
            td.mute { @if let Content::Branch { elements: Some(count), .. } = &row.content { (counted(*count, "element", "elements")) } }
            td.p1 {} td {} td.p1 {}
        }
    }
}

fn row_now(view: &View, row: &Row, is_flat: bool) -> Markup {
    let Content::Leaf {
        reported,
        desired,
        is_open,
    } = &row.content
    else {
        return branch(view, row, is_flat);
    };
    let since = desired.as_ref().and_then(|cell| cell.written);
    let since = since.map_or("open".to_owned(), |since| {
        format!(
            "open {}",
            time::duration(view.now.nanoseconds() - since.nanoseconds())
        )
    });
    html! {
        tr class={ (depth(row, is_flat)) @if *is_open { " open" } } {
            td title=(cut(&row.pointer)) { (name(view, row, is_flat)) }
            td {
                @match reported {
                    Some(cell) => { (value(view, cell, "")) " " (lateness(cell)) }
                    None => span.mute { "absent" },
                }
                @if let Some(cell) = desired {
                    span.sub.only-narrow { "desired " (value(view, cell, "want")) @if *is_open { ", " (since) } }
                }
            }
            td.p1 {
                @if let Some(cell) = desired {
                    (value(view, cell, "want")) " "
                    @if *is_open { (badge(Tone::Warn, &since)) } @else { span.mute { "as reported" } }
                }
            }
            @match reported.as_ref().and_then(Cell::time) {
                Some((at, is_device)) => {
                    td.soft {
                        @if is_device && at > view.now { (badge_ahead(view, at)) } @else { (view.ago(at)) }
                    }
                    td.mute.p1 { @if is_device { "device" } @else { "server" } }
                }
                None => { td.soft {} td.mute.p1 {} }
            }
        }
    }
}

/// A device's clock ahead of the server's is marked, never hidden.
fn badge_ahead(view: &View, at: Timestamp) -> Markup {
    html! { span.badge.warn title="ahead of the server's clock" { (view.ago(at)) } }
}

/// A mark for a value that came late.
pub(crate) fn lateness(cell: &Cell) -> Markup {
    html! {
        @if let Some(late) = cell.late() {
            @let text = time::duration(late);
            span.badge.warn title={ "Arrived " (text) " after it was measured" } { (text) " late" }
        }
    }
}

fn past_row(view: &View, row: &Row, at: Timestamp, now: &Now, is_flat: bool) -> Markup {
    let Content::Leaf {
        reported,
        desired,
        is_open,
    } = &row.content
    else {
        return branch(view, row, is_flat);
    };
    let is_same = now.is_same(row, reported.as_ref());
    let then = reported.as_ref().and_then(Cell::time);
    let text = |then: Timestamp| time::duration(at.nanoseconds() - then.nanoseconds());
    html! {
        tr class={ (depth(row, is_flat)) @if *is_open { " open" } @if !is_same { " changed" } } {
            td title=(cut(&row.pointer)) { (name(view, row, is_flat)) }
            td { @match reported { Some(cell) => (value(view, cell, "")), None => span.mute { "absent" } } }
            td.p1 {
                @if let Some(cell) = desired { (value(view, cell, "want")) @if *is_open { " " (badge(Tone::Warn, "open")) } }
            }
            td {
                @if is_same { span.mute { "same" } }
                @else { bdi.val.info { (now.0.get(&row.pointer).map_or("absent", String::as_str)) } }
            }
            td.soft.p1 { @if let Some((then, _)) = then { (view.time(then, &text(then))) } }
        }
    }
}
