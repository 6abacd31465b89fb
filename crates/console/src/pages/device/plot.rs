//! Charts of numeric fields.

use antumbra_service::shadows::StoredDocument;
use antumbra_shadow::{Document, Kind, State, Timestamp, View as DocumentView};
use maud::{Markup, html};

use super::{Device, time_bar};
use crate::chart::{Axis, Points, Span, steps};
use crate::components::{cut, number};
use crate::view::View;

/// Fields in one chart.
const SERIES: usize = 2;
/// Fields that can be chosen.
const CHOICES: usize = 100;
/// Values in the table.
const TABLE: usize = 200;

pub(super) fn panel(view: &View, device: &Device) -> Markup {
    let reported = device.shown().and_then(|shadow| shadow.reported.as_ref());
    let mut choices = Vec::new();
    if let Some(held) = reported {
        numbers(held.document.view(), &mut String::new(), &mut choices);
    }
    let mut fields: Vec<&str> = view.get_all("chart").take(SERIES).collect();
    if fields.is_empty() {
        fields.extend(most_changed(device, &choices));
    }
    if fields.is_empty() {
        return html! {};
    }
    let until = device.span.to.min(view.now);
    let series: Vec<(String, Points)> = fields
        .iter()
        .map(|field| {
            let points = points(device, State::Reported, field, reported);
            ((*field).to_owned(), points)
        })
        .collect();
    let desired = device.shown().and_then(|shadow| shadow.desired.as_ref());
    let wanted = points(device, State::Desired, fields[0], desired);
    let values = series.iter().flat_map(|(_, points)| points).chain(&wanted);
    let axis = Axis::of(values.map(|(_, value)| *value));
    html! {
        section.panel #chart {
            header {
                h2 { "Chart" }
                form.push method="get" action="/device" {
                    @for name in ["id", "name", "range", "tz", "time", "at"] {
                        @if let Some(value) = view.get(name) { input type="hidden" name=(name) value=(value); }
                    }
                    label.sr for="field" { "Field" }
                    select.field.mono #field name="chart" {
                        @for choice in &choices {
                            option value=(choice) selected[fields.first() == Some(&choice.as_str())] { (cut(choice)) }
                        }
                    }
                    " " button.btn.quiet.small { "Show" }
                }
            }
            @if view.get("view") == Some("table") { (table(view, &series)) }
            @else { (figure(view, device.span, until, axis, &series, &wanted, device)) }
        }
    }
}

/// Pointers of all numbers.
fn numbers(view: DocumentView<'_>, path: &mut String, found: &mut Vec<String>) {
    if view.kind() == Kind::Number && found.len() < CHOICES {
        found.push(path.clone());
    }
    for (index, child) in view.children().enumerate() {
        if found.len() == CHOICES {
            return;
        }
        let length = path.len();
        match view.kind() {
            Kind::Array => antumbra_shadow::pointer::push_index(path, index),
            _ => antumbra_shadow::pointer::push_key(path, &child.key()),
        }
        numbers(child, path, found);
        path.truncate(length);
    }
}

/// The number that changed most often; the first one if none did.
fn most_changed<'a>(device: &Device, choices: &'a [String]) -> Option<&'a str> {
    let changed = |field: &str| {
        let changes = device.changes.iter().take(SERIES * 100);
        let leaves = changes.flat_map(|change| &change.documents);
        let leaves = leaves.flat_map(|document| document.values.iter().flatten());
        leaves
            .filter(|leaf| inside(&leaf.pointer, field).is_some())
            .count()
    };
    let choices = choices
        .iter()
        .filter(|choice| !choice.ends_with("/timestamp"));
    let counted = choices.map(|choice| (changed(choice), choice));
    let best = counted.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, choice)| choice.as_str())
}

