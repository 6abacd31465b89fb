//! Everything a turn is decided by, in one read.

use std::collections::HashMap;
use std::time::Duration;

use antumbra_service::backoff;
use antumbra_service::deliveries::{Delivery, DeliveryContext, Kind};
use antumbra_service::sensors::state::attributes::{CHANGES, CONTACTS};
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};

use super::DynamoDbDeliveries;
use super::item::{DELIVERED_ROUND, last_turn};
use crate::clients::item::{self, optional_number};
use crate::clients::keys::{
    self, DELIVERY, INFO, Item, SECRETS, SENSOR, SENSOR_STATE, client_key, key, mirror_key,
    secrets_key,
};
use crate::clients::store::unbuilt;
use crate::errors;
use crate::shadows::SORT_KEY;

/// How often keys are asked for that DynamoDB leaves out.
const TRIES: u32 = 4;

impl DynamoDbDeliveries {
    pub(super) async fn read_standing(
        &self,
        delivery: &Delivery,
    ) -> Result<DeliveryContext, StoreError> {
        let client = delivery.id.client();
        let mut wanted = vec![
            client_key(client),
            secrets_key(client),
            key(keys::client(client), keys::delivery(&delivery.id)),
        ];
        if let Some(sensor) = &delivery.sensor {
            wanted.push(mirror_key(client, &sensor.id));
            wanted.push(key(keys::sensor(&sensor.id), SENSOR_STATE));
        }
        let found = self.read_all(wanted).await?;
        let of_kind = |fits: &dyn Fn(&str) -> bool| {
            found.iter().find(|item| {
                let sort = item.get(SORT_KEY).and_then(|sort| sort.as_s().ok());
                sort.is_some_and(|sort| fits(sort))
            })
        };
        let info = of_kind(&|sort| sort == INFO);
        let secrets = of_kind(&|sort| sort == SECRETS);
        let client = match (info, secrets) {
            (Some(info), Some(secrets)) => {
                Some((item::decode(info)?, item::decode_secrets(secrets)?))
            }
            _ => None,
        };
        let counter = match delivery.kind {
            Kind::StateChanged => Some(CHANGES),
            Kind::ConnectionLost | Kind::ConnectionRestored | Kind::ConnectionNeverSeen => {
                Some(CONTACTS)
            }
            Kind::ClientTest => None,
        };
        let newest = match (of_kind(&|sort| sort == SENSOR_STATE), counter) {
            (Some(state), Some(counter)) => optional_number(state, counter)?,
            _ => None,
        };
        let (delivered_round, last_turn) = match of_kind(&|sort| sort.starts_with(DELIVERY)) {
            Some(record) => (
                optional_number(record, DELIVERED_ROUND)?,
                last_turn(record, delivery.round)?,
            ),
            None => (None, 0),
        };
        Ok(DeliveryContext {
            client,
            linked: of_kind(&|sort| sort.starts_with(SENSOR)).is_some(),
            newest,
            delivered_round,
            last_turn,
        })
    }

    async fn read_all(&self, wanted: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut left = wanted;
        for attempt in 1..=TRIES {
            let keys = KeysAndAttributes::builder()
                .set_keys(Some(left))
                .consistent_read(true);
            let keys = keys.build().map_err(unbuilt)?;
            let answer = self
                .database
                .batch_get_item()
                .request_items(&self.table, keys)
                .send()
                .await
                .map_err(|error| errors::of_call("BatchGetItem", &error, 0))?;
            items.extend(
                answer
                    .responses
                    .into_iter()
                    .flat_map(HashMap::into_values)
                    .flatten(),
            );
            left = answer
                .unprocessed_keys
                .into_iter()
                .flat_map(HashMap::into_values)
                .flat_map(|unprocessed| unprocessed.keys)
                .collect::<Vec<HashMap<String, AttributeValue>>>();
            if left.is_empty() {
                return Ok(items);
            }
            let pause: Duration = backoff::delay(attempt, fastrand::f64());
            tokio::time::sleep(pause).await;
        }
        Err(StoreError::Throttled)
    }
}
