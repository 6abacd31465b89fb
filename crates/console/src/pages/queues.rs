//! `/queues`: failed messages by reason, and their redrive.
//!
//! The page counts messages; it reads them on request only, because reading hides them for a moment. A redrive shows what
//! it would do before it does it, and is the one of `antumbra queues redrive`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use antumbra_http_api::{QueueName, RedriveRequest};
use antumbra_service::api::{
    FailedMessage, FailedMessages, FailedQueue, RedriveResult, RedriveResults,
};
use antumbra_service::redrive::QueueError;
use antumbra_shadow::Timestamp;
use axum::Router;
use axum::extract::Form;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{
    Tone, badge, cmd, command, csrf, cut, cut_at, empty, error_note, note, number, size,
    write_button,
};
use crate::json;
use crate::state::Console;
use crate::view::{Nav, View};

const PATH: &str = "/queues";
const REDRIVE: &str = "/queues/redrive";
/// Messages that are read and planned at once.
const READ: usize = 1000;
/// Messages in the list.
const SHOWN: usize = 50;

pub(super) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route(PATH, get(show))
        .route(REDRIVE, post(redrive))
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

/// Everything that the page shows.
struct Model {
    asked: Asked,
    counts: Result<Vec<FailedQueue>, QueueError>,
    /// The messages, if they were asked for.
    contents: Option<Result<Contents, QueueError>>,
    /// The result of a redrive that failed in part.
    failed: Option<Result<RedriveResults, QueueError>>,
}

struct Contents {
    messages: FailedMessages,
    /// Dry run of a redrive, if that is asked for.
    plan: Option<RedriveResults>,
}

async fn show(view: View) -> Response {
    let asked = Asked::read(&view);
    let model = model(&view, asked).await;
    view.page(Nav::Queues, "Queues", &render(&view, &model))
}

async fn model(view: &View, asked: Asked) -> Model {
    let failed_messages = &view.console.services.failed_messages;
    let contents = match view.get("read").or(view.get("plan")) {
        None => None,
        Some(_) => {
            let request = asked.request(&view.console);
            let read = failed_messages
                .messages_and_plan(asked.queue(), READ, &request)
                .await;
            Some(read.map(|(messages, plan)| Contents {
                messages,
                plan: view.get("plan").map(|_| plan),
            }))
        }
    };
    let counts = count(&view.console).await;
    Model {
        asked,
        counts,
        contents,
        failed: None,
    }
}

/// Counts the messages of all queues, also for the navigation.
pub(super) async fn count(console: &Console) -> Result<Vec<FailedQueue>, QueueError> {
    let queues = console.services.failed_messages.queues().await?.queues;
    let total: u64 = queues
        .iter()
        .map(|queue| queue.messages + queue.hidden)
        .sum();
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    console
        .attention
        .failed_messages
        .store(total, Ordering::Relaxed);
    Ok(queues)
}

async fn redrive(view: View, Form(asked): Form<Asked>) -> Response {
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

fn messages(count: usize) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{} messages", number(count as i64)),
    }
}

fn title(name: &str) -> &'static str {
    match name {
        "undeliverable" => "Undeliverable",
        "quarantine" => "Quarantine",
        _ => "Dead letters",
    }
}

/// The meaning of a queue.
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

fn render(view: &View, model: &Model) -> Markup {
    let selected = model.asked.queue();
    html! {
        div.head {
            h1 { "Queues" }
            span.mute { "Messages that need a decision. Counts are SQS estimates" }
            span.push.soft { "counted " (view.ago(view.now)) ", " a href=(view.with(&[])) { "count again" } }
        }
        div.stack {
            @match &model.counts {
                Err(error) => (error_note("The queues cannot be counted.", error, view)),
                Ok(counts) => (tiles(view, counts, selected)),
            }
            @if let Some(failed) = &model.failed { (failure(view, failed)) }
            @match &model.contents {
                None => (unread(view, model, selected)),
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
                        @else if hidden > 0 { (number(hidden)) " being read or moved" }
                        @else { "waiting for a decision" }
                    }
                    code { (sqs_names(view, name).join(", ")) }
                }
            }
        }
    }
}

fn failure(view: &View, failed: &Result<RedriveResults, QueueError>) -> Markup {
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
    note(Tone::Bad, &title, &detail, &html! {})
}

