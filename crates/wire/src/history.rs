//! The history of shadows: entries of changes, and states rebuilt from them.
//!
//! Pure: the function `history-writer` encodes what this module decides, and readers decode it here again. In reading
//! order:
//!
//! - [`HistoryKey`]: where an entry is stored
//! - [`Entry`]: one change of one item of a shadow, made from a stream record
//! - [`StoredBody`]: the diffs and documents of an entry, compressed and in parts
//! - [`rebuild`]: the state of an item at a time, from its entries
//! - [`FeedKey`], [`SegmentEntry`]: the change feed, which lists the entries of all shadows in order
//! - [`matches()`]: a pattern compared with a recorded change

mod body;
mod compress;
mod entry;
mod feed_key;
mod key;
mod matching;
pub mod rebuild;
mod segment;

pub use antumbra_registration::{Operation, Pattern};
pub use body::{BodyError, PART_BYTES, StoredBody};
pub use compress::CompressError;
pub use entry::{Entry, EntryDocument, ItemDocuments, SNAPSHOT_EVERY};
pub use feed_key::{FeedKey, feed_partition};
pub use key::{
    HistoryKey, InvalidHistoryKey, LATEST_PURGE, document_prefix, history_partition, part_sort,
    past_ranges, purge_marker_sort, time_key,
};
pub use matching::matches;
pub use segment::{SEGMENT_BYTES, SegmentEntry, SegmentError, decode_segment, encode_segments};
