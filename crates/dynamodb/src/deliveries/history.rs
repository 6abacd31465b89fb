//! History of deliveries: of a client from its own partition, of a sensor from the index `Listed`.

use antumbra_service::deliveries::{
    Delivery, DeliveryId, DeliveryRecord, History, HistoryQuery, Status, Subject,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::items::{ItemKind, index_keys};

use super::DynamoDbDeliveries;
use super::item::{attributes, decode, key};
use crate::table::{Query, Write};
use crate::tables::LISTED;
use crate::value::text;

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
        let (partition, mut request) = match &query.subject {
            Subject::Client(id) => of_client(id.as_str(), query),
            Subject::Sensor(id) => of_sensor(id.as_str(), query),
        };
        request.descending = !query.oldest_first;
        if let Some(status) = query.status {
            request.filter = Some("#status = :status".to_owned());
            request = request.value(":status", text(status.as_str()));
        }
        let listing = ["deliveries", &partition];
        let page = self
            .table
            .page(&listing, request, query.limit, cursor)
            .await?;
        let rows = page.rows.into_iter().map(decode);
        Ok(Page {
            rows: rows.collect::<Result<_, _>>()?,
            next: page.next,
        })
    }

    async fn requeued(&self, delivery: &Delivery, now: Timestamp) -> Result<(), StoreError> {
        let expires_at = now.after(self.retention);
        let attributes = attributes(delivery, Status::Pending, now, expires_at)?;
        let update = Write::set(key(&delivery.id), attributes, &[])
            .condition("attribute_not_exists(#round) OR #round < :round");
        self.table.write(update).await.map(drop)
    }
}

fn of_client(client: &str, query: &HistoryQuery) -> (String, Query) {
    let partition = ItemKind::Delivery.partition(client);
    let bound = |time: Option<Timestamp>, unbounded: &str| {
        let order = time.map_or(unbounded.to_owned(), DeliveryId::order_from);
        text(ItemKind::Delivery.sort(&order))
    };
    let request = Query::new("#PK = :partition AND #SK BETWEEN :from AND :to")
        .value(":partition", text(&partition))
        .value(":from", bound(query.from, ""))
        .value(":to", bound(query.to, LAST));
    let request = Query {
        consistent: true,
        ..request
    };
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
    let request = Query {
        index: Some(LISTED),
        ..request
    };
    let request = request
        .value(":partition", text(&partition))
        .value(":to", to);
    (partition, request)
}
