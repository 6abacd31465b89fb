use antumbra_service::paging::page_limit;
use antumbra_service::sensors::{
    Cursor, Page, RegisteredSensor, Sensor, SensorError, SensorId, SensorQuery, SensorStore,
    SensorWithState, State, StoreError, Version,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::index_keys;

use super::DynamoDbSensors;
use super::item::{self, VERSION};
use super::keys;
use crate::clients::links::{REMOVALS_AT_ONCE, removal};
use crate::table::{ABSENT, Item, Key, Outcome, Write};
use crate::value::{epoch_milliseconds, number, read_number, text};

const SAME_GENERATION: &str = "#generation = :generation";
/// Sets the attributes of a sensor that its state repeats.
const COPIES: &str = "SET #address = :address, #type = :type";
/// A shorter silence counts from the last contact, before the first contact from the registration. The
/// next check is now, whatever it was: the sweep sets the right time, and removes that of a lost sensor.
const SILENCE: &str = ", #silenceAfterMs = :silence, \
     #deadline = if_not_exists(#lastSeen, #registeredAt) + :silence, \
     #checkAt = :now, #liveShard = :shard";

impl SensorStore for DynamoDbSensors {
    async fn register(&self, new: &RegisteredSensor) -> Result<RegisteredSensor, SensorError> {
        // Times are stored in milliseconds, and the result is what is stored.
        let sensor = item::of_sensor(&self.table, new)?;
        let new = item::sensor(sensor.clone())?;
        let state = item::of_new_state(&self.table, &new, self.config.shards);
        let writes = vec![Write::put(sensor).condition(ABSENT), Write::put(state)];
        let stored = match self.table.transact(writes).await? {
            Outcome::Applied(_) => return Ok(new),
            Outcome::Refused(refusal) => refusal.stored.map(item::sensor).transpose()?,
        };
        stored
            // Stored by an earlier attempt whose response was lost.
            .filter(|stored| stored.is_made_by(&new))
            .ok_or(SensorError::AlreadyRegistered)
    }

    async fn get(&self, id: &SensorId) -> Result<RegisteredSensor, SensorError> {
        Ok(item::sensor(self.read(&keys::sensor(id)).await?)?)
    }

    async fn state(&self, id: &SensorId) -> Result<State, SensorError> {
        Ok(item::state(&self.read(&keys::state(id)).await?)?)
    }

    async fn change(
        &self,
        before: &RegisteredSensor,
        after: &Sensor,
        now: Timestamp,
    ) -> Result<RegisteredSensor, SensorError> {
        let old = &before.sensor;
        if old.id != after.id {
            let reason = "a sensor's id cannot change".to_owned();
            return Err(StoreError::Invalid(reason).into());
        }
        let changed = RegisteredSensor {
            sensor: after.clone(),
            version: before.version.next(),
            ..before.clone()
        };
        let item = item::of_sensor(&self.table, &changed)?;
        let put = as_read(Write::put(item.clone()), before);
        let silence = old.silence_after != after.silence_after;
        let copied = |sensor: &Sensor| (sensor.address.clone(), sensor.sensor_type.clone());
        let outcome = if silence || copied(old) != copied(after) {
            let state = self.copy_to_state(&changed, silence, now);
            self.table.transact(vec![put, state]).await?
        } else {
            self.table.write(put).await?
        };
        match outcome {
            Outcome::Applied(_) => Ok(changed),
            // An earlier attempt whose response was lost has written it.
            Outcome::Refused(refusal)
                if refusal.in_doubt && refusal.stored.as_ref() == Some(&item) =>
            {
                Ok(changed)
            }
            Outcome::Refused(refusal) if refusal.at == 0 => {
                Err(conflict(before, refusal.stored.as_ref())?)
            }
            // A state is removed with its sensor, so the sensor is another one too.
            Outcome::Refused(_) => Err(SensorError::NotFound),
        }
    }

    async fn unregister(
        &self,
        sensor: &RegisteredSensor,
        now: Timestamp,
    ) -> Result<(), SensorError> {
        let id = &sensor.sensor.id;
        let links = self.links(id).await?;
        let own = [
            as_read(Write::delete(keys::sensor(id)), sensor),
            Write::delete(keys::state(id)),
            self.put_purge(sensor, now),
        ];
        let links = links.iter().take(REMOVALS_AT_ONCE);
        let links = links.flat_map(|link| removal(&self.table, link, now));
        let writes = own.into_iter().chain(links).collect();
        if let Outcome::Refused(refusal) = self.table.transact(writes).await? {
            return Err(conflict(sensor, refusal.stored.as_ref())?);
        }
        // The sensor is unregistered. The purge does the rest if this fails.
        if let Err(error) = self.delete_orphaned_links(id, now).await {
            tracing::warn!(%error, sensor = %id, "the purge removes the remaining links");
        }
        Ok(())
    }

    async fn list(
        &self,
        query: &SensorQuery,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorWithState>, SensorError> {
        page_limit(limit)?;
        match &query.place {
            Some(place) => self.list_place(query, place, limit, cursor).await,
            None => self.list_ids(query, limit, cursor).await,
        }
    }
}

impl DynamoDbSensors {
    async fn read(&self, key: &Key) -> Result<Item, SensorError> {
        self.table.get(key).await?.ok_or(SensorError::NotFound)
    }

    fn copy_to_state(&self, changed: &RegisteredSensor, silence: bool, now: Timestamp) -> Write {
        let sensor = &changed.sensor;
        let update = match silence {
            false => Write::update(keys::state(&sensor.id), COPIES),
            true => {
                let shard = index_keys::live_shard(sensor.id.shard(self.config.shards));
                Write::update(keys::state(&sensor.id), format!("{COPIES}{SILENCE}"))
                    .value(":silence", number(sensor.silence_after.as_milliseconds()))
                    .value(":now", epoch_milliseconds(now))
                    .value(":shard", text(shard))
            }
        };
        update
            .condition(SAME_GENERATION)
            .value(":address", text(sensor.address.as_str()))
            .value(":type", text(sensor.sensor_type.as_str()))
            .value(":generation", text(changed.generation.as_str()))
    }
}

/// Adds the condition that the sensor still has the version and generation that were read.
fn as_read(write: Write, sensor: &RegisteredSensor) -> Write {
    write
        .condition("#version = :version AND #generation = :generation")
        .value(":version", number(sensor.version))
        .value(":generation", text(sensor.generation.as_str()))
}

/// The error for a sensor that is not as it was read.
fn conflict(before: &RegisteredSensor, stored: Option<&Item>) -> Result<SensorError, StoreError> {
    Ok(match stored {
        None => SensorError::NotFound,
        Some(stored) => SensorError::Conflict {
            expected: before.version,
            actual: Version(read_number(stored, VERSION)?),
        },
    })
}