/// The rest of a path below a pointer.
fn inside<'a>(pointer: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(pointer)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn number_at(json: &str, rest: &str) -> Option<f64> {
    if rest.is_empty() {
        return json.parse().ok();
    }
    let document = Document::parse(&format!("{{\"v\":{json}}}")).ok()?;
    let found = document.pointer(&format!("/v{rest}"))?;
    found.as_number()?.parse().ok()
}

/// The values of a field over the span, oldest first.
fn points(device: &Device, state: State, field: &str, held: Option<&StoredDocument>) -> Points {
    let mut points = Points::new();
    let mut before = None;
    for change in &device.changes {
        let documents = change
            .documents
            .iter()
            .filter(|document| document.state == state);
        for leaf in documents.flat_map(|document| document.values.iter().flatten()) {
            let Some(rest) = inside(&leaf.pointer, field) else {
                continue;
            };
            if let Some(value) = leaf.new.as_ref().and_then(|json| number_at(json, rest)) {
                points.push((change.time, value));
            }
            before = leaf.old.as_ref().and_then(|json| number_at(json, rest));
        }
    }
    points.reverse();
    // A value that did not change in the span had it all along.
    if points.is_empty() && before.is_none() {
        let now = held.and_then(|held| held.document.pointer(field)?.as_number()?.parse().ok());
        before = now;
    }
    if let Some(value) = before {
        points.insert(0, (device.span.from, value));
    }
    points
}

fn figure(
    view: &View,
    span: Span,
    until: Timestamp,
    axis: Axis,
    series: &[(String, Points)],
    wanted: &Points,
    device: &Device,
) -> Markup {
    let at = device.past.as_ref().map_or(until, |(at, _)| *at);
    let class = |at: usize| if at == 0 { "series" } else { "series-set" };
    let line = |class: &str| html! { svg viewBox="0 0 20 8" aria-hidden="true" { path class=(class) d="M0 4H20" {} } };
    html! {
        figure.body.stack {
            div.plot {
                ol.y aria-hidden="true" { @for label in axis.labels() { li { (label) } } }
                svg viewBox="0 0 1000 200" preserveAspectRatio="none" role="img" aria-labelledby="chart-text" {
                    path.grid d="M0 0H1000M0 50H1000M0 100H1000M0 150H1000M0 200H1000" {}
                    @for (at, (_, points)) in series.iter().enumerate().rev() {
                        path class=(class(at)) d=(steps(span, axis, points, until)) {}
                    }
                    path.series-want d=(steps(span, axis, wanted, until)) {}
                    path.mark d={ "M" (format!("{:.1}", span.x(at))) " 0V200" } {}
                }
                ol.x aria-hidden="true" { @for tick in time_bar::ticks(view, span) { li { (tick) } } }
            }
            figcaption.legend {
                @for (at, (field, _)) in series.iter().enumerate() { span { (line(class(at))) bdi { (cut(field)) } } }
                @if !wanted.is_empty() { span { (line("series-want")) "desired" } }
                span.sr #chart-text { (sentence(view, series)) }
                a.push href=(view.with(&[("view", "table")])) { "as table" }
            }
        }
    }
}

/// The chart in words.
fn sentence(view: &View, series: &[(String, Points)]) -> String {
    let one = |(field, points): &(String, Points)| {
        let values = points.iter().map(|(_, value)| *value);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match points.last() {
            Some((time, last)) => format!(
                "{}: {} values, {low} to {high}, the last {last} at {}.",
                cut(field),
                number(points.len() as i64),
                view.exact_text(*time)
            ),
            None => format!("{}: no values.", cut(field)),
        }
    };
    series.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn table(view: &View, series: &[(String, Points)]) -> Markup {
    html! {
        @for (field, points) in series {
            table {
                thead { tr { th { "Time" } th.num { bdi { (cut(field)) } } } }
                tbody { @for (time, value) in points.iter().rev().take(TABLE) {
                    tr { td { (view.at(*time)) } td.num { (value) } }
                } }
            }
        }
        footer { a.push href=(view.with(&[("view", "")])) { "as chart" } }
    }
}
