//! Where in a message a field lies.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::View;

/// The way to a field: names of members with dots between them, as in `header.imei`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

/// A text that leads to no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a field is named by its name, or by names with single dots between them")]
pub struct InvalidFieldPath;

impl FieldPath {
    pub(super) fn of(name: &str) -> FieldPath {
        FieldPath(vec![name.to_owned()])
    }

    /// The value at the end of the way, if all of it is there.
    pub fn find<'a>(&self, root: View<'a>) -> Option<View<'a>> {
        self.0.iter().try_fold(root, |view, name| view.get(name))
    }
}

impl FromStr for FieldPath {
    type Err = InvalidFieldPath;

    fn from_str(text: &str) -> Result<FieldPath, InvalidFieldPath> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) {
            return Err(InvalidFieldPath);
        }
        Ok(FieldPath(names))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
