//! Links: each lies with its sensor and with its client, written and removed together.

use antumbra_service::clients::{
    Client, ClientError, ClientId, ClientStore as _, Link, LinkStore, LinkedClient, LinkedClients,
    Mode,
};
use antumbra_service::notifications::BoxFuture;
use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, TransactWriteItem, Update};
use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::DynamoDbClients;
use super::item::{self, s, time};
use super::keys::{self, Item, client_key, key, link_key, mirror_key};
use super::store::{Failed, unbuilt};
use crate::errors;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

/// Tells cursors of links from others.
const CURSOR: &str = "links";
/// Links that are changed at the same time.
const AT_ONCE: usize = 8;
/// How often a link is tried whose client changes its mode at that moment.
const TRIES: u32 = 3;

/// What is done with each link of a client.
#[derive(Clone, Copy)]
enum Work {
    SetMode(Mode),
    Remove,
}

impl LinkStore for DynamoDbClients {
    async fn link(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> Result<(), ClientError> {
        for _ in 0..TRIES {
            let mode = self.get(client).await?.mode;
            let writes = vec![
                self.check(client_key(client), Some(mode))?,
                self.check(key(keys::sensor(sensor), keys::SENSOR_INFO), None)?,
                self.put_link(link_key(client, sensor), client, sensor, mode, now)?,
                self.put_link(mirror_key(client, sensor), client, sensor, mode, now)?,
            ];
            match self.transact(writes).await {
                Ok(()) => return Ok(()),
                Err(Failed::Condition((1, _))) => return Err(ClientError::NoSensor),
                // The client is gone or has another mode: the next look tells.
                Err(Failed::Condition(_)) => {}
                Err(Failed::Other(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Throttled.into())
    }

    async fn unlink(&self, client: &ClientId, sensor: &SensorId) -> Result<(), ClientError> {
        if self.remove(client, sensor, true).await? {
            Ok(())
        } else {
            Err(ClientError::NotLinked)
        }
    }

    async fn of_client(
        &self,
        client: &ClientId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        Ok(self
            .page(keys::client(client), keys::SENSOR, limit, cursor)
            .await?)
    }

    async fn of_sensor(
        &self,
        sensor: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        Ok(self
            .page(keys::sensor(sensor), keys::CLIENT, limit, cursor)
            .await?)
    }
}

impl LinkedClients for DynamoDbClients {
    fn linked<'a>(
        &'a self,
        sensor: &'a SensorId,
    ) -> BoxFuture<'a, Result<Vec<LinkedClient>, StoreError>> {
        Box::pin(async move {
            let mut all = Vec::new();
            let mut start = None;
            loop {
                let found = self
                    .query(keys::sensor(sensor), keys::CLIENT, None, start)
                    .await?;
                for item in &found.0 {
                    let link = item::decode_link(item)?;
                    all.push(LinkedClient {
                        client: link.client,
                        mode: link.mode,
                    });
                }
                start = found.1;
                if start.is_none() {
                    return Ok(all);
                }
            }
        })
    }
}

impl DynamoDbClients {
    /// Gives every link of a client its mode.
    pub(super) async fn spread_mode(&self, client: &Client) -> Result<(), ClientError> {
        self.each_link(&client.id, Work::SetMode(client.mode)).await
    }

    /// Removes every link of a client.
    pub(super) async fn unlink_all(&self, client: &ClientId) -> Result<(), ClientError> {
        self.each_link(client, Work::Remove).await
    }

    async fn set_mode(&self, link: &Link, mode: Mode) -> Result<(), StoreError> {
        if link.mode == mode {
            return Ok(());
        }
        let set = |key| -> Result<TransactWriteItem, StoreError> {
            let update = Update::builder()
                .table_name(&self.table)
                .set_key(Some(key))
                .update_expression("SET #mode = :mode")
                .condition_expression("attribute_exists(#pk)")
                .expression_attribute_names("#mode", item::MODE)
                .expression_attribute_names("#pk", PARTITION_KEY)
                .expression_attribute_values(":mode", s(mode.as_str()));
            let update = update.build().map_err(unbuilt)?;
            Ok(TransactWriteItem::builder().update(update).build())
        };
        let writes = vec![
            set(link_key(&link.client, &link.sensor))?,
            set(mirror_key(&link.client, &link.sensor))?,
        ];
        match self.transact(writes).await {
            // A link that was removed meanwhile needs no mode.
            Ok(()) | Err(Failed::Condition(_)) => Ok(()),
            Err(Failed::Other(error)) => Err(error),
        }
    }

    pub(super) async fn has_links(&self, client: &ClientId) -> Result<bool, StoreError> {
        let found = self
            .query(keys::client(client), keys::SENSOR, Some(1), None)
            .await?;
        Ok(!found.0.is_empty())
    }

    async fn each_link(&self, client: &ClientId, work: Work) -> Result<(), ClientError> {
        let mut start = None;
        loop {
            let (items, next) = self
                .query(keys::client(client), keys::SENSOR, None, start)
                .await?;
            let links = items.iter().map(item::decode_link);
            let links: Vec<Link> = links.collect::<Result<_, _>>()?;
            let mut under_way = FuturesUnordered::new();
            for link in &links {
                under_way.push(self.change_link(link, work));
                if under_way.len() == AT_ONCE {
                    under_way.try_next().await?;
                }
            }
            while under_way.try_next().await?.is_some() {}
            start = next;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    async fn change_link(&self, link: &Link, work: Work) -> Result<(), StoreError> {
        match work {
            Work::SetMode(mode) => self.set_mode(link, mode).await,
            Work::Remove => self
                .remove(&link.client, &link.sensor, false)
                .await
                .map(drop),
        }
    }

    /// Whether there was one.
    async fn remove(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        expected: bool,
    ) -> Result<bool, StoreError> {
        let delete = |key| -> Result<TransactWriteItem, StoreError> {
            let mut delete = Delete::builder().table_name(&self.table).set_key(Some(key));
            if expected {
                delete = delete
                    .condition_expression("attribute_exists(#pk)")
                    .expression_attribute_names("#pk", PARTITION_KEY);
            }
            let delete = delete.build().map_err(unbuilt)?;
            Ok(TransactWriteItem::builder().delete(delete).build())
        };
        let writes = vec![
            delete(link_key(client, sensor))?,
            delete(mirror_key(client, sensor))?,
        ];
        match self.transact(writes).await {
            Ok(()) => Ok(true),
            Err(Failed::Condition(_)) => Ok(false),
            Err(Failed::Other(error)) => Err(error),
        }
    }

    fn check(&self, key: Item, mode: Option<Mode>) -> Result<TransactWriteItem, StoreError> {
        let mut check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .condition_expression(match mode {
                None => "attribute_exists(#pk)",
                Some(_) => "attribute_exists(#pk) AND #mode = :mode",
            })
            .expression_attribute_names("#pk", PARTITION_KEY);
        if let Some(mode) = mode {
            check = check
                .expression_attribute_names("#mode", item::MODE)
                .expression_attribute_values(":mode", s(mode.as_str()));
        }
        let check = check.build().map_err(unbuilt)?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// A link that is there already keeps its time.
    fn put_link(
        &self,
        key: Item,
        client: &ClientId,
        sensor: &SensorId,
        mode: Mode,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .update_expression(
                "SET #client = :client, #sensor = :sensor, #mode = :mode, \
                 #since = if_not_exists(#since, :now)",
            )
            .expression_attribute_names("#client", item::ID)
            .expression_attribute_names("#sensor", item::SENSOR)
            .expression_attribute_names("#mode", item::MODE)
            .expression_attribute_names("#since", item::SINCE)
            .expression_attribute_values(":client", s(client.as_str()))
            .expression_attribute_values(":sensor", s(sensor.as_str()))
            .expression_attribute_values(":mode", s(mode.as_str()))
            .expression_attribute_values(":now", time(now));
        let update = update.build().map_err(unbuilt)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    async fn page(
        &self,
        partition: String,
        prefix: &str,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, StoreError> {
        let start = match cursor {
            None => None,
            Some(cursor) => Some(self.open_link(cursor, &partition)?),
        };
        let (items, last) = self
            .query(partition.clone(), prefix, Some(limit), start)
            .await?;
        let rows = items.iter().map(item::decode_link);
        let next = match last {
            None => None,
            Some(last) => {
                let sort = item::text(&last, SORT_KEY)?;
                Some(seal_cursor(&[CURSOR, &self.table, &partition, sort]))
            }
        };
        Ok(Page {
            rows: rows.collect::<Result<_, _>>()?,
            next,
        })
    }

    fn open_link(&self, cursor: &Cursor, partition: &str) -> Result<Item, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [CURSOR, table, of, sort] if table == self.table && of == partition => {
                Ok(key(partition.to_owned(), sort))
            }
            _ => Err(StoreError::Invalid(
                "the cursor belongs to another listing".to_owned(),
            )),
        }
    }

    async fn query(
        &self,
        partition: String,
        prefix: &str,
        limit: Option<usize>,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let found = self
            .database
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#pk = :pk AND begins_with(#sk, :prefix)")
            .expression_attribute_names("#pk", PARTITION_KEY)
            .expression_attribute_names("#sk", SORT_KEY)
            .expression_attribute_values(":pk", s(partition))
            .expression_attribute_values(":prefix", s(prefix))
            .set_limit(limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| errors::of_call("Query", &error, 0))?;
        Ok((found.items.unwrap_or_default(), found.last_evaluated_key))
    }
}
