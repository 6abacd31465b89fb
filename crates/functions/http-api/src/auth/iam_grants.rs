//! Grants of IAM callers, from a file: a JSON object of role and user ARNs, each with a list of grants.
//!
//! ```json
//! {"arn:aws:iam::111122223333:role/dashboard": ["shadows:read", "sensors:read"]}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use antumbra_service::access::{Grant, Grants};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Grants by principal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IamGrants(BTreeMap<String, Grants>);

#[derive(Debug, thiserror::Error)]
pub enum InvalidIamGrants {
    #[error("the file cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("the file is not a JSON object with a list of grants for each ARN: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("{0:?} is not the ARN of a role or a user")]
    Arn(String),
    #[error("{0} is listed twice")]
    Twice(String),
    #[error("{arn}: {grant:?}: {reason}")]
    Grant {
        arn: String,
        grant: String,
        reason: antumbra_service::access::InvalidGrant,
    },
}

impl IamGrants {
    /// Parses the text of a file. One mistake rejects all of it, rather than leave a caller without its grants.
    pub fn parse(text: &str) -> Result<IamGrants, InvalidIamGrants> {
        let Entries(entries) = serde_json::from_str(text)?;
        let mut all = BTreeMap::new();
        for (arn, grants) in entries {
            if !arn.starts_with("arn:") || arn.splitn(6, ':').count() < 6 {
                return Err(InvalidIamGrants::Arn(arn));
            }
            let read = |grant: &String| {
                let parsed = grant.parse::<Grant>();
                parsed.map_err(|reason| InvalidIamGrants::Grant {
                    arn: arn.clone(),
                    grant: grant.clone(),
                    reason,
                })
            };
            let grants = grants.iter().map(read).collect::<Result<Grants, _>>()?;
            if all.insert(principal(&arn), grants).is_some() {
                return Err(InvalidIamGrants::Twice(arn));
            }
        }
        Ok(IamGrants(all))
    }

    /// Returns the number of roles and users.
    pub fn principals(&self) -> usize {
        self.0.len()
    }

    /// Returns the grants of the caller with this ARN.
    pub fn of_arn(&self, arn: &str) -> Grants {
        self.of(&principal(arn))
    }

    /// Returns the grants of a principal; none if it is not listed.
    pub(super) fn of(&self, principal: &str) -> Grants {
        self.0.get(principal).cloned().unwrap_or_default()
    }
}

/// Reads the file at a path.
impl FromStr for IamGrants {
    type Err = InvalidIamGrants;

    fn from_str(path: &str) -> Result<IamGrants, InvalidIamGrants> {
        IamGrants::parse(&std::fs::read_to_string(path)?)
    }
}

/// Returns the ARN that identifies a caller: of an assumed role the role's, without the session name, which callers
/// choose, and without the path, which the ARN of a session does not have. Role names are unique in an account.
pub(super) fn principal(arn: &str) -> String {
    let mut parts = arn.splitn(6, ':');
    let mut part = || parts.next().unwrap_or_default();
    let (_, partition, service, _, account, resource) =
        (part(), part(), part(), part(), part(), part());
    let role = match service {
        "sts" => resource
            .strip_prefix("assumed-role/")
            .and_then(|role| role.split('/').next()),
        "iam" => resource
            .strip_prefix("role/")
            .and_then(|role| role.rsplit('/').next()),
        _ => None,
    };
    match role {
        Some(role) => format!("arn:{partition}:iam::{account}:role/{role}"),
        None => arn.to_owned(),
    }
}

/// The members of the file, repeated ones too.
struct Entries(Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
