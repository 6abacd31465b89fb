//! Scans of tables of other programs, in DynamoDB's JSON: the form of exports and of the AWS CLI.
//!
//! Numbers stay strings, so that they keep all digits.

use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::error::store_error;
use crate::table::Item;

/// A scan of a whole table, page by page.
#[derive(Debug)]
pub struct TableScan {
    client: Client,
    table: String,
    start: Option<Item>,
    ended: bool,
}

impl TableScan {
    /// Starts before the first item.
    pub fn new(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> TableScan {
        TableScan {
            client: Client::new(sdk),
            table: table.into(),
            start: None,
            ended: false,
        }
    }

    /// Returns the next items; `None` at the end. After an error, the same page is read again.
    pub async fn next(&mut self) -> Result<Option<Vec<Value>>, StoreError> {
        if self.ended {
            return Ok(None);
        }
        let call = self.client.scan().table_name(&self.table);
        let call = call.consistent_read(true);
        let page = call.set_exclusive_start_key(self.start.clone()).send();
        let page = page.await.map_err(|error| store_error("Scan", &error, 0))?;
        self.start = page.last_evaluated_key;
        self.ended = self.start.is_none();
        let items = page.items.unwrap_or_default().into_iter();
        items.map(object).collect::<Result<_, _>>().map(Some)
    }
}

fn object(item: Item) -> Result<Value, StoreError> {
    let members = item.into_iter();
    let members = members.map(|(name, value)| Ok((name, tagged(value)?)));
    Ok(Value::Object(
        members.collect::<Result<Map<_, _>, StoreError>>()?,
    ))
}

fn tagged(value: AttributeValue) -> Result<Value, StoreError> {
    Ok(match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::Null(_) => json!({ "NULL": true }),
        AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes) }),
        AttributeValue::Ss(texts) => json!({ "SS": texts }),
        AttributeValue::Ns(numbers) => json!({ "NS": numbers }),
        AttributeValue::Bs(blobs) => {
            let blobs = blobs.into_iter().map(|bytes| STANDARD.encode(bytes));
            json!({ "BS": blobs.collect::<Vec<_>>() })
        }
        AttributeValue::L(values) => {
            let values = values.into_iter().map(tagged);
            json!({ "L": values.collect::<Result<Vec<_>, _>>()? })
        }
        AttributeValue::M(item) => json!({ "M": object(item)? }),
        _ => {
            let unknown = "Scan: an attribute of a type that the SDK does not know";
            return Err(StoreError::Unavailable(unknown.to_owned()));
        }
    })
}
