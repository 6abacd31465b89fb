//! Patterns on recorded changes: as in registrations, on documents that hold the changed values only.

use antumbra_registration::{Change, DiffCell, KeyAttributes, Pattern, ShadowRef};
use antumbra_shadow::{Model, Patch, PatchError, State};

use super::entry::Entry;

/// Returns whether a pattern matches the change of one document of an entry.
pub fn matches(
    pattern: &Pattern,
    entry: &Entry,
    state: State,
    diff: &Patch,
    model: &Model,
) -> Result<bool, PatchError> {
    let [old, new] = diff.documents()?;
    let [old, new] = [Some(old.view()), Some(new.view())];
    let diff = DiffCell::new(old, new, model);
    let key = &entry.key;
    Ok(pattern.matches(&Change {
        key: "",
        key_attributes: KeyAttributes::default(),
        shadow: Some(ShadowRef {
            id: &key.id,
            name: &key.name,
            state,
        }),
        operation: entry.operation,
        expired: false,
        version: Some(key.version),
        previous_version: None,
        client_token: entry.client_token.as_deref(),
        timestamp: i64::try_from(key.time).ok(),
        old,
        new,
        diff: &diff,
        acknowledged: None,
    }))
}
