//! History of deliveries: of a client from its own partition, of a sensor from the index `Listed`.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryRecord, HeldDelivery, History, HistoryQuery,
    NewDeliveries, Status, Subject, Waiting,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::reading_time::from_milliseconds;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};
use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;

use super::DynamoDbDeliveries;
use super::item::{BEGUN, HELD_AT, ROUND, decode, due_key, held_key, key, new_item};
use crate::table::{ABSENT, BatchRead, Item, Key, Query, Write};
use crate::tables::LISTED;
use crate::value::{epoch_milliseconds, number, optional_number, text, time};

/// Upper bound: `~` sorts after every hexadecimal digit.
const LAST: &str = "~";

impl History for DynamoDbDeliveries {
    async fn get(&self, id: &DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        let found = self.table.get(&key(id)).await?;
        found.map(decode).transpose()
    }

    async fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DeliveryRecord>, StoreError> {
        query.check()?;
        let (partition, mut request) = match &query.subject {
            Subject::Client(id) => of_client(id.as_str(), query),
            Subject::Sensor(id) => of_sensor(id.as_str(), query),
        };
        request.descending = !query.oldest_first;
        if let Some(status) = query.status {
            request.filter = Some("#status = :status".to_owned());
            request = request.value(":status", text(status.as_str()));
        }
        let bound = |time: Option<Timestamp>| time.map_or(String::new(), |time| time.to_string());
        let (from, to) = (bound(query.from), bound(query.to));
        let order = match query.oldest_first {
            true => "oldest first",
            false => "newest first",
        };
        let status = query.status.map_or("", Status::as_str);
        let listing = ["deliveries", &partition, &from, &to, status, order];
        let page = self.table.page(&listing, request, query.limit, cursor);
        page.await?.try_map(decode)
    }

    async fn requeued(&self, message: &DeliveryMessage, now: Timestamp) -> Result<(), StoreError> {
        let owed = message.round.saturating_sub(u32::from(!message.manual));
        let update = "SET #status = :pending, #round = :round, #manual = :manual, #begun = :none, \
             #queued = :queued, #updated = :now \
             REMOVE #claim, #claimedUntil, #waiting, #notBefore, #ttl";
        let update = Write::update(key(&message.id), update)
            .condition(
                "#round < :round AND \
                 (attribute_not_exists(#deliveredRound) OR #deliveredRound < :owed)",
            )
            .value(":pending", text(Status::Pending.as_str()))
            .value(":round", number(message.round))
            .value(":manual", AttributeValue::Bool(message.manual))
            .value(":none", number(0))
            .value(":queued", number(message.queued))
            .value(":now", time(now))
            .value(":owed", number(owed));
        self.table.write(update).await.map(drop)
    }

    async fn held(&self, client: &ClientId, limit: usize) -> Result<Vec<HeldDelivery>, StoreError> {
        let kind = ItemKind::HeldDelivery;
        let query = Query::starting_with(kind.partition(client.as_str()), kind.sort_prefix());
        let query = query.consistent().limit(limit);
        let items = self.table.query(query).await?.items;
        let mut entries = Vec::new();
        let mut orders: Vec<String> = Vec::new();
        for item in &items {
            if let Some(key) = self.table.key(item)
                && let Some(order) = key.sort.strip_prefix(kind.sort_prefix())
            {
                orders.push(order.to_owned());
                entries.push(HeldDelivery {
                    order: order.to_owned(),
                    round: optional_number(item, ROUND)?.unwrap_or_default(),
                    begun: optional_number(item, BEGUN)?.unwrap_or_default(),
                    held_at: from_milliseconds(optional_number(item, HELD_AT)?.unwrap_or_default()),
                    record: None,
                });
            }
        }
        let records = self.records(client, &orders).await?;
        let is_held = |record: &DeliveryRecord| record.progress.waiting == Some(Waiting::Held);
        for (entry, record) in entries.iter_mut().zip(records) {
            entry.record = record.filter(is_held);
        }
        Ok(entries)
    }

    async fn remove_held(&self, client: &ClientId, held: &HeldDelivery) -> Result<(), StoreError> {
        // A delivery that was held again meanwhile stays in the list.
        let delete = Write::delete(held_key(client, &held.order))
            .condition("#round = :round AND #begun = :begun AND #heldAt = :heldAt")
            .value(":round", number(held.round))
            .value(":begun", number(held.begun))
            .value(":heldAt", epoch_milliseconds(held.held_at));
        self.table.write(delete).await.map(drop)
    }
}

#[async_trait]
impl NewDeliveries for DynamoDbDeliveries {
    async fn add(&self, delivery: &Delivery, now: Timestamp) -> Result<(), StoreError> {
        let item = self.new_item(delivery, now)?;
        let put = Write::put(item).condition(ABSENT);
        self.table.write(put).await.map(drop)
    }

    async fn add_due(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<DeliveryMessage, StoreError> {
        let message = DeliveryMessage {
            queued: 1,
            ..DeliveryMessage::first(delivery)
        };
        let mut item = self.new_item(delivery, now)?;
        item.insert("waiting".to_owned(), text(Waiting::Due.as_str()));
        item.insert("notBefore".to_owned(), epoch_milliseconds(now));
        item.insert("queued".to_owned(), number(message.queued));
        let due = self.table.attributes(&due_key(&delivery.id, now));
        let writes = vec![Write::put(item), Write::put(due)];
        self.table.transact(writes).await?;
        Ok(message)
    }
}

impl DynamoDbDeliveries {
    fn new_item(&self, delivery: &Delivery, now: Timestamp) -> Result<Item, StoreError> {
        let mut item = new_item(delivery, now)?;
        item.extend(self.table.attributes(&key(&delivery.id)));
        Ok(item)
    }

    /// Reads deliveries of a client by their orders.
    async fn records(
        &self,
        client: &ClientId,
        orders: &[String],
    ) -> Result<Vec<Option<DeliveryRecord>>, StoreError> {
        let key = |order: &String| Key::new(ItemKind::Delivery, client.as_str(), order);
        let keys: Vec<Key> = orders.iter().map(key).collect();
        let mut found = self
            .table
            .get_many(keys.clone(), BatchRead::CONSISTENT)
            .await?;
        let records = keys
            .iter()
            .map(|key| found.remove(key).map(decode).transpose());
        records.collect()
    }
}

fn of_client(client: &str, query: &HistoryQuery) -> (String, Query) {
    let partition = ItemKind::Delivery.partition(client);
    let bound = |time: Option<Timestamp>, unbounded: &str| {
        let order = time.map_or(unbounded.to_owned(), DeliveryId::order_from);
        ItemKind::Delivery.sort(&order)
    };
    let (from, to) = (bound(query.from, ""), bound(query.to, LAST));
    let request = Query::between(&partition, from, to).consistent();
    (partition, request)
}

/// The sort keys of the index have no prefix, and DynamoDB rejects an empty bound.
fn of_sensor(sensor: &str, query: &HistoryQuery) -> (String, Query) {
    let partition = index_keys::deliveries(sensor);
    let bound = |time: Timestamp| text(DeliveryId::order_from(time));
    let to = query.to.map_or_else(|| text(LAST), bound);
    let request = match query.from {
        None => Query::new("#listKey = :partition AND #listSort <= :to"),
        Some(from) => Query::new("#listKey = :partition AND #listSort BETWEEN :from AND :to")
            .value(":from", bound(from)),
    };
    let request = request
        .index(LISTED)
        .value(":partition", text(&partition))
        .value(":to", to);
    (partition, request)
}
