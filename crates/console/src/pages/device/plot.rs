//! Charts of numeric fields.

use antumbra_service::history::RecordedChange;
use antumbra_service::shadows::{Shadow, StoredDocument};
use antumbra_shadow::{Document, Kind, Timestamp, View as DocumentView};
use maud::{Markup, html};

use super::recorded::Recorded;
use super::{Device, time_bar};
use crate::chart::{Axis, Points, Span, last_point, steps};
use crate::components::{cut, number};
use crate::view::View;

/// Fields in one chart.
pub(super) const SERIES: usize = 2;
/// Fields that can be chosen.
const CHOICES: usize = 100;
/// Values in the table.
const TABLE: usize = 200;

pub(super) fn panel(view: &View, device: &Device, recorded: &Recorded) -> Markup {
    let fields = &recorded.fields;
    let Some(first) = fields.first() else {
        return html! {};
    };
    let until = device.span.to.min(view.now);
    let shown = device.shown();
    let held = |held: Option<&StoredDocument>, field: &str| number_of(&held?.document, field);
    let reported = shown.and_then(|shadow| shadow.reported.as_ref());
    let desired = shown.and_then(|shadow| shadow.desired.as_ref());
    let series = fields.iter().enumerate();
    let series = series.map(|(line, field)| {
        let points = recorded.points(line, device.span, held(reported, field));
        (field.clone(), points)
    });
    let series: Vec<(String, Points)> = series.collect();
    let wanted = recorded.points(fields.len(), device.span, held(desired, first));
    let values = series.iter().flat_map(|(_, points)| points).chain(&wanted);
    let axis = Axis::of(values.map(|(_, value)| *value));
    html! {
        section.panel #chart {
            header {
                h2 { "Chart" }
                form.push method="get" action="/device" {
                    (view.kept(&["id", "name", "range", "tz", "time", "at"]))
                    label.sr for="field" { "Field" }
                    select.field.mono #field name="chart" {
                        @for choice in &recorded.choices {
                            option value=(choice) selected[first == choice] { (cut(choice)) }
                        }
                    }
                    " " button.btn.quiet.small { "Show" }
                    @if recorded.choices.len() > 1 {
                        // The field that is shown stays, as the second line.
                        " " button.btn.quiet.small name="chart" value=(first) { "Add field" }
                    }
                }
            }
            @if view.get("view") == Some("table") { (table(view, &series)) }
            @else { (figure(view, device.span, until, axis, &series, &wanted, device)) }
        }
    }
}

/// Pointers of the numbers that are reported.
pub(super) fn choices(shadow: &Shadow) -> Vec<String> {
    let mut choices = Vec::new();
    if let Some(held) = &shadow.reported {
        numbers(held.document.view(), &mut String::new(), &mut choices);
    }
    choices
}

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
pub(super) fn most_changed(changes: &[RecordedChange], choices: &[String]) -> Option<String> {
    let changed = |field: &str| {
        let documents = changes.iter().flat_map(|change| &change.documents);
        let leaves = documents.flat_map(|document| document.values.iter().flatten());
        leaves
            .filter(|leaf| inside(&leaf.pointer, field).is_some())
            .count()
    };
    let choices = choices
        .iter()
        .filter(|choice| !choice.ends_with("/timestamp"));
    let counted = choices.map(|choice| (changed(choice), choice));
    let best = counted.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, choice)| choice.clone())
}

/// The rest of a path below a pointer.
pub(super) fn inside<'a>(pointer: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(pointer)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The number at a pointer.
pub(super) fn number_of(document: &Document, pointer: &str) -> Option<f64> {
    document.pointer(pointer)?.as_number()?.parse().ok()
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
                    @if device.past.is_none() && let Some((_, points)) = series.first() {
                        path.point d=(last_point(span, axis, points, until)) {}
                    }
                }
                ol.x aria-hidden="true" { @for tick in time_bar::ticks(view, span) { li { (tick) } } }
            }
            figcaption.legend {
                @for (at, (field, _)) in series.iter().enumerate() {
                    span { (line(class(at))) bdi { (cut(field)) } @if let Some(unit) = unit(device, field) { ", " bdi { (cut(&unit)) } } }
                }
                @if !wanted.is_empty() { span { (line("series-want")) "desired" } }
                span.sr #chart-text { (sentence(view, series)) }
                a.push href=(view.with(&[("view", "table")])) { "as table" }
            }
        }
    }
}

/// The unit beside a value.
fn unit(device: &Device, field: &str) -> Option<String> {
    let held = device.shown()?.reported.as_ref()?;
    let beside = field.strip_suffix("/value")?;
    let unit = held.document.pointer(&format!("{beside}/unit"))?;
    unit.as_str().map(|unit| unit.into_owned())
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
