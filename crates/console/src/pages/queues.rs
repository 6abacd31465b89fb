//! `/queues`: failed messages by reason, and their redrive.
//!
//! The page counts messages; it reads them on request only, because reading hides them for a moment. A redrive shows what
//! it would do before it does it, and is the one of `antumbra queues redrive`.

mod messages;
mod model;
mod redrive;

use std::sync::Arc;

use antumbra_http_api::{QueueName, RedriveRequest};
use antumbra_service::api::FailedQueue;
use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{cmd, command, counted, empty, error_note, live_state, number};
use crate::live::Parts;
use crate::state::Console;
use crate::view::{Nav, View};
use messages::contents_of;
use model::{Counts, Model, model, oldest_read, recent_counts};

pub(super) use model::quarantined;
pub(crate) use model::{CountsCache, OldestRead};
use redrive::failure;

pub(crate) const PATH: &str = "/queues";
const REDRIVE: &str = "/queues/redrive";

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(REDRIVE, post(redrive::redrive))
}

/// Selection of messages to redrive.
#[derive(Debug, Clone, Default, Deserialize)]
struct Asked {
    #[serde(default)]
    queue: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    /// Queue for messages of unknown source: `inbound`, `signals` or nothing.
    #[serde(default)]
    to: String,
    /// Delete failed MQTT requests.
    #[serde(default)]
    drop: String,
}

impl Asked {
    fn read(view: &View) -> Asked {
        let get = |name: &str| view.get(name).unwrap_or_default().to_owned();
        Asked {
            queue: get("queue"),
            reason: get("reason"),
            message: get("message"),
            to: get("to"),
            drop: get("drop"),
        }
    }

    fn queue(&self) -> QueueName {
        let mut all = QueueName::ALL.into_iter();
        let found = all.find(|name| name.as_str() == self.queue);
        found.unwrap_or(QueueName::Undeliverable)
    }

    fn request(&self, console: &Console) -> RedriveRequest {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let urls = &console.services.failed_messages.urls;
        RedriveRequest {
            only: some(&self.message),
            reason: some(&self.reason),
            to: match self.to.as_str() {
                "inbound" => Some(urls.inbound.clone()),
                "signals" => Some(urls.signals.clone()),
                _ => None,
            },
            drop_requests: !self.drop.is_empty(),
            ..RedriveRequest::default()
        }
    }
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    let model = model(&view, asked).await;
    view.page(Nav::Queues, "Queues", &render(&view, &model))
}

fn messages(count: usize) -> String {
    counted(count, "message", "messages")
}

fn title(name: &str) -> &'static str {
    match name {
        "undeliverable" => "Undeliverable",
        "quarantine" => "Quarantine",
        _ => "Dead letters",
    }
}

fn meaning(name: QueueName) -> &'static str {
    match name {
        QueueName::Undeliverable => {
            "Notifications that could not be sent to their target, and records that were given up."
        }
        QueueName::Quarantine => {
            "Messages that could not be processed. They can go back to their queue once the reason is gone."
        }
        QueueName::DeadLetters => "Webhook deliveries after their last attempt.",
    }
}

/// Names of the SQS queues of a name.
fn sqs_names(view: &View, name: QueueName) -> Vec<String> {
    let urls = view
        .console
        .services
        .failed_messages
        .urls_of(name)
        .into_iter();
    let names = urls.map(|url| url.rsplit('/').next().unwrap_or(url).to_owned());
    names.collect()
}

/// The parts of the page that change: counts. Messages are never read for them.
pub(crate) async fn parts(view: &View) -> Parts {
    let counts = recent_counts(view).await;
    let selected = Asked::read(view).queue();
    let mut parts = vec![("counts", counts_part(view, &counts, selected))];
    if !is_read(view) {
        parts.push(("contents", unread(view, &counts, selected)));
    }
    parts
}

/// Returns whether the messages are read, as the URL asks for.
fn is_read(view: &View) -> bool {
    view.get("read").or(view.get("plan")).is_some()
}

fn counts_part(view: &View, counts: &Counts, selected: QueueName) -> Markup {
    html! {
        div.stack #counts data-part {
            @match &counts.queues {
                Err(error) => (error_note("The queues cannot be counted.", error, view)),
                Ok(queues) => (tiles(view, queues, selected)),
            }
        }
    }
}

fn render(view: &View, model: &Model) -> Markup {
    let selected = model.asked.queue();
    html! {
        div.head {
            h1 { "Queues" }
            span.mute { "Messages that need a decision. Counts are SQS estimates" }
            span.push.soft {
                (live_state("Counted every 5 s")) ", "
                @if is_read(view) { "read " (view.ago(view.now)) ", " a href=(view.with(&[])) { "read again" } }
                @else { a href=(view.with(&[])) { "count again" } }
            }
        }
        div.stack data-events=[view.events(PATH, &[])] {
            (counts_part(view, &model.counts, selected))
            @if let Some(failed) = &model.failed { (failure(view, &model.asked, failed)) }
            @match &model.contents {
                None => (unread(view, &model.counts, selected)),
                Some(Err(error)) => (error_note("The messages cannot be read.", error, view)),
                Some(Ok(contents)) => (contents_of(view, model, contents)),
            }
            @for name in sqs_names(view, selected) {
                (cmd(&command(view, &format!("queues redrive {name} --go"))))
            }
        }
    }
}

fn tiles(view: &View, counts: &[FailedQueue], selected: QueueName) -> Markup {
    html! {
        nav.tiles aria-label="Queues" {
            @for name in QueueName::ALL {
                @let count = counts.iter().find(|queue| queue.name == name.as_str());
                @let (visible, hidden) = count.map_or((0, 0), |queue| (queue.messages, queue.hidden));
                @let total = visible + hidden;
                a.tile href=(view.href(PATH, &[("queue", name.as_str())])) aria-current=[(name == selected).then_some("page")] {
                    span { (title(name.as_str())) }
                    b class=(if total > 0 { "bad" } else { "zero" }) { (number(total)) }
                    span {
                        @if total == 0 { "empty" }
                        @else if let Some((oldest, read)) = oldest_read(view, name) {
                            span title={ "Of the messages that were read at " (view.exact_text(read)) } { "oldest " (view.ago(oldest)) }
                        }
                        @else if hidden > 0 { (number(hidden)) " being read or moved" }
                        @else { "waiting for a decision" }
                    }
                    code { (sqs_names(view, name).join(", ")) }
                }
            }
        }
    }
}

fn unread(view: &View, counts: &Counts, selected: QueueName) -> Markup {
    let counts = counts.queues.as_ref().ok();
    let count =
        counts.and_then(|counts| counts.iter().find(|queue| queue.name == selected.as_str()));
    let is_empty = count.is_some_and(|queue| queue.messages + queue.hidden == 0);
    html! {
        section.panel #contents data-part {
            header { h2 { (title(selected.as_str())) } span.mute { (meaning(selected)) } }
            @if is_empty {
                (empty("The queue is empty", &html! { p { "Nothing needs a decision here." } }))
            } @else {
                (empty("The messages were not read", &html! {
                    p { "Reading hides messages from other readers for a moment, so it happens only when you ask for it." }
                    p { a class="btn primary" href=(view.href(PATH, &[("queue", selected.as_str()), ("read", "1")])) { "Read the messages" } }
                }))
            }
        }
    }
}

/// A link to the messages of a queue, as they were read.
fn link(view: &View, queue: QueueName, parameters: &[(&str, &str)]) -> String {
    let own = [("queue", queue.as_str()), ("read", "1")];
    view.href(PATH, &[&own[..], parameters].concat())
}
