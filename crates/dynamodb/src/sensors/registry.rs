//! Sensors come, change and are looked at.

use std::collections::HashMap;

use antumbra_service::sensors::moment::milliseconds;
use antumbra_service::sensors::{
    RegisteredSensor, Sensor, SensorError, SensorId, State, StoreError, Version,
};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValuesOnConditionCheckFailure as OnFailure, TransactWriteItem,
    Update,
};

use super::DynamoDbSensors;
use super::call::names;
use super::item::{self, Item, number, text};
use super::keys;
use crate::attempts::AttemptTracker;
use crate::errors::{self, Cancelled};

const ABSENT: &str = "attribute_not_exists(#PK)";
/// The sensor whose version and generation somebody has read.
pub(super) const AS_READ: &str = "#version = :version AND #generation = :generation";
const COPIES: &str = "SET #address = :address, #type = :type";
/// A shorter silence counts from the last contact, or from the registration before the first. When to
/// look is set to now, whatever it was: the sweep puts it right, and takes away that of a lost sensor.
const SILENCE: &str = ", #silenceAfterMs = :silence, \
     #deadline = if_not_exists(#lastSeen, #registeredAt) + :silence, \
     #checkAt = :now, #liveShard = :shard";
const SAME_GENERATION: &str = "#generation = :generation";

/// A transaction that was not made.
pub(super) enum Refused {
    /// The condition of the change at this place failed; this is there.
    Condition(usize, Option<Item>),
    Store(StoreError),
}

impl DynamoDbSensors {
    pub(super) async fn register_sensor(
        &self,
        new: &RegisteredSensor,
    ) -> Result<RegisteredSensor, SensorError> {
        // Times are kept in milliseconds, and what is given back is what is kept.
        let new = item::sensor(&item::of_sensor(new))?;
        let sensor = self.put(item::of_sensor(&new), Some(ABSENT), HashMap::new());
        let state = self.put(
            item::of_new_state(&new, self.config.shards),
            None,
            HashMap::new(),
        );
        let items = built([sensor, state])?;
        match self.transact(items).await {
            Ok(()) => Ok(new),
            Err(Refused::Condition(_, Some(stored))) => {
                let stored = item::sensor(&stored)?;
                if stored.sensor == new.sensor {
                    Ok(stored)
                } else {
                    Err(SensorError::AlreadyRegistered)
                }
            }
            Err(Refused::Condition(_, None)) => Err(SensorError::AlreadyRegistered),
            Err(Refused::Store(error)) => Err(error.into()),
        }
    }

    pub(super) async fn get_sensor(&self, id: &SensorId) -> Result<RegisteredSensor, SensorError> {
        Ok(item::sensor(&self.get_item(id, keys::INFO).await?)?)
    }

    pub(super) async fn get_state(&self, id: &SensorId) -> Result<State, SensorError> {
        Ok(item::state(&self.get_item(id, keys::STATE).await?)?)
    }

    async fn get_item(&self, id: &SensorId, sort: &str) -> Result<Item, SensorError> {
        let sent = self
            .client
            .get_item()
            .table_name(&self.config.table)
            .set_key(Some(keys::key(id, sort)))
            .consistent_read(true)
            .send()
            .await;
        let output = sent.map_err(|error| errors::of_call("GetItem", &error, 0))?;
        output.item.ok_or(SensorError::NotFound)
    }

