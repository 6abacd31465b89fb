//! The context of a delivery attempt, in one read.

use antumbra_service::deliveries::{Delivery, DeliveryContext, EventType};
use antumbra_service::sensors::state::attributes::{CHANGES, CONTACTS};
use antumbra_service::store::StoreError;
use antumbra_wire::items::ItemKind;

use super::DynamoDbDeliveries;
use super::item::{DELIVERED_ROUND, key, last_attempt};
use crate::clients::item::{client_key, decode_client, decode_secrets, mirror_key, secrets_key};
use crate::table::{BatchRead, Key};
use crate::value::optional_number;

impl DynamoDbDeliveries {
    pub(super) async fn read_context(
        &self,
        delivery: &Delivery,
    ) -> Result<DeliveryContext, StoreError> {
        let client = delivery.id.client();
        let sensor = delivery.sensor.as_ref().map(|sensor| &sensor.id);
        let link = sensor.map(|sensor| mirror_key(client, sensor));
        let state = sensor.map(|sensor| Key::new(ItemKind::SensorState, sensor.as_str(), ""));
        let own = [client_key(client), secrets_key(client), key(&delivery.id)];
        let keys = own
            .clone()
            .into_iter()
            .chain(link.clone())
            .chain(state.clone());
        let found = self.table.get_many(keys.collect(), BatchRead::CONSISTENT);
        let mut found = found.await?;
        let [info, secrets, record] = own.map(|key| found.remove(&key));
        let counter = match delivery.event_type {
            EventType::StateChanged => Some(CHANGES),
            EventType::ConnectionLost
            | EventType::ConnectionRestored
            | EventType::ConnectionNeverSeen => Some(CONTACTS),
            EventType::ClientTest => None,
        };
        let newest = match (state.and_then(|state| found.get(&state)), counter) {
            (Some(state), Some(counter)) => optional_number(state, counter)?,
            _ => None,
        };
        let mut context = DeliveryContext {
            linked: link.is_some_and(|link| found.contains_key(&link)),
            newest,
            ..DeliveryContext::default()
        };
        if let (Some(info), Some(secrets)) = (info, secrets) {
            context.client = Some((decode_client(info)?, decode_secrets(secrets)?));
        }
        if let Some(record) = record {
            context.delivered_round = optional_number(&record, DELIVERED_ROUND)?;
            context.last_attempt = last_attempt(&record, delivery.round)?;
        }
        Ok(context)
    }
}
