//! The messages of a queue by reason, in a list, and one of them.

use std::collections::BTreeMap;

use antumbra_service::api::FailedMessage;
use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use super::model::{Contents, Model};
use super::redrive::dry_run;
use super::{Asked, REDRIVE, link, meaning, messages, title};
use crate::components::{counted, csrf, cut, cut_at, empty, number, size, write_button};
use crate::json;
use crate::view::View;

/// Messages in the list.
const SHOWN: usize = 50;

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

pub(super) fn contents_of(view: &View, model: &Model, contents: &Contents) -> Markup {
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
            @if let Some(plan) = &contents.plan { (dry_run(view, asked, plan, shown.first().copied())) }
            @else if let Some(message) = chosen { (inspector(view, asked, message)) }
        }
    }
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
            @if messages.has_more { footer { span { "Only " (counted(messages.messages.len(), "message was", "messages were")) " read; the queue may hold others." } } }
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
