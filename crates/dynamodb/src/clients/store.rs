use antumbra_service::access::IdRanges;
use antumbra_service::clients::{
    Client, ClientError, ClientId, ClientPatch, ClientState, ClientStore, RequestKey, Rotation,
    Secret, Secrets,
};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::index_keys::{self, LIST_SHARDS};

use super::DynamoDbClients;
use super::item::{
    CURRENT, ClientItem, DISABLED, ENABLED, SecretsItem, client_key, decode_client, decode_secrets,
    secrets_key,
};
use futures_util::future::try_join;

use crate::deliveries::item::release_key;
use crate::table::{ABSENT, EXISTS, Item, OrderedListing, Outcome, Write};
use crate::tables::LISTED;
use crate::value::{epoch_milliseconds, number, text, time};

const CHANGED: &str = "SET #version = #version + :one, #updated = :now";

impl ClientStore for DynamoDbClients {
    async fn create(
        &self,
        client: &Client,
        secret: &Secret,
        requested: &RequestKey,
    ) -> Result<(), ClientError> {
        let info = self
            .table
            .item(&client_key(&client.id), &ClientItem::new(client))?;
        let secrets = SecretsItem::new(secret, requested);
        let secrets = self
            .secrets_table
            .item(&secrets_key(&client.id), &secrets)?;
        let [info, secrets] = [info, secrets].map(|item| Write::put(item).condition(ABSENT));
        let writes = vec![info, secrets.in_table(&self.secrets_table)];
        match self.table.transact(writes.clone()).await? {
            Outcome::Applied(_) => return Ok(()),
            // Only the secrets item exists: the delete of a former client was interrupted.
            Outcome::Refused(refusal) if refusal.at == 1 => {
                self.finish_delete(&client.id, client.created).await?;
            }
            Outcome::Refused(_) => return Err(ClientError::AlreadyExists),
        }
        match self.table.transact(writes).await? {
            Outcome::Applied(_) => Ok(()),
            Outcome::Refused(_) => Err(ClientError::AlreadyExists),
        }
    }

    async fn get(&self, id: &ClientId) -> Result<Client, ClientError> {
        let found = self.table.get(&client_key(id)).await?;
        Ok(decode_client(found.ok_or(ClientError::NotFound)?)?)
    }