fn unread(view: &View, model: &Model, selected: QueueName) -> Markup {
    let counts = model.counts.as_ref().ok();
    let count =
        counts.and_then(|counts| counts.iter().find(|queue| queue.name == selected.as_str()));
    let is_empty = count.is_some_and(|queue| queue.messages + queue.hidden == 0);
    html! {
        section.panel {
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

/// Messages with one reason and one route.
struct Group<'m> {
    count: usize,
    reason: &'m str,
    route: &'m str,
    oldest: Timestamp,
}

fn groups(messages: &[FailedMessage]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(&str, &str), (usize, Timestamp)> = BTreeMap::new();
    for message in messages {
        let sent = message.sent_at.0;
        let group = groups
            .entry((&message.reason, &message.route))
            .or_insert((0, sent));
        group.0 += 1;
        group.1 = group.1.min(sent);
    }
    let mut groups: Vec<Group<'_>> = groups
        .into_iter()
        .map(|((reason, route), (count, oldest))| Group {
            count,
            reason,
            route,
            oldest,
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

fn contents_of(view: &View, model: &Model, contents: &Contents) -> Markup {
    let (asked, queue) = (&model.asked, model.asked.queue());
    let all = &contents.messages.messages;
    if all.is_empty() {
        return html! {
            section.panel {
                header { h2 { (title(queue.as_str())) } span.mute { (meaning(queue)) } }
                (empty("No message could be read", &html! {
                    p { "The queue is empty, or its messages are hidden for a moment: they were read a moment ago." }
                    p { a.btn href=(view.with(&[])) { "Read again" } }
                }))
            }
        };
    }
    let of_reason =
        |message: &&FailedMessage| asked.reason.is_empty() || message.reason == asked.reason;
    let mut shown: Vec<&FailedMessage> = all.iter().filter(of_reason).collect();
    shown.sort_by_key(|message| message.sent_at.0);
    let chosen = all.iter().find(|message| message.id == asked.message);
    let has_aside = contents.plan.is_some() || chosen.is_some();
    html! {
        div class={ "cols" @if has_aside { " cols-inspect" } } {
            div.stack {
                (by_reason(view, model, contents))
                (list(view, asked, &shown))
            }
            @if let Some(plan) = &contents.plan { (dry_run(view, asked, plan)) }
            @else if let Some(message) = chosen { (inspector(view, asked, message)) }
        }
    }
}

/// A link to the messages of a queue, as they were read.
fn link(view: &View, queue: QueueName, parameters: &[(&str, &str)]) -> String {
    let own = [("queue", queue.as_str()), ("read", "1")];
    view.href(PATH, &[&own[..], parameters].concat())
}

fn by_reason(view: &View, model: &Model, contents: &Contents) -> Markup {
    let queue = model.asked.queue();
    let messages = &contents.messages;
    html! {
        section.panel {
            header {
                h2 { (title(queue.as_str())) ", by reason" }
                span.push { a.btn href=(link(view, queue, &[("plan", "1")])) { "Redrive all…" } }
            }
            table.fixed {
                colgroup { col class="w4"; col; col class="p1"; col class="w6 p1"; col class="w8"; }
                thead { tr {
                    th.num { "Count" } th { "Reason" } th class="p1" { "Redrive" } th class="p1" { "Oldest" }
                    th { span.sr { "Action" } }
                } }
                tbody {
                    @for group in groups(&messages.messages) {
                        tr aria-current=[(model.asked.reason == group.reason).then_some("true")] {
                            td.num { b { (number(group.count as i64)) } }
                            td title=(cut_at(group.reason, 1000)) {
                                a href=(link(view, queue, &[("reason", group.reason)])) { bdi { (cut(group.reason)) } }
                                span.sub.only-narrow { bdi { (cut(group.route)) } }
                            }
                            td class="p1 soft" title=(cut_at(group.route, 1000)) { bdi { (cut(group.route)) } }
                            td class="p1 soft" { (view.ago(group.oldest)) }
                            td.right {
                                a.btn.small href=(link(view, queue, &[("reason", group.reason), ("plan", "1")])) { "Redrive…" }
                            }
                        }
                    }
                }
            }
            @if messages.has_more { footer { span { "Only " (number(messages.messages.len() as i64)) " messages were read; the queue may hold others." } } }
        }
    }
}

/// Subject of a message, from its body.
fn subject(message: &FailedMessage) -> String {
    let body: serde_json::Value = serde_json::from_str(&message.body).unwrap_or_default();
    let text = |pointer: &str| body.pointer(pointer).and_then(serde_json::Value::as_str);
    let found = text("/key")
        .or(text("/requestPayload/topic"))
        .or(text("/id"));
    let found = found.or(text("/topic")).or(message.detail.as_deref());
    found.map_or_else(|| message.body.chars().take(200).collect(), str::to_owned)
}

fn list(view: &View, asked: &Asked, shown: &[&FailedMessage]) -> Markup {
    let queue = asked.queue();
    html! {
        section.panel {
            header {
                h2 { @if asked.reason.is_empty() { "Messages" } @else { bdi { (cut(&asked.reason)) } } }
                span.mute { (messages(shown.len())) }
            }
            table.fixed {
                colgroup { col class="w6"; col; col class="w6 p1"; col class="w11 p1"; }
                thead { tr { th { "Since" } th { "Message" } th class="p1 num" { "Size" } th class="p1" { "Id" } } }
                tbody {
                    @for message in shown.iter().take(SHOWN) {
                        @let subject = subject(message);
                        tr aria-current=[(asked.message == message.id).then_some("true")] {
                            td.soft { a href=(link(view, queue, &[("reason", &asked.reason), ("message", &message.id)])) { (view.ago(message.sent_at.0)) } }
                            td.mono title=(cut_at(&subject, 1000)) { bdi { (cut(&subject)) } }
                            td class="p1 num soft" { (size(message.body.len())) }
                            td class="p1 mono soft" title=(cut(&message.id)) { bdi { (cut_at(&message.id, 12)) } }
                        }
                    }
                }
            }
            @if shown.len() > SHOWN { footer { span { "The oldest " (SHOWN) " of " (number(shown.len() as i64)) "." } } }
        }
    }
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

fn dry_run(view: &View, asked: &Asked, plan: &RedriveResults) -> Markup {
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
                                    "planned" => td { "moved " bdi { (cut(&row.route)) } },
                                    "deleted" => td.warn { "deleted: " bdi { (cut(&row.route)) } },
                                    _ => td.warn { "left: " bdi { (cut(&row.route)) } },
                                }
                            }
                        }
                    }
                }
                @if plan.has_more { p.soft { "The queue may hold others, which would be moved too, up to 1,000." } }
                form.filter method="get" action=(PATH) {
                    (fields(asked, &["queue", "reason", "message"]))
                    input type="hidden" name="read" value="1";
                    input type="hidden" name="plan" value="1";
                    label { "Of unknown source to "
                        select.field name="to" {
                            @for (value, word) in [("", "nowhere"), ("inbound", "inbound queue"), ("signals", "signals queue")] {
                                option value=(value) selected[asked.to == value] { (word) }
                            }
                        }
                    }
                    label { input type="checkbox" name="drop" value="1" checked[!asked.drop.is_empty()]; "Delete failed MQTT requests" }
                    button.btn.small { "Plan again" }
                }
                form.line method="post" action=(REDRIVE) {
                    (csrf(view))
                    (fields(asked, &["queue", "reason", "message", "to", "drop"]))
                    @if planned == 0 { button.btn disabled { "Nothing to redrive" } }
                    @else { (write_button(view, "primary", &format!("Redrive {}", messages(planned)))) }
                    " " a.btn href=(link(view, asked.queue(), &[("reason", &asked.reason)])) { "Cancel" }
                }
            }
        }
    }
}

