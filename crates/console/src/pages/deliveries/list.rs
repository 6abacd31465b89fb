//! The deliveries of a client or about a sensor, and their filter.

use antumbra_service::deliveries::{Attempt, DeliveryRecord, Status};
use antumbra_service::sensors::EventType;
use maud::{Markup, html};

use super::PATH;
use super::model::Model;
use crate::components::{Tone, badge, cut, cut_at, empty, error_note};
use crate::view::View;

pub(super) fn filter(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let known = model
        .clients
        .iter()
        .any(|row| row.client.id.as_str() == asked.client);
    let statuses = [
        ("", "All"),
        ("delivered", "Delivered"),
        ("failed", "Failed"),
        ("dead", "Dead"),
        ("held", "Held"),
    ];
    html! {
        form.filter method="get" action=(PATH) {
            (view.kept(&["tz", "time", "clients", "status"]))
            label { "Client "
                select.field name="client" {
                    option value="" selected[asked.client.is_empty()] { "of the sensor" }
                    @if !known && !asked.client.is_empty() { option value=(asked.client) selected { (cut(&asked.client)) } }
                    @for row in &model.clients {
                        @let id = row.client.id.as_str();
                        option value=(id) selected[asked.client == id] { (id) }
                    }
                }
            }
            label { "Sensor "
                input class="field mono" name="sensor" size="12" placeholder="any" spellcheck="false" autocomplete="off"
                    value=(asked.sensor) aria-keyshortcuts="/";
            }
            nav.seg aria-label="Status" {
                @for (value, word) in statuses {
                    a href=(asked.href(view, &[("status", value), ("cursor", "")])) aria-current=[(asked.status == value).then_some("true")] { (word) }
                }
            }
            button.btn { "Filter" }
            @if !asked.client.is_empty() {
                span.push { a.btn href=(asked.href(view, &[("since", "-1h"), ("cursor", "")])) { "Redeliver all since…" } }
            }
        }
    }
}

/// An event with its values, such as `state.changed 0 to 1`.
pub(in crate::pages) fn event(kind: EventType, data: &serde_json::value::RawValue) -> Markup {
    let data: serde_json::Value = serde_json::from_str(data.get()).unwrap_or_default();
    html! {
        (kind)
        @if kind == EventType::StateChanged {
            " " bdi { (cut_at(&data["previous"].to_string(), 40)) } " to " bdi { (cut_at(&data["current"].to_string(), 40)) }
        }
    }
}

pub(super) fn status_badge(record: &DeliveryRecord) -> Markup {
    let begun = record.progress.begun;
    match record.status {
        Status::Delivered => badge(Tone::Ok, "delivered"),
        Status::Failed => badge(Tone::Warn, format!("failed, {begun}")),
        Status::Dead => badge(Tone::Bad, format!("dead, {begun}")),
        Status::Held => badge(Tone::Warn, "held"),
        status => badge(Tone::Plain, status),
    }
}

/// The result of the last attempt, or the reason why no attempt was made.
fn last_attempt(record: &DeliveryRecord, is_circuit_open: bool) -> String {
    match (record.attempts.last(), record.status) {
        (_, Status::Skipped) => "client or link was removed".to_owned(),
        (_, Status::Superseded) => "a newer event replaced it".to_owned(),
        (Some(attempt), _) => {
            let result = match (attempt.status, &attempt.error) {
                (Some(status), _) => format!("{status} in {}", latency(attempt.latency_ms)),
                (None, Some(_)) if is_interrupted(attempt) => "interrupted".to_owned(),
                (None, Some(error)) => cut_at(error, 100).into_owned(),
                (None, None) => latency(attempt.latency_ms),
            };
            match attempt.number {
                ..=1 => result,
                number => format!("{result}, {}", ordinal(number)),
            }
        }
        (None, Status::Held) => "the client is disabled".to_owned(),
        (None, Status::Pending) if is_circuit_open => "circuit is open".to_owned(),
        (None, _) => "none yet".to_owned(),
    }
}

/// Returns whether no result of an attempt was recorded.
pub(super) fn is_interrupted(attempt: &Attempt) -> bool {
    let error = attempt.error.as_deref();
    error.is_some_and(|error| error.starts_with("interrupted"))
}

/// `1st`, `2nd`, `3rd`, `4th`.
fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

pub(super) fn latency(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1000.0),
    }
}

pub(super) fn deliveries(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let page = match &model.list {
        Ok(page) => page,
        Err(error) => {
            let error = error_note("The deliveries cannot be listed.", error, view);
            return html! { div #deliveries data-part { (error) } };
        }
    };
    let is_circuit_open = model.is_circuit_open(view.now);
    html! {
        section.panel #deliveries data-part="deliveries" {
            header {
                h2 {
                    @match (asked.client.as_str(), asked.sensor.as_str()) {
                        ("", sensor) => { "Deliveries about " bdi { (cut(sensor)) } }
                        (client, _) => { "Deliveries to " bdi { (cut(client)) } }
                    }
                }
                @if !asked.status.is_empty() { span.mute { (cut(&asked.status)) } }
            }
            @if page.rows.is_empty() {
                (empty("No deliveries", &html! {
                    p {
                        @if page.next.is_some() { "None of those that were read; there are older ones." }
                        @else if asked.status.is_empty() && asked.sensor.is_empty() { "An event of a sensor that the client is linked to becomes a delivery. " "Send a test to try the endpoint." }
                        @else { "None matches the filter." }
                    }
                    @if !asked.status.is_empty() || !asked.sensor.is_empty() {
                        p { a class="btn quiet" href=(view.href(PATH, &[("client", &asked.client)])) { "Clear filter" } }
                    }
                }))
            } @else {
                table.fixed {
                    colgroup { col class="w6"; col; col class="w6 p1"; col class="w6"; col class="w11 p1"; }
                    thead { tr { th { "Occurred" } th { "Event" } th class="p1" { "Sensor" } th { "Status" } th class="p1" { "Last attempt" } } }
                    tbody {
                        @for record in &page.rows {
                            @let id = record.delivery.id.to_string();
                            @let sensor = record.delivery.sensor.as_ref().map_or("", |sensor| sensor.id.as_str());
                            @let last = last_attempt(record, is_circuit_open);
                            tr id={ "d-" (id) } data-row aria-current=[(asked.delivery == id).then_some("true")] {
                                td.soft { a href=(asked.href(view, &[("delivery", &id)])) { (view.at(record.delivery.occurred_at)) } }
                                td.mono {
                                    (event(record.delivery.event_type, &record.delivery.data))
                                    span.sub.only-narrow { bdi { (cut(sensor)) } @if !sensor.is_empty() { ", " } bdi { (last) } }
                                }
                                td class="p1 mono soft" { bdi { (cut(sensor)) } }
                                td { (status_badge(record)) }
                                td class="p1 soft" title=(last) { bdi { (last) } }
                            }
                        }
                    }
                }
            }
            footer {
                span { "Kept for 30 days" }
                @if let Some(next) = &page.next { a class="btn small push" href=(asked.href(view, &[("cursor", &next.0)])) { "Older" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_have_their_endings() {
        let numbers = [1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111];
        let words = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "101st", "111th",
        ];
        assert_eq!(numbers.map(ordinal), words.map(str::to_owned));
    }
}
