//! The redrive: its dry run, the write, and its failures.

use antumbra_service::api::{FailedMessage, RedriveResult, RedriveResults};
use antumbra_service::redrive::QueueError;
use axum::extract::Form;
use axum::response::Response;
use maud::{Markup, html};

use super::model::model;
use super::{Asked, PATH, REDRIVE, link, messages, render};
use crate::components::{Tone, badge, csrf, cut, error_note, note, number, size, write_button};
use crate::json;
use crate::view::{Nav, View};

pub(super) async fn redrive(view: View, Form(asked): Form<Asked>) -> Response {
    let failed_messages = &view.console.services.failed_messages;
    let request = asked.request(&view.console);
    let done = failed_messages.redrive(asked.queue(), request).await;
    let failed = |done: &RedriveResults| done.results.iter().any(|row| row.error.is_some());
    match done {
        Ok(done) if !failed(&done) && !done.results.is_empty() => {
            let of = |outcome: &str| count_of(&done, outcome);
            let (moved, deleted, left) = (of("moved"), of("deleted"), of("left"));
            let message = html! {
                span {
                    b.ok { "Redriven: " } (messages(moved)) " moved"
                    @if deleted > 0 { ", " (messages(deleted)) " deleted" }
                    @if left > 0 { ", " (messages(left)) " left" }
                    @if done.has_more { ". There are more: redrive again" }
                }
            };
            let href = view.href(PATH, &[("queue", asked.queue().as_str()), ("read", "1")]);
            view.redirect(&href, message)
        }
        done => {
            let mut model = model(&view, asked).await;
            model.failed = Some(done);
            view.page(Nav::Queues, "Queues", &render(&view, &model))
        }
    }
}

fn count_of(results: &RedriveResults, outcome: &str) -> usize {
    let rows = results.results.iter().filter(|row| row.outcome == outcome);
    rows.map(|row| row.count).sum()
}

pub(super) fn failure(
    view: &View,
    asked: &Asked,
    failed: &Result<RedriveResults, QueueError>,
) -> Markup {
    let done = match failed {
        Err(error) => return error_note("The redrive stopped.", error, view),
        Ok(done) => done,
    };
    let moved = count_of(done, "moved") + count_of(done, "deleted");
    let failed: Vec<&RedriveResult> = done
        .results
        .iter()
        .filter(|row| row.error.is_some())
        .collect();
    let count: usize = failed.iter().map(|row| row.count).sum();
    let title = match failed.is_empty() {
        true => "Nothing was moved: no such message could be received.".to_owned(),
        false => format!(
            "{} moved, {} could not be moved and stay.",
            messages(moved),
            messages(count)
        ),
    };
    let detail = html! {
        @for row in failed.iter().take(10) {
            (row.count) " " bdi { (cut(&row.reason)) } ", " bdi { (cut(&row.route)) } ": "
            bdi { (cut(row.error.as_deref().unwrap_or_default())) } br;
        }
        @if failed.is_empty() { "Another redrive may have moved it, or it is hidden for a moment." }
    };
    let again = link(
        view,
        asked.queue(),
        &[("reason", &asked.reason), ("plan", "1")],
    );
    let again = html! { a.btn.small href=(again) { "Try again…" } };
    note(Tone::Bad, &title, &detail, &again)
}

/// The fields of a redrive, for a form.
fn fields(asked: &Asked, names: &[&str]) -> Markup {
    let all = [
        ("queue", asked.queue().as_str()),
        ("reason", &asked.reason),
        ("message", &asked.message),
        ("to", &asked.to),
        ("drop", &asked.drop),
    ];
    html! {
        @for (name, value) in all {
            @if names.contains(&name) && !value.is_empty() { input type="hidden" name=(name) value=(value); }
        }
    }
}

pub(super) fn dry_run(
    view: &View,
    asked: &Asked,
    plan: &RedriveResults,
    first: Option<&FailedMessage>,
) -> Markup {
    let planned = count_of(plan, "planned") + count_of(plan, "deleted");
    let total: usize = plan.results.iter().map(|row| row.count).sum();
    html! {
        aside.panel aria-label="Redrive" {
            header { h2 { "Redrive " (messages(total)) } (badge(Tone::Info, "dry run")) }
            div.body.stack {
                p.soft { "Nothing has been moved yet. This is what would happen:" }
                table {
                    thead { tr { th.num { "Count" } th { "Outcome" } } }
                    tbody {
                        @for row in plan.results.iter().take(50) {
                            tr {
                                td.num { (number(row.count as i64)) }
                                @match row.outcome {
                                    "planned" => td { "moved " bdi { (cut(&row.route)) } " " span.mute { bdi { (cut(&row.reason)) } } },
                                    "deleted" => td.warn { "deleted: " bdi { (cut(&row.route)) } " " span.mute { bdi { (cut(&row.reason)) } } },
                                    _ => td.warn { "left: " bdi { (cut(&row.route)) } " " span.mute { bdi { (cut(&row.reason)) } } },
                                }
                            }
                        }
                    }
                }
                @if plan.has_more { p.soft { "The queue may hold others, which would be moved too, up to 1,000." } }
                @if planned < total || !asked.to.is_empty() || !asked.drop.is_empty() { form.filter method="get" action=(PATH) {
                    (fields(asked, &["queue", "reason", "message"]))
                    input type="hidden" name="read" value="1";
                    input type="hidden" name="plan" value="1";
                    label { "Messages of unknown source go to "
                        select.field name="to" {
                            @for (value, word) in [("", "nowhere"), ("inbound", "inbound queue"), ("signals", "signals queue")] {
                                option value=(value) selected[asked.to == value] { (word) }
                            }
                        }
                    }
                    label { input type="checkbox" name="drop" value="1" checked[!asked.drop.is_empty()]; "Delete failed MQTT requests" }
                    button.btn.small { "Plan again" }
                } }
                form.line method="post" action=(REDRIVE) {
                    (csrf(view))
                    (fields(asked, &["queue", "reason", "message", "to", "drop"]))
                    @if planned == 0 { button.btn disabled { "Nothing to redrive" } }
                    @else { (write_button(view, "primary", &format!("Redrive {}", messages(planned)))) }
                    " " a.btn href=(link(view, asked.queue(), &[("reason", &asked.reason)])) data-close { "Cancel" }
                }
            }
            @if let Some(first) = first {
                details.body open { summary { "Oldest message, " (size(first.body.len())) } (json::pretty(&first.body)) }
            }
        }
    }
}
