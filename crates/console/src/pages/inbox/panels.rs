//! The panels of sources, messages and one message.

use antumbra_service::inbox::Order;
use antumbra_shadow::Timestamp;
use maud::{Markup, html};

use super::model::Model;
use super::{DELETE, PATH};
use crate::components::{
    Tone, csrf, cut, cut_at, element_id, empty, error_note, note, size, write_button,
};
use crate::json;
use crate::view::View;

/// Characters of a body in the list.
const PREVIEW: usize = 44;
/// Largest message that a button copies.
const COPY_BYTES: usize = 8 * 1024;
/// Length of a message id of SQS.
const SQS_ID_CHARS: usize = 36;

/// Contact is recorded to the hour.
fn contact(view: &View, hour: Timestamp) -> Markup {
    let this_hour = view.now.nanoseconds() - hour.nanoseconds() < 3_600_000_000_000;
    html! {
        "last contact "
        @if this_hour { (view.time(hour, "this hour")) } @else { (view.ago(hour)) }
    }
}

pub(super) fn sources(view: &View, model: &Model) -> Markup {
    let asked = &model.asked;
    html! {
        section.panel #sources data-part="sources" {
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
                            a.pick id=(element_id("f", source)) data-row href=(view.href(PATH, &[("sources", &asked.sources), ("source", source)]))
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
        section.panel #messages data-part="messages" {
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
                            a.pick id=(element_id("m", id)) data-row href=(asked.href(view, &[("message", id)])) aria-current=[(asked.message == id).then_some("true")] {
                                span.line { code { bdi { (cut_at(id, 33)) } } " " span.when { (view.ago(message.received_at)) } }
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

/// The value of a message by which it is ordered, and the time at which it entered its queue. Its id is these and an id
/// of SQS, with `-` between them.
fn id_parts(id: &str) -> Option<(&str, Timestamp)> {
    let end = id.len().checked_sub(SQS_ID_CHARS)?;
    let rest = id.get(..end)?.strip_suffix('-')?;
    let (value, sent) = rest.rsplit_once('-')?;
    let milliseconds: i64 = sent.parse().ok()?;
    let sent = Timestamp::from_nanoseconds(i128::from(milliseconds) * 1_000_000);
    (milliseconds > 0).then_some((value, sent))
}

/// The value as a time, if it is one in seconds since 1970.
fn epoch_time(value: &str) -> Option<Timestamp> {
    let seconds: u32 = value.parse().ok()?;
    Some(Timestamp::from_nanoseconds(
        i128::from(seconds) * 1_000_000_000,
    ))
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
    let parts = id_parts(message.id.as_str());
    let epoch = parts.and_then(|(value, _)| Some((value, epoch_time(value)?)));
    let sent = parts.map(|(_, sent)| sent);
    html! {
        section.panel {
            header {
                h2 { "Message" }
                span.push {
                    @if message.body.as_json().len() <= COPY_BYTES {
                        button.btn.small type="button" data-copy=(message.body.as_json()) aria-label="Copy message" hidden { "Copy" } " "
                    }
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
                    @if let Some((value, epoch)) = epoch { dt { "Epoch time" } dd { code { (value) } ", " (view.at(epoch)) } }
                @if let Some(sent) = sent { dt { "Sent to queue" } dd { (view.at(sent)) } }
                dt { "Received" }
                dd {
                    (view.at(message.received_at)) ", "
                    @match sent.map(|sent| message.received_at.nanoseconds() - sent.nanoseconds()) {
                        Some(late) if late >= 0 => { (format!("{:.1}", late as f64 / 1e9)) " s later" }
                        _ => (view.ago(message.received_at)),
                    }
                }
                dt { "Expires" } dd { @match message.expires_at { Some(time) => (view.ago(time)), None => { "never" } } }
                dt { "Size" } dd { (size(message.body.as_json().len())) }
            } }
            div.body { (json::pretty(message.body.as_json())) }
            footer { span { "Digits are shown exactly as they were sent." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_message_tells_when_it_was_sent() {
        let id = "1794844259-1794844259871-7bc2a509-1163-4e23-96ed-0517d807cd63";
        let sent = Timestamp::parse("2026-11-16T15:50:59.871Z");
        assert_eq!(id_parts(id), Some(("1794844259", sent.unwrap())));
        let epoch = Timestamp::parse("2026-11-16T15:50:59Z");
        assert_eq!(epoch_time("1794844259"), epoch);
        assert_eq!(epoch_time("noon"), None);
        for other in [
            "",
            "1",
            "a-b",
            "17-x-7bc2a509-1163-4e23-96ed-0517d807cd63",
            "ä7bc2a509-1163-4e23-96ed-0517d807cdü",
        ] {
            assert_eq!(id_parts(other), None, "{other}");
        }
    }
}
