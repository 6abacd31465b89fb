//! As much of the rules' SQL as the product's own rules use, and not a word more. Pure.
//!
//! `SELECT <expression> AS <name>, … FROM '<topic filter>'` with the expressions of [`Expression`].

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use crate::mqtt::{Message, TopicFilter};

/// What `clientid()` gives for a message that no MQTT client sent.
const NO_CLIENT: &str = "n/a";

/// A rule's statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    selected: Vec<(Expression, String)>,
    pub(super) filter: TopicFilter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expression {
    /// `encode(*, 'base64')`
    Payload,
    /// `topic()`
    Topic,
    /// `clientid()`
    ClientId,
    /// `timestamp()`
    Timestamp,
    /// `get_mqtt_property('response_topic')`
    ResponseTopic,
    /// `get_mqtt_property('correlation_data')`
    CorrelationData,
}

impl Statement {
    pub(super) fn parse(sql: &str) -> Result<Statement, String> {
        let mut rest = tokens(sql)?.into_iter();
        let mut take = || rest.next().unwrap_or(Token::End);
        expect(take(), &Token::word("select"))?;
        let mut selected = Vec::new();
        loop {
            let expression = expression(&mut take)?;
            expect(take(), &Token::word("as"))?;
            match take() {
                Token::Word(name) => selected.push((expression, name)),
                other => return Err(format!("a name was expected, not {other:?}")),
            }
            match take() {
                Token::Sign(',') => {}
                other => {
                    expect(other, &Token::word("from"))?;
                    break;
                }
            }
        }
        let filter = match take() {
            Token::Text(filter) => TopicFilter::new(filter).map_err(|error| error.to_string())?,
            other => return Err(format!("a topic filter was expected, not {other:?}")),
        };
        expect(take(), &Token::End)?;
        Ok(Statement { selected, filter })
    }

    /// The rule's result for a message, as JSON. What is undefined is left out.
    pub(super) fn select(&self, message: &Message, now_milliseconds: u64) -> Vec<u8> {
        let value = |expression: Expression| match expression {
            Expression::Payload => Some(Value::from(STANDARD.encode(&message.payload))),
            Expression::Topic => Some(Value::from(message.topic.as_str())),
            Expression::ClientId => {
                let client = message.client_id.as_deref();
                Some(Value::from(client.unwrap_or(NO_CLIENT)))
            }
            Expression::Timestamp => Some(Value::from(now_milliseconds)),
            Expression::ResponseTopic => {
                let topic = message.properties.response_topic.as_deref();
                topic.map(Value::from)
            }
            Expression::CorrelationData => {
                let bytes = message.properties.correlation_data.as_ref();
                bytes.map(|bytes| Value::from(STANDARD.encode(bytes)))
            }
        };
        let selected = self.selected.iter();
        let result: Map<String, Value> = selected
            .filter_map(|(expression, name)| Some((name.clone(), value(*expression)?)))
            .collect();
        Value::Object(result).to_string().into_bytes()
    }
}

fn expression(take: &mut impl FnMut() -> Token) -> Result<Expression, String> {
    let Token::Word(function) = take() else {
        return Err("a function was expected".to_owned());
    };
    expect(take(), &Token::Sign('('))?;
    let expression = match function.to_ascii_lowercase().as_str() {
        "encode" => {
            expect(take(), &Token::Sign('*'))?;
            expect(take(), &Token::Sign(','))?;
            expect(take(), &Token::Text("base64".to_owned()))?;
            Expression::Payload
        }
        "topic" => Expression::Topic,
        "clientid" => Expression::ClientId,
        "timestamp" => Expression::Timestamp,
        "get_mqtt_property" => match take() {
            Token::Text(name) if name == "response_topic" => Expression::ResponseTopic,
            Token::Text(name) if name == "correlation_data" => Expression::CorrelationData,
            other => return Err(format!("no property {other:?} is known")),
        },
        _ => return Err(format!("the function {function} is not known")),
    };
    expect(take(), &Token::Sign(')'))?;
    Ok(expression)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
    End,
}

impl Token {
    fn word(word: &str) -> Token {
        Token::Word(word.to_owned())
    }
}

/// Key words are the same in capitals.
fn expect(found: Token, expected: &Token) -> Result<(), String> {
    let same = match (&found, expected) {
        (Token::Word(found), Token::Word(expected)) => found.eq_ignore_ascii_case(expected),
        (found, expected) => found == expected,
    };
    let told = || format!("{expected:?} was expected, not {found:?}");
    if same { Ok(()) } else { Err(told()) }
}

