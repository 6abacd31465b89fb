use antumbra_service::shadows::{DocumentSet, Layout, ShadowId};
use antumbra_wire::items::{ItemKey, ItemKind, ShadowItem};

use crate::table::Key;

/// The items that hold these documents of a shadow.
pub(super) fn items(layout: Layout, documents: DocumentSet) -> &'static [ShadowItem] {
    match (layout, documents) {
        (Layout::Combined, _) => &[ShadowItem::Combined],
        (Layout::Separate, DocumentSet::Reported) => &[ShadowItem::Reported],
        (Layout::Separate, DocumentSet::Desired) => &[ShadowItem::Desired],
        (Layout::Separate, DocumentSet::Both) => &[ShadowItem::Reported, ShadowItem::Desired],
    }
}

pub(super) fn key(shadow: &ShadowId, item: ShadowItem) -> Key {
    Key::new(ItemKind::Shadow(item), shadow.id(), shadow.name())
}

/// The shadow of a key; `None` for items of other kinds.
pub(super) fn shadow(key: &Key) -> Option<(ShadowId, ShadowItem)> {
    let shadow = ItemKey::parse(&key.partition, &key.sort).shadow()?;
    Some((ShadowId::named(shadow.id, shadow.name).ok()?, shadow.item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_the_shadow_for_any_names() {
        for (id, name) in [
            ("lamp", "main"),
            ("My House#Basement#Lightning Controller", "main"),
            ("DS#", "DSR#"),
            ("#", "#DSD#"),
            ("å", "ä/ö"),
        ] {
            let named = ShadowId::named(id, name).unwrap();
            for item in ShadowItem::ALL {
                assert_eq!(shadow(&key(&named, item)), Some((named.clone(), item)));
            }
        }
    }
}
