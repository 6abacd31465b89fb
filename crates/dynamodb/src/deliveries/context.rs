//! Reads the context of a message: its items in one call, the client's secrets at the same time, and then the oldest
//! deferred delivery of the same sensor, if there is one.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{DeliveryContext, DeliveryMessage, EventType};
use antumbra_service::sensors::state::attributes::{CHANGES, CONTACTS, GENERATION};
use antumbra_service::sensors::{Generation, SensorId};
use antumbra_service::store::StoreError;
use antumbra_wire::items::ItemKind;
use futures_util::future::try_join;

use super::DynamoDbDeliveries;
use super::item::{CHAIN_VERSION, DEFERRED, chain_key, decode, key};
use crate::clients::item::{client_key, decode_client, decode_secrets, mirror_key, secrets_key};
use crate::table::{BatchRead, Key, Query};
use crate::value::{corrupt, optional_number, read_text};

impl DynamoDbDeliveries {
    pub(super) async fn read_context(
        &self,
        message: &DeliveryMessage,
    ) -> Result<DeliveryContext, StoreError> {
        let client = message.id.client();
        let own = [client_key(client), key(&message.id)];
        let of_sensor = message.sensor.as_ref().map(|sensor| {
            [
                mirror_key(client, sensor),
                Key::new(ItemKind::SensorState, sensor.as_str(), ""),
                chain_key(client, sensor),
            ]
        });
        let keys = own.iter().chain(of_sensor.iter().flatten()).cloned();
        let found = self.table.get_many(keys.collect(), BatchRead::CONSISTENT);
        let secrets = secrets_key(client);
        let (mut found, secrets) = try_join(found, self.secrets_table.get(&secrets)).await?;
        let [info, record] = own.map(|key| found.remove(&key));
        let mut context = DeliveryContext {
            record: record.map(decode).transpose()?,
            ..DeliveryContext::default()
        };
        if let (Some(info), Some(secrets)) = (info, secrets) {
            context.client = Some((decode_client(info)?, decode_secrets(secrets)?));
        }
        let (Some(keys), Some(sensor)) = (of_sensor, &message.sensor) else {
            return Ok(context);
        };
        let [link, state, chain] = keys.map(|key| found.remove(&key));
        context.linked = link.is_some();
        if let Some(state) = state {
            let counter = match context.record.as_ref().map(|one| one.delivery.event_type) {
                Some(EventType::StateChanged) => CHANGES,
                _ => CONTACTS,
            };
            context.newest = optional_number(&state, counter)?;
            let generation = Generation::new(read_text(&state, GENERATION)?);
            let generation = generation.map_err(|_| corrupt(GENERATION, "invalid"))?;
            context.generation = Some(generation);
        }
        if let Some(chain) = &chain {
            context.deferred = optional_number(chain, DEFERRED)?.unwrap_or_default();
            context.chain_version = optional_number(chain, CHAIN_VERSION)?.unwrap_or_default();
        }
        if context.deferred > 0 {
            let oldest = self.deferred_deliveries(client, sensor, 1).await?;
            context.oldest_deferred = oldest.into_iter().next();
        }
        Ok(context)
    }

    /// The orders of the oldest deliveries that later ones of the sensor wait for.
    pub(super) async fn deferred_deliveries(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let prefix = ItemKind::DeferredDelivery.sort(&format!("{sensor}#"));
        let partition = ItemKind::DeferredDelivery.partition(client.as_str());
        let query = Query::starting_with(partition, &prefix).consistent();
        let items = self.table.query(query.limit(limit)).await?.items;
        let orders = items.iter().filter_map(|item| self.table.key(item));
        let orders = orders.filter_map(|key| key.sort.strip_prefix(&prefix).map(str::to_owned));
        Ok(orders.collect())
    }
}