    async fn list(
        &self,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Client>, ClientError> {
        let listing = OrderedListing {
            name: &["clients"],
            index: Some(LISTED),
            shards: (0..LIST_SHARDS).map(index_keys::clients).collect(),
            shard_of: &|id| {
                let id = ClientId::new(id);
                id.map_or(0, |id| id.shard(LIST_SHARDS) as usize)
            },
            ids: within.clone(),
            limit,
        };
        let decode = |items: Vec<(String, Item)>| async {
            let items = items.into_iter();
            let decode = |(id, item)| Ok((id, decode_client(item)?));
            items.map(decode).collect()
        };
        Ok(self.table.ordered_page(&listing, cursor, decode).await?)
    }

    async fn update(
        &self,
        id: &ClientId,
        patch: &ClientPatch,
        expected: Option<Version>,
        now: Timestamp,
    ) -> Result<Client, ClientError> {
        let updated = self.patch(id, patch, expected, now).await?;
        if patch.mode.is_some() {
            self.set_link_modes(&updated).await?;
        }
        Ok(updated)
    }

    async fn set_state(
        &self,
        id: &ClientId,
        state: &ClientState,
        now: Timestamp,
    ) -> Result<Client, ClientError> {
        let (update, release) = match state {
            // A client that is enabled again starts with a closed circuit, and with a task to release its held
            // deliveries.
            ClientState::Enabled => {
                let update = format!(
                    "{CHANGED}, #state = :state, #failures = :none \
                     REMOVE #reason, #since, #openUntil, #probingSince, #failingSince"
                );
                let update = Write::update(client_key(id), update)
                    .value(":state", text(ENABLED))
                    .value(":none", number(0));
                (update, Some(self.release_task(id, now)))
            }
            ClientState::Disabled { reason, since } => {
                let update =
                    format!("{CHANGED}, #state = :state, #reason = :reason, #since = :since");
                let update = Write::update(client_key(id), update)
                    .value(":state", text(DISABLED))
                    .value(":reason", text(reason))
                    .value(":since", time(*since));
                (update, None)
            }
        };
        let update = update
            .condition(format!("{EXISTS} AND #state <> :state"))
            .value(":one", number(1))
            .value(":now", time(now));
        let writes = std::iter::once(update).chain(release.clone()).collect();
        let outcome = self.table.transact(writes).await?;
        let Outcome::Refused(refusal) = outcome else {
            return self.get(id).await;
        };
        let stored = decode_client(refusal.stored.ok_or(ClientError::NotFound)?)?;
        // The release before may have been interrupted.
        if let Some(release) = release {
            self.table.write(release).await?;
        }
        Ok(stored)
    }

    /// The condition makes rotation idempotent per request, also if the SDK repeats the call.
    async fn rotate(&self, id: &ClientId, rotation: &Rotation) -> Result<Secrets, ClientError> {
        let rotate = Write::update(
            secrets_key(id),
            "SET #previous = #current, #previousUntil = :previousUntil, #current = :secret, \
             #previousRequestedBy = if_not_exists(#requestedBy, :by), \
             #previousRequestedUntil = if_not_exists(#requestedUntil, :until), \
             #requestedBy = :by, #requestedUntil = :until",
        )
        .condition(
            "attribute_exists(#current) AND (attribute_not_exists(#requestedBy) \
             OR #requestedBy <> :by OR #requestedUntil <= :now) \
             AND (attribute_not_exists(#previousRequestedBy) \
             OR #previousRequestedBy <> :by OR #previousRequestedUntil <= :now)",
        )
        .value(":secret", text(rotation.secret.reveal()))
        .value(":previousUntil", time(rotation.previous_until))
        .value(":by", text(&rotation.requested.by))
        .value(":until", epoch_milliseconds(rotation.requested.until))
        .value(":now", epoch_milliseconds(rotation.now))
        .returning_new();
        match self.secrets_table.write(rotate).await? {
            Outcome::Applied(stored) => secrets(Some(stored)),
            Outcome::Refused(refusal) => secrets(refusal.stored),
        }
    }

    async fn secrets(&self, id: &ClientId) -> Result<Secrets, ClientError> {
        secrets(self.secrets_table.get(&secrets_key(id)).await?)
    }

    /// With `cascade` the client goes first, on its condition, and its links after it: a failed
    /// precondition changes nothing. The emptied secrets item remains until the links are gone, so that
    /// the same call completes a delete that was interrupted.
    async fn delete(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        cascade: bool,
        now: Timestamp,
    ) -> Result<(), ClientError> {
        let (info, secrets) = (client_key(id), secrets_key(id));
        let (info, secrets) =
            try_join(self.table.get(&info), self.secrets_table.get(&secrets)).await?;
        match info {
            Some(client) => check_version(&decode_client(client)?, expected)?,
            None if secrets.is_some() => return self.finish_delete(id, now).await,
            None => return Err(ClientError::NotFound),
        }
        if !cascade {
            if self.has_links(id).await? {
                return Err(ClientError::HasLinks);
            }
            let secrets = Write::delete(secrets_key(id));
            self.delete_info(id, expected, secrets).await?;
            // A link may have been made since the check; now none can be.
            return self.unlink_all(id, now).await;
        }
        let emptied = "REMOVE #current, #previous, #previousUntil, #requestedBy, #requestedUntil, \
             #previousRequestedBy, #previousRequestedUntil";
        let emptied = Write::update(secrets_key(id), emptied);
        self.delete_info(id, expected, emptied).await?;
        self.finish_delete(id, now).await
    }
}

impl DynamoDbClients {
    async fn patch(
        &self,
        id: &ClientId,
        patch: &ClientPatch,
        expected: Option<Version>,
        now: Timestamp,
    ) -> Result<Client, ClientError> {
        let changes = [
            ("name", patch.name.clone()),
            ("url", patch.url.clone()),
            ("mode", patch.mode.map(|mode| mode.to_string())),
        ];
        let changes = changes
            .into_iter()
            .filter_map(|(name, to)| Some((name, to?)));
        let changes: Vec<(&str, String)> = changes.collect();
        let mut update = CHANGED.to_owned();
        for (name, _) in &changes {
            update.push_str(&format!(", #{name} = :{name}"));
        }
        // Failures of the former endpoint say nothing about the new one.
        if patch.url.is_some() {
            update.push_str(", #failures = :none REMOVE #openUntil, #probingSince, #failingSince");
        }
        let mut update = Write::update(client_key(id), update)
            .condition(EXISTS)
            .value(":one", number(1))
            .value(":now", time(now))
            .returning_new();
        for (name, to) in changes {
            update = update.value(&format!(":{name}"), text(to));
        }
        if patch.url.is_some() {
            update = update.value(":none", number(0));
        }
        if let Some(expected) = expected {
            update = update
                .condition(format!("{EXISTS} AND #version = :expected"))
                .value(":expected", number(expected));
        }
        let refusal = match self.table.write(update).await? {
            Outcome::Applied(updated) => return Ok(decode_client(updated)?),
            Outcome::Refused(refusal) => refusal,
        };
        let stored = decode_client(refusal.stored.ok_or(ClientError::NotFound)?)?;
        // An attempt whose response was lost wrote it; it does not conflict with itself.
        let ours = refusal.in_doubt
            && expected.is_some_and(|expected| stored.version == expected.next())
            && is_patched(&stored, patch);
        match expected {
            Some(expected) if !ours => {
                // The same change may have been interrupted before it set the mode of all links.
                if patch.mode == Some(stored.mode) {
                    self.set_link_modes(&stored).await?;
                }
                Err(ClientError::Conflict {
                    expected,
                    actual: stored.version,
                })
            }
            _ => Ok(stored),
        }
    }

