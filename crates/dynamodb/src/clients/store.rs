//! Clients: making, reading, changing, deleting.

use antumbra_service::clients::{
    Client, ClientError, ClientId, ClientPatch, ClientState, ClientStore, RequestKey, Rotation,
    Secret, Secrets,
};
use antumbra_service::paging::{Cursor, Page, open_cursor, seal_cursor};
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::types::{
    Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};

use super::DynamoDbClients;
use super::item::{self, n, s, time};
use super::keys::{self, CLIENTS, INFO, Item, client_key, secrets_key};
use super::update::{Updated, outcome};
use crate::attempts::AttemptTracker;
use crate::errors::{self, Cancelled};
use crate::shadows::{PARTITION_KEY, SORT_KEY};
use crate::tables::LISTED;

/// Tells cursors of clients from others.
const CURSOR: &str = "clients";

impl ClientStore for DynamoDbClients {
    async fn create(
        &self,
        client: &Client,
        secret: &Secret,
        requested: &RequestKey,
    ) -> Result<(), ClientError> {
        let put = |item: Item| {
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(item))
                .condition_expression("attribute_not_exists(#pk)")
                .expression_attribute_names("#pk", PARTITION_KEY);
            put.build()
                .map(|put| TransactWriteItem::builder().put(put).build())
        };
        let puts = [
            put(item::encode(client)),
            put(item::encode_secret(&client.id, secret, requested)),
        ];
        let puts = puts
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(unbuilt)?;
        match self.transact(puts).await {
            Ok(()) => Ok(()),
            Err(Failed::Condition(_)) => Err(ClientError::AlreadyExists),
            Err(Failed::Other(error)) => Err(error.into()),
        }
    }

    async fn get(&self, id: &ClientId) -> Result<Client, ClientError> {
        let found = self
            .database
            .get_item()
            .table_name(&self.table)
            .set_key(Some(client_key(id)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| errors::of_call("GetItem", &error, 0))?;
        let found = found.item.ok_or(ClientError::NotFound)?;
        Ok(item::decode(&found)?)
    }

    async fn list(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Client>, ClientError> {
        let start = cursor.map(|cursor| self.open(cursor)).transpose()?;
        let found = self
            .database
            .query()
            .table_name(&self.table)
            .index_name(LISTED.name)
            .key_condition_expression("#list = :clients")
            .expression_attribute_names("#list", LISTED.partition_key)
            .expression_attribute_values(":clients", s(CLIENTS))
            .set_exclusive_start_key(start)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| errors::of_call("Query", &error, 0))?;
        let rows = found.items().iter().map(item::decode);
        let rows: Vec<Client> = rows.collect::<Result<_, _>>()?;
        let last = found.last_evaluated_key.as_ref();
        let next = last
            .map(|key| item::text(key, LISTED.sort_key.0))
            .transpose()?
            .map(|id| seal_cursor(&[CURSOR, &self.table, id]));
        Ok(Page { rows, next })
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
            self.spread_mode(&updated).await?;
        }
        Ok(updated)
    }

    async fn set_state(
        &self,
        id: &ClientId,
        state: &ClientState,
        now: Timestamp,
    ) -> Result<Client, ClientError> {
        let enabled = *state == ClientState::Enabled;
        let word = if enabled {
            item::ENABLED
        } else {
            item::DISABLED
        };
        let mut update = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(client_key(id)))
            .condition_expression("attribute_exists(#pk) AND #state <> :state")
            .expression_attribute_names("#pk", PARTITION_KEY)
            .expression_attribute_names("#state", item::STATE)
            .expression_attribute_names("#reason", item::REASON)
            .expression_attribute_names("#since", item::SINCE)
            .expression_attribute_names("#version", item::VERSION)
            .expression_attribute_names("#updated", item::UPDATED)
            .expression_attribute_values(":state", s(word))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":now", time(now))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        update = match state {
            // An endpoint that is enabled again starts without a past.
            ClientState::Enabled => update
                .update_expression(
                    "SET #state = :state, #version = #version + :one, #updated = :now, \
                     #failures = :none REMOVE #reason, #since, #open",
                )
                .expression_attribute_names("#failures", item::FAILURES)
                .expression_attribute_names("#open", item::OPEN_UNTIL)
                .expression_attribute_values(":none", n(0)),
            ClientState::Disabled { reason, since } => update
                .update_expression(
                    "SET #state = :state, #version = #version + :one, #updated = :now, \
                     #reason = :reason, #since = :since",
                )
                .expression_attribute_values(":reason", s(reason))
                .expression_attribute_values(":since", time(*since)),
        };
        match outcome(update.send().await)? {
            Updated::Done(stored) | Updated::Refused(Some(stored)) => Ok(item::decode(&stored)?),
            Updated::Refused(None) => Err(ClientError::NotFound),
        }
    }

    async fn rotate(&self, id: &ClientId, rotation: &Rotation) -> Result<Secrets, ClientError> {
        self.rotate_secrets(id, rotation).await
    }

    async fn secrets(&self, id: &ClientId) -> Result<Secrets, ClientError> {
        self.read_secrets(id).await
    }

    async fn delete(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        cascade: bool,
    ) -> Result<(), ClientError> {
        let client = self.get(id).await?;
        check_version(&client, expected)?;
        if cascade {
            self.unlink_all(id).await?;
        } else if self.has_links(id).await? {
            return Err(ClientError::HasLinks);
        }
        self.delete_items(id, expected).await?;
        // Since the client is gone no link to it can be made; one may have been a moment before.
        self.unlink_all(id).await
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
            (item::NAME, "#name", ":name", patch.name.clone()),
            (item::URL, "#url", ":url", patch.url.clone()),
            (
                item::MODE,
                "#mode",
                ":mode",
                patch.mode.map(|mode| mode.to_string()),
            ),
        ];
        let mut set = "SET #version = #version + :one, #updated = :now".to_owned();
        let mut condition = "attribute_exists(#pk)".to_owned();
        let mut update = self
            .database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(client_key(id)))
            .expression_attribute_names("#pk", PARTITION_KEY)
            .expression_attribute_names("#version", item::VERSION)
            .expression_attribute_names("#updated", item::UPDATED)
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":now", time(now));
        for (attribute, name, value, to) in changes {
            if let Some(to) = to {
                set.push_str(&format!(", {name} = {value}"));
                update = update
                    .expression_attribute_names(name, attribute)
                    .expression_attribute_values(value, s(to));
            }
        }
        if let Some(expected) = expected {
            condition.push_str(" AND #version = :expected");
            update = update.expression_attribute_values(":expected", n(expected));
        }
        let attempts = AttemptTracker::default();
        let updated = update
            .update_expression(set)
            .condition_expression(condition)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await;
        let stored = match outcome(updated)? {
            Updated::Done(updated) => return Ok(item::decode(&updated)?),
            Updated::Refused(stored) => stored.ok_or(ClientError::NotFound)?,
        };
        let stored = item::decode(&stored)?;
        // An attempt whose answer was lost wrote it; it is not in conflict with itself.
        let ours = attempts.doubtful()
            && expected.is_some_and(|expected| stored.version == expected.next())
            && is_patched(&stored, patch);
        match expected {
            Some(expected) if !ours => Err(ClientError::Conflict {
                expected,
                actual: stored.version,
            }),
            _ => Ok(stored),
        }
    }

    async fn delete_items(
        &self,
        id: &ClientId,
        expected: Option<Version>,
    ) -> Result<(), ClientError> {
        let mut condition = "attribute_exists(#pk)".to_owned();
        let mut info = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(client_key(id)))
            .expression_attribute_names("#pk", PARTITION_KEY);
        if let Some(expected) = expected {
            condition.push_str(" AND #version = :expected");
            info = info
                .expression_attribute_names("#version", item::VERSION)
                .expression_attribute_values(":expected", n(expected));
        }
        let info = info
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let secrets = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(secrets_key(id)));
        let deletes = [
            info.build().map_err(unbuilt)?,
            secrets.build().map_err(unbuilt)?,
        ]
        .map(|delete| TransactWriteItem::builder().delete(delete).build());
        match self.transact(deletes.to_vec()).await {
            Ok(()) => Ok(()),
            Err(Failed::Other(error)) => Err(error.into()),
            Err(Failed::Condition(stored)) => {
                let (_, stored) = stored;
                let stored = stored.ok_or(ClientError::NotFound)?;
                check_version(&item::decode(&stored)?, expected)?;
                Err(StoreError::Throttled.into())
            }
        }
    }

    fn open(&self, cursor: &Cursor) -> Result<Item, StoreError> {
        let parts = open_cursor(cursor)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let [CURSOR, table, id] = parts[..] else {
            return Err(StoreError::Invalid(
                "the cursor belongs to another listing".to_owned(),
            ));
        };
        if table != self.table {
            return Err(StoreError::Invalid(
                "the cursor belongs to another table".to_owned(),
            ));
        }
        Ok(Item::from([
            (PARTITION_KEY.to_owned(), s(format!("{}{id}", keys::CLIENT))),
            (SORT_KEY.to_owned(), s(INFO)),
            (LISTED.partition_key.to_owned(), s(CLIENTS)),
            (LISTED.sort_key.0.to_owned(), s(id)),
        ]))
    }

    /// All of it or nothing. The SDK gives the call a token, so that its own repetitions are one.
    pub(super) async fn transact(&self, writes: Vec<TransactWriteItem>) -> Result<(), Failed> {
        let sent = self
            .database
            .transact_write_items()
            .set_transact_items(Some(writes))
            .send()
            .await;
        let Err(error) = sent else {
            return Ok(());
        };
        if let Some(cause) = error.as_service_error()
            && let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(cancelled) = cause
        {
            let reasons = cancelled.cancellation_reasons();
            return match errors::of_reasons("TransactWriteItems", reasons, 0) {
                Cancelled::Condition(at, reason) => {
                    Err(Failed::Condition((at, reason.item.clone())))
                }
                Cancelled::Other(error) => Err(Failed::Other(error)),
            };
        }
        Err(Failed::Other(errors::of_call(
            "TransactWriteItems",
            &error,
            0,
        )))
    }
}

/// How a transaction failed.
pub(super) enum Failed {
    /// The condition of the write at this place did not hold; what is stored there, if it was asked for.
    Condition((usize, Option<Item>)),
    /// Something else.
    Other(StoreError),
}

/// A request that the SDK would not build is our mistake.
pub(crate) fn unbuilt(error: aws_sdk_dynamodb::error::BuildError) -> StoreError {
    StoreError::Invalid(error.to_string())
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
