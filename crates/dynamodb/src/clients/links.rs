//! Links: one item with the sensor and one with the client, written and removed together.
//!
//! A removed link leaves an item with the sensor for two days. The stream listener may have recorded a delivery to its
//! client and been interrupted before it queued it; it finds the client there when it processes the event again.

use std::collections::BTreeMap;
use std::time::Duration;

use antumbra_service::backoff;
use antumbra_service::clients::{
    Client, ClientError, ClientId, ClientStore as _, Link, LinkStore, LinkedClient, LinkedClients,
    Mode,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::SensorId;
use antumbra_service::sensors::reading_time::from_milliseconds;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::ItemKind;
use antumbra_wire::items::attributes::TTL;
use async_trait::async_trait;

use super::DynamoDbClients;
use super::item::{client_id, client_key, decode_link, link_key, mirror_key};
use crate::table::{ABSENT, EXISTS, Item, Key, Outcome, Query, Table, Write};
use crate::value::{epoch_milliseconds, epoch_seconds, read_number, text, time};

/// Links of one transaction, which has at most 100 writes: two for each link and one check.
const LINKS_AT_ONCE: usize = 49;
/// Removals of one transaction: three writes each, and at most three others.
pub(crate) const REMOVALS_AT_ONCE: usize = 32;
/// Time for which a removed link is kept: longer than the 24 hours for which a stream keeps a record.
const REMOVED_KEPT: Duration = Duration::from_secs(2 * 24 * 3600);
/// Text that the sort keys of links and of removed links of a sensor start with.
const LINKS_AND_REMOVED: &str = "CLIENT";
const REMOVED_AT: &str = "removedAt";
/// Attempts to link a client whose mode changes at the same time.
const LINK_ATTEMPTS: u32 = 3;
/// Conflicts with other transactions after which a change of the mode fails.
const MODE_CONFLICTS: u32 = 3;

impl LinkStore for DynamoDbClients {
    async fn link(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> Result<(), ClientError> {
        for _ in 0..LINK_ATTEMPTS {
            let mode = self.get(client).await?.mode;
            let put = |key| put_link(key, client, sensor, mode, now);
            let writes = vec![
                has_mode(client, mode),
                Write::check(Key::new(ItemKind::SensorInfo, sensor.as_str(), ""), EXISTS),
                put(link_key(client, sensor)),
                put(mirror_key(client, sensor)),
            ];
            match self.table.transact(writes).await? {
                Outcome::Applied(_) => return Ok(()),
                Outcome::Refused(refusal) if refusal.at == 1 => return Err(ClientError::NoSensor),
                // The client is gone or has another mode; the next read shows which.
                Outcome::Refused(_) => {}
            }
        }
        Err(StoreError::Throttled.into())
    }

    async fn unlink(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> Result<(), ClientError> {
        let [link, mirror, removed] = removal(&self.table, &link_key(client, sensor), now);
        let deletes = [link, mirror].map(|delete| delete.condition(EXISTS));
        let writes = deletes.into_iter().chain([removed]).collect();
        match self.table.transact(writes).await? {
            Outcome::Applied(_) => Ok(()),
            Outcome::Refused(_) => Err(ClientError::NotLinked),
        }
    }

    async fn of_client(
        &self,
        client: &ClientId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        self.page(ItemKind::LinkMirror, client.as_str(), limit, cursor)
            .await
    }

    async fn of_sensor(
        &self,
        sensor: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        self.page(ItemKind::Link, sensor.as_str(), limit, cursor)
            .await
    }
}

#[async_trait]
impl LinkedClients for DynamoDbClients {
    async fn linked(&self, sensor: &SensorId) -> Result<Vec<LinkedClient>, StoreError> {
        let partition = ItemKind::Link.partition(sensor.as_str());
        let both = Query::starting_with(partition, LINKS_AND_REMOVED).consistent();
        let mut clients: BTreeMap<ClientId, LinkedClient> = BTreeMap::new();
        for item in self.table.query_all(both).await? {
            let linked = match decode_removed(&self.table, &item)? {
                Some(removed) => removed,
                None => decode_link(item).map(|link| LinkedClient {
                    client: link.client,
                    mode: link.mode,
                    removed: None,
                })?,
            };
            // Links sort before removed ones. One that was made again is a link.
            clients.entry(linked.client.clone()).or_insert(linked);
        }
        Ok(clients.into_values().collect())
    }
}

impl DynamoDbClients {
    /// Gives every link of a client its mode. Each transaction checks that the client still has the mode:
    /// if another change of the mode overtook this one, that change sets the links.
    pub(super) async fn set_link_modes(&self, client: &Client) -> Result<(), ClientError> {
        let mut links = self.links_of(&client.id).await?;
        links.retain(|link| link.mode != client.mode);
        let mut conflicts = 0;
        while !links.is_empty() {
            let chunk = &links[links.len().saturating_sub(LINKS_AT_ONCE)..];
            let set = |key| {
                Write::update(key, "SET #mode = :mode")
                    .condition(EXISTS)
                    .value(":mode", text(client.mode.as_str()))
            };
            let updates = chunk.iter().flat_map(keys_of).map(set);
            let check = has_mode(&client.id, client.mode);
            let writes = std::iter::once(check).chain(updates).collect();
            match self.table.transact(writes).await {
                Ok(Outcome::Applied(_)) => links.truncate(links.len() - chunk.len()),
                Ok(Outcome::Refused(refusal)) if refusal.at == 0 => return Ok(()),
                // The link was removed and needs no mode.
                Ok(Outcome::Refused(refusal)) => {
                    let first = links.len() - chunk.len();
                    links.remove(first + (refusal.at - 1) / 2);
                }
                // Another transaction of the same client, such as a new link.
                Err(StoreError::Throttled) if conflicts < MODE_CONFLICTS => {
                    conflicts += 1;
                    tokio::time::sleep(backoff::delay(conflicts, fastrand::f64())).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes the links of a deleted client.
    pub(super) async fn unlink_all(
        &self,
        client: &ClientId,
        now: Timestamp,
    ) -> Result<(), ClientError> {
        let links = self.links_of(client).await?.into_iter();
        let links: Vec<Key> = links
            .map(|link| link_key(&link.client, &link.sensor))
            .collect();
        remove_links(&self.table, &client_key(client), &links, now).await?;
        Ok(())
    }

    pub(super) async fn has_links(&self, client: &ClientId) -> Result<bool, StoreError> {
        let first = links(ItemKind::LinkMirror, client.as_str()).limit(1);
        Ok(!self.table.query(first).await?.items.is_empty())
    }

    async fn links_of(&self, client: &ClientId) -> Result<Vec<Link>, StoreError> {
        let links = links(ItemKind::LinkMirror, client.as_str());
        let found = self.table.query_all(links).await?;
        found.into_iter().map(decode_link).collect()
    }

    async fn page(
        &self,
        kind: ItemKind,
        owner: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        let listing = ["links", &kind.partition(owner)];
        let page = self.table.page(&listing, links(kind, owner), limit, cursor);
        Ok(page.await?.try_map(decode_link)?)
    }
}

/// All links of a sensor or a client, by the kind of their items.
pub(crate) fn links(kind: ItemKind, owner: &str) -> Query {
    Query::starting_with(kind.partition(owner), kind.sort_prefix()).consistent()
}

fn keys_of(link: &Link) -> [Key; 2] {
    [
        link_key(&link.client, &link.sensor),
        mirror_key(&link.client, &link.sensor),
    ]
}

/// The writes that remove a link, by the key of its item with the sensor: they delete it and its mirror, whose keys are
/// swapped, and keep the removal for the stream listener.
pub(crate) fn removal(table: &Table, link: &Key, now: Timestamp) -> [Write; 3] {
    let mirror = Key {
        partition: link.sort.clone(),
        sort: link.partition.clone(),
    };
    let client = link.sort.strip_prefix(ItemKind::Link.sort_prefix());
    let mut removed = table.attributes(&Key {
        partition: link.partition.clone(),
        sort: ItemKind::RemovedLink.sort(client.unwrap_or_default()),
    });
    removed.insert(REMOVED_AT.to_owned(), epoch_milliseconds(now));
    removed.insert(TTL.to_owned(), epoch_seconds(now.after(REMOVED_KEPT)));
    [
        Write::delete(link.clone()),
        Write::delete(mirror),
        Write::put(removed),
    ]
}

/// Removes the links of a client or sensor that is deleted. Stops if it was created again: the links are those of the new
/// one.
pub(crate) async fn remove_links(
    table: &Table,
    deleted: &Key,
    links: &[Key],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in links.chunks(REMOVALS_AT_ONCE) {
        let is_deleted = Write::check(deleted.clone(), ABSENT);
        let removals = chunk.iter().flat_map(|link| removal(table, link, now));
        let writes = std::iter::once(is_deleted).chain(removals).collect();
        if let Outcome::Refused(_) = table.transact(writes).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Decodes a removed link; `None` if the item is of another kind.
fn decode_removed(table: &Table, item: &Item) -> Result<Option<LinkedClient>, StoreError> {
    let key = table.key(item);
    let prefix = ItemKind::RemovedLink.sort_prefix();
    let Some(client) = key.as_ref().and_then(|key| key.sort.strip_prefix(prefix)) else {
        return Ok(None);
    };
    let removed = read_number::<i64>(item, REMOVED_AT)?;
    Ok(Some(LinkedClient {
        client: client_id(client)?,
        // If the link is made again before the delivery is sent, the order still matters.
        mode: Mode::Every,
        removed: Some(from_milliseconds(removed)),
    }))
}

fn has_mode(client: &ClientId, mode: Mode) -> Write {
    Write::check(client_key(client), format!("{EXISTS} AND #mode = :mode"))
        .value(":mode", text(mode.as_str()))
}

/// A link that exists already keeps its time.
fn put_link(key: Key, client: &ClientId, sensor: &SensorId, mode: Mode, now: Timestamp) -> Write {
    let update = "SET #clientId = :client, #sensorId = :sensor, #mode = :mode, \
         #since = if_not_exists(#since, :now)";
    Write::update(key, update)
        .value(":client", text(client.as_str()))
        .value(":sensor", text(sensor.as_str()))
        .value(":mode", text(mode.as_str()))
        .value(":now", time(now))
}
