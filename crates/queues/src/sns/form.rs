//! The parameters of a request in the query protocol.

use std::collections::BTreeMap;

use crate::error::ApiError;

pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    pub(super) fn read(body: &[u8]) -> Form {
        Form(form_urlencoded::parse(body).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        let missing = || ApiError::parameter(name);
        self.get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)
    }

    /// Pairs such as `Attributes.entry.1.key` and `Attributes.entry.1.value`.
    pub(super) fn map(&self, prefix: &str, key: &str, value: &str) -> BTreeMap<String, String> {
        (1..)
            .map_while(|n| {
                let name = self.get(&format!("{prefix}.{n}.{key}"))?;
                let value = self
                    .get(&format!("{prefix}.{n}.{value}"))
                    .unwrap_or_default();
                Some((name.to_owned(), value.to_owned()))
            })
            .collect()
    }

    /// Values such as `TagKeys.member.1`.
    pub(super) fn list(&self, prefix: &str) -> Vec<String> {
        (1..)
            .map_while(|n| self.get(&format!("{prefix}.{n}")).map(str::to_owned))
            .collect()
    }
}
