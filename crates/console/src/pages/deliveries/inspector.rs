//! Beside the list: one delivery with every attempt, or the dry run of a redelivery.

use antumbra_service::clients::Client;
use antumbra_service::deliveries::{Attempt, DeliveryRecord, Status, Waiting, body};
use maud::{Markup, html};

use super::clients::succeeded;
use super::list::{event, is_interrupted, latency, status_badge};
use super::model::{PLANNED, Plan, Selected};
use super::{Asked, PATH, REDELIVER, REDELIVER_SINCE};
use crate::components::{Tone, badge, csrf, cut, error_note, note, number, write_button};
use crate::json;
use crate::time;
use crate::view::{Failure, View};

fn next_attempt(view: &View, record: &DeliveryRecord, client: Option<&Client>) -> Markup {
    let progress = &record.progress;
    let open_until = client.and_then(|client| client.circuit.open_until);
    let times = [progress.not_before, open_until].into_iter().flatten();
    let next = times.max().filter(|time| *time > view.now);
    html! {
        @match (record.status, progress.waiting) {
            (Status::Delivered | Status::Dead | Status::Skipped | Status::Superseded, _) => { "none" }
            (_, Some(Waiting::Held)) => { "when the client is enabled" }
            (_, Some(Waiting::Behind)) => { "after the earlier deliveries of this sensor" }
            _ => {
                @match next {
                    Some(time) => {
                        b { (view.at(time)) } ", " span data-aging { (time::age(view.now, time)) }
                        @if next == open_until { ", as the circuit's probe" }
                    }
                    None => { "as soon as the queue is read" }
                }
            }
        }
    }
}

pub(super) fn inspector(
    view: &View,
    asked: &Asked,
    selected: &Result<Selected, Failure>,
) -> Markup {
    let Selected { record, client } = match selected {
        Ok(selected) => selected,
        Err(error) => {
            return html! {
                aside.panel #delivery data-part aria-label="Delivery" {
                    header { h2 { "Delivery" } span.push { a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } } }
                    div.body { (error_note("The delivery cannot be shown.", error, view)) }
                }
            };
        }
    };
    let delivery = &record.delivery;
    let sensor = delivery.sensor.as_ref().map(|sensor| sensor.id.as_str());
    html! {
        aside.panel #delivery data-part aria-label="Delivery" {
            header {
                h2 { (event(delivery.event_type, &delivery.data)) @if let Some(sensor) = sensor { ", " bdi { (cut(sensor)) } } }
                span.push { (status_badge(record)) " " a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } }
            }
            div.body.stack {
                dl.kv {
                    dt { "Id" } dd.mono { (delivery.id) }
                    dt { "Client" } dd.mono { (delivery.id.client()) }
                    dt { "Occurred" } dd { (view.at(delivery.occurred_at)) @if delivery.sequence > 0 { ", sequence " (number(delivery.sequence)) } }
                    dt { "Next attempt" } dd { (next_attempt(view, record, client.as_ref())) }
                }
                form.line method="post" action=(REDELIVER) {
                    (csrf(view))
                    input type="hidden" name="client" value=(delivery.id.client());
                    input type="hidden" name="delivery" value=(delivery.id);
                    (write_button(view, "primary", "Redeliver now"))
                    @if let Some(sensor) = sensor { " " a.btn href=(view.href("/sensors", &[("id", sensor)])) { "Open sensor" } }
                }
            }
            @if record.attempts.is_empty() { div.body { p.mute { "No attempt was made yet." } } }
            @else {
                table {
                    caption.sr { "Attempts" }
                    thead { tr { th.num { "#" } th { "Attempt" } th { "Result" } th.num { "Took" } } }
                    tbody {
                        @for attempt in record.attempts.iter().rev().take(100) {
                            tr {
                                td.num.mute { @if record.progress.round > 0 { (attempt.round + 1) "." } (attempt.number) }
                                td.soft { (view.at(attempt.at)) }
                                (attempt_result(attempt))
                                td.num.soft { @if is_interrupted(attempt) { "unknown" } @else { (latency(attempt.latency_ms)) } }
                            }
                        }
                    }
                }
            }
            details.body open { summary { "Request body" }
                @match client {
                    Some(client) => (json::pretty(&body(delivery, client))),
                    None => (json::pretty(delivery.data.get())),
                }
            }
        }
    }
}

