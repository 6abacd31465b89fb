//! Item kinds and keys of all tables, each written here once.
//!
//! | table | partition key | sort key | item |
//! |---|---|---|---|
//! | main | `DS#{id}` | `DSR#{name}`, `DSD#{name}`, `DSC#{name}` | reported document, desired document, both in one item |
//! | main | `DS#{id}` | `PURGE#{name}` | past of a shadow to delete |
//! | main | `SENSOR#{sensor}` | `SENSORINFO` | registration of a sensor |
//! | main | `SENSOR#{sensor}` | `STATE` | latest state of a sensor |
//! | main | `SENSOR#{sensor}` | `READ#{time}#{sequence}` | reading |
//! | main | `SENSOR#{sensor}` | `PURGE#{generation}` | readings to delete |
//! | main | `SENSOR#{sensor}` | `CLIENT#{client}` | link |
//! | main | `SENSOR#{sensor}` | `CLIENTREMOVED#{client}` | link that was removed, for two days |
//! | main | `CLIENT#{client}` | `SENSOR#{sensor}` | mirror of the link |
//! | main | `CLIENT#{client}` | `CLIENTINFO` | client and its circuit |
//! | main | `CLIENT#{client}` | `DELIVERY#{order}` | delivery with its attempts |
//! | main | `CLIENT#{client}` | `HELD#{order}` | entry of the list of held deliveries |
//! | main | `CLIENT#{client}` | `DEFERRED#{sensor}#{order}` | delivery that later ones of the sensor wait for |
//! | main | `CLIENT#{client}` | `CHAIN#{sensor}` | number of deferred deliveries, and of its changes |
//! | main | `DUE#{shard}` | `AT#{time}#{client}#{order}` | delivery to queue again, or client to release |
//! | main | `LIVENESS` | `QUEUE#{queue}` | ingest progress of a queue |
//! | main | `SUSPENSIONS` | `REGISTRATION#{name}` | registration whose target fails |
//! | main | `SPILLED#{registration}~{shard}` | `KEY#{key}` | key with messages in the spill queue |
//! | main | `ONCE#{key}` | `ONCE` | idempotency record |
//! | main | `ONCE#{key}` | `PART#{owner}#{number}` | part of a large stored response |
//! | main | `SETTINGS` | `SETTINGS` | settings that all programs using the table share |
//! | secrets | `CLIENT#{client}` | `CLIENTSECRETS` | signing secrets |
//! | messages | `{source}` | `{message}` | message, or the tombstone of a deleted one |
//! | messages | `#sources#{shard}` | `{source}` | last contact of a source |
//!
//! A deleted shadow document keeps its key until its version expires; it has [`attributes::DELETED_AT`].
//! `SENSORINFO` sorts directly after the readings, so one query backwards from it returns the sensor and
//! its latest readings. No other kind may sort between them.

pub mod attributes;
mod change;
pub mod index_keys;
mod record_key;
mod stream_kinds;

pub use change::{DocumentChange, ItemChange, RecordedChange};
pub use record_key::{KeyBuffer, RecordKey};
pub use stream_kinds::{FilteredOut, StreamKind, StreamKinds, UnknownStreamKind};

use antumbra_registration::{KeyPart, KeySet};
use antumbra_shadow::State;

/// Partition key attribute of the main table.
pub const PARTITION_KEY: &str = "PK";
/// Sort key attribute of the main table.
pub const SORT_KEY: &str = "SK";
/// Partition key attribute of the messages table: the source of a message.
pub const MESSAGE_SOURCE: &str = "uuid";
/// Sort key attribute of the messages table.
pub const MESSAGE_ID: &str = "messageId";

/// Documents that one item of a shadow holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShadowItem {
    Reported,
    Desired,
    Combined,
}

impl ShadowItem {
    /// Every kind of item.
    pub const ALL: [ShadowItem; 3] = [
        ShadowItem::Reported,
        ShadowItem::Desired,
        ShadowItem::Combined,
    ];

