//! The change feed: every change of every shadow, resumable by a cursor. The store, in the crate `dynamodb`, reads it.
//!
//! A change appears at least once, always under the same id. The first appearances of the changes of a document are in
//! order and without a gap.

use std::collections::HashMap;

use antumbra_shadow::Timestamp;
pub use antumbra_wire::history::Pattern;
pub use antumbra_wire::items::ShadowItem;

use super::RecordedChange;
use crate::access::IdRanges;
use crate::paging::{Cursor, InvalidCursor, open_cursor, seal_cursor};
use crate::shadows::ShadowId;
use crate::store::StoreError;

/// Days for which the feed can be read, unless configured otherwise.
pub const DEFAULT_FEED_DAYS: u32 = 7;
/// Partitions of a feed, unless configured otherwise. Fixed by the first change.
pub const DEFAULT_PARTITIONS: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedChange {
    /// Id of the change, the same each time that it appears.
    pub id: String,
    pub shadow: ShadowId,
    /// The item of the shadow that was written.
    pub item: ShadowItem,
    pub change: RecordedChange,
}

/// A stretch of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    pub changes: Vec<FeedChange>,
    /// Position behind these changes, and behind those that the filter dropped. [`FeedStart::parse`] reads it.
    pub cursor: Cursor,
    /// More changes are there already.
    pub has_more: bool,
}

/// Changes before a position, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EarlierChanges {
    pub changes: Vec<FeedChange>,
    /// Position before these changes; `None` if there are no earlier ones.
    pub before: Option<Cursor>,
    /// Days for which the feed is kept; 0 if nothing was written to it.
    pub kept_days: u32,
}

/// Position at which a reader starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// After the newest change.
    Now,
    /// At the oldest change that is kept.
    Oldest,
    /// At the changes that were recorded at a time, or a little earlier.
    Since(Timestamp),
    At(Cursor),
}

const NOW: &str = "now";
const OLDEST: &str = "oldest";

impl FeedStart {
    /// Reads `now`, `oldest` or a cursor, which is checked when it is used.
    pub fn parse(text: &str) -> FeedStart {
        match text {
            NOW => FeedStart::Now,
            OLDEST => FeedStart::Oldest,
            cursor => FeedStart::At(Cursor(cursor.to_owned())),
        }
    }
}

impl FeedPage {
    /// The page of a feed to which nothing was written.
    pub fn of_empty_feed() -> FeedPage {
        FeedPage {
            changes: Vec::new(),
            cursor: Cursor(OLDEST.to_owned()),
            has_more: false,
        }
    }
}

/// The changes that a reader wants; by default all.
#[derive(Debug, Clone, Default)]
pub struct FeedFilter {
    /// Device ids.
    pub ids: IdRanges,
    /// Name of the shadow.
    pub name: Option<String>,
    /// Pattern on the change, whose documents hold the changed values only. A change whose values are not known matches.
    pub pattern: Option<Pattern>,
}

/// A feed that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// The cursor is malformed, or of another feed.
    #[error("the cursor is malformed or belongs to another feed; start with now or oldest")]
    InvalidCursor,
    /// Changes behind the cursor have expired, or the table was restored to a time before it.
    #[error(
        "changes behind the cursor have expired, or the table was restored; start again at the oldest cursor"
    )]
    Expired {
        /// The oldest position from which changes can be read.
        oldest: Cursor,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InvalidCursor> for FeedError {
    fn from(_: InvalidCursor) -> FeedError {
        FeedError::InvalidCursor
    }
}

/// Position in a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedCursor {
    /// Id of the feed, which a feed in another table does not have.
    pub feed: String,
    /// Position in each partition.
    pub positions: Vec<FeedPosition>,
}

/// Position in a partition of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedPosition {
    /// Number of the next segment.
    pub number: u64,
    /// Changes of that segment that were read.
    pub offset: usize,
    /// Milliseconds since 1970 before which neither that segment nor a later one was reserved.
    pub since: u64,
}

const KIND: &str = "changes";

impl FeedCursor {
    /// Encodes the position as an opaque text.
    pub fn seal(&self) -> Cursor {
        let text = |at: &FeedPosition| format!("{}.{}.{}", at.number, at.offset, at.since);
        let positions: Vec<String> = self.positions.iter().map(text).collect();
        let mut parts = vec![KIND, self.feed.as_str()];
        parts.extend(positions.iter().map(String::as_str));
        seal_cursor(&parts)
    }

    /// Decodes a position.
    pub fn open(cursor: &Cursor) -> Result<FeedCursor, InvalidCursor> {
        let parts = open_cursor(cursor)?;
        let [kind, feed, positions @ ..] = &parts[..] else {
            return Err(InvalidCursor);
        };
        let position = |text: &String| {
            let mut numbers = text.split('.');
            let position = FeedPosition {
                number: numbers.next()?.parse().ok()?,
                offset: numbers.next()?.parse().ok()?,
                since: numbers.next()?.parse().ok()?,
            };
            numbers.next().is_none().then_some(position)
        };
        let positions: Option<Vec<FeedPosition>> = positions.iter().map(position).collect();
        match positions {
            Some(positions) if kind == KIND => Ok(FeedCursor {
                feed: feed.clone(),
                positions,
            }),
            _ => Err(InvalidCursor),
        }
    }
}

/// Recognises changes that appear again: those that are not newer than one seen before of the same document.
#[derive(Debug, Default)]
pub struct ChangeDeduplicator(HashMap<(ShadowId, ShadowItem), Timestamp>);

impl ChangeDeduplicator {
    /// Returns whether a change is newer than all before of its document.
    pub fn is_new(&mut self, change: &FeedChange) -> bool {
        let document = (change.shadow.clone(), change.item);
        let time = change.change.time;
        match self.0.get_mut(&document) {
            Some(newest) if *newest >= time => false,
            Some(newest) => {
                *newest = time;
                true
            }
            None => self.0.insert(document, time).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_keep_their_positions() {
        let position = |number| FeedPosition {
            number,
            offset: 7,
            since: u64::MAX,
        };
        let cursor = FeedCursor {
            feed: "1700000000000000000".to_owned(),
            positions: vec![position(1), position(u64::MAX)],
        };
        assert_eq!(FeedCursor::open(&cursor.seal()), Ok(cursor));
        for parts in [
            &["history", "f", "1.2.3"][..],
            &["changes"],
            &["changes", "f", "1.2"],
            &["changes", "f", "1.2.3.4"],
            &["changes", "f", "-1.2.3"],
        ] {
            assert_eq!(FeedCursor::open(&seal_cursor(parts)), Err(InvalidCursor));
        }
    }
}
