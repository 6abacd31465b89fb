//! Keys of the change feed, in the history table.
//!
//! | partition key | sort key | item |
//! |---|---|---|
//! | `FEED` | `SETTINGS` | id of the feed, number of its partitions |
//! | `FEED#{partition}` | `COUNTER` | the last number that was reserved |
//! | `FEED#{partition}` | `SEGMENT#{number}` | a stretch of changes |

use super::key::{HistoryKey, document_prefix};

const SEGMENT: &str = "SEGMENT#";

/// Place of an item of the change feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedKey {
    Settings,
    Counter { partition: u32 },
    Segment { partition: u32, number: u64 },
}

impl FeedKey {
    /// Number of the segment with this sort key.
    pub fn segment_number(sort: &str) -> Option<u64> {
        sort.strip_prefix(SEGMENT)?.parse().ok()
    }

    /// The partition key.
    pub fn partition(self) -> String {
        match self {
            FeedKey::Settings => "FEED".to_owned(),
            FeedKey::Counter { partition } | FeedKey::Segment { partition, .. } => {
                format!("FEED#{partition}")
            }
        }
    }

    /// The sort key.
    pub fn sort(self) -> String {
        match self {
            FeedKey::Settings => "SETTINGS".to_owned(),
            FeedKey::Counter { .. } => "COUNTER".to_owned(),
            FeedKey::Segment { number, .. } => format!("{SEGMENT}{number:020}"),
        }
    }
}

/// The partition of the feed that all changes of an item are in.
pub fn feed_partition(key: &HistoryKey, partitions: u32) -> u32 {
    use std::hash::Hasher as _;
    let mut hasher = siphasher::sip::SipHasher24::new();
    hasher.write(key.id.as_bytes());
    hasher.write_u8(0xff);
    hasher.write(document_prefix(key.item, &key.name).as_bytes());
    // The remainder of a u32 fits one.
    (hasher.finish() % u64::from(partitions.max(1))) as u32
}
