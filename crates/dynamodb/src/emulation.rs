//! Requests that DynamoDB rejects and the embedded database accepts. The local stack and tests reject them too.
//!
//! The rules were found by sending the same requests to DynamoDB Local and to the embedded database.

use std::collections::HashMap;

use serde_json::Value;

use crate::tables::{Index, MAIN, MESSAGES, Scalar};

/// The operations with rules.
const CHECKED: [&str; 8] = [
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "Query",
    "Scan",
    "BatchWriteItem",
    "TransactWriteItems",
    "TransactGetItems",
];
/// Bytes of a partition key and of a sort key.
const PARTITION_KEY_BYTES: usize = 2048;
const SORT_KEY_BYTES: usize = 1024;
const IN_OPERANDS: usize = 100;
const COMPARATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];
const ORDERED_TYPES: [&str; 3] = ["S", "N", "B"];
const TYPES: [&str; 10] = ["S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"];
const KEYWORDS: [&str; 5] = ["AND", "OR", "NOT", "IN", "BETWEEN"];
const FUNCTIONS: [&str; 6] = [
    "attribute_exists",
    "attribute_not_exists",
    "attribute_type",
    "begins_with",
    "contains",
    "size",
];
const EMPTY_KEY: &str =
    "The AttributeValue for a key attribute cannot contain an empty string value";

/// Status of a rejection.
pub const REJECTED: u16 = 400;

/// The body of DynamoDB's response to a request that it rejects; `None` if the embedded database can take it. `target`
/// is the header `x-amz-target`, or only the operation.
pub fn rejection(target: &str, request: &[u8]) -> Option<Value> {
    let operation = target.rsplit('.').next()?;
    if !CHECKED.contains(&operation) {
        return None;
    }
    let request: Value = serde_json::from_slice(request).ok()?;
    let message = fault(operation, &request)?;
    let kind = "com.amazon.coral.validate#ValidationException";
    Some(serde_json::json!({"__type": kind, "message": message}))
}

fn fault(operation: &str, request: &Value) -> Option<String> {
    let parts = request["TransactItems"].as_array();
    match operation {
        "TransactWriteItems" => parts?
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|part| part.values())
            .find_map(|write| lone_values(write).or_else(|| write_fault(write))),
        "TransactGetItems" => parts?
            .iter()
            .find_map(|part| empty_value(&part["Get"]["Key"])),
        "BatchWriteItem" => {
            let requests = request["RequestItems"].as_object()?.values();
            requests
                .filter_map(Value::as_array)
                .flatten()
                .find_map(batch_fault)
        }
        "Query" => {
            empty_or_long_key(request).or_else(|| condition_fault(request, "FilterExpression"))
        }
        "Scan" => empty_value(&request["ExclusiveStartKey"])
            .or_else(|| condition_fault(request, "FilterExpression")),
        _ => write_fault(request),
    }
}

fn batch_fault(request: &Value) -> Option<String> {
    match request.as_object().map_or(0, serde_json::Map::len) {
        0 | 1 => long_index_key(&request["PutRequest"]["Item"]),
        _ => Some("Supplied WriteRequest has more than one request set".to_owned()),
    }
}

fn write_fault(write: &Value) -> Option<String> {
    long_index_key(&write["Item"])
        .or_else(|| update_fault(write))
        .or_else(|| condition_fault(write, "ConditionExpression"))
}

/// Values without an expression that could use them.
fn lone_values(write: &Value) -> Option<String> {
    let used = ["ConditionExpression", "UpdateExpression"];
    let lone = write.get("ExpressionAttributeValues").is_some()
        && used.iter().all(|name| write.get(name).is_none());
    lone.then(|| {
        "ExpressionAttributeValues can only be specified when using expressions".to_owned()
    })
}

/// The type and the content of an attribute value.
fn typed(value: &Value) -> Option<(&str, &Value)> {
    let (name, content) = value.as_object()?.iter().next()?;
    Some((name, content))
}

/// Bytes of a string or binary value.
fn bytes(value: &Value) -> Option<usize> {
    match typed(value)? {
        ("S" | "B", Value::String(text)) => Some(text.len()),
        _ => None,
    }
}

fn empty_value(key: &Value) -> Option<String> {
    let mut values = key.as_object()?.values();
    values
        .any(|value| bytes(value) == Some(0))
        .then(|| EMPTY_KEY.to_owned())
}

/// The maximum bytes of an index's key attribute.
fn index_key_limit(attribute: &str) -> Option<usize> {
    let limit = |index: &Index<'_>| match index {
        Index { partition_key, .. } if *partition_key == attribute => Some(PARTITION_KEY_BYTES),
        Index { sort_key, .. } if *sort_key == (attribute, Scalar::Text) => Some(SORT_KEY_BYTES),
        _ => None,
    };
    MAIN.indexes.iter().chain(MESSAGES.indexes).find_map(limit)
}

fn is_key(attribute: &str) -> bool {
    [MAIN, MESSAGES]
        .iter()
        .any(|table| [table.partition_key, table.sort_key].contains(&attribute))
}

fn long_index_key(item: &Value) -> Option<String> {
    let mut attributes = item.as_object()?.iter();
    attributes.find_map(|(name, value)| too_long(name, value))
}

fn too_long(attribute: &str, value: &Value) -> Option<String> {
    let long = bytes(value)? > index_key_limit(attribute)?;
    long.then(|| "One or more parameter values were invalid: Size limit exceeded".to_owned())
}

