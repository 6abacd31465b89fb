//! The panels of sources, messages and one message.

use antumbra_service::inbox::Order;
use maud::{Markup, html};

use super::model::Model;
use super::{DELETE, PATH};
use crate::components::{Tone, csrf, cut, cut_at, empty, error_note, note, size, write_button};
use crate::json;
use crate::time;
use crate::view::View;

/// Characters of a body in the list.
const PREVIEW: usize = 64;

/// Contact is recorded to the hour.
fn contact(view: &View, hour: antumbra_shadow::Timestamp) -> Markup {
    let this_hour = view.now.nanoseconds() - hour.nanoseconds() < 3_600_000_000_000;
    html! {
        "last contact "
        @if this_hour { (view.time(hour, "this hour")) } @else { (view.ago(hour)) }
    }
}

pub(super) fn sources(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    html! {
        section.panel {
            header {
                form.filter method="get" action=(PATH) {
                    label.sr for="source" { "Source" }
                    input class="field mono" #source name="source" placeholder="source" size="12" spellcheck="false"
                        autocomplete="off" aria-keyshortcuts="/";
                    button.btn.small { "Open" }
                }
            }
            @match &model.sources {
                Err(error) => (error_note("The sources cannot be listed.", error, view)),
                Ok(page) => {
                    nav aria-label="Sources" {
                        @for row in &page.rows {
                            @let source = row.source.as_str();
                            a.pick href=(view.href(PATH, &[("sources", &asked.sources), ("source", source)]))
                                aria-current=[(asked.source == source).then_some("true")] {
                                bdi.id { (cut(source)) } span.sub { (contact(view, row.last_contact)) }
                            }
                        }
                    }
                    footer {
                        span { (page.rows.len()) " sources; contact is kept to the hour" }
                        @if let Some(next) = &page.next { a class="btn small push" href=(view.href(PATH, &[("sources", &next.0)])) { "More" } }
                    }
                }
            }
        }
    }
}

pub(super) fn messages_panel(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let is_oldest = asked.order() == Order::OldestFirst;
    html! {
        section.panel {
            header {
                h2.mono { bdi { (cut(&asked.source)) } }
                nav class="seg push" aria-label="Order" {
                    a href=(asked.href(view, &[("order", ""), ("cursor", ""), ("message", "")])) aria-current=[(!is_oldest).then_some("true")] { "Newest first" }
                    a href=(asked.href(view, &[("order", "oldest"), ("cursor", ""), ("message", "")])) aria-current=[is_oldest.then_some("true")] { "Oldest first" }
                }
            }
            @match &model.messages {
                None => {}
                Some(Err(error)) => (error_note("The messages cannot be listed.", error, view)),
                Some(Ok((messages, next))) => {
                    @if messages.is_empty() {
                        (empty("No messages", &html! { p { "All messages of this source were deleted, or have expired." } }))
                    }
                    nav aria-label="Messages" {
                        @for message in messages {
                            @let id = message.id.as_str();
                            a.pick href=(asked.href(view, &[("message", id)])) aria-current=[(asked.message == id).then_some("true")] {
                                span.line { code { bdi { (cut_at(id, 40)) } } " " span.when { (view.ago(message.received_at)) } }
                                span class="sub mono" { bdi { (cut_at(message.body.as_json(), PREVIEW)) } }
                            }
                        }
                    }
                    footer {
                        span { (messages.len()) " messages" @if next.is_some() { " of more" } }
                        @if let Some(next) = next {
                            a class="btn small push" href=(asked.href(view, &[("cursor", &next.0), ("message", "")])) {
                                @if is_oldest { "Newer" } @else { "Older" }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn message_panel(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    let message = match &model.message {
        Some(Ok(Some(message))) => message,
        other => {
            return html! {
                section.panel {
                    header { h2 { "Message" } }
                    @match other {
                        Some(Err(error)) => (error_note("The message cannot be read.", error, view)),
                        Some(Ok(_)) => (empty("No such message", &html! { p { "It was deleted, or has expired." } })),
                        None => (empty("No message selected", &html! {})),
                    }
                }
            };
        }
    };
    html! {
        section.panel {
            header {
                h2 { "Message" }
                span.push {
                    @if view.writes() { a class="btn small danger" href=(asked.href(view, &[("confirm", "delete")])) { "Delete…" } }
                    @else { (write_button(view, "small danger", "Delete…")) }
                }
            }
            @if !asked.confirm.is_empty() {
                (note(Tone::Warn, "Delete this message?", &html! { "It cannot be restored, and is not stored again if its queue delivers it again." }, &html! {
                    form.line method="post" action=(DELETE) {
                        (csrf(view))
                        @for (name, value) in [("source", &asked.source), ("message", &asked.message), ("order", &asked.order), ("cursor", &asked.cursor), ("sources", &asked.sources)] {
                            input type="hidden" name=(name) value=(value);
                        }
                        (write_button(view, "small danger", "Delete"))
                        a.btn.small href=(asked.href(view, &[])) { "Cancel" }
                    }
                }))
            }
            div.body { dl.kv {
                dt { "Message id" } dd.mono { bdi { (cut_at(message.id.as_str(), 600)) } }
                dt { "Received" } dd { (view.at(message.received_at)) ", " (time::age(view.now, message.received_at)) }
                dt { "Expires" } dd { @match message.expires_at { Some(time) => (view.ago(time)), None => { "never" } } }
                dt { "Size" } dd { (size(message.body.as_json().len())) }
            } }
            div.body { (json::pretty(message.body.as_json())) }
            footer { span { "Digits are shown exactly as they were sent." } }
        }
    }
}
