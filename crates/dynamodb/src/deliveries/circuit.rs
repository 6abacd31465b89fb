//! The circuit of a client, kept with it. What is written here leaves its version alone, and nothing is
//! written of a client that is gone.

use antumbra_service::clients::ClientId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;

use super::DynamoDbDeliveries;
use crate::clients::item::{self, epoch_ms, n, s, time};
use crate::clients::keys::client_key;
use crate::clients::update::{Updated, outcome};
use crate::shadows::PARTITION_KEY;

const EXISTS: &str = "attribute_exists(#pk)";

impl DynamoDbDeliveries {
    fn update(&self, client: &ClientId) -> UpdateItemFluentBuilder {
        self.database
            .update_item()
            .table_name(&self.table)
            .set_key(Some(client_key(client)))
            .expression_attribute_names("#pk", PARTITION_KEY)
    }

    pub(super) async fn add_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let mut update = self
            .update(client)
            .condition_expression(EXISTS)
            .expression_attribute_names("#failures", item::FAILURES)
            .expression_attribute_values(":weight", n(weight));
        update = match open_until {
            None => update.update_expression("ADD #failures :weight"),
            Some(until) => update
                .update_expression("ADD #failures :weight SET #open = :until")
                .expression_attribute_names("#open", item::OPEN_UNTIL)
                .expression_attribute_values(":until", epoch_ms(until)),
        };
        outcome(update.send().await).map(drop)
    }

    pub(super) async fn close_circuit(&self, client: &ClientId) -> Result<(), StoreError> {
        let update = self
            .update(client)
            .condition_expression(EXISTS)
            .update_expression("SET #failures = :none REMOVE #open")
            .expression_attribute_names("#failures", item::FAILURES)
            .expression_attribute_names("#open", item::OPEN_UNTIL)
            .expression_attribute_values(":none", n(0));
        outcome(update.send().await).map(drop)
    }

    pub(super) async fn take_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut update = self
            .update(client)
            .update_expression("SET #open = :until")
            .expression_attribute_names("#open", item::OPEN_UNTIL)
            .expression_attribute_values(":until", epoch_ms(until));
        update = match seen {
            None => {
                update.condition_expression(format!("{EXISTS} AND attribute_not_exists(#open)"))
            }
            Some(seen) => update
                .condition_expression(format!("{EXISTS} AND #open = :seen"))
                .expression_attribute_values(":seen", epoch_ms(seen)),
        };
        Ok(matches!(outcome(update.send().await)?, Updated::Done(_)))
    }

    pub(super) async fn disable_client(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let update = self
            .update(client)
            .condition_expression(format!("{EXISTS} AND #state = :enabled"))
            .update_expression(
                "SET #state = :disabled, #reason = :reason, #since = :now, #updated = :now, \
                 #version = #version + :one",
            )
            .expression_attribute_names("#state", item::STATE)
            .expression_attribute_names("#reason", item::REASON)
            .expression_attribute_names("#since", item::SINCE)
            .expression_attribute_names("#updated", item::UPDATED)
            .expression_attribute_names("#version", item::VERSION)
            .expression_attribute_values(":enabled", s(item::ENABLED))
            .expression_attribute_values(":disabled", s(item::DISABLED))
            .expression_attribute_values(":reason", s(reason))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":one", n(1));
        outcome(update.send().await).map(drop)
    }
}