    /// The documents in the item.
    pub const fn states(self) -> &'static [State] {
        match self {
            ShadowItem::Reported => &[State::Reported],
            ShadowItem::Desired => &[State::Desired],
            ShadowItem::Combined => &[State::Reported, State::Desired],
        }
    }
}

/// Text of a key attribute: a prefix before an id if it ends with `#`, otherwise the whole text.
struct KeyPattern {
    partition: &'static str,
    sort: &'static str,
}

/// Makes [`ItemKind`] from lines of: kind, partition key, sort key, and who sees its changes: nobody (`private`), or
/// registrations; then under this [`StreamKind`], or as one of the others that only an unfiltered stream has (`other`).
/// A key that ends with `#` is the prefix of an id.
macro_rules! item_kinds {
    ($($kind:ident: $partition:literal, $sort:literal, $access:ident;)+) => {
        /// Kind of an item of ours.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ItemKind {
            Shadow(ShadowItem),
            $($kind,)+
        }

        impl ItemKind {
            /// Every kind, in the order of the table, in which [`ItemKey::parse`] tries them.
            pub const ALL: &[ItemKind] = &[
                ItemKind::Shadow(ShadowItem::Reported),
                ItemKind::Shadow(ShadowItem::Desired),
                ItemKind::Shadow(ShadowItem::Combined),
                $(ItemKind::$kind,)+
            ];

            const fn pattern(self) -> KeyPattern {
                let (partition, sort) = match self {
                    ItemKind::Shadow(ShadowItem::Reported) => ("DS#", "DSR#"),
                    ItemKind::Shadow(ShadowItem::Desired) => ("DS#", "DSD#"),
                    ItemKind::Shadow(ShadowItem::Combined) => ("DS#", "DSC#"),
                    $(ItemKind::$kind => ($partition, $sort),)+
                };
                KeyPattern { partition, sort }
            }

            /// Returns whether registrations may be notified of changes of such items.
            ///
            /// Secrets and stored responses never leave the table, whatever key a registration matches.
            pub const fn notifies(self) -> bool {
                match self {
                    ItemKind::Shadow(_) => true,
                    $(ItemKind::$kind => item_kinds!(notifies $access),)+
                }
            }

            /// The kind of its stream records; `None` if a filtered stream has no record of it.
            pub const fn stream_kind(self) -> Option<StreamKind> {
                match self {
                    ItemKind::Shadow(_) => Some(StreamKind::Shadows),
                    $(ItemKind::$kind => item_kinds!(stream $access),)+
                }
            }
        }
    };
    (notifies private) => { false };
    (notifies $access:ident) => { true };
    (stream private) => { None };
    (stream other) => { None };
    (stream $kind:ident) => { Some(StreamKind::$kind) };
}

// Kinds that change most often come first.
item_kinds! {
    SensorState: "SENSOR#", "STATE", States;
    Reading: "SENSOR#", "READ#", Readings;
    SensorInfo: "SENSOR#", "SENSORINFO", Registry;
    Link: "SENSOR#", "CLIENT#", Registry;
    LinkMirror: "CLIENT#", "SENSOR#", Registry;
    RemovedLink: "SENSOR#", "CLIENTREMOVED#", private;
    Delivery: "CLIENT#", "DELIVERY#", Deliveries;
    HeldDelivery: "CLIENT#", "HELD#", private;
    DeferredDelivery: "CLIENT#", "DEFERRED#", private;
    DeliveryChain: "CLIENT#", "CHAIN#", private;
    DueDelivery: "DUE#", "AT#", private;
    ClientInfo: "CLIENT#", "CLIENTINFO", Registry;
    ClientSecrets: "CLIENT#", "CLIENTSECRETS", private;
    Purge: "SENSOR#", "PURGE#", Registry;
    ShadowPurge: "DS#", "PURGE#", private;
    IngestProgress: "LIVENESS", "QUEUE#", other;
    Suspension: "SUSPENSIONS", "REGISTRATION#", private;
    SpilledKey: "SPILLED#", "KEY#", private;
    IdempotencyRecord: "ONCE#", "ONCE", private;
    IdempotencyPart: "ONCE#", "PART#", private;
    Settings: "SETTINGS", "SETTINGS", private;
    InboxMessage: "", "", Messages;
    InboxSource: "#sources#", "", other;
}

