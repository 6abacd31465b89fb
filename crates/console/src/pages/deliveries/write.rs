//! The writes of the page: redelivery, tests, enabling a client.

use std::time::Duration;

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{DeliveryId, RedeliverError};
use antumbra_shadow::Timestamp;
use axum::extract::Form;
use axum::response::Response;
use maud::html;

use super::{Asked, PATH, respond};
use crate::components::{Tone, counted, error_note, note};
use crate::view::View;

/// Time after which a redelivery of many ends.
const REDELIVER_TIME: Duration = Duration::from_secs(20);

/// The client of a form, or a page that says what is wrong with it.
async fn client_of(view: &View, asked: &Asked) -> Result<ClientId, Response> {
    match ClientId::new(asked.client.clone()) {
        Ok(client) => Ok(client),
        Err(fault) => {
            let failure = error_note("There is no such client.", &fault, view);
            Err(respond(view, asked.clone(), Some(failure)).await)
        }
    }
}

async fn failed(view: &View, asked: Asked, what: &str, error: &RedeliverError) -> Response {
    let failure = error_note(what, error, view);
    respond(view, asked, Some(failure)).await
}

pub(super) async fn redeliver(view: View, Form(asked): Form<Asked>) -> Response {
    let Ok(id) = asked.delivery.parse::<DeliveryId>() else {
        let failure = note(
            Tone::Bad,
            "Nothing was queued.",
            &html! { "This is not the id of a delivery." },
            &html! {},
        );
        return respond(&view, asked, Some(failure)).await;
    };
    match view.console.services.deliveries.redeliver(&id).await {
        Ok(()) => {
            let message = html! { span { b.ok { "Queued:" } " another round of this delivery" } };
            let client = id.client().to_string();
            let href = view.href(PATH, &[("client", &client), ("delivery", &asked.delivery)]);
            view.redirect(&href, message)
        }
        Err(error) => failed(&view, asked, "The delivery was not queued.", &error).await,
    }
}

pub(super) async fn test(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    match view.console.services.deliveries.test(&client).await {
        Ok(id) => {
            let message =
                html! { span { b.ok { "Queued:" } " test delivery to " code { (client) } } };
            let href = view.href(
                PATH,
                &[("client", client.as_str()), ("delivery", &id.to_string())],
            );
            view.redirect(&href, message)
        }
        Err(error) => failed(&view, asked, "The test was not queued.", &error).await,
    }
}

pub(super) async fn enable(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    match view.console.services.deliveries.enable(&client).await {
        Ok(release) => {
            let message = html! { span {
                b.ok { "Enabled:" } " " code { (client) } ", " (counted(release.queued, "held delivery", "held deliveries")) " queued"
                @if !release.finished { "; the rest follows" }
            } };
            view.redirect(&view.href(PATH, &[("client", client.as_str())]), message)
        }
        Err(error) => failed(&view, asked, "The client was not enabled.", &error).await,
    }
}

pub(super) async fn redeliver_since(view: View, Form(asked): Form<Asked>) -> Response {
    let client = match client_of(&view, &asked).await {
        Ok(client) => client,
        Err(refusal) => return refusal,
    };
    let Some(since) = Timestamp::parse(&asked.since) else {
        let failure = note(
            Tone::Bad,
            "Nothing was queued.",
            &html! { "The time is missing." },
            &html! {},
        );
        return respond(&view, asked, Some(failure)).await;
    };
    let deliveries = &view.console.services.deliveries;
    let until = view.now.after(REDELIVER_TIME);
    let (mut queued, mut cursor) = (0, None);
    loop {
        let part = deliveries
            .redeliver_since(&client, since, false, cursor.as_ref())
            .await;
        match part {
            Ok(part) => {
                queued += part.queued;
                cursor = part.next;
            }
            Err(error) => {
                let what = format!("The redelivery stopped after {queued} deliveries.");
                return failed(&view, asked, &what, &error).await;
            }
        }
        let is_late = view.console.now() > until;
        if cursor.is_none() || is_late {
            let message = html! { span {
                b.ok { "Queued:" } " " (counted(queued, "delivery", "deliveries")) " to " code { (client) }
                @if cursor.is_some() { ". There are more: redeliver again" }
            } };
            return view.redirect(&view.href(PATH, &[("client", client.as_str())]), message);
        }
    }
}
