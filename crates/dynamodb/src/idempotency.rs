//! Answers to requests that may be sent again, in the main table.
//!
//! | PK | SK | holds |
//! |---|---|---|
//! | `ONCE#{key}` | `ONCE` | the request's fingerprint and state, and the answer |
//! | `ONCE#{key}` | `PART#{owner}#{n}` | an answer that does not fit in one item, piece by piece |
//!
//! Beginning is one conditional put, and finishing one conditional update. Pieces are written before the
//! item that speaks of them, under the name of whoever wrote them, so that a reader finds all of them or
//! none. Everything expires.

use std::collections::HashMap;

use antumbra_service::idempotency::{IdempotencyState, IdempotencyStore, Request};
use antumbra_service::notifications::BoxFuture;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};

use crate::errors::of_call;
use crate::shadows::{PARTITION_KEY, SORT_KEY};

const PREFIX: &str = "ONCE#";
const RECORD: &str = "ONCE";
const RUNNING: &str = "running";
const DONE: &str = "done";
/// Bytes of an answer that one item holds, well below DynamoDB's limit for items.
const PIECE_BYTES: usize = 300 * 1024;

type Item = HashMap<String, AttributeValue>;

/// Answers in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbIdempotency {
    client: Client,
    table: String,
}

impl DynamoDbIdempotency {
    /// Uses the table through the client. The table is there already.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbIdempotency {
        DynamoDbIdempotency {
            client,
            table: table.into(),
        }
    }

    async fn begin(&self, request: &Request) -> Result<IdempotencyState, StoreError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .item(PARTITION_KEY, partition(request))
            .item(SORT_KEY, text(RECORD))
            .item("fingerprint", text(&request.fingerprint))
            .item("owner", text(&request.owner))
            .item("state", text(RUNNING))
            .item("leaseEnds", number(milliseconds(request.lease_ends)))
            .item("ttl", number(seconds(request.forget_at)))
            // What has expired may still be there for days.
            .condition_expression(
                "attribute_not_exists(#pk) OR #ttl <= :seconds \
                 OR (#state = :running AND #ends <= :now AND #print = :print)",
            )
            .expression_attribute_names("#pk", PARTITION_KEY)
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#ends", "leaseEnds")
            .expression_attribute_names("#print", "fingerprint")
            .expression_attribute_values(":seconds", number(seconds(request.now)))
            .expression_attribute_values(":now", number(milliseconds(request.now)))
            .expression_attribute_values(":running", text(RUNNING))
            .expression_attribute_values(":print", text(&request.fingerprint))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let error = match put.send().await {
            Ok(_) => return Ok(IdempotencyState::Run),
            Err(error) => error,
        };
        let failed = error
            .as_service_error()
            .filter(|cause| cause.is_conditional_check_failed_exception());
        if failed.is_none() {
            return Err(of_call("PutItem", &error, 0));
        }
        use aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException;
        match error.into_service_error() {
            ConditionalCheckFailedException(failed) => {
                self.found(request, failed.item.unwrap_or_default()).await
            }
            _ => Ok(IdempotencyState::Running),
        }
    }

    /// What the item that is in the way says.
    async fn found(&self, request: &Request, item: Item) -> Result<IdempotencyState, StoreError> {
        let of = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
        if of("fingerprint") != Some(&request.fingerprint) {
            return Ok(IdempotencyState::OtherRequest);
        }
        // Our own put, whose answer was lost and which the SDK sent again.
        if of("owner") == Some(&request.owner) && of("state").is_some_and(|state| state == RUNNING)
        {
            return Ok(IdempotencyState::Run);
        }
        if of("state").is_none_or(|state| state != DONE) {
            return Ok(IdempotencyState::Running);
        }
        if let Some(answer) = of("answer") {
            return Ok(IdempotencyState::Answered(answer.clone()));
        }
        let owner = of("owner").cloned().unwrap_or_default();
        let pieces = item.get("pieces").and_then(|value| value.as_n().ok());
        let pieces = pieces.and_then(|pieces| pieces.parse().ok()).unwrap_or(0);
        let answer = self.read_pieces(request, &owner, pieces).await?;
        Ok(IdempotencyState::Answered(answer))
    }

    /// One by one: a page of a query ends at one megabyte, which is three of them.
    async fn read_pieces(
        &self,
        request: &Request,
        owner: &str,
        pieces: usize,
    ) -> Result<String, StoreError> {
        let mut answer = String::new();
        for number in 0..pieces {
            let get = self
                .client
                .get_item()
                .table_name(&self.table)
                .key(PARTITION_KEY, partition(request))
                .key(SORT_KEY, text(piece(owner, number)))
                .consistent_read(true);
            let got = get.send().await;
            let item = got.map_err(|error| of_call("GetItem", &error, 0))?.item;
            let piece = item.as_ref().and_then(|item| item.get("answer"));
            let piece = piece.and_then(|piece| piece.as_s().ok());
            let missing = || StoreError::Unavailable("a piece of an answer is missing".to_owned());
            answer.push_str(piece.ok_or_else(missing)?);
        }
        Ok(answer)
    }

    async fn finish(&self, request: &Request, answer: &str) -> Result<(), StoreError> {
        let mut update = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(PARTITION_KEY, partition(request))
            .key(SORT_KEY, text(RECORD))
            .condition_expression("#owner = :owner AND #state = :running")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":owner", text(&request.owner))
            .expression_attribute_values(":running", text(RUNNING))
            .expression_attribute_values(":done", text(DONE));
        update = if answer.len() <= PIECE_BYTES {
            update
                .update_expression("SET #state = :done, #answer = :answer")
                .expression_attribute_names("#answer", "answer")
                .expression_attribute_values(":answer", text(answer))
        } else {
            let count = self.write_pieces(request, answer).await?;
            update
                .update_expression("SET #state = :done, #pieces = :pieces")
                .expression_attribute_names("#pieces", "pieces")
                .expression_attribute_values(":pieces", number(count))
        };
        let sent = update.send().await.map(drop);
        sent.or_else(|error| {
            let cause = error.as_service_error();
            if cause.is_some_and(|cause| cause.is_conditional_check_failed_exception()) {
                return Ok(());
            }
            Err(of_call("UpdateItem", &error, answer.len()))
        })
    }

    async fn write_pieces(&self, request: &Request, answer: &str) -> Result<usize, StoreError> {
        let pieces = split(answer);
        for (at, part) in pieces.iter().enumerate() {
            let put = self
                .client
                .put_item()
                .table_name(&self.table)
                .item(PARTITION_KEY, partition(request))
                .item(SORT_KEY, text(piece(&request.owner, at)))
                .item("answer", text(*part))
                .item("ttl", number(seconds(request.forget_at)));
            let sent = put.send().await;
            sent.map_err(|error| of_call("PutItem", &error, part.len()))?;
        }
        Ok(pieces.len())
    }

    async fn release(&self, request: &Request) -> Result<(), StoreError> {
        let delete = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key(PARTITION_KEY, partition(request))
            .key(SORT_KEY, text(RECORD))
            .condition_expression("#owner = :owner AND #state = :running")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":owner", text(&request.owner))
            .expression_attribute_values(":running", text(RUNNING));
        let sent = delete.send().await.map(drop);
        sent.or_else(|error| {
            let cause = error.as_service_error();
            if cause.is_some_and(|cause| cause.is_conditional_check_failed_exception()) {
                return Ok(());
            }
            Err(of_call("DeleteItem", &error, 0))
        })
    }
}

impl IdempotencyStore for DynamoDbIdempotency {
    fn begin<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<IdempotencyState, StoreError>> {
        Box::pin(self.begin(request))
    }

    fn finish<'a>(
        &'a self,
        request: &'a Request,
        answer: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.finish(request, answer))
    }

    fn release<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.release(request))
    }
}

fn partition(request: &Request) -> AttributeValue {
    text(format!("{PREFIX}{}", request.key))
}

fn piece(owner: &str, number: usize) -> String {
    format!("PART#{owner}#{number:06}")
}

/// In pieces that end between characters.
fn split(mut answer: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !answer.is_empty() {
        let (piece, rest) = answer.split_at(answer.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        answer = rest;
    }
    pieces
}

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn milliseconds(time: Timestamp) -> i128 {
    time.nanoseconds().div_euclid(1_000_000)
}

fn seconds(time: Timestamp) -> i128 {
    time.nanoseconds().div_euclid(1_000_000_000)
}
