//! Idempotency records in the main table.
//!
//! Beginning a request is one conditional put, finishing it one conditional update. A response that does
//! not fit in the record is split into parts, which are written before the record refers to them and carry
//! the owner in their keys: a reader finds all parts or none. All items expire.

use antumbra_service::idempotency::{IdempotencyState, Request};
use antumbra_service::store::StoreError;
use antumbra_wire::items::ItemKind;
use aws_sdk_dynamodb::Client;
use serde::{Deserialize, Serialize};

use crate::table::{Item, Key, Outcome, Table, Write};
use crate::tables::MAIN;
use crate::value::{
    EpochMilliseconds, epoch_milliseconds, epoch_seconds, from_item, number, seconds, text,
};

/// Bytes of a response in one item, well below DynamoDB's limit for items.
const PART_BYTES: usize = 300 * 1024;
/// The request is still run by this owner.
const OURS: &str = "#owner = :owner AND #state = :running";

/// Idempotency records in a DynamoDB table.
///
/// - Of all requests with one key, [`IdempotencyState::Run`] is returned to one owner at a time. Once a response is
///   stored, it is returned to nobody until [`Request::forget_at`].
/// - After the lease has ended, `Run` is returned to another owner if its request is the same.
/// - `finish` and `release` do nothing for an owner whose lease was taken over.
/// - A stored response is returned unchanged, whatever its length.
#[derive(Debug, Clone)]
pub struct DynamoDbIdempotency {
    table: Table,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    fingerprint: String,
    owner: String,
    state: State,
    lease_ends: EpochMilliseconds,
    ttl: i64,
    #[serde(default, skip_serializing)]
    response: Option<String>,
    /// Number of parts of a response that does not fit in the record.
    #[serde(default, skip_serializing)]
    parts: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Running,
    Done,
}

#[derive(Debug, Serialize, Deserialize)]
struct Part<'a> {
    response: std::borrow::Cow<'a, str>,
    ttl: i64,
}

impl DynamoDbIdempotency {
    /// Uses an existing table.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbIdempotency {
        DynamoDbIdempotency {
            table: Table::new(client, table, MAIN),
        }
    }

    /// Returns the state of a request, and takes the lease if the request should run.
    pub async fn begin(&self, request: &Request) -> Result<IdempotencyState, StoreError> {
        let record = Record {
            fingerprint: request.fingerprint.clone(),
            owner: request.owner.clone(),
            state: State::Running,
            lease_ends: EpochMilliseconds(request.lease_ends),
            ttl: seconds(request.forget_at),
            response: None,
            parts: 0,
        };
        // An expired item may still be stored for days.
        let put = Write::put(self.table.item(&record_key(request), &record)?)
            .condition(
                "attribute_not_exists(#PK) OR #ttl <= :seconds \
                 OR (#state = :running AND #leaseEnds <= :now AND #fingerprint = :fingerprint)",
            )
            .value(":seconds", epoch_seconds(request.now))
            .value(":now", epoch_milliseconds(request.now))
            .value(":running", text("running"))
            .value(":fingerprint", text(&request.fingerprint));
        match self.table.write(put).await? {
            Outcome::Applied(_) => Ok(IdempotencyState::Run),
            Outcome::Refused(refusal) => match refusal.stored {
                Some(stored) => self.state(request, stored).await,
                None => Ok(IdempotencyState::Running),
            },
        }
    }

    /// The state of a request whose key has a record already.
    async fn state(&self, request: &Request, stored: Item) -> Result<IdempotencyState, StoreError> {
        let stored: Record = from_item("idempotency record", stored)?;
        if stored.fingerprint != request.fingerprint {
            return Ok(IdempotencyState::OtherRequest);
        }
        match (stored.state, stored.response) {
            // The SDK repeated our own put because its response was lost.
            (State::Running, _) if stored.owner == request.owner => Ok(IdempotencyState::Run),
            (State::Running, _) => Ok(IdempotencyState::Running),
            (State::Done, Some(response)) => Ok(IdempotencyState::Answered(response)),
            (State::Done, None) => {
                let parts = self.read_parts(request, &stored.owner, stored.parts);
                Ok(IdempotencyState::Answered(parts.await?))
            }
        }
    }

    /// Reads one part after the other: three of them already fill a page of a query.
    async fn read_parts(
        &self,
        request: &Request,
        owner: &str,
        parts: usize,
    ) -> Result<String, StoreError> {
        let mut response = String::new();
        for number in 0..parts {
            let part = self.table.get(&part_key(request, owner, number)).await?;
            let missing = "a part of a stored response is missing".to_owned();
            let part = part.ok_or(StoreError::Unavailable(missing))?;
            let part: Part<'_> = from_item("response part", part)?;
            response.push_str(&part.response);
        }
        Ok(response)
    }

    /// Stores the response for repeated requests.
    pub async fn finish(&self, request: &Request, response: &str) -> Result<(), StoreError> {
        let key = record_key(request);
        let update = if response.len() <= PART_BYTES {
            Write::update(key, "SET #state = :done, #response = :response")
                .value(":response", text(response))
        } else {
            let count = self.write_parts(request, response).await?;
            Write::update(key, "SET #state = :done, #parts = :parts").value(":parts", number(count))
        };
        let update = update
            .condition(OURS)
            .value(":owner", text(&request.owner))
            .value(":running", text("running"))
            .value(":done", text("done"))
            .bytes(response.len());
        self.table.write(update).await.map(drop)
    }

    async fn write_parts(&self, request: &Request, response: &str) -> Result<usize, StoreError> {
        let mut rest = response;
        let mut count = 0;
        while !rest.is_empty() {
            let (text, more) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
            let key = part_key(request, &request.owner, count);
            let part = Part {
                response: text.into(),
                ttl: seconds(request.forget_at),
            };
            let put = Write::put(self.table.item(&key, &part)?).bytes(text.len());
            self.table.write(put).await?;
            rest = more;
            count += 1;
        }
        Ok(count)
    }

    /// Removes the key of a request that failed, so that a repeated request runs.
    pub async fn release(&self, request: &Request) -> Result<(), StoreError> {
        let delete = Write::delete(record_key(request))
            .condition(OURS)
            .value(":owner", text(&request.owner))
            .value(":running", text("running"));
        self.table.write(delete).await.map(drop)
    }
}

fn record_key(request: &Request) -> Key {
    Key::new(ItemKind::IdempotencyRecord, &request.key, "")
}

fn part_key(request: &Request, owner: &str, number: usize) -> Key {
    let id = format!("{owner}#{number:06}");
    Key::new(ItemKind::IdempotencyPart, &request.key, &id)
}
