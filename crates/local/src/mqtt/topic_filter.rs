//! Topic filters as IoT Core's rules read them. Pure.

/// A topic filter: `+` matches one level, a final `#` one or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFilter(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a topic filter: `+` and `#` must be whole levels, and `#` the last one")]
pub struct InvalidFilter(String);

impl TopicFilter {
    pub fn new(filter: impl Into<String>) -> Result<Self, InvalidFilter> {
        let filter = filter.into();
        let levels: Vec<&str> = filter.split('/').collect();
        let valid = levels
            .iter()
            .enumerate()
            .all(|(depth, level)| match *level {
                "+" => true,
                "#" => depth + 1 == levels.len(),
                name => !name.contains(['+', '#', '\0']),
            });
        if valid && !filter.is_empty() {
            Ok(Self(filter))
        } else {
            Err(InvalidFilter(filter))
        }
    }

    /// Returns whether a topic matches. `#` does not match its parent level, and a leading wildcard does not match
    /// topics that begin with `$`.
    pub fn matches(&self, topic: &str) -> bool {
        if topic.starts_with('$') && self.0.starts_with(['+', '#']) {
            return false;
        }
        let mut levels = topic.split('/');
        for wanted in self.0.split('/') {
            match (wanted, levels.next()) {
                ("#", level) => return level.is_some(),
                ("+", Some(_)) => {}
                (wanted, Some(level)) if wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }
}

impl std::fmt::Display for TopicFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_topics() {
        let cases = [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/b", "a", false),
            ("a/+/c", "a/b/c", true),
            ("a/+/c", "a//c", true),
            ("a/+", "a", false),
            ("a/+", "a/b/c", false),
            ("a/#", "a/b", true),
            ("a/#", "a/b/c/d", true),
            ("a/#", "a/", true),
            ("a/#", "a", false),
            ("#", "a/b", true),
            ("+", "a", true),
            ("#", "$aws/x", false),
            ("+/x", "$aws/x", false),
            ("$aws/#", "$aws/x", true),
            ("A", "a", false),
        ];
        for (filter, topic, expected) in cases {
            let filter = TopicFilter::new(filter).unwrap();
            assert_eq!(filter.matches(topic), expected, "{filter} {topic}");
        }
    }

    #[test]
    fn invalid_filters_are_rejected() {
        for filter in ["", "a/#/b", "a#", "a/b+", "##", "a\0"] {
            assert!(TopicFilter::new(filter).is_err(), "{filter:?}");
        }
    }
}
