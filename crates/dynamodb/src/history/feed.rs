//! The change feed: segments of changes, in numbered order per partition.
//!
//! A writer reserves numbers with one atomic addition and then writes the segments. If it dies in between, a number stays
//! empty, and its event source repeats the changes under later numbers. A reader passes an empty number only when nobody
//! can write it any more.

mod append;
mod read;
mod restored;

use std::time::Duration;

use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::history::{FeedKey, SegmentEntry, decode_segment};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

pub use read::Feed;

use crate::table::{Item, Key, Table};
use crate::value::{corrupt, number, read_number, read_text, seconds};

/// Time after its reservation at which a number is written or stays empty: the writer's timeout and 10 seconds more, for
/// clocks that differ.
const RESERVATION: Duration = Duration::from_secs(40);

const LAST: &str = "last";
const BODY: &str = "body";
const RESERVED_AT: &str = "reservedAt";
const TTL: &str = "ttl";

/// Configuration of the writers of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedConfig {
    /// Days for which changes can be read.
    pub days: u32,
    /// Number of partitions of a new feed. One that exists keeps its own.
    pub partitions: u32,
}

/// Settings of a feed, which its first writer records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedSettings {
    /// Id of the feed: the time of its first change.
    pub feed: String,
    /// Number of partitions. It never changes, as it decides in which one a document is.
    pub partitions: u32,
    /// The fewest days for which a writer ever kept changes.
    pub days: u32,
}

impl FeedSettings {
    fn new(config: FeedConfig, now: Timestamp) -> FeedSettings {
        FeedSettings {
            feed: now.nanoseconds().to_string(),
            partitions: config.partitions.max(1),
            days: config.days,
        }
    }
}

/// A segment as it is stored.
#[derive(Debug, Clone)]
struct Segment {
    number: u64,
    /// Milliseconds since 1970.
    reserved_at: u64,
    expires: i64,
    entries: Vec<SegmentEntry>,
}

impl Segment {
    fn decode(item: &Item) -> Result<Segment, StoreError> {
        let sort = read_text(item, crate::tables::HISTORY.sort_key)?;
        let number = FeedKey::segment_number(sort).ok_or_else(|| corrupt("SK", "no segment"))?;
        let body = item.get(BODY).and_then(|body| body.as_b().ok());
        let body = body.ok_or_else(|| corrupt(BODY, "missing"))?;
        Ok(Segment {
            number,
            reserved_at: read_number(item, RESERVED_AT)?,
            expires: read_number(item, TTL)?,
            entries: decode_segment(body.as_ref()).map_err(|error| corrupt(BODY, error))?,
        })
    }
}

/// The item of a segment.
fn segment_item(
    table: &Table,
    key: FeedKey,
    body: Vec<u8>,
    reserved_at: Timestamp,
    expires: Timestamp,
) -> Item {
    let mut item = table.attributes(&place(key));
    item.insert(BODY.to_owned(), AttributeValue::B(Blob::new(body)));
    item.insert(RESERVED_AT.to_owned(), number(milliseconds(reserved_at)));
    item.insert(TTL.to_owned(), number(seconds(expires)));
    item
}

fn place(key: FeedKey) -> Key {
    Key {
        partition: key.partition(),
        sort: key.sort(),
    }
}

fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.nanoseconds() / 1_000_000).unwrap_or_default()
}
