//! The entity tag of a shadow: the versions of both documents.

use std::fmt;

use antumbra_service::shadows::{DocumentSet, State, StoredDocument, Update, Version};

use crate::conditions;

/// Versions of both documents, such as `r3.d2`; 0 for a missing document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShadowTag {
    reported: Version,
    desired: Version,
}

impl ShadowTag {
    pub(super) fn of(
        reported: &Option<StoredDocument>,
        desired: &Option<StoredDocument>,
    ) -> ShadowTag {
        let version = |stored: &Option<StoredDocument>| {
            stored
                .as_ref()
                .map_or(Version::NONE, |stored| stored.version)
        };
        ShadowTag {
            reported: version(reported),
            desired: version(desired),
        }
    }

    /// Parses a tag of a shadow; for the route of one document also its version alone, such as `3`.
    pub(super) fn parse(tag: &str, documents: DocumentSet) -> Option<ShadowTag> {
        let alone = |reported, desired| Some(ShadowTag { reported, desired });
        let version = |text: &str| match text {
            "0" => Some(Version::NONE),
            text => conditions::version(text),
        };
        match (conditions::version(tag), documents) {
            (Some(version), DocumentSet::Reported) => alone(version, Version::NONE),
            (Some(version), DocumentSet::Desired) => alone(Version::NONE, version),
            _ => {
                let (reported, desired) = tag.strip_prefix('r')?.split_once(".d")?;
                let tag = ShadowTag {
                    reported: version(reported)?,
                    desired: version(desired)?,
                };
                // A shadow of no document has no tag.
                (tag != ShadowTag::default()).then_some(tag)
            }
        }
    }

    pub(super) fn version(self, state: State) -> Version {
        match state {
            State::Reported => self.reported,
            State::Desired => self.desired,
        }
    }

    pub(super) fn exists(self, documents: DocumentSet) -> bool {
        !self.matches(ShadowTag::default(), documents)
    }

    /// Compares the versions of these documents.
    pub(super) fn matches(self, other: ShadowTag, documents: DocumentSet) -> bool {
        [State::Reported, State::Desired]
            .into_iter()
            .all(|state| !documents.has(state) || self.version(state) == other.version(state))
    }

    /// Makes an update require the versions of these documents.
    pub(super) fn expected_by(self, update: Update, documents: DocumentSet) -> Update {
        match documents {
            DocumentSet::Reported => update.expected(self.reported),
            DocumentSet::Desired => update.expected(self.desired),
            DocumentSet::Both => update.expected_versions(self.reported, self.desired),
        }
    }
}

impl fmt::Display for ShadowTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "r{}.d{}", self.reported, self.desired)
    }
}
