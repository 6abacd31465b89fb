//! Eventually consistent reads: they may return the state of some moments before.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::dynamodb::Reply;
use super::{Cloud, lock};
use crate::stream::stored;

/// Longest time that a replica lags behind.
const LAG: Duration = Duration::from_secs(1);
/// Tables and their keys.
const TABLES: [(&str, [&str; 2]); 3] = [
    ("antumbra", ["PK", "SK"]),
    ("antumbra-messages", ["uuid", "messageId"]),
    ("antumbra-history", ["PK", "SK"]),
];

/// Earlier states of items.
#[derive(Default)]
pub(super) struct Earlier {
    /// Position in each table's stream.
    reached: BTreeMap<&'static str, i64>,
    /// By table and key: the times of changes in milliseconds, and the state before each.
    changes: BTreeMap<String, Vec<(u64, Option<Value>)>>,
}

fn place(table: &str, item: &Value) -> Option<String> {
    let (_, keys) = TABLES.iter().find(|(name, _)| *name == table)?;
    let [partition, sort] = keys.map(|key| item[key]["S"].as_str());
    Some(format!("{table} {} {}", partition?, sort?))
}

impl Cloud {
    /// Remembers the states before the latest writes.
    pub(super) fn remember_changes(&self) {
        if lock(&self.0.faults).stale == 0.0 {
            return;
        }
        let now = self.0.clock.milliseconds();
        let mut earlier = lock(&self.0.earlier);
        for (table, _) in TABLES {
            let mut position = earlier.reached.get(table).copied().unwrap_or_default();
            for record in self.records(table, position) {
                position = stored(&record.dynamodb.sequence_number);
                let record = serde_json::to_value(&record.dynamodb).unwrap_or_default();
                let old = Some(record["OldImage"].clone()).filter(Value::is_object);
                if let Some(place) = place(table, &record["Keys"]) {
                    earlier.changes.entry(place).or_default().push((now, old));
                }
            }
            earlier.reached.insert(table, position);
        }
    }

    /// Replaces items of a response by earlier states, unless the request asks for consistency.
    pub(super) fn make_stale(&self, operation: &str, body: &str, reply: Reply) -> Reply {
        let is_read = matches!(operation, "GetItem" | "Query" | "BatchGetItem");
        let often = lock(&self.0.faults).stale;
        if !is_read || reply.0 != 200 || !self.0.chance.happens(often) {
            return reply;
        }
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (request, mut response) = (parse(body), parse(&reply.1));
        let until = self.0.clock.milliseconds() - self.0.chance.within(LAG).as_millis() as u64;
        let consistent = |request: &Value| request["ConsistentRead"] == true;
        let table = request["TableName"].as_str().unwrap_or_default();
        match operation {
            "GetItem" if !consistent(&request) => {
                let found =
                    place(table, &request["Key"]).and_then(|place| self.state(&place, until));
                match found {
                    Some(Some(item)) => response["Item"] = item,
                    Some(None) => response = json!({}),
                    None => {}
                }
            }
            "Query" if !consistent(&request) => {
                let count = self.replace(table, &mut response["Items"], until);
                response["Count"] = json!(count);
            }
            "BatchGetItem" => {
                for (table, wanted) in request["RequestItems"].as_object().into_iter().flatten() {
                    if !consistent(wanted) {
                        self.replace(table, &mut response["Responses"][table.as_str()], until);
                    }
                }
            }
            _ => return reply,
        }
        (200, response.to_string())
    }

    /// Replaces items by their states at a time; returns the number that is left.
    fn replace(&self, table: &str, items: &mut Value, until: u64) -> usize {
        let Some(items) = items.as_array_mut() else {
            return 0;
        };
        items.retain_mut(|item| {
            let found = place(table, item).and_then(|place| self.state(&place, until));
            match found {
                Some(Some(earlier)) => {
                    // An index or a projection has only some of the attributes.
                    let projected = |name: &String| item.get(name).is_some();
                    let members = earlier.as_object().into_iter().flatten();
                    let members = members.filter(|(name, _)| projected(name));
                    *item = Value::Object(members.map(|(n, v)| (n.clone(), v.clone())).collect());
                    true
                }
                Some(None) => false,
                None => true,
            }
        });
        items.len()
    }

    /// The state of an item at a time; `None` if it has not changed since.
    fn state(&self, place: &str, until: u64) -> Option<Option<Value>> {
        let earlier = lock(&self.0.earlier);
        let changes = earlier.changes.get(place)?;
        let since = changes.iter().find(|(at, _)| *at > until)?;
        Some(since.1.clone())
    }
}
