//! One sensor: its state, its readings and its occurrences.

use antumbra_service::deliveries::{DeliveryRecord, Status};
use antumbra_service::sensors::{Connection, EventType};
use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use super::chart::Chart;
use super::here;
use super::model::{DAY, Selected};
use super::table::silence;
use crate::components::{Tone, badge, command, cut, cut_at, error_note, number, quoted};
use crate::pages::deliveries::event;
use crate::time;
use crate::view::{Failure, View};

/// Readings of the table.
const TABLE_READINGS: usize = 200;
const OCCURRENCES: usize = 12;

pub(super) fn inspector(view: &View, selected: &Result<Selected, Failure>) -> Markup {
    let id = view.get("id").unwrap_or_default();
    let close = here(view, &[("id", "")]);
    let close =
        html! { span.push { a class="btn small quiet" href=(close) data-close { "Close" } } };
    let selected = match selected {
        Ok(selected) => selected,
        Err(error) => {
            return html! {
                aside.panel #sensor data-part aria-label="Sensor" {
                    header { h2.mono { bdi { (cut(id)) } } (close) }
                    div.body { (error_note("The sensor cannot be shown.", error, view)) }
                }
            };
        }
    };
    let (state, sensor) = (&selected.state, &selected.sensor.sensor);
    let tone = match state.connection {
        Connection::Lost => Tone::Bad,
        Connection::Online => Tone::Ok,
        Connection::Never => Tone::Warn,
    };
    html! {
        aside.panel #sensor data-part aria-label={ "Sensor " (cut(id)) } {
            header { h2.mono { bdi { (cut(id)) } } (badge(tone, state.connection)) (close) }
            div.body { dl.kv {
                dt { "Place" }
                dd {
                    @match &sensor.location { Some(location) => bdi { (cut_at(&location.to_string(), 400)) }, None => { "none" } }
                    @if !sensor.address.as_str().is_empty() { ", " bdi { (cut(sensor.address.as_str())) } }
                }
                dt { "Type" } dd { bdi { (cut(sensor.sensor_type.as_str())) } }
                dt { "Last state" }
                dd {
                    @match &state.value { Some(value) => bdi.val { (cut(&value.to_string())) }, None => { "none" } }
                    @if let Some(since) = state.since { " since " (view.at(since)) }
                }
                dt { "Last seen" }
                dd { @match state.last_seen { Some(seen) => { (view.at(seen)) ", " (time::age(view.now, seen)) } None => { "never" } } }
                dt { "Silence" } dd { (silence(view, state)) }
                @if let Some(lost) = state.lost_at {
                    @let late = (lost.nanoseconds() - state.deadline.nanoseconds()).max(0);
                    dt { "Lost at" }
                    dd { (view.at(lost)) ", after " (number(state.silence_after.as_seconds())) " s of silence, found " (time::duration(late)) " later" }
                }
                dt { "Clients" }
                dd {
                    @for (at, link) in selected.links.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href=(view.href("/deliveries", &[("client", link.client.as_str()), ("sensor", id)])) { (link.client) }
                    }
                    @if selected.links.is_empty() { "none linked" }
                }
            } }
            (readings(view, selected))
            (occurrences(view, selected))
        }
    }
}

fn readings(view: &View, selected: &Selected) -> Markup {
    let as_table = view.get("view") == Some("table");
    let id = selected.sensor.sensor.id.as_str();
    let silence = i128::from(selected.state.silence_after.as_seconds()) * 1_000_000_000;
    let chart = Chart {
        sensor: id,
        readings: &selected.readings,
        from: Timestamp::from_nanoseconds(view.now.nanoseconds() - DAY.as_nanos() as i128),
        to: view.now,
        silence,
    };
    html! {
        figure class="body stack" {
            div.line {
                h3 { "Readings, 24 h" }
                span.when {
                    @if as_table { a href=(here(view, &[("id", id)])) { "as chart" } }
                    @else { a href=(here(view, &[("id", id), ("view", "table")])) { "as table" } }
                }
            }
            @if as_table {
                table {
                    thead { tr { th { "Time" } th { "Value" } th { "Unit" } } }
                    tbody {
                        @for reading in selected.readings.iter().rev().take(TABLE_READINGS) {
                            tr {
                                td.soft { (view.at(reading.moment.time())) }
                                td.val { bdi { (cut(&reading.value.to_string())) } }
                                td.soft { @if let Some(unit) = &reading.unit { bdi { (cut(unit.as_str())) } } }
                            }
                        }
                    }
                }
                @if selected.readings.len() > TABLE_READINGS { p.mute { "The newest " (TABLE_READINGS) " of " (number(selected.readings.len() as i64)) "." } }
            } @else { (chart.render(view)) }
            @if selected.has_more_readings { p.mute { "Only the first " (number(selected.readings.len() as i64)) " readings were read." } }
        }
    }
}

/// An event of a sensor, and its deliveries.
struct Occurrence<'m> {
    record: &'m DeliveryRecord,
    delivered: usize,
    of: usize,
}

/// The events of a sensor, newest first, from the deliveries about it.
fn occurrences_of(deliveries: &[DeliveryRecord]) -> Vec<Occurrence<'_>> {
    let mut all: Vec<Occurrence<'_>> = Vec::new();
    for record in deliveries {
        let event = |record: &DeliveryRecord| {
            let generation = record
                .delivery
                .sensor
                .as_ref()
                .map(|sensor| sensor.generation.clone());
            (generation, record.delivery.sequence)
        };
        let delivered = usize::from(record.status == Status::Delivered);
        match all
            .iter_mut()
            .find(|one| event(one.record) == event(record))
        {
            Some(one) => {
                one.delivered += delivered;
                one.of += 1;
            }
            None => all.push(Occurrence {
                record,
                delivered,
                of: 1,
            }),
        }
    }
    all
}

fn occurrences(view: &View, selected: &Selected) -> Markup {
    let id = selected.sensor.sensor.id.as_str();
    let all = occurrences_of(&selected.deliveries);
    if all.is_empty() {
        return html! {
            div.body { p.mute {
                "No occurrences. "
                @if selected.links.is_empty() { "Events are recorded for linked clients: " code { (command(view, &format!("clients link CLIENT {}", quoted(id)))) } }
            } }
        };
    }
    html! {
        table {
            caption.sr { "Occurrences" }
            thead { tr { th.num { "Seq" } th { "Event" } th { "Time" } th { "Delivered" } } }
            tbody {
                @for one in all.iter().take(OCCURRENCES) {
                    @let delivery = &one.record.delivery;
                    tr {
                        td.num.mute { (number(delivery.sequence)) }
                        td class={ "mono " (tone(delivery.event_type)) } { (event(delivery.event_type, &delivery.data)) }
                        td.soft { (view.at(delivery.occurred_at)) }
                        td { a href=(view.href("/deliveries", &[("sensor", id)])) { (one.delivered) " of " (one.of) } }
                    }
                }
            }
        }
    }
}

fn tone(event: EventType) -> &'static str {
    match event {
        EventType::ConnectionLost | EventType::ConnectionNeverSeen => "bad",
        EventType::ConnectionRestored => "ok",
        EventType::StateChanged | EventType::ClientTest => "",
    }
}
