//! One grant.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::word_enum;

use super::prefix::{InvalidPrefix, Prefix};

word_enum! {
    /// Kind of resource that a grant is for.
    pub enum Resource as "resource" {
        /// Shadows and their history, by device id.
        Shadows = "shadows",
        /// The inbox, by source.
        Messages = "messages",
        /// Sensors, by sensor id.
        Sensors = "sensors",
        /// Webhook clients, by client id.
        Clients = "clients",
        /// Webhook deliveries, by client id.
        Deliveries = "deliveries",
        /// The feed of changes, by device id.
        Changes = "changes",
        /// Rules that send changes to targets.
        Registrations = "registrations",
        /// Failed messages.
        Queues = "queues",
    }
}

impl Resource {
    /// Returns whether grants for the resource can be limited to a prefix.
    pub fn takes_prefix(self) -> bool {
        !matches!(self, Resource::Registrations | Resource::Queues)
    }
}

word_enum! {
    /// Access to a resource. Each includes those before it.
    #[derive(PartialOrd, Ord)]
    pub enum Verb as "verb" {
        Read = "read",
        Write = "write",
        /// Secrets, webhook URLs, purge and redrive.
        Admin = "admin",
    }
}

/// Every resource, or every verb.
const ANY: &str = "*";

/// Access to a resource, perhaps limited to some ids: `resource:verb` or `resource:verb:prefix`.
///
/// `*` stands for every resource or every verb, and alone for everything. A prefix with `*` as the resource covers only
/// resources that take prefixes.
///
/// ```
/// use antumbra_service::access::{Grant, Resource, Verb};
/// let grant: Grant = "shadows:write:House%20A#".parse()?;
/// assert!(grant.covers(Resource::Shadows, Verb::Read, Some("House A#Lamp")));
/// assert!(!grant.covers(Resource::Shadows, Verb::Admin, Some("House A#Lamp")));
/// assert!(!grant.covers(Resource::Shadows, Verb::Read, None));
/// # Ok::<(), antumbra_service::access::InvalidGrant>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// `None` for every resource.
    resource: Option<Resource>,
    verb: Verb,
    prefix: Option<Prefix>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGrant {
    #[error("a grant is resource:verb or resource:verb:prefix, or * alone")]
    Parts,
    #[error("{0}, *")]
    Word(String),
    #[error(transparent)]
    Prefix(#[from] InvalidPrefix),
    #[error("{0} takes no prefix")]
    NoPrefix(Resource),
}

impl Grant {
    /// The grant of everything.
    pub const ALL: Grant = Grant {
        resource: None,
        verb: Verb::Admin,
        prefix: None,
    };

    /// Creates the grant for one id, or for all ids of the resource.
    pub fn new(resource: Resource, verb: Verb, id: Option<&str>) -> Grant {
        Grant {
            resource: Some(resource),
            verb,
            prefix: id.and_then(Prefix::new),
        }
    }

    pub fn prefix(&self) -> Option<&Prefix> {
        self.prefix.as_ref()
    }

    /// The resource; `None` for every resource.
    pub fn resource(&self) -> Option<Resource> {
        self.resource
    }

    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns whether the grant is for this resource and verb, of some id or of all.
    pub fn is_for(&self, resource: Resource, verb: Verb) -> bool {
        let named = self.resource.is_none_or(|own| own == resource);
        named && self.verb >= verb && (self.prefix.is_none() || resource.takes_prefix())
    }

    /// Returns whether the grant covers an id, or all ids (`None`).
    pub fn covers(&self, resource: Resource, verb: Verb, id: Option<&str>) -> bool {
        let covers = |prefix: &Prefix| id.is_some_and(|id| prefix.covers(id));
        self.is_for(resource, verb) && self.prefix.as_ref().is_none_or(covers)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Grant::ALL {
            return f.write_str(ANY);
        }
        let resource = self.resource.map_or(ANY, Resource::as_str);
        write!(f, "{resource}:{}", self.verb)?;
        match &self.prefix {
            Some(prefix) => write!(f, ":{prefix}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Grant {
    type Err = InvalidGrant;

    fn from_str(text: &str) -> Result<Grant, InvalidGrant> {
        if text == ANY {
            return Ok(Grant::ALL);
        }
        let mut parts = text.splitn(3, ':');
        let (Some(resource), Some(verb)) = (parts.next(), parts.next()) else {
            return Err(InvalidGrant::Parts);
        };
        let resource: Option<Resource> = match resource {
            ANY => None,
            word => Some(word.parse().map_err(InvalidGrant::Word)?),
        };
        let verb = match verb {
            ANY => Verb::Admin,
            word => word.parse().map_err(InvalidGrant::Word)?,
        };
        let prefix = parts.next().map(Prefix::from_str).transpose()?;
        match resource {
            Some(resource) if prefix.is_some() && !resource.takes_prefix() => {
                Err(InvalidGrant::NoPrefix(resource))
            }
            _ => Ok(Grant {
                resource,
                verb,
                prefix,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_written_as_they_are_read() {
        for text in [
            "*",
            "shadows:read",
            "shadows:write:House%20A#",
            "sensors:admin:a:b:",
            "*:read",
            "*:write:a#1",
            "registrations:read",
        ] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        assert_eq!("*:*".parse::<Grant>(), Ok(Grant::ALL));
        assert_eq!("*:admin".parse::<Grant>(), Ok(Grant::ALL));
        assert_eq!("shadows:*".parse::<Grant>(), "shadows:admin".parse());
    }

    #[test]
    fn other_texts_are_not_grants() {
        for text in [
            "",
            "shadows",
            "shadows:",
            "shadow:read",
            "Shadows:read",
            "shadows:Read",
            "shadows:delete",
            "shadows:read:",
            "shadows:read:a b",
            "shadows:read:%",
            " shadows:read",
            "shadows:read ",
            "**",
            "*:",
            "queues:read:a",
            "registrations:read:a#",
            "shadows:read,sensors:read",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }

    #[test]
    fn errors_name_the_words_that_are_expected() {
        assert_eq!(
            "shadows:rea".parse::<Grant>().unwrap_err().to_string(),
            "\"rea\" is not a verb; expected one of: read, write, admin, *"
        );
        assert_eq!(
            "queues:read:a".parse::<Grant>().unwrap_err().to_string(),
            "queues takes no prefix"
        );
    }

    #[test]
    fn a_prefix_of_every_resource_covers_no_resource_without_prefixes() {
        let grant: Grant = "*:admin:a#".parse().unwrap();
        assert!(grant.covers(Resource::Sensors, Verb::Write, Some("a#1")));
        for resource in [Resource::Queues, Resource::Registrations] {
            assert!(!grant.covers(resource, Verb::Read, None));
            assert!(!grant.is_for(resource, Verb::Read));
        }
    }

    #[test]
    fn verbs_include_those_before_them() {
        for (at, verb) in Verb::ALL.iter().enumerate() {
            let grant = Grant::new(Resource::Shadows, *verb, None);
            for (other, needed) in Verb::ALL.iter().enumerate() {
                assert_eq!(grant.is_for(Resource::Shadows, *needed), other <= at);
            }
        }
    }
}