fn tokens(sql: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (token, behind) = if letter(first) {
            let end = rest.find(|c| !letter(c)).unwrap_or(rest.len());
            (Token::word(&rest[..end]), &rest[end..])
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let (text, behind) = quoted.split_once('\'').ok_or("a quote is not closed")?;
            (Token::Text(text.to_owned()), behind)
        } else if "(),*".contains(first) {
            (Token::Sign(first), &rest[1..])
        } else {
            return Err(format!("{first:?} is not understood"));
        };
        tokens.push(token);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use antumbra_wire::{
        events::rule::RuleEvent,
        rules::{MESSAGE_RULES, SHADOW_RULES},
    };
    use bytes::Bytes;

    use super::*;
    use crate::mqtt::Properties;

    #[test]
    fn the_products_rules_are_understood_and_their_results_read_back() {
        let message = Message {
            topic: "request/get/a/b".to_owned(),
            payload: Bytes::from_static(&[0, 255, b'"']),
            client_id: Some("lamp-7".to_owned()),
            properties: Properties {
                response_topic: Some("response/get/x".to_owned()),
                correlation_data: Some(Bytes::from_static(&[1, 2, 3])),
                ..Properties::default()
            },
            ..Message::default()
        };
        for rule in MESSAGE_RULES.iter().chain(&SHADOW_RULES) {
            let statement = Statement::parse(rule.sql).unwrap();
            let event = RuleEvent::decode(&statement.select(&message, 1_700)).unwrap();
            let expected = RuleEvent {
                payload: vec![0, 255, b'"'],
                topic: "request/get/a/b".to_owned(),
                client_id: Some("lamp-7".to_owned()),
                response_topic: Some("response/get/x".to_owned()),
                correlation_data: Some("AQID".to_owned()),
                timestamp_milliseconds: Some(1_700),
            };
            assert_eq!(event, expected, "{}", rule.name);
        }
    }

    /// The rules that hear a topic, without what their names have in common.
    fn hearers(topic: &str) -> Vec<&'static str> {
        let rules = MESSAGE_RULES.iter().chain(&SHADOW_RULES);
        let hears = |sql: &str| Statement::parse(sql).unwrap().filter.matches(topic);
        rules
            .filter(|rule| hears(rule.sql))
            .map(|rule| rule.name.strip_prefix("antumbra_").unwrap())
            .collect()
    }

    #[test]
    fn a_topic_is_heard_by_the_rule_of_its_operation_alone() {
        for (topic, rule) in [
            ("request/query/lamp", "message_query"),
            ("request/get/lamp/1564669331-1-a", "message_get"),
            ("request/get/lamp", "message_get"),
            ("request/get/victim/x/y/z", "message_get"),
            ("request/get/", "message_get"),
            ("request/next/lamp/0", "message_next"),
            ("request/prev/lamp/0", "message_prev"),
            ("request/list/lamp", "message_list"),
            ("request/delete/lamp/1", "message_delete"),
            ("request/send/lamp", "message_send"),
            ("request/devices", "message_devices"),
            ("shadow/lamp/get", "shadow_get"),
            ("shadow/lamp/update", "shadow_update"),
            ("shadow/lamp/delete", "shadow_delete"),
            ("shadow/lamp/name/light/get", "shadow_named_get"),
            ("shadow/lamp/name/light/update", "shadow_named_update"),
            ("shadow/lamp/name/light/delete", "shadow_named_delete"),
            ("shadow/name/name/name/get", "shadow_named_get"),
        ] {
            assert_eq!(hearers(topic), [rule], "{topic}");
        }
        for topic in [
            "request",
            "request/get",
            "request/devices/lamp",
            "request/steal/lamp",
            "Request/get/lamp",
            "/request/get/lamp",
            "response/get/lamp.7",
            "shadow/lamp",
            "shadow/lamp/get/accepted",
            "shadow/lamp/update/delta",
            "shadow/lamp/x/get",
            "shadow/lamp/name/get",
            "shadow/lamp/name/light/get/accepted",
            "notification/lamp",
            "$aws/things/lamp/shadow/get",
        ] {
            assert!(hearers(topic).is_empty(), "{topic}");
        }
    }

    #[test]
    fn what_a_message_does_not_have_is_left_out() {
        let statement = Statement::parse(MESSAGE_RULES[0].sql).unwrap();
        let selected = statement.select(&Message::new("request/query/a", "{}"), 7);
        let selected: Value = serde_json::from_slice(&selected).unwrap();
        let expected = serde_json::json!({
            "payload": "e30=", "topic": "request/query/a", "clientId": "n/a", "timestamp": 7,
        });
        assert_eq!(selected, expected);
    }

    #[test]
    fn a_rule_that_says_more_is_refused() {
        for sql in [
            "",
            "SELECT * FROM 'a'",
            "SELECT topic() FROM 'a'",
            "SELECT topic(2) AS op FROM 'a'",
            "SELECT topic() AS topic",
            "SELECT topic() AS topic FROM 'a/#/b'",
            "SELECT topic() AS topic FROM 'a' WHERE color = 'red'",
            "SELECT topic() AS topic, FROM 'a'",
            "SELECT principal() AS p FROM 'a'",
            "SELECT encode(color, 'base64') AS p FROM 'a'",
            "SELECT encode(*, 'hex') AS p FROM 'a'",
            "SELECT get_mqtt_property('content_type') AS p FROM 'a'",
            "SELECT topic() AS topic FROM 'a",
            "DELETE topic() AS topic FROM 'a'",
        ] {
            assert!(Statement::parse(sql).is_err(), "{sql}");
        }
        assert!(Statement::parse("select topic() as t from 'a/+'").is_ok());
    }
}
