//! A stretch of the change feed: which entries were written, in the order of the stream, without their values.

use antumbra_registration::Operation;
use serde::{Deserialize, Serialize};

use super::compress::{CompressError, compress, decompress};
use super::key::HistoryKey;

/// Bytes of the text of one segment. Compressed it is not longer, and so well below DynamoDB's limit of 400 KB.
pub const SEGMENT_BYTES: usize = 300 * 1024;

/// A change in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentEntry {
    pub key: HistoryKey,
    /// Id of the stream record, the same at every attempt.
    pub change_id: String,
    pub operation: Operation,
}

/// Partition key, sort key, change id, operation.
#[derive(Serialize, Deserialize)]
struct Line(String, String, String, String);

/// Encodes changes as one segment, or as several in order where they are too many for one.
pub fn encode_segments<'a>(entries: impl IntoIterator<Item = &'a SegmentEntry>) -> Vec<Vec<u8>> {
    let mut texts: Vec<String> = Vec::new();
    for entry in entries {
        let line = Line(
            entry.key.partition(),
            entry.key.sort(),
            entry.change_id.clone(),
            entry.operation.as_str().to_owned(),
        );
        // Texts always have a JSON form.
        let line = serde_json::to_string(&line).unwrap_or_default();
        match texts.last_mut() {
            Some(text) if text.len() + line.len() < SEGMENT_BYTES => {
                text.push('\n');
                text.push_str(&line);
            }
            _ => texts.push(line),
        }
    }
    texts.iter().map(|text| compress(text)).collect()
}

/// Decodes a segment.
pub fn decode_segment(bytes: &[u8]) -> Result<Vec<SegmentEntry>, SegmentError> {
    let malformed = |line: &str| SegmentError::Line(line.to_owned());
    let entry = |line: &str| {
        let parsed: Line = serde_json::from_str(line).map_err(|_| malformed(line))?;
        let Line(partition, sort, change_id, operation) = parsed;
        Ok(SegmentEntry {
            key: HistoryKey::parse(&partition, &sort).map_err(|_| malformed(line))?,
            operation: operation.parse().map_err(|_| malformed(line))?,
            change_id,
        })
    };
    decompress(bytes)?.lines().map(entry).collect()
}

/// A stored segment that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    #[error(transparent)]
    Compress(#[from] CompressError),
    #[error("not an entry of a segment: {0}")]
    Line(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::ShadowItem;

    #[test]
    fn large_segments_are_split_in_order() {
        let entry = |number: u64| SegmentEntry {
            key: HistoryKey {
                // Characters that JSON escapes and that end lines elsewhere.
                id: format!("{number}{}", "\u{1}\u{2028}\n".repeat(330)),
                name: "#".repeat(256),
                item: ShadowItem::Reported,
                time: u64::MAX - number,
                version: number,
            },
            change_id: format!("{number:032}"),
            operation: Operation::Modify,
        };
        let entries: Vec<SegmentEntry> = (0..300).map(entry).collect();
        let segments = encode_segments(&entries);
        assert!(segments.len() > 2, "{}", segments.len());
        let decoded = segments.iter().map(|bytes| {
            let text = decompress(bytes).unwrap();
            assert!(text.len() <= SEGMENT_BYTES, "{}", text.len());
            decode_segment(bytes).unwrap()
        });
        assert_eq!(decoded.flatten().collect::<Vec<_>>(), entries);
        assert!(encode_segments([]).is_empty());
        assert!(decode_segment(&compress("[]")).is_err());
        assert!(decode_segment(b"").is_err());
    }
}