    /// Deletes a client's own item and changes its secrets, both or neither.
    async fn delete_info(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        secrets: Write,
    ) -> Result<(), ClientError> {
        let info = Write::delete(client_key(id));
        let info = match expected {
            None => info.condition(EXISTS),
            Some(expected) => info
                .condition(format!("{EXISTS} AND #version = :expected"))
                .value(":expected", number(expected)),
        };
        // Its held deliveries are recorded as skipped.
        let release = self.release_task(id, Timestamp::from_nanoseconds(0));
        let writes = vec![info, secrets.in_table(&self.secrets_table), release];
        match self.table.transact(writes).await? {
            Outcome::Applied(_) => Ok(()),
            Outcome::Refused(refusal) => {
                let stored = refusal.stored.ok_or(ClientError::NotFound)?;
                check_version(&decode_client(stored)?, expected)?;
                Err(StoreError::Throttled.into())
            }
        }
    }

    /// Puts a task into the due index that releases the held deliveries of a client.
    fn release_task(&self, id: &ClientId, now: Timestamp) -> Write {
        Write::put(self.table.attributes(&release_key(id, now)))
    }

    /// Removes the remains of a client whose own item is deleted. If the client was created again, its secrets stay.
    async fn finish_delete(&self, id: &ClientId, now: Timestamp) -> Result<(), ClientError> {
        self.unlink_all(id, now).await?;
        let emptied = Write::delete(secrets_key(id)).condition("attribute_not_exists(#current)");
        self.secrets_table.write(emptied).await?;
        Ok(())
    }
}

fn is_patched(client: &Client, patch: &ClientPatch) -> bool {
    patch.name.as_ref().is_none_or(|name| *name == client.name)
        && patch.url.as_ref().is_none_or(|url| *url == client.url)
        && patch.mode.is_none_or(|mode| mode == client.mode)
}

fn check_version(client: &Client, expected: Option<Version>) -> Result<(), ClientError> {
    match expected {
        Some(expected) if expected != client.version => Err(ClientError::Conflict {
            expected,
            actual: client.version,
        }),
        _ => Ok(()),
    }
}

fn secrets(item: Option<Item>) -> Result<Secrets, ClientError> {
    match item.filter(|item| item.contains_key(CURRENT)) {
        Some(item) => Ok(decode_secrets(item)?),
        None => Err(ClientError::NotFound),
    }
}
