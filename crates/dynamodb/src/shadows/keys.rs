//! Where a document lies: its partition and sort key.

use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, State};
use aws_sdk_dynamodb::types::AttributeValue;

use super::item::Item;

/// The name of the partition key's attribute.
pub(crate) const PARTITION_KEY: &str = "PK";
/// The name of the sort key's attribute.
pub(crate) const SORT_KEY: &str = "SK";
/// What every shadow's partition key starts with.
pub(super) const PARTITION_PREFIX: &str = "DS#";

/// What an item holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Reported,
    Desired,
    Combined,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Reported, Kind::Desired, Kind::Combined];

    /// The items that hold these parts of a shadow.
    pub(super) fn of(layout: Layout, parts: DocumentSet) -> &'static [Kind] {
        match (layout, parts) {
            (Layout::Combined, _) => &[Kind::Combined],
            (Layout::Separate, DocumentSet::Reported) => &[Kind::Reported],
            (Layout::Separate, DocumentSet::Desired) => &[Kind::Desired],
            (Layout::Separate, DocumentSet::Both) => &[Kind::Reported, Kind::Desired],
        }
    }

    /// What the sort key starts with.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Kind::Reported => "DSR#",
            Kind::Desired => "DSD#",
            Kind::Combined => "DSC#",
        }
    }

    /// The documents in it.
    pub(super) fn states(self) -> &'static [State] {
        match self {
            Kind::Reported => &[State::Reported],
            Kind::Desired => &[State::Desired],
            Kind::Combined => &[State::Reported, State::Desired],
        }
    }
}

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) partition: String,
    pub(super) sort: String,
}

impl Key {
    pub(super) fn new(shadow: &ShadowId, kind: Kind) -> Key {
        Key {
            partition: partition(shadow.id()),
            sort: format!("{}{}", kind.prefix(), shadow.name()),
        }
    }

    /// The key an item has, if it has one.
    pub(super) fn of(item: &Item) -> Option<Key> {
        let text = |name| item.get(name)?.as_s().ok().cloned();
        Some(Key {
            partition: text(PARTITION_KEY)?,
            sort: text(SORT_KEY)?,
        })
    }

    /// Whose document lies there; `None` for what is no shadow's.
    pub(super) fn shadow(&self) -> Option<(ShadowId, Kind)> {
        let id = self.partition.strip_prefix(PARTITION_PREFIX)?;
        Kind::ALL.into_iter().find_map(|kind| {
            let name = self.sort.strip_prefix(kind.prefix())?;
            Some((ShadowId::named(id, name).ok()?, kind))
        })
    }

    /// The key as attributes.
    pub(super) fn attributes(&self) -> Item {
        Item::from([
            (
                PARTITION_KEY.to_owned(),
                AttributeValue::S(self.partition.clone()),
            ),
            (SORT_KEY.to_owned(), AttributeValue::S(self.sort.clone())),
        ])
    }
}

/// The partition a device's shadows lie in.
pub(super) fn partition(id: &str) -> String {
    format!("{PARTITION_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_whose_it_is_whatever_is_in_the_names() {
        for (id, name) in [
            ("lamp", "main"),
            ("My House#Basement#Lightning Controller", "main"),
            ("DS#", "DSR#"),
            ("#", "#DSD#"),
            ("å", "ä/ö"),
        ] {
            let shadow = ShadowId::named(id, name).unwrap();
            for kind in Kind::ALL {
                let key = Key::new(&shadow, kind);
                assert_eq!(key.shadow(), Some((shadow.clone(), kind)));
                assert_eq!(Key::of(&key.attributes()), Some(key));
            }
        }
    }

    #[test]
    fn what_is_no_shadows_is_not_taken_for_one() {
        for (partition, sort) in [
            ("SENSOR#1", "DSR#main"),
            ("DS#", "DSR#main"),
            ("DS#lamp", "DSR#"),
            ("DS#lamp", "DSX#main"),
            ("DS#lamp", "META"),
        ] {
            let key = Key {
                partition: partition.into(),
                sort: sort.into(),
            };
            assert_eq!(key.shadow(), None, "{key:?}");
        }
    }
}
