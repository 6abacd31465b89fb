//! Expressions and conditional updates, as this noun's calls use them.

use std::collections::HashMap;

use antumbra_service::sensors::StoreError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure as OnFailure,
};

use super::DynamoDbSensors;
use super::item::Item;
use crate::attempts::AttemptTracker;
use crate::errors;

/// The placeholders in expressions: each is the attribute's own name behind a `#`, as many names are
/// reserved words.
pub(super) fn names(expressions: &[&str]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric());
            let name = &part[..end.unwrap_or(part.len())];
            found.insert(format!("#{name}"), name.to_owned());
        }
    }
    found
}

/// One conditional update of one item.
pub(super) struct Update {
    pub(super) key: Item,
    pub(super) update: String,
    pub(super) condition: String,
    pub(super) values: HashMap<String, AttributeValue>,
    /// Placeholders that are not the names of attributes.
    pub(super) other_names: HashMap<String, String>,
}

/// What came of an update.
pub(super) enum Updated {
    /// It took place; this was there before.
    Done(Item),
    /// Its condition failed; this is there.
    Refused {
        stored: Option<Item>,
        /// Whether an earlier attempt of the same call may have taken place.
        doubtful: bool,
    },
}

impl DynamoDbSensors {
    pub(super) async fn update(&self, update: Update) -> Result<Updated, StoreError> {
        const OPERATION: &str = "UpdateItem";
        let attempts = AttemptTracker::default();
        let mut names = names(&[&update.update, &update.condition]);
        names.extend(update.other_names);
        let sent = self
            .client
            .update_item()
            .table_name(&self.config.table)
            .set_key(Some(update.key))
            .update_expression(update.update)
            .condition_expression(update.condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(
                Some(update.values).filter(|values| !values.is_empty()),
            )
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(OnFailure::AllOld)
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await;
        match sent {
            Ok(output) => Ok(Updated::Done(output.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    Ok(Updated::Refused {
                        stored: failed.item.clone().filter(|item| !item.is_empty()),
                        doubtful: attempts.doubtful(),
                    })
                }
                _ => Err(errors::of_call(OPERATION, &error, 0)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_once_each() {
        let found = names(&["SET #a = #a + if_not_exists(#marks.#mark, :one)", "#a<:b"]);
        let mut found: Vec<&str> = found.values().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["a", "mark", "marks"]);
    }
}
