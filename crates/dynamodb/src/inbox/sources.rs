//! Who was heard of, and when: one item for each source, under a name that no source can have.

use antumbra_service::inbox::{Contact, Source, SourceTracker, Sources};
use antumbra_service::paging::{Cursor, Page, open_cursor, page_limit, seal_cursor};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

use super::DynamoDbInbox;
use super::item::{Item, MESSAGE_ID, SOURCE, string, text, time};
use crate::errors;

/// The name they lie under. A source cannot hold a `#`.
const ALL: &str = "#sources";
const LAST_CONTACT: &str = "lastContact";
const HOUR_NANOSECONDS: i128 = 3_600_000_000_000;
/// Tells these cursors from those of other listings.
const KIND: &str = "sources";

impl SourceTracker for DynamoDbInbox {
    async fn touch(&self, source: &Source, at: Timestamp) -> Result<(), StoreError> {
        let into = at.nanoseconds().rem_euclid(HOUR_NANOSECONDS);
        let hour = Timestamp::from_nanoseconds(at.nanoseconds() - into);
        let hour = text(&hour.to_string());
        let mut item = key(source.as_str());
        item.insert(LAST_CONTACT.to_owned(), hour.clone());
        let call = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(item))
            // Hours of this form sort as they follow one another.
            .condition_expression("attribute_not_exists(#last) OR #last < :hour")
            .expression_attribute_names("#last", LAST_CONTACT)
            .expression_attribute_values(":hour", hour);
        match call.send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let refused = error.as_service_error();
                if refused.is_some_and(|refused| refused.is_conditional_check_failed_exception()) {
                    return Ok(());
                }
                Err(errors::of_call("PutItem", &error, 0))
            }
        }
    }
}

impl Sources for DynamoDbInbox {
    async fn sources(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Contact>, StoreError> {
        page_limit(limit)?;
        let start = cursor.map(|cursor| self.open(cursor)).transpose()?;
        let call = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#source = :all")
            .expression_attribute_names("#source", SOURCE)
            .expression_attribute_values(":all", text(ALL))
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start);
        let found = call.send().await;
        let found = found.map_err(|error| errors::of_call("Query", &error, 0))?;
        let next = found.last_evaluated_key.as_ref();
        let next = next.map(|last| string(last, MESSAGE_ID)).transpose()?;
        Ok(Page {
            rows: found.items().iter().filter_map(contact).collect(),
            next: next.map(|last| seal_cursor(&[KIND, &self.table, last])),
        })
    }
}

impl DynamoDbInbox {
    fn open(&self, cursor: &Cursor) -> Result<Item, StoreError> {
        let parts = open_cursor(cursor).map_err(|error| StoreError::Invalid(error.to_string()))?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [KIND, table, last] if table == self.table && !last.is_empty() => Ok(key(last)),
            _ => Err(StoreError::Invalid(
                "the cursor belongs to another listing".to_owned(),
            )),
        }
    }
}

fn key(source: &str) -> Item {
    Item::from([
        (SOURCE.to_owned(), text(ALL)),
        (MESSAGE_ID.to_owned(), text(source)),
    ])
}

/// What others wrote otherwise than we do must not hide all the rest.
fn contact(item: &Item) -> Option<Contact> {
    let read = || -> Result<Contact, StoreError> {
        let source = Source::new(string(item, MESSAGE_ID)?);
        Ok(Contact {
            source: source.map_err(|error| StoreError::Unavailable(error.to_string()))?,
            last_contact: time(item, LAST_CONTACT)?,
        })
    };
    read()
        .inspect_err(|error| tracing::warn!(%error, "left out of the sources"))
        .ok()
}
