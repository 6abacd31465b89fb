//! The reads of the page: clients with their last attempts, deliveries, dry runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use antumbra_service::access::IdRanges;
use antumbra_service::clients::{Client, ClientId};
use antumbra_service::deliveries::{DeliveryId, DeliveryRecord, HistoryQuery, Status, Subject};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::SensorId;
use antumbra_shadow::Timestamp;
use futures_util::future;
use futures_util::stream::{self, StreamExt as _};

use super::Asked;
use super::attempts::{Attempts, count_held, last_attempts};
use super::clients::circuit;
use crate::time;
use crate::view::{Failure, View, cursor};

/// Clients of a page.
const CLIENTS: usize = 25;

/// Deliveries of a page.
const PAGE: usize = 50;

/// Clients whose attempts are read at once.
const AT_ONCE: usize = 8;

/// Deliveries that a dry run counts at most.
pub(super) const PLANNED: usize = 1000;

/// A client and its last attempts.
pub(super) struct ClientRow {
    pub(super) client: Client,
    pub(super) attempts: Arc<Attempts>,
}

pub(super) struct Model {
    pub(super) asked: Asked,
    pub(super) clients: Vec<ClientRow>,
    pub(super) next_clients: Option<Cursor>,
    pub(super) list: Result<Page<DeliveryRecord>, Failure>,
    /// The delivery that is shown.
    pub(super) selected: Option<Result<Selected, Failure>>,
    /// Dry run of a redelivery since a time.
    pub(super) plan: Option<Result<Plan, Failure>>,
    /// Deliveries that are held for the client to be enabled.
    pub(super) held: Option<usize>,
}

/// A delivery with its client, unless that was removed.
pub(super) struct Selected {
    pub(super) record: DeliveryRecord,
    pub(super) client: Option<Client>,
}

impl Model {
    /// Returns whether nothing is sent to the client that is shown, except a probe.
    pub(super) fn is_circuit_open(&self, now: Timestamp) -> bool {
        let shown = self.clients.iter().map(|row| &row.client);
        let mut shown = shown.filter(|client| client.id.as_str() == self.asked.client);
        let until = shown.next().and_then(|client| client.circuit.open_until);
        until.is_some_and(|until| until > now)
    }

    /// Returns whether the deployment has no clients.
    pub(super) fn has_no_clients(&self) -> bool {
        self.clients.is_empty() && self.asked.clients_cursor.is_empty()
    }
}

/// Dry run of a redelivery since a time.
pub(super) struct Plan {
    pub(super) since: Timestamp,
    pub(super) by_status: Vec<(Status, usize)>,
    pub(super) has_more: bool,
}

pub(super) async fn model(view: &View, mut asked: Asked) -> Result<Model, Failure> {
    let services = &view.console.services;
    let cursor = cursor(&asked.clients_cursor);
    let page = services
        .clients
        .list(&IdRanges::all(), CLIENTS, cursor.as_ref())
        .await?;
    if cursor.is_none() {
        let is_open = |client: &&Client| circuit(client, view.now).is_bad;
        let open = page.rows.iter().filter(is_open).count();
        view.console
            .attention
            .open_circuits
            .store(open, Ordering::Relaxed);
    }
    let rows = stream::iter(page.rows).map(async |client| ClientRow {
        attempts: last_attempts(view, &client).await,
        client,
    });
    let clients: Vec<ClientRow> = rows.buffered(AT_ONCE).collect().await;
    if asked.client.is_empty() && asked.sensor.is_empty() {
        // The client that needs attention, or the first.
        let bad = clients
            .iter()
            .find(|row| circuit(&row.client, view.now).is_bad);
        let chosen = bad.or(clients.first());
        asked.client = chosen.map_or(String::new(), |row| row.client.id.to_string());
    }
    let selected = async {
        match asked.delivery.as_str() {
            "" => None,
            id => Some(selected(view, id).await),
        }
    };
    let plan = async {
        match asked.since.as_str() {
            "" => None,
            since => Some(plan(view, &asked.client, since).await),
        }
    };
    let held = async {
        match asked.enable.as_str() {
            "" => None,
            _ => match ClientId::new(asked.client.clone()) {
                Ok(client) => Some(count_held(view, &client, PLANNED).await),
                Err(_) => Some(0),
            },
        }
    };
    let (list, selected, plan, held) =
        future::join4(list(view, &asked), selected, plan, held).await;
    Ok(Model {
        asked,
        clients,
        next_clients: page.next,
        list,
        selected,
        plan,
        held,
    })
}

async fn list(view: &View, asked: &Asked) -> Result<Page<DeliveryRecord>, Failure> {
    let none = Page {
        rows: Vec::new(),
        next: None,
    };
    let subject = match (asked.client.as_str(), asked.sensor.as_str()) {
        ("", "") => return Ok(none),
        ("", sensor) => Subject::Sensor(SensorId::new(sensor)?),
        (client, _) => Subject::Client(ClientId::new(client)?),
    };
    let query = HistoryQuery {
        status: asked.status.parse().ok(),
        limit: PAGE,
        ..HistoryQuery::of(subject)
    };
    let cursor = cursor(&asked.cursor);
    let deliveries = &view.console.services.deliveries;
    let mut page = deliveries.list(&query, cursor.as_ref()).await?;
    if !asked.client.is_empty() && !asked.sensor.is_empty() {
        let is_of_sensor = |record: &DeliveryRecord| {
            let sensor = record.delivery.sensor.as_ref();
            sensor.is_some_and(|sensor| sensor.id.as_str() == asked.sensor)
        };
        page.rows.retain(is_of_sensor);
    }
    Ok(page)
}

async fn selected(view: &View, id: &str) -> Result<Selected, Failure> {
    let services = &view.console.services;
    let id: DeliveryId = id
        .parse()
        .map_err(|_| "This is not the id of a delivery.")?;
    Ok(Selected {
        record: services.deliveries.get(&id).await?,
        client: services.clients.get(id.client()).await.ok(),
    })
}

async fn plan(view: &View, client: &str, since: &str) -> Result<Plan, Failure> {
    let client = ClientId::new(client)?;
    let since = time::parse(since, view.now, &view.zone);
    let since = since.ok_or("Write the time as 16:00, -10m, or a date and time.")?;
    let query = HistoryQuery {
        from: Some(since),
        oldest_first: true,
        limit: PLANNED,
        ..HistoryQuery::of(Subject::Client(client))
    };
    let page = view.console.services.deliveries.list(&query, None).await?;
    let of = |status: Status| page.rows.iter().filter(|row| row.status == status).count();
    let by_status = Status::ALL.iter().map(|status| (*status, of(*status)));
    Ok(Plan {
        since,
        by_status: by_status.filter(|(_, count)| *count > 0).collect(),
        has_more: page.next.is_some(),
    })
}
