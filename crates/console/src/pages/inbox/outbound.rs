//! The outbound queue: how many messages wait for devices, and a form that sends one.

use antumbra_service::redrive::QueueError;
use maud::{Markup, html};

use super::SEND;
use super::model::Model;
use crate::components::{cmd, command, csrf, error_note, number, quoted, write_button};
use crate::security::random;
use crate::view::View;

/// Example of a message to a device.
const EXAMPLE: &str = r#"{"led":"on"}"#;

/// The number of messages that wait.
pub(super) fn waiting(view: &View, counted: &Result<(u64, u64), QueueError>) -> Markup {
    html! {
        div #outbound data-part {
            @match counted {
                Err(error) => div.body { (error_note("The outbound queue cannot be counted.", error, view)) },
                Ok((0, 0)) => div.body {
                    p { b { "The outbound queue is empty." } " A message for a device waits here until the system that reads the queue takes it." }
                },
                Ok((waiting, taken)) => div.body {
                    p {
                        b { "About " (number(*waiting)) @if *waiting == 1 { " message waits" } @else { " messages wait" } }
                        " for the system that reads the queue"
                        @if *taken > 0 { "; it has taken " (number(*taken)) " and not deleted them yet" }
                        ". " span.mute { "They are not read here: that would hide them from it." }
                    }
                },
            }
        }
    }
}

pub(super) fn panel(view: &View, model: &Model, waiting: Option<&Markup>) -> Markup {
    let asked = &model.asked;
    let name = view.console.services.outbound_messages.name();
    let device = match asked.device.as_str() {
        "" => asked.source.as_str(),
        device => device,
    };
    let text = match asked.text.as_str() {
        "" => EXAMPLE,
        text => text,
    };
    // Sent twice, the same form is the same message.
    let key = match asked.key.as_str() {
        "" => format!("console-{}", random()),
        key => key.to_owned(),
    };
    let published = match device {
        "" => "testThing",
        device => device,
    };
    let topic = format!("request/send/{published}");
    let payload = r#"{"token":"t1","message":{"led":"on"}}"#;
    let publish = format!("mqtt publish {} {}", quoted(&topic), quoted(payload));
    html! {
        section.panel aria-label="Outbound" {
            header { h2 { "Outbound" } span.mute { "messages for devices, in " code { (name) } } }
            @if let Some(waiting) = waiting { (waiting) }
            form.body.stack method="post" action=(SEND) {
                (csrf(view))
                input type="hidden" name="source" value=(asked.source);
                input type="hidden" name="key" value=(key);
                label.cap for="device" { "Device" }
                input.field.mono #device name="device" value=(device) placeholder="testThing" spellcheck="false" autocomplete="off";
                label.cap for="text" { "Message, as JSON" }
                textarea.field #text name="text" rows="3" spellcheck="false" { "\n" (text) }
                span { (write_button(view, "primary", "Send")) }
            }
            div.body { (cmd(&command(view, &publish))) }
        }
    }
}
