//! Clients and deliveries, for people and for machines.

use antumbra_service::clients::{Client, ClientId, ClientState, Link, Secret};
use antumbra_service::deliveries::{DeliveryRecord, Status, milliseconds};
use antumbra_service::paging::Page;
use serde_json::{Value, json};

use crate::output::{self, BAD, CHANGED, FAINT, GOOD, STRONG, styled, table};

fn client_json(client: &Client) -> Value {
    let (state, reason) = match &client.state {
        ClientState::Enabled => ("enabled", None),
        ClientState::Disabled { reason, .. } => ("disabled", Some(reason)),
    };
    json!({
        "id": client.id.as_str(), "name": client.name, "url": client.url,
        "mode": client.mode.as_str(), "state": state, "reason": reason,
        "version": client.version.0, "created": milliseconds(client.created),
        "updated": milliseconds(client.updated), "failures": client.circuit.failures,
    })
}

fn state(client: &Client) -> String {
    match &client.state {
        ClientState::Enabled => styled(GOOD, "enabled"),
        ClientState::Disabled { reason, .. } => {
            format!("{}: {reason}", styled(BAD, "disabled"))
        }
    }
}

pub(super) fn client(client: &Client, json: bool) -> String {
    if json {
        return output::json(&client_json(client));
    }
    let row = |name: &str, value: String| vec![styled(FAINT, name), value];
    table(&[
        row("id", styled(STRONG, client.id.as_str())),
        row("name", client.name.clone()),
        row("url", client.url.clone()),
        row("mode", client.mode.to_string()),
        row("state", state(client)),
        row("version", client.version.to_string()),
    ])
}

pub(super) fn created(made: &Client, key: &Secret, json: bool) -> String {
    if json {
        let mut value = client_json(made);
        value["secret"] = Value::from(key.reveal());
        return output::json(&value);
    }
    format!("{}\n\n{}", client(made, false), told_once(key))
}

pub(super) fn secret(id: &ClientId, key: &Secret, json: bool) -> String {
    if json {
        return output::json(&json!({"id": id.as_str(), "secret": key.reveal()}));
    }
    told_once(key)
}

fn told_once(key: &Secret) -> String {
    let once = styled(FAINT, "shown this once");
    format!("secret  {}  {once}", key.reveal())
}

pub(super) fn clients(page: &Page<Client>, json: bool) -> String {
    if json {
        let rows: Vec<Value> = page.rows.iter().map(client_json).collect();
        return listing(
            "clients",
            rows,
            page.next.as_ref().map(|next| next.0.as_str()),
        );
    }
    let row = |client: &Client| {
        vec![
            client.id.to_string(),
            client.mode.to_string(),
            state(client),
            client.url.clone(),
        ]
    };
    with_cursor(
        page.rows.iter().map(row).collect(),
        page.next.is_some(),
        page,
    )
}

pub(super) fn links(page: &Page<Link>, json: bool) -> String {
    if json {
        let row = |link: &Link| json!({"client": link.client.as_str(), "sensor": link.sensor.as_str(), "since": milliseconds(link.since)});
        let rows = page.rows.iter().map(row).collect();
        return listing(
            "links",
            rows,
            page.next.as_ref().map(|next| next.0.as_str()),
        );
    }
    let row = |link: &Link| vec![link.sensor.to_string(), milliseconds(link.since)];
    with_cursor(
        page.rows.iter().map(row).collect(),
        page.next.is_some(),
        page,
    )
}

pub(super) fn deliveries(page: &Page<DeliveryRecord>, json: bool) -> String {
    if json {
        let rows = page.rows.iter().map(delivery_json).collect();
        return listing(
            "deliveries",
            rows,
            page.next.as_ref().map(|next| next.0.as_str()),
        );
    }
    let row = |record: &DeliveryRecord| {
        let style = match record.status {
            Status::Delivered => GOOD,
            Status::Dead => BAD,
            Status::Failed | Status::Parked | Status::Pending => CHANGED,
            Status::Skipped | Status::Superseded => FAINT,
        };
        let last = record
            .attempts
            .last()
            .map(|attempt| match (&attempt.status, &attempt.error) {
                (Some(status), _) => format!("{status} in {} ms", attempt.latency_ms),
                (None, Some(error)) => error.clone(),
                (None, None) => String::new(),
            });
        vec![
            milliseconds(record.delivery.occurred_at),
            styled(style, record.status.as_str()),
            record.delivery.kind.to_string(),
            record
                .delivery
                .sensor
                .as_ref()
                .map(|sensor| sensor.id.to_string())
                .unwrap_or_default(),
            match record.attempts.len() {
                1 => "1 attempt".to_owned(),
                more => format!("{more} attempts"),
            },
            record.delivery.id.to_string(),
            last.unwrap_or_default(),
        ]
    };
    with_cursor(
        page.rows.iter().map(row).collect(),
        page.next.is_some(),
        page,
    )
}

fn delivery_json(record: &DeliveryRecord) -> Value {
    let attempts: Vec<Value> = record
        .attempts
        .iter()
        .map(|attempt| {
            json!({
                "at": milliseconds(attempt.at), "turn": attempt.turn, "status": attempt.status,
                "latencyMs": attempt.latency_ms, "error": attempt.error,
            })
        })
        .collect();
    let delivery = &record.delivery;
    json!({
        "id": delivery.id.to_string(), "type": delivery.kind.as_str(),
        "sequence": delivery.sequence, "occurredAt": milliseconds(delivery.occurred_at),
        "sensor": delivery.sensor.as_ref().map(|sensor| sensor.id.as_str()),
        "status": record.status.as_str(), "attempts": attempts,
    })
}

pub(super) fn said(word: &str, what: &str, json: bool) -> String {
    if json {
        return output::json(&json!({ word: what }));
    }
    format!("{} {what}", styled(GOOD, word))
}

pub(super) fn counted(word: &str, count: usize, of: &str, json: bool) -> String {
    if json {
        return output::json(&json!({ word: count }));
    }
    format!("{}: {count} {of}", styled(GOOD, word))
}

fn listing(name: &str, rows: Vec<Value>, next: Option<&str>) -> String {
    output::json(&json!({ name: rows, "next": next }))
}

fn with_cursor<T>(rows: Vec<Vec<String>>, more: bool, page: &Page<T>) -> String {
    let text = if rows.is_empty() {
        styled(FAINT, "none")
    } else {
        table(&rows)
    };
    match &page.next {
        Some(next) if more => format!("{text}\n{} --cursor {}", styled(FAINT, "more:"), next.0),
        _ => text,
    }
}