impl ItemKind {
    /// Partition key of an item. Kinds with a fixed partition take the empty text.
    pub fn partition(self, owner: &str) -> String {
        format!("{}{owner}", self.pattern().partition)
    }

    /// Sort key of an item. Kinds with a fixed sort key take the empty text.
    pub fn sort(self, id: &str) -> String {
        format!("{}{id}", self.pattern().sort)
    }

    /// Text that every partition key of this kind starts with.
    pub const fn partition_prefix(self) -> &'static str {
        self.pattern().partition
    }

    /// Text that every sort key of this kind starts with.
    pub const fn sort_prefix(self) -> &'static str {
        self.pattern().sort
    }

    /// The keys `PK#SK` of this kind. Only ids and names of shadows contain `#`.
    pub fn keys(self) -> KeySet {
        let KeyPattern { partition, sort } = self.pattern();
        let any = match self {
            ItemKind::Shadow(_) | ItemKind::ShadowPurge => KeyPart::Any,
            _ => KeyPart::Id,
        };
        let with_id = |prefix: &'static str| {
            let has_id = prefix.is_empty() || prefix.ends_with('#');
            [KeyPart::Text(prefix)]
                .into_iter()
                .chain(has_id.then_some(any))
        };
        let separator = [KeyPart::Text("#")];
        let keys = with_id(partition).chain(separator).chain(with_id(sort));
        let shadows = matches!(self, ItemKind::Shadow(_));
        match self {
            // Time, and a number or a message id.
            ItemKind::Reading => {
                KeySet::new(keys.chain(separator).chain([KeyPart::Sequence]), shadows)
            }
            _ => KeySet::new(keys, shadows),
        }
    }

    /// Returns `true` for items of the messages table, and `false` for those of the main table.
    pub const fn is_in_messages_table(self) -> bool {
        matches!(self, ItemKind::InboxMessage | ItemKind::InboxSource)
    }
}

/// An item's key, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKey<'a> {
    /// An item of ours: its kind, and the ids in its partition key and its sort key.
    Known(ItemKind, &'a str, &'a str),
    /// An item under a partition of ours that is of no known kind. It may be private.
    Unknown,
    /// An item of another program.
    Foreign,
}

impl<'a> ItemKey<'a> {
    /// Parses a key of the main table, without allocating.
    pub fn parse(partition: &'a str, sort: &'a str) -> ItemKey<'a> {
        let mut parsed = ItemKey::Foreign;
        for &kind in ItemKind::ALL {
            let pattern = kind.pattern();
            if kind.is_in_messages_table() || !partition.starts_with(pattern.partition) {
                continue;
            }
            parsed = ItemKey::Unknown;
            let ids = (id(partition, pattern.partition), id(sort, pattern.sort));
            if let (Some(owner), Some(id)) = ids {
                return ItemKey::Known(kind, owner, id);
            }
        }
        parsed
    }

    /// Parses a key of the messages table. A source cannot contain `#`.
    pub fn parse_message(partition: &'a str, sort: &'a str) -> ItemKey<'a> {
        if let Some(shard) = id(partition, ItemKind::InboxSource.partition_prefix()) {
            ItemKey::Known(ItemKind::InboxSource, shard, sort)
        } else if partition.contains('#') {
            ItemKey::Unknown
        } else {
            ItemKey::Known(ItemKind::InboxMessage, partition, sort)
        }
    }

    /// Returns whether registrations may be notified of changes of this item.
    pub fn notifies(self) -> bool {
        match self {
            ItemKey::Known(kind, ..) => kind.notifies(),
            ItemKey::Unknown => false,
            ItemKey::Foreign => true,
        }
    }

    /// The shadow that this is an item of.
    pub fn shadow(self) -> Option<ShadowKey<'a>> {
        match self {
            ItemKey::Known(ItemKind::Shadow(item), id, name) => Some(ShadowKey { id, name, item }),
            _ => None,
        }
    }
}

