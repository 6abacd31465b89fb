//! The writes of the page: deleting a message, and sending one to a device.

use std::time::Duration;

use antumbra_service::inbox::{MessageDeleter as _, MessageId, OutboundQueue as _, Source};
use axum::extract::Form;
use axum::response::Response;
use maud::html;
use serde_json::value::RawValue;

use super::{Asked, PATH, respond};
use crate::components::{cut_at, error_note};
use crate::view::{Failure, View};

/// Time for which the outbound queue is tried.
const SEND_TIME: Duration = Duration::from_secs(10);

pub(super) async fn delete(view: View, Form(asked): Form<Asked>) -> Response {
    match delete_message(&view, &asked).await {
        Ok(()) => {
            let message = html! { span { b.ok { "Deleted:" } " message " code { (cut_at(&asked.message, 60)) } } };
            let href = Asked {
                message: String::new(),
                ..asked
            }
            .href(&view, &[]);
            view.redirect(&href, message)
        }
        Err(error) => {
            let failure = error_note("The message was not deleted.", &error, &view);
            respond(&view, asked, Some(failure)).await
        }
    }
}

async fn delete_message(view: &View, asked: &Asked) -> Result<(), Failure> {
    let source = Source::new(asked.source.clone())?;
    let id = MessageId::new(asked.message.clone())?;
    let inbox = &view.console.services.messages;
    Ok(inbox.delete(&source, &id, view.console.now()).await?)
}

/// Sends a message to a device, as `POST /v1/messages/{uuid}` does.
pub(super) async fn send(view: View, Form(asked): Form<Asked>) -> Response {
    match send_message(&view, &asked).await {
        Ok(device) => {
            let message = html! { span {
                b.ok { "Sent:" } " a message for " code { bdi { (cut_at(device.as_str(), 60)) } } " is in the outbound queue"
            } };
            let href = view.href(PATH, &[("source", &asked.source)]);
            view.redirect(&href, message)
        }
        Err(error) => {
            let failure = error_note("The message was not sent.", &error, &view);
            respond(&view, asked, Some(failure)).await
        }
    }
}

async fn send_message(view: &View, asked: &Asked) -> Result<Source, Failure> {
    let device = Source::new(asked.device.clone())?;
    let message: &RawValue = serde_json::from_str(asked.text.trim())
        .map_err(|fault| format!("The message is not JSON: {fault}"))?;
    let services = &view.console.services;
    let until = view.console.now().after(SEND_TIME);
    let sent = services.outbound.send(&device, &asked.key, message, until);
    sent.await?;
    Ok(device)
}