fn attempt_result(attempt: &Attempt) -> Markup {
    if let (true, Some(error)) = (is_interrupted(attempt), &attempt.error) {
        return html! { td.warn title=(cut(error)) { "interrupted" } };
    }
    let class = match succeeded(attempt) {
        true => "ok",
        false => "bad",
    };
    let status = attempt.status.map(|status| status.to_string());
    let status = status.unwrap_or_default();
    let error = attempt.error.as_deref().unwrap_or_default();
    html! {
        td class=(class) {
            @if error.is_empty() || !error.contains(&status) { (status) @if !error.is_empty() { ", " } }
            @if !error.is_empty() { bdi { (cut(error)) } }
        }
    }
}

pub(super) fn dry_run(view: &View, asked: &Asked, plan: &Result<Plan, Failure>) -> Markup {
    let typed = html! {
        form.filter method="get" action=(PATH) {
            input type="hidden" name="client" value=(asked.client);
            label { "Since " input class="field mono" name="since" size="16" value=(asked.since) spellcheck="false" autocomplete="off"; }
            button.btn { "Plan" }
        }
    };
    html! {
        aside.panel aria-label="Redeliver since" {
            header {
                h2 { "Redeliver to " bdi { (cut(&asked.client)) } } (badge(Tone::Info, "dry run"))
                span.push { a class="btn small quiet" href=(asked.href(view, &[])) data-close { "Close" } }
            }
            div.body.stack {
                (typed)
                @match plan {
                    Err(error) => (note(Tone::Bad, "The time cannot be used.", &html! { bdi { (cut(&error.to_string())) } }, &html! {})),
                    Ok(plan) => {
                        @let queued: usize = plan.by_status.iter().filter(|(status, _)| *status != Status::Delivered).map(|(_, count)| count).sum();
                        p.soft { "Nothing has been queued yet. Of the events since " (view.at(plan.since)) ":" }
                        table {
                            thead { tr { th.num { "Count" } th { "Outcome" } } }
                            tbody {
                                @for (status, count) in &plan.by_status {
                                    tr {
                                        td.num { (number(*count as i64)) }
                                        @if *status == Status::Delivered { td.soft { "left: delivered" } }
                                        @else { td { (status) ", queued again" } }
                                    }
                                }
                                @if plan.by_status.is_empty() { tr { td.num { "0" } td.soft { "no events since then" } } }
                            }
                        }
                        @if plan.has_more { p.soft { "There are more than " (number(PLANNED as i64)) "; all of them would be queued." } }
                        form.line method="post" action=(REDELIVER_SINCE) {
                            (csrf(view))
                            input type="hidden" name="client" value=(asked.client);
                            input type="hidden" name="since" value=(plan.since);
                            @if queued == 0 { button.btn disabled { "Nothing to redeliver" } }
                            @else { (write_button(view, "primary", &format!("Redeliver {}", number(queued as i64)))) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use antumbra_shadow::Timestamp;

    use super::super::clients::bars;
    use super::*;

    #[test]
    fn a_response_that_is_no_success_is_a_failure() {
        let attempt = |status: Option<u16>, error: Option<&str>| Attempt {
            at: Timestamp::from_nanoseconds(0),
            round: 0,
            number: 1,
            status,
            latency_ms: 7,
            error: error.map(str::to_owned),
        };
        let attempts = [
            attempt(Some(204), None),
            attempt(Some(503), None),
            attempt(None, Some("connection refused")),
            attempt(None, Some("interrupted: no result was recorded")),
        ];
        let html = bars(&attempts).into_string();
        assert!(html.contains("1 succeeded, 3 failed"), "{html}");
        let result = |attempt: &Attempt| attempt_result(attempt).into_string();
        assert_eq!(result(&attempts[0]), "<td class=\"ok\">204</td>");
        assert_eq!(result(&attempts[1]), "<td class=\"bad\">503</td>");
        assert_eq!(
            result(&attempts[2]),
            "<td class=\"bad\"><bdi>connection refused</bdi></td>"
        );
        let title = "interrupted: no result was recorded";
        assert_eq!(
            result(&attempts[3]),
            format!("<td class=\"warn\" title=\"{title}\">interrupted</td>")
        );
    }
}