/// Shadow and documents of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowKey<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub item: ShadowItem,
}

fn id<'a>(text: &'a str, pattern: &str) -> Option<&'a str> {
    let id = text.strip_prefix(pattern)?;
    (pattern.ends_with('#') != id.is_empty()).then_some(id)
}

#[cfg(test)]
mod tests {
    use antumbra_registration::KeyExpression;

    use super::*;

    #[test]
    fn every_key_is_parsed_as_the_kind_it_was_built_for() {
        for &kind in ItemKind::ALL {
            let id_of = |prefix: &str, id| if prefix.ends_with('#') { id } else { "" };
            let (owner, id) = match kind {
                ItemKind::InboxMessage => ("door-1", "17#3"),
                ItemKind::InboxSource => ("3", "door-1"),
                _ => (
                    id_of(kind.partition_prefix(), "DS#a#b"),
                    id_of(kind.sort_prefix(), "STATE#1"),
                ),
            };
            let (partition, sort) = (kind.partition(owner), kind.sort(id));
            let parsed = match kind.is_in_messages_table() {
                true => ItemKey::parse_message(&partition, &sort),
                false => ItemKey::parse(&partition, &sort),
            };
            assert_eq!(parsed, ItemKey::Known(kind, owner, id));
        }
    }

    #[test]
    fn keys_are_those_of_the_kind_and_no_others() {
        let key = |kind: ItemKind| {
            let (owner, id) = match kind {
                ItemKind::Shadow(_) => ("a#b", "main"),
                ItemKind::Reading => ("door", "2026-11-17T10:00:00Z#00000000000000000001"),
                _ => ("door", "one"),
            };
            let of = |prefix: &str, id| match prefix.is_empty() || prefix.ends_with('#') {
                true => format!("{prefix}{id}"),
                false => prefix.to_owned(),
            };
            let (partition, sort) = (kind.partition_prefix(), kind.sort_prefix());
            format!("{}#{}", of(partition, owner), of(sort, id))
        };
        for &kind in ItemKind::ALL {
            let keys = kind.keys();
            for &other in ItemKind::ALL {
                // A message's key may be the same as an item's of the main table with fixed keys.
                if kind.is_in_messages_table() == other.is_in_messages_table() {
                    let key = KeyExpression::new(&format!("^{}$", key(other)));
                    assert_eq!(keys.overlaps(&key), kind == other, "{kind:?} {other:?}");
                }
            }
        }
    }

    #[test]
    fn unknown_keys_under_our_partitions_are_not_notified() {
        for (partition, sort) in [
            ("CLIENT#alarm", "CLIENTSECRETS2"),
            ("CLIENT#alarm", "SECRETS"),
            ("CLIENT#", "CLIENTINFO"),
            ("ONCE#0af1", "RESPONSE"),
            ("SENSOR#door-1", "STATE#2"),
            ("LIVENESS", "TOKEN"),
            ("DS#lamp", "META"),
            ("DS#lamp", "DSR#"),
        ] {
            let key = ItemKey::parse(partition, sort);
            assert_eq!(key, ItemKey::Unknown, "{partition} {sort}");
            assert!(!key.notifies());
        }
        assert!(!ItemKey::parse_message("#tokens", "1").notifies());
        assert!(!ItemKey::parse("CLIENT#alarm", "CLIENTSECRETS").notifies());
        assert!(!ItemKey::parse("ONCE#0af1", "PART#owner#000001").notifies());
        assert!(ItemKey::parse("order-7", "CLIENTSECRETS").notifies());
    }

    #[test]
    fn only_readings_sort_between_the_first_reading_and_the_sensor() {
        let readings = ItemKind::Reading.sort_prefix()..=ItemKind::SensorInfo.sort_prefix();
        for &kind in ItemKind::ALL {
            let expected = matches!(kind, ItemKind::Reading | ItemKind::SensorInfo);
            let in_partition = kind.partition_prefix() == ItemKind::Reading.partition_prefix();
            let between = in_partition && readings.contains(&kind.sort_prefix());
            assert_eq!(between, expected, "{kind:?}");
        }
    }
}
