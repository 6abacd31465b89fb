//! The table of clients: their last attempts and their circuits.

use antumbra_service::clients::{Client, ClientState};
use antumbra_service::deliveries::Attempt;
use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use super::attempts::HELD;
use super::model::{Model, PLANNED};
use super::{Asked, ENABLE, PATH, TEST};
use crate::components::{Tone, badge, csrf, cut, cut_at, note, number, write_button};
use crate::time;
use crate::view::View;

/// Characters of a client's name in the table; its title has more.
const NAME_CHARS: usize = 60;

/// The circuit of a client in words.
pub(super) struct CircuitState {
    pub(super) is_bad: bool,
    pub(super) html: Markup,
}

pub(super) fn circuit(client: &Client, now: Timestamp) -> CircuitState {
    let failures = client.circuit.failures;
    let html = |html| CircuitState {
        is_bad: false,
        html,
    };
    if let ClientState::Disabled { reason, .. } = &client.state {
        return CircuitState {
            is_bad: true,
            html: html! { (badge(Tone::Bad, "disabled")) " " span.soft { bdi { (cut(reason)) } } },
        };
    }
    match client.circuit.open_until {
        Some(until) if until > now => {
            let wait = time::duration(until.nanoseconds() - now.nanoseconds());
            CircuitState {
                is_bad: true,
                html: html! { span.dot.bad { "open" } " " span.soft data-aging { "probe in " (wait) } },
            }
        }
        Some(_) => {
            html(html! { span.dot.warn { "probing" } " " span.soft { (failures) " failures" } })
        }
        None if failures > 0 => {
            html(html! { span.dot.ok { "closed" } " " span.soft { (failures) " failures" } })
        }
        None => html(html! { span.dot.ok { "closed" } }),
    }
}

pub(super) fn ask_enable(view: &View, asked: &Asked, held: usize) -> Markup {
    let actions = html! {
        form.line method="post" action=(ENABLE) {
            (csrf(view))
            input type="hidden" name="client" value=(asked.client);
            (write_button(view, "primary small", &format!("Enable, release {}", number(held as i64))))
            a.btn.small href=(asked.href(view, &[])) { "Cancel" }
        }
    };
    let detail = html! {
        (number(held as i64)) @if held >= PLANNED { " or more" }
        " held deliveries would be queued, oldest first. Nothing has been changed yet."
    };
    note(
        Tone::Info,
        &format!("Enable {}?", asked.client),
        &detail,
        &actions,
    )
}

pub(super) fn clients(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    html! {
        section.panel #clients data-part="clients" {
            header { h2 { "Clients" } span.mute { (model.clients.len()) @if model.next_clients.is_some() { " of more" } } }
            table.fixed {
                colgroup {
                    col; col class="w11 p2"; col class="w4 p1"; col class="w8"; col class="wc"; col class="w6 p1"; col class="w8 p1";
                }
                thead { tr {
                    th { "Client" } th class="p2" { "URL" } th class="p1" { "Mode" } th { "Last 20 attempts" }
                    th { "Circuit" } th class="p1" { "Last success" } th class="p1" { span.sr { "Actions" } }
                } }
                tbody {
                    @for row in &model.clients {
                        @let client = &row.client;
                        @let id = client.id.as_str();
                        tr id={ "c-" (id) } data-row aria-current=[(asked.client == id).then_some("true")] {
                            td title=(cut(&client.name)) {
                                a href=(view.href(PATH, &[("clients", &asked.clients_cursor), ("client", id)])) { bdi { (cut_at(&client.name, NAME_CHARS)) } }
                                " " span class="mute mono p1" { bdi { (cut(id)) } }
                            }
                            td class="p2 mono soft" title=(cut_at(&client.url, 500)) { bdi { (cut(&client.url)) } }
                            td class="p1 soft" { (client.mode) }
                            td { (bars(&row.attempts.attempts)) }
                            td { (circuit(client, view.now).html) }
                            td class="p1 soft" { @match row.attempts.last_success { Some(time) => (view.ago(time)), None => span.mute { "none" } } }
                            td class="p1 right" { (client_action(view, asked, client, row.attempts.held)) }
                        }
                    }
                }
            }
            @if let Some(next) = &model.next_clients {
                footer { a class="btn small push" href=(view.href(PATH, &[("clients", &next.0)])) { "Next clients" } }
            }
        }
    }
}

fn client_action(view: &View, asked: &Asked, client: &Client, held: usize) -> Markup {
    let id = client.id.as_str();
    match client.state {
        ClientState::Disabled { .. } => {
            let href = view.href(
                PATH,
                &[
                    ("clients", &asked.clients_cursor),
                    ("client", id),
                    ("enable", "1"),
                ],
            );
            html! {
                a.btn.small href=(href) {
                    "Enable"
                    @if held > 0 { ", release " (number(held as i64)) @if held >= HELD { " or more" } " held" }
                    "…"
                }
            }
        }
        ClientState::Enabled => html! {
            form method="post" action=(TEST) {
                (csrf(view))
                input type="hidden" name="client" value=(id);
                (write_button(view, "small quiet", "Send test"))
            }
        },
    }
}

/// Returns whether the endpoint accepted a delivery.
pub(super) fn succeeded(attempt: &Attempt) -> bool {
    attempt.error.is_none() && matches!(attempt.status, Some(200..300))
}

/// The last attempts of a client, oldest first: half-height bars for successes, full ones for failures.
pub(super) fn bars(attempts: &[Attempt]) -> Markup {
    if attempts.is_empty() {
        return html! { span.mute { "none" } };
    }
    let failed = attempts
        .iter()
        .filter(|attempt| !succeeded(attempt))
        .count();
    let label = format!(
        "Last {} attempts, oldest first: {} succeeded, {failed} failed",
        attempts.len(),
        attempts.len() - failed
    );
    html! {
        svg.ticks viewBox="0 0 100 14" role="img" aria-label=(label) {
            @for (at, attempt) in attempts.iter().enumerate() {
                @if !succeeded(attempt) { rect.n x=(5 * at) y="0" width="3" height="14" {} }
                @else { rect.y x=(5 * at) y="7" width="3" height="7" {} }
            }
        }
    }
}
