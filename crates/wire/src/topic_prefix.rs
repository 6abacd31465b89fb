//! The prefix of all MQTT topics of a deployment, so that several share an account.
//!
//! It is added where messages are published and removed where they arrive; all other code sees topics without it.

use std::fmt;
use std::str::FromStr;

/// Maximum characters, with the slash. Device policies have room for it.
const CHARS: usize = 32;

/// First level of all topics with its slash, such as `prod/`; empty by default.
///
/// ```
/// use antumbra_wire::topic_prefix::TopicPrefix;
/// let prefix: TopicPrefix = "prod/".parse().unwrap();
/// assert_eq!(prefix.add("shadow/lamp/get"), "prod/shadow/lamp/get");
/// assert_eq!(prefix.strip("prod/shadow/lamp/get"), Some("shadow/lamp/get"));
/// assert_eq!(prefix.strip("test/shadow/lamp/get"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicPrefix(String);

/// The text is not a topic prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be letters, digits, underscores and dashes with a slash at the end, {CHARS} at most, or empty"
)]
pub struct InvalidTopicPrefix;

impl FromStr for TopicPrefix {
    type Err = InvalidTopicPrefix;

    fn from_str(text: &str) -> Result<TopicPrefix, InvalidTopicPrefix> {
        let level = match text {
            "" => return Ok(TopicPrefix::default()),
            text => text.strip_suffix('/').ok_or(InvalidTopicPrefix)?,
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_valid = !level.is_empty() && text.len() <= CHARS && level.chars().all(allowed);
        is_valid
            .then(|| TopicPrefix(text.to_owned()))
            .ok_or(InvalidTopicPrefix)
    }
}

impl TopicPrefix {
    /// Adds the prefix to a topic or filter. Topics of AWS, which begin with `$`, have none.
    pub fn add(&self, topic: &str) -> String {
        match topic.starts_with('$') {
            true => topic.to_owned(),
            false => format!("{}{topic}", self.0),
        }
    }

    /// Removes the prefix from a topic; `None` if it has another.
    pub fn strip<'a>(&self, topic: &'a str) -> Option<&'a str> {
        match topic.starts_with('$') {
            true => Some(topic),
            false => topic.strip_prefix(&self.0),
        }
    }
}

impl fmt::Display for TopicPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_one_level() {
        for valid in ["", "prod/", "A-b_9/", &format!("{}/", "x".repeat(31))] {
            assert_eq!(valid.parse::<TopicPrefix>().unwrap().to_string(), valid);
        }
        for invalid in [
            "/",
            "prod",
            "a/b/",
            "+/",
            "#",
            "$aws/",
            "a b/",
            "ü/",
            &"x".repeat(33),
        ] {
            assert!(invalid.parse::<TopicPrefix>().is_err(), "{invalid}");
        }
        let long = format!("{}/", "x".repeat(32));
        assert!(long.parse::<TopicPrefix>().is_err());
    }

    #[test]
    fn topics_of_aws_have_no_prefix() {
        let prefix: TopicPrefix = "prod/".parse().unwrap();
        let topic = "$aws/things/lamp/shadow/get/accepted";
        assert_eq!(prefix.add(topic), topic);
        assert_eq!(prefix.strip(topic), Some(topic));
        let none = TopicPrefix::default();
        assert_eq!(none.add("a"), "a");
        assert_eq!(none.strip("a"), Some("a"));
    }
}
