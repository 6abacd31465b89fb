//! The history: of a client from its own partition, of a sensor from the index.

use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryRecord, History, HistoryQuery, Status, Subject,
};
use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;

use super::DynamoDbDeliveries;
use super::item::{self, ROUND, STATUS, TTL, UPDATED, expiry, fixed};
use crate::clients::item::{n, s, text, time};
use crate::clients::keys::{self, DELIVERY, Item, key};
use crate::clients::update::outcome;
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};
use crate::tables::LISTED;

/// Tells cursors of histories from others.
const CURSOR: &str = "deliveries";
/// Behind every delivery's order, which is of hexadecimal digits.
const BEHIND: &str = "~";

impl History for DynamoDbDeliveries {
    async fn get(&self, id: &DeliveryId) -> Result<Option<DeliveryRecord>, StoreError> {
        let found = self
            .database
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key(keys::client(id.client()), keys::delivery(id))))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| errors::of_call("GetItem", &error, 0))?;
        found.item.as_ref().map(item::decode).transpose()
    }

    async fn list(
        &self,
        query: &HistoryQuery,
        cursor: Option<&Cursor>,
    ) -> Result<Page<DeliveryRecord>, StoreError> {
        let place = Place::of(&query.subject);
        let start = match cursor {
            None => None,
            Some(cursor) => Some(self.open(cursor, &place)?),
        };
        let bound = |time: Option<Timestamp>, without: &str| {
            let order = time.map_or(without.to_owned(), DeliveryId::order_from);
            s(format!("{}{order}", place.prefix))
        };
        let mut request = self
            .database
            .query()
            .table_name(&self.table)
            .key_condition_expression("#partition = :of AND #sort BETWEEN :from AND :to")
            .expression_attribute_names("#partition", place.partition_key)
            .expression_attribute_names("#sort", place.sort_key)
            .expression_attribute_values(":of", s(&place.partition))
            .expression_attribute_values(":from", bound(query.from, ""))
            .expression_attribute_values(":to", bound(query.to, BEHIND))
            .scan_index_forward(query.oldest_first)
            .limit(i32::try_from(query.limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start);
        request = match place.index {
            Some(index) => request.index_name(index),
            None => request.consistent_read(true),
        };
        if let Some(status) = query.status {
            request = request
                .filter_expression("#status = :status")
                .expression_attribute_names("#status", STATUS)
                .expression_attribute_values(":status", s(status.as_str()));
        }
        let found = request
            .send()
            .await
            .map_err(|error| errors::of_call("Query", &error, 0))?;
        let rows = found.items().iter().map(item::decode);
        let rows = rows.collect::<Result<_, _>>()?;
        let last = found.last_evaluated_key.as_ref();
        let next = last.map(|last| self.seal(last, &place)).transpose()?;
        Ok(Page { rows, next })
    }

    async fn requeued(&self, delivery: &Delivery, now: Timestamp) -> Result<(), StoreError> {
        let mut values = fixed(delivery);
        values.extend([
            (STATUS, s(Status::Pending.as_str())),
            (UPDATED, time(now)),
            (TTL, expiry(now, self.retention)),
        ]);
        let mut set = vec!["#round = :round".to_owned()];
        let mut update = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(
                keys::client(delivery.id.client()),
                keys::delivery(&delivery.id),
            )))
            .condition_expression("attribute_not_exists(#round) OR #round < :round")
            .expression_attribute_names("#round", ROUND)
            .expression_attribute_values(":round", n(delivery.round))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (place, (name, value)) in values.into_iter().enumerate() {
            set.push(format!("#a{place} = :a{place}"));
            update = update
                .expression_attribute_names(format!("#a{place}"), name)
                .expression_attribute_values(format!(":a{place}"), value);
        }
        let update = update.update_expression(format!("SET {}", set.join(", ")));
        outcome(update.send().await).map(drop)
    }
}

/// Where a history lies.
struct Place {
    index: Option<&'static str>,
    partition_key: &'static str,
    sort_key: &'static str,
    partition: String,
    prefix: &'static str,
}

impl Place {
    fn of(subject: &Subject) -> Place {
        match subject {
            Subject::Client(id) => Place {
                index: None,
                partition_key: PARTITION_KEY,
                sort_key: SORT_KEY,
                partition: keys::client(id),
                prefix: DELIVERY,
            },
            Subject::Sensor(id) => Place {
                index: Some(LISTED.name),
                partition_key: LISTED.partition_key,
                sort_key: LISTED.sort_key.0,
                partition: keys::deliveries_of(id),
                prefix: "",
            },
        }
    }
}

impl DynamoDbDeliveries {
    fn seal(&self, last: &Item, place: &Place) -> Result<Cursor, StoreError> {
        let partition = text(last, PARTITION_KEY)?;
        let sort = text(last, SORT_KEY)?;
        let listed = text(last, place.sort_key)?;
        Ok(seal_cursor(&[
            CURSOR,
            &self.table,
            &place.partition,
            partition,
            sort,
            listed,
        ]))
    }

    fn open(&self, cursor: &Cursor, place: &Place) -> Result<Item, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [CURSOR, table, of, partition, sort, listed]
                if table == self.table && of == place.partition =>
            {
                let mut start = key(partition.to_owned(), sort);
                if place.index.is_some() {
                    start.insert(place.partition_key.to_owned(), s(of));
                    start.insert(place.sort_key.to_owned(), s(listed));
                }
                Ok(start)
            }
            _ => Err(StoreError::Invalid(
                "the cursor belongs to another listing".to_owned(),
            )),
        }
    }
}
