//! The conditions under which items change, and the update that deletes one, in DynamoDB's language.

use std::collections::HashMap;

use antumbra_service::shadows::{State, VERSION_KEPT, Version};
use antumbra_shadow::Timestamp;
use antumbra_wire::items::attributes::times_name;
use aws_sdk_dynamodb::types::AttributeValue;

use super::item::{CLIENT_TOKEN, DELETED_AT, TIMESTAMP, TTL, VERSION, ZONE, seconds};
use super::keys::PARTITION_KEY;

/// Turns an item into what a delete leaves: its key and version, when it was deleted, and when it goes.
pub(super) const DELETE: &str = "SET #deleted = :now, #ttl = :ttl \
    REMOVE #reported, #desired, #reportedTimes, #desiredTimes, #timestamp, #zone, #token";

/// A condition, with the names and values it and the update speak of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expressions {
    pub(super) condition: String,
    pub(super) names: HashMap<String, String>,
    pub(super) values: HashMap<String, AttributeValue>,
}

impl Expressions {
    /// No item lies there, not even a deleted one.
    pub(super) fn absent() -> Expressions {
        Expressions::new(format!("attribute_not_exists({PARTITION_KEY})"), None, &[])
    }

    /// What lies there is deleted and had this version.
    pub(super) fn deleted(version: Version) -> Expressions {
        let condition = "#version = :expected AND attribute_exists(#deleted)";
        Expressions::new(condition, Some(version), &["#deleted"])
    }

    /// What lies there is not deleted, and has this version where one is given.
    pub(super) fn there(version: Option<Version>) -> Expressions {
        let condition = match version {
            Some(_) => "#version = :expected AND attribute_not_exists(#deleted)".to_owned(),
            None => format!("attribute_exists({PARTITION_KEY}) AND attribute_not_exists(#deleted)"),
        };
        Expressions::new(condition, version, &["#deleted"])
    }

    /// Nothing lies there but what may have been deleted.
    pub(super) fn not_there() -> Expressions {
        let condition =
            format!("attribute_not_exists({PARTITION_KEY}) OR attribute_exists(#deleted)");
        Expressions::new(condition, None, &["#deleted"])
    }

    fn new(condition: impl Into<String>, version: Option<Version>, names: &[&str]) -> Expressions {
        let mut expressions = Expressions {
            condition: condition.into(),
            names: HashMap::new(),
            values: HashMap::new(),
        };
        expressions.name(names);
        if let Some(version) = version {
            expressions.name(&["#version"]);
            expressions.value(":expected", version.to_string());
        }
        expressions
    }

    /// With what [`DELETE`] speaks of.
    pub(super) fn deleting(mut self, now: Timestamp) -> Expressions {
        let all = NAMES.map(|(placeholder, _)| placeholder);
        let version = self.values.contains_key(":expected");
        self.name(&all);
        if !version {
            self.names.remove("#version");
        }
        self.value(":now", now.nanoseconds().to_string());
        // Never before the time is over.
        let gone = seconds(now.after(VERSION_KEPT)).saturating_add(1);
        self.value(":ttl", gone.to_string());
        self
    }

    fn name(&mut self, placeholders: &[&str]) {
        for (placeholder, attribute) in NAMES {
            if placeholders.contains(&placeholder) {
                self.names
                    .insert(placeholder.to_owned(), attribute.to_owned());
            }
        }
    }

    fn value(&mut self, placeholder: &str, number: String) {
        let number = AttributeValue::N(number);
        self.values.insert(placeholder.to_owned(), number);
    }
}

/// Some are reserved words, and others may become so.
const NAMES: [(&str, &str); 10] = [
    ("#version", VERSION),
    ("#deleted", DELETED_AT),
    ("#ttl", TTL),
    ("#timestamp", TIMESTAMP),
    ("#zone", ZONE),
    ("#token", CLIENT_TOKEN),
    ("#reported", "reported"),
    ("#desired", "desired"),
    ("#reportedTimes", REPORTED_TIMES),
    ("#desiredTimes", DESIRED_TIMES),
];
const REPORTED_TIMES: &str = times_name(State::Reported);
const DESIRED_TIMES: &str = times_name(State::Desired);
