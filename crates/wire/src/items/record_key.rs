//! Key of a stream record's item.

use antumbra_registration::KeyAttributes;

use super::{ItemKey, MESSAGE_ID, MESSAGE_SOURCE, PARTITION_KEY, SORT_KEY};
use crate::stream::Record;

/// Names that come first in a key. Other names are ordered alphabetically, because records do not mark the
/// partition key.
const PARTITION_KEYS: [&str; 2] = [PARTITION_KEY, MESSAGE_SOURCE];

/// Buffer for the text of a key, reused from record to record so that none allocates.
#[derive(Debug, Default)]
pub struct KeyBuffer {
    text: String,
    names: String,
    ends: Ends,
}

/// Ends of the partition key, in the text and in the names.
#[derive(Debug, Default, Clone, Copy)]
enum Ends {
    /// There is no key.
    #[default]
    Empty,
    /// There is no sort key.
    Partition,
    Both(usize, usize),
}

/// Key of a stream record's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordKey<'a> {
    /// Partition key and sort key with `#` between them.
    pub text: &'a str,
    /// The attributes it is made of.
    pub attributes: KeyAttributes<'a>,
    /// Kind and ids of the item.
    pub item: ItemKey<'a>,
}

impl KeyBuffer {
    /// Reads the key of a record's item.
    pub fn read(&mut self, record: Record<'_>) -> RecordKey<'_> {
        self.text.clear();
        self.names.clear();
        let mut keys = record.keys();
        self.ends = match (keys.next(), keys.next()) {
            (None, _) => Ends::Empty,
            (Some((name, value)), None) => {
                self.names.push_str(&name);
                self.text.push_str(&value);
                Ends::Partition
            }
            (Some(first), Some(second)) => {
                let (a, b) = (&*first.0, &*second.0);
                let first_leads =
                    (!PARTITION_KEYS.contains(&a), a) <= (!PARTITION_KEYS.contains(&b), b);
                let (partition, sort) = if first_leads {
                    (first, second)
                } else {
                    (second, first)
                };
                self.text.push_str(&partition.1);
                let middle = self.text.len();
                self.text.push('#');
                self.text.push_str(&sort.1);
                self.names.push_str(&partition.0);
                let end = self.names.len();
                self.names.push_str(&sort.0);
                Ends::Both(middle, end)
            }
        };
        self.key()
    }

    /// Returns the key that was read last.
    pub fn key(&self) -> RecordKey<'_> {
        let (attributes, item) = match self.ends {
            Ends::Empty => (KeyAttributes::default(), ItemKey::Foreign),
            Ends::Partition => {
                let attributes = KeyAttributes {
                    partition: Some((&self.names, &self.text)),
                    sort: None,
                };
                (attributes, ItemKey::Foreign)
            }
            Ends::Both(middle, end) => {
                let partition = (&self.names[..end], &self.text[..middle]);
                let sort = (&self.names[end..], &self.text[middle + 1..]);
                let item = match (partition.0, sort.0) {
                    (PARTITION_KEY, SORT_KEY) => ItemKey::parse(partition.1, sort.1),
                    (MESSAGE_SOURCE, MESSAGE_ID) => ItemKey::parse_message(partition.1, sort.1),
                    _ => ItemKey::Foreign,
                };
                let attributes = KeyAttributes {
                    partition: Some(partition),
                    sort: Some(sort),
                };
                (attributes, item)
            }
        };
        RecordKey {
            text: &self.text,
            attributes,
            item,
        }
    }
}
