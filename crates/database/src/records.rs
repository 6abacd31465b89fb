//! Records of streams as text, for the event sources of this process.
//!
//! The engine's `GetRecords` parses every image and prints it again, and an SDK parses it once more. The event sources
//! pass images on as they are stored.

use std::fmt::Write as _;

use dynoxide::actions::get_shard_iterator::{decode_shard_iterator, encode_shard_iterator};
use dynoxide::storage::Storage;
use serde_json::Value;

use crate::REGION;
use crate::engine::Engine;
use crate::stream_records::{public_number, text};

const SELECT: &str = "
    SELECT event_name, keys_json, new_image, old_image, CAST(sequence_number AS INTEGER), created_at, user_identity,
        COALESCE(event_id, sequence_number)
    FROM _stream_records
    WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) > ?3
    ORDER BY CAST(sequence_number AS INTEGER)
    LIMIT ?4";

/// Reads the streams of this process.
#[derive(Clone)]
pub struct StreamReader(Engine);

impl StreamReader {
    /// A reader of the streams of these tables.
    pub fn new(engine: Engine) -> StreamReader {
        StreamReader(engine)
    }

    /// Reads up to `limit` records at an iterator of a shard.
    pub async fn page(&self, iterator: &str, limit: usize) -> Result<RecordPage, String> {
        self.0.records(iterator, limit).await
    }
}

/// A record of a stream. Keys, images and identity are JSON.
#[derive(Debug, Clone, Default)]
pub struct Record {
    pub event_id: String,
    pub event_name: String,
    pub keys: String,
    pub new_image: Option<String>,
    pub old_image: Option<String>,
    pub user_identity: Option<String>,
    pub sequence_number: String,
    pub created_seconds: i64,
}

/// Records of a shard in their order.
#[derive(Debug)]
pub struct RecordPage {
    pub records: Vec<Record>,
    /// Iterator of the next page.
    pub next: String,
}

impl Record {
    /// Bytes of keys and images.
    fn image_bytes(&self) -> usize {
        let images = [&self.new_image, &self.old_image];
        let images = images.into_iter().flatten().map(String::len);
        self.keys.len() + images.sum::<usize>()
    }

    /// Approximate size of the record in an event.
    pub fn size(&self) -> usize {
        const ENVELOPE: usize = 512;
        ENVELOPE + self.image_bytes()
    }

    /// Writes the record as it stands in the event that Lambda passes to a function. All tables with a stream have both
    /// images in it.
    fn write(&self, arn: &Value, out: &mut String) {
        let text = |text: &str| Value::from(text);
        let (id, name) = (text(&self.event_id), text(&self.event_name));
        let (number, seconds) = (text(&self.sequence_number), self.created_seconds);
        let (keys, bytes) = (&self.keys, self.image_bytes());
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            r#"{{"eventID":{id},"eventName":{name},"eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"{REGION}","#
        );
        let _ = write!(
            out,
            r#""eventSourceARN":{arn},"dynamodb":{{"SequenceNumber":{number},"SizeBytes":{bytes},"#
        );
        let _ = write!(
            out,
            r#""StreamViewType":"NEW_AND_OLD_IMAGES","ApproximateCreationDateTime":{seconds},"Keys":{keys}"#
        );
        for (name, image) in [("NewImage", &self.new_image), ("OldImage", &self.old_image)] {
            if let Some(image) = image {
                let _ = write!(out, r#","{name}":{image}"#);
            }
        }
        out.push('}');
        if let Some(identity) = &self.user_identity {
            let _ = write!(out, r#","userIdentity":{identity}"#);
        }
        out.push('}');
    }
}

/// The event that Lambda passes to a function for records of one stream.
pub fn invocation(stream_arn: &str, records: &[Record]) -> String {
    let arn = Value::from(stream_arn);
    let bytes: usize = records.iter().map(Record::size).sum();
    let mut event = String::with_capacity(bytes);
    event.push_str(r#"{"Records":["#);
    for (at, record) in records.iter().enumerate() {
        if at > 0 {
            event.push(',');
        }
        record.write(&arn, &mut event);
    }
    event.push_str("]}");
    event
}

/// Reads records at an iterator of the engine.
pub(crate) fn page(storage: &Storage, iterator: &str, limit: usize) -> Result<RecordPage, String> {
    let position = decode_shard_iterator(iterator);
    let (table, shard, after) = position.ok_or("invalid shard iterator")?;
    let mut select = storage.conn().prepare_cached(SELECT).map_err(text)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map((&table, &shard, after, limit), |row| {
        let number: i64 = row.get(4)?;
        let record = Record {
            event_name: row.get(0)?,
            keys: row.get(1)?,
            new_image: row.get(2)?,
            old_image: row.get(3)?,
            sequence_number: public_number(number),
            created_seconds: row.get(5)?,
            user_identity: row.get(6)?,
            event_id: row.get(7)?,
        };
        Ok((number, record))
    });
    let (mut records, mut last) = (Vec::new(), after);
    for row in rows.map_err(text)? {
        let (number, record) = row.map_err(text)?;
        records.push(record);
        last = number;
    }
    Ok(RecordPage {
        records,
        next: encode_shard_iterator(&table, &shard, last),
    })
}