fn inspector(view: &View, asked: &Asked, message: &FailedMessage) -> Markup {
    let close = link(view, asked.queue(), &[("reason", &asked.reason)]);
    html! {
        aside.panel aria-label="Message" {
            header { h2 { "Message" } span.push { a class="btn small quiet" href=(close) data-close { "Close" } } }
            div.body.stack {
                dl.kv {
                    dt { "Reason" } dd { bdi { (cut_at(&message.reason, 600)) } }
                    @if let Some(detail) = &message.detail { dt { "Detail" } dd { bdi { (cut_at(detail, 600)) } } }
                    dt { "Redrive" } dd { bdi { (cut_at(&message.route, 600)) } }
                    dt { "Since" } dd { (view.at(message.sent_at.0)) ", " (view.ago(message.sent_at.0)) }
                    dt { "Queue" } dd.mono { (message.queue) }
                    dt { "Id" } dd.mono { bdi { (cut(&message.id)) } }
                }
                form.line method="post" action=(REDRIVE) {
                    (csrf(view))
                    input type="hidden" name="queue" value=(asked.queue().as_str());
                    input type="hidden" name="message" value=(message.id);
                    (write_button(view, "primary", "Redrive this message"))
                }
            }
            details.body open { summary { "Body, " (size(message.body.len())) } (json::pretty(&message.body)) }
        }
    }
}