    pub(super) async fn change_sensor(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> Result<RegisteredSensor, SensorError> {
        if before.sensor.id != after.id {
            let fault = "a sensor's id cannot change".to_owned();
            return Err(StoreError::Invalid(fault).into());
        }
        let changed = RegisteredSensor {
            sensor: after.clone(),
            version: before.version.next(),
            ..before.clone()
        };
        let old = &before.sensor;
        let copied = |sensor: &Sensor| (sensor.address.clone(), sensor.sensor_type.clone());
        let silence = old.silence_after != after.silence_after;
        if copied(old) == copied(after) && !silence {
            return self.put_changed(before, changed).await;
        }
        let sensor = self.put(item::of_sensor(&changed), Some(AS_READ), as_read(before));
        let state = self.copy_to_state(&changed, silence, now);
        match self.transact(built([sensor, state])?).await {
            Ok(()) => Ok(changed),
            Err(Refused::Condition(0, stored)) => Err(refused(before, stored.as_ref())?),
            // The state goes with the sensor, so the sensor is another one too.
            Err(Refused::Condition(..)) => Err(SensorError::NotFound),
            Err(Refused::Store(error)) => Err(error.into()),
        }
    }

    /// A change that the state need not know of.
    async fn put_changed(
        &self,
        before: &RegisteredSensor,
        changed: RegisteredSensor,
    ) -> Result<RegisteredSensor, SensorError> {
        let attempts = AttemptTracker::default();
        let item = item::of_sensor(&changed);
        let sent = self
            .client
            .put_item()
            .table_name(&self.config.table)
            .set_item(Some(item.clone()))
            .condition_expression(AS_READ)
            .set_expression_attribute_names(Some(names(&[AS_READ])))
            .set_expression_attribute_values(Some(as_read(before)))
            .return_values_on_condition_check_failure(OnFailure::AllOld)
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await;
        let Err(error) = sent else { return Ok(changed) };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                // The answer to an earlier attempt was lost, and this one met what that one had done.
                if attempts.doubtful() && failed.item.as_ref() == Some(&item) {
                    return Ok(changed);
                }
                Err(refused(before, failed.item.as_ref())?)
            }
            _ => Err(errors::of_call("PutItem", &error, 0).into()),
        }
    }

    fn put(
        &self,
        item: Item,
        condition: Option<&str>,
        values: HashMap<String, AttributeValue>,
    ) -> Result<TransactWriteItem, BuildError> {
        let put = Put::builder()
            .table_name(&self.config.table)
            .set_item(Some(item))
            .set_condition_expression(condition.map(str::to_owned))
            .set_expression_attribute_names(condition.map(|condition| names(&[condition])))
            .set_expression_attribute_values(Some(values).filter(|values| !values.is_empty()))
            .return_values_on_condition_check_failure(OnFailure::AllOld);
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }

    fn copy_to_state(
        &self,
        changed: &RegisteredSensor,
        silence: bool,
        now: Timestamp,
    ) -> Result<TransactWriteItem, BuildError> {
        let sensor = &changed.sensor;
        let mut update = COPIES.to_owned();
        let mut values = HashMap::from([
            (":address".to_owned(), text(sensor.address.as_str())),
            (":type".to_owned(), text(sensor.sensor_type.as_str())),
            (":generation".to_owned(), text(changed.generation.as_str())),
        ]);
        if silence {
            update.push_str(SILENCE);
            let shard = keys::shard(sensor.id.shard(self.config.shards));
            values.extend([
                (
                    ":silence".to_owned(),
                    number(sensor.silence_after.as_milliseconds()),
                ),
                (":now".to_owned(), number(milliseconds(now))),
                (":shard".to_owned(), text(shard)),
            ]);
        }
        let update = Update::builder()
            .table_name(&self.config.table)
            .set_key(Some(keys::key(&sensor.id, keys::STATE)))
            .set_expression_attribute_names(Some(names(&[&update, SAME_GENERATION])))
            .update_expression(update)
            .condition_expression(SAME_GENERATION)
            .set_expression_attribute_values(Some(values));
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }

    /// All of it or nothing. The SDK gives each transaction a token of its own, so that one tried again is
    /// not made twice.
    pub(super) async fn transact(&self, items: Vec<TransactWriteItem>) -> Result<(), Refused> {
        const OPERATION: &str = "TransactWriteItems";
        let call = self.client.transact_write_items();
        let sent = call.set_transact_items(Some(items)).send().await;
        let Err(error) = sent else { return Ok(()) };
        if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
            error.as_service_error()
        {
            return Err(
                match errors::of_reasons(OPERATION, cancelled.cancellation_reasons(), 0) {
                    Cancelled::Condition(at, reason) => {
                        let stored = reason.item.clone().filter(|item| !item.is_empty());
                        Refused::Condition(at, stored)
                    }
                    Cancelled::Other(error) => Refused::Store(error),
                },
            );
        }
        Err(Refused::Store(errors::of_call(OPERATION, &error, 0)))
    }
}

/// What [`AS_READ`] compares with.
pub(super) fn as_read(sensor: &RegisteredSensor) -> HashMap<String, AttributeValue> {
    HashMap::from([
        (":version".to_owned(), number(sensor.version)),
        (":generation".to_owned(), text(sensor.generation.as_str())),
    ])
}

/// What it means that a sensor is not as it was read.
pub(super) fn refused(
    before: &RegisteredSensor,
    stored: Option<&Item>,
) -> Result<SensorError, StoreError> {
    let Some(stored) = stored.filter(|item| !item.is_empty()) else {
        return Ok(SensorError::NotFound);
    };
    Ok(SensorError::Conflict {
        expected: before.version,
        actual: Version(item::whole(stored, item::VERSION)?),
    })
}

pub(super) fn built(
    items: impl IntoIterator<Item = Result<TransactWriteItem, BuildError>>,
) -> Result<Vec<TransactWriteItem>, StoreError> {
    let items: Result<Vec<_>, _> = items.into_iter().collect();
    items.map_err(|error| StoreError::Invalid(error.to_string()))
}