/// The tokens of an expression, and the names and values that they stand for.
struct Expression<'a> {
    tokens: Vec<&'a str>,
    names: HashMap<&'a str, &'a str>,
    values: &'a Value,
}

impl<'a> Expression<'a> {
    fn read(request: &'a Value, name: &str) -> Option<Expression<'a>> {
        let names = request["ExpressionAttributeNames"].as_object();
        let names = names.into_iter().flatten();
        Some(Expression {
            tokens: tokens(request[name].as_str()?),
            names: names
                .filter_map(|(placeholder, name)| Some((placeholder.as_str(), name.as_str()?)))
                .collect(),
            values: &request["ExpressionAttributeValues"],
        })
    }

    /// The attribute path of a token, with names in place of placeholders.
    fn path(&self, token: &'a str) -> String {
        let parts = token.split('.');
        let parts: Vec<&str> = parts
            .map(|part| *self.names.get(part).unwrap_or(&part))
            .collect();
        parts.join(".")
    }

    /// The type of a value; `None` for a path.
    fn type_of(&self, token: &str) -> Option<&'a str> {
        Some(typed(self.values.get(token)?)?.0)
    }
}

/// Splits an expression into parentheses, commas, comparators and words.
fn tokens(expression: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || "_#:.[]-".contains(c);
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            '<' | '>' if rest[1..].starts_with(['=', '>']) => 2,
            c => c.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// An empty value, or one that is too long for a sort key, in a key condition.
fn empty_or_long_key(query: &Value) -> Option<String> {
    let expression = Expression::read(query, "KeyConditionExpression")?;
    let mut attribute = String::new();
    for token in &expression.tokens {
        let Some(value) = expression.values.get(token) else {
            let word = token.starts_with(|c: char| c.is_alphanumeric() || c == '#');
            if word && !FUNCTIONS.contains(token) && !KEYWORDS.contains(&&*token.to_uppercase()) {
                attribute = expression.path(token);
            }
            continue;
        };
        let sort_keys = [MAIN.sort_key, MESSAGES.sort_key];
        match bytes(value) {
            Some(0) => return Some(format!("{EMPTY_KEY}. Key: {attribute}")),
            Some(length) if length > SORT_KEY_BYTES && sort_keys.contains(&&*attribute) => {
                return Some(format!(
                    "The size of {attribute} exceeds {SORT_KEY_BYTES} bytes"
                ));
            }
            _ => {}
        }
    }
    None
}

fn update_fault(write: &Value) -> Option<String> {
    let expression = Expression::read(write, "UpdateExpression")?;
    expression.tokens.windows(3).find_map(|part| {
        let [target, "=", value] = part else {
            return None;
        };
        let target = expression.path(target);
        match is_key(&target) {
            true => Some(format!(
                "Cannot update attribute {target}. This attribute is part of the key"
            )),
            false => too_long(&target, expression.values.get(value)?),
        }
    })
}

fn condition_fault(request: &Value, name: &str) -> Option<String> {
    let expression = Expression::read(request, name)?;
    let tokens = &expression.tokens;
    let at = |index: usize| tokens.get(index).copied().unwrap_or_default();
    let wrong_type = |operator: &str, operand: &str| {
        let kind = expression.type_of(operand)?;
        (!ORDERED_TYPES.contains(&kind)).then(|| {
            format!("Invalid {name}: Incorrect operand type for operator or function; operator or function: {operator}, operand type: {kind}")
        })
    };
    let same = |left: &str, right: &str| {
        let is_path = |token: &str| token.starts_with(|c: char| c.is_alphanumeric() || c == '#');
        let equal =
            is_path(left) && is_path(right) && expression.path(left) == expression.path(right);
        equal.then(|| format!("Invalid {name}: The first operand must be distinct from the remaining operands; first operand: [{left}]"))
    };
    for (index, token) in tokens.iter().enumerate() {
        let (before, after) = (at(index.wrapping_sub(1)), at(index + 1));
        let found = match *token {
            comparator if COMPARATORS.contains(&comparator) => {
                let is_call = at(index + 2) == "(";
                let ordered = !["=", "<>"].contains(&comparator);
                let types =
                    || wrong_type(comparator, before).or_else(|| wrong_type(comparator, after));
                let same = same(before, after).filter(|_| !is_call);
                same.or_else(|| types().filter(|_| ordered))
            }
            word if word.eq_ignore_ascii_case("BETWEEN") => {
                wrong_type(word, after).or_else(|| wrong_type(word, at(index + 3)))
            }
            word if word.eq_ignore_ascii_case("IN") => {
                let operands: Vec<&str> = tokens[index + 1..]
                    .iter()
                    .take_while(|token| **token != ")")
                    .filter(|token| !["(", ","].contains(token))
                    .copied()
                    .collect();
                let many = operands.len() > IN_OPERANDS;
                let many = many.then(|| {
                    format!("Invalid {name}: The IN operator is provided with too many operands")
                });
                many.or_else(|| operands.iter().find_map(|operand| same(before, operand)))
            }
            "attribute_type" => {
                let value = expression.values.get(at(index + 4)).and_then(typed);
                let known = value.is_some_and(|(kind, value)| {
                    kind == "S" && value.as_str().is_some_and(|name| TYPES.contains(&name))
                });
                (!known).then(|| format!("Invalid {name}: Invalid attribute type name found"))
            }
            word if after == "("
                && word.starts_with(char::is_alphabetic)
                && !FUNCTIONS.contains(&word)
                && !KEYWORDS.contains(&&*word.to_uppercase()) =>
            {
                Some(format!(
                    "Invalid {name}: Invalid function name; function: {word}"
                ))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
