//! Output of `antumbra clients`.

use antumbra_service::api;
use antumbra_service::clients::{Client, ClientId, ClientState, Link};
use antumbra_service::deliveries::{DeliveryRecord, Status};
use antumbra_service::paging::Page;
use serde::Serialize;
use serde_json::json;

use crate::output::{self, BAD, CHANGED, FAINT, GOOD, STRONG, page, styled, table};

pub(super) fn either<T: Serialize>(value: &T, text: &str, json: bool) -> String {
    match json {
        true => output::json(value),
        false => styled(GOOD, text),
    }
}

pub(super) fn done(action: &str, id: &ClientId, json: bool) -> String {
    either(
        &json!({ action: id.as_str() }),
        &format!("{action} {id}"),
        json,
    )
}

pub(super) fn client(client: Client, json: bool) -> String {
    let client = api::Client::from(client);
    match json {
        true => output::json(&client),
        false => facts(&client),
    }
}

fn facts(client: &api::Client) -> String {
    let state = match &client.disabled_reason {
        None => styled(GOOD, "enabled"),
        Some(reason) => format!("{}: {reason}", styled(BAD, "disabled")),
    };
    let row = |name: &str, value: String| vec![styled(FAINT, name), value];
    table(&[
        row("id", styled(STRONG, &client.id)),
        row("name", client.name.clone()),
        row("url", client.url.clone().unwrap_or_default()),
        row("mode", client.mode.to_string()),
        row("state", state),
        row("circuit", circuit(client)),
        row("version", client.version.to_string()),
    ])
}

/// Shows whether the circuit breaker holds attempts back.
fn circuit(client: &api::Client) -> String {
    let failures = match &client.failing_since {
        Some(since) => format!("{} failures since {}", client.failures, since.0),
        None => return styled(GOOD, "closed"),
    };
    match &client.paused_until {
        Some(until) => format!("{} until {}, {failures}", styled(BAD, "open"), until.0),
        None => format!("{}, {failures}", styled(CHANGED, "closed")),
    }
}

pub(super) fn created(created: &api::CreatedClient, json: bool) -> String {
    match json {
        true => output::json(created),
        false => format!("{}\n\n{}", facts(&created.client), secret(&created.secret)),
    }
}

pub(super) fn rotated(rotated: &api::RotatedSecret, json: bool) -> String {
    match json {
        true => output::json(rotated),
        false => secret(&rotated.secret),
    }
}

fn secret(secret: &str) -> String {
    format!("secret  {secret}  {}", styled(FAINT, "not shown again"))
}

pub(super) fn clients(clients: Page<Client>, json: bool) -> String {
    if json {
        return output::json(&api::ClientPage::from(clients));
    }
    let row = |client: &Client| {
        let state = match &client.state {
            ClientState::Enabled => styled(GOOD, "enabled"),
            ClientState::Disabled { reason, .. } => {
                format!("{}: {reason}", styled(BAD, "disabled"))
            }
        };
        vec![
            client.id.to_string(),
            client.mode.to_string(),
            state,
            client.url.clone(),
        ]
    };
    let rows: Vec<_> = clients.rows.iter().map(row).collect();
    page(&rows, clients.next.as_ref(), "no clients")
}

pub(super) fn links(links: Page<Link>, json: bool) -> String {
    if json {
        return output::json(&api::LinkPage::from(links));
    }
    let row = |link: &Link| vec![link.sensor.to_string(), link.since.to_string()];
    let rows: Vec<_> = links.rows.iter().map(row).collect();
    page(&rows, links.next.as_ref(), "no sensors")
}

pub(super) fn deliveries(deliveries: Page<DeliveryRecord>, json: bool) -> String {
    if json {
        return output::json(&api::DeliveryPage::from(deliveries));
    }
    let rows: Vec<_> = deliveries.rows.iter().map(delivery).collect();
    page(&rows, deliveries.next.as_ref(), "no deliveries")
}

fn delivery(record: &DeliveryRecord) -> Vec<String> {
    let style = match record.status {
        Status::Delivered => GOOD,
        Status::Dead => BAD,
        Status::Failed | Status::Held | Status::Pending => CHANGED,
        Status::Skipped | Status::Superseded => FAINT,
    };
    let last = record.attempts.last();
    let last = last.map(|attempt| match (&attempt.status, &attempt.error) {
        (Some(status), _) => format!("{status} in {} ms", attempt.latency_ms),
        (None, Some(error)) => error.clone(),
        (None, None) => String::new(),
    });
    let sensor = record.delivery.sensor.as_ref();
    vec![
        record.delivery.occurred_at.to_string(),
        styled(style, record.status.as_str()),
        record.delivery.event_type.to_string(),
        sensor
            .map(|sensor| sensor.id.to_string())
            .unwrap_or_default(),
        match record.attempts.len() {
            1 => "1 attempt".to_owned(),
            count => format!("{count} attempts"),
        },
        record.delivery.id.to_string(),
        last.unwrap_or_default(),
    ]
}
