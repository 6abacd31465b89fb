//! Paths of fields in messages.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::View;

/// Path of a field: names of members separated by dots, as in `header.imei`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a field is a name, or names separated by single dots")]
pub struct InvalidFieldPath;

impl FieldPath {
    pub(super) fn of(name: &str) -> FieldPath {
        FieldPath(vec![name.to_owned()])
    }

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
