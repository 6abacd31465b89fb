//! All grants of a caller.

use super::grant::{Grant, Resource, Verb};
use super::ranges::IdRanges;

/// The grants of one caller, in the order in which they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Everything.
    pub fn all() -> Grants {
        Grants(vec![Grant::ALL])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Returns the first grant that covers an id, or all ids (`None`).
    pub fn covering(&self, resource: Resource, verb: Verb, id: Option<&str>) -> Option<&Grant> {
        self.0.iter().find(|one| one.covers(resource, verb, id))
    }

    /// Returns the first grant of a resource and verb, of whatever ids.
    pub fn some(&self, resource: Resource, verb: Verb) -> Option<&Grant> {
        self.0.iter().find(|one| one.is_for(resource, verb))
    }

    /// Returns the ids that the grants cover.
    pub fn ids(&self, resource: Resource, verb: Verb) -> IdRanges {
        let grants = self.0.iter().filter(|one| one.is_for(resource, verb));
        grants.map(Grant::prefix).collect()
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Grants {
        Grants(grants.into_iter().collect())
    }
}
