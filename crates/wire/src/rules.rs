//! The rules of AWS IoT Core that call our functions, as data.
//!
//! One list for everybody: the deployment makes them, the local stack evaluates them. Each carries the
//! whole payload in base64, so that one that is not JSON reaches the function too and gets its answer,
//! with the topic, who sent it, and what MQTT 5 says of the answer. A property that the message does
//! not have is left out of the result. `#` stands for one or more levels, never for none: a topic one
//! level short of the first of them, such as `request/get`, is no request and nobody hears of it; nor is
//! anything below `request/devices`, whose rule has no wildcard.

/// The version of the rules' language.
pub const SQL_VERSION: &str = "2016-03-23";

/// One rule: which messages go to which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name on AWS: letters, digits and underscores.
    pub name: &'static str,
    /// Topic filter.
    pub filter: &'static str,
    /// The whole statement: [`SELECT`] from the filter.
    pub sql: &'static str,
    /// The function it calls.
    pub function: &'static str,
}

macro_rules! select {
    () => {
        concat!(
            "SELECT encode(*, 'base64') AS payload, topic() AS topic, clientid() AS clientId, ",
            "get_mqtt_property('response_topic') AS responseTopic, ",
            "get_mqtt_property('correlation_data') AS correlationData, ",
            "timestamp() AS timestamp"
        )
    };
}

/// The clause that all rules share; [`RuleEvent`](crate::events::rule::RuleEvent) reads its result.
pub const SELECT: &str = select!();

macro_rules! rule {
    ($name:literal, $filter:literal, $function:literal) => {
        Rule {
            name: $name,
            filter: $filter,
            sql: concat!(select!(), " FROM '", $filter, "'"),
            function: $function,
        }
    };
}

/// Requests to the inbox, one function for each operation.
pub const MESSAGE_RULES: [Rule; 8] = [
    rule!("antumbra_message_query", "request/query/#", "message-query"),
    rule!("antumbra_message_get", "request/get/#", "message-get"),
    rule!("antumbra_message_next", "request/next/#", "message-next"),
    rule!("antumbra_message_prev", "request/prev/#", "message-prev"),
    rule!("antumbra_message_list", "request/list/#", "message-list"),
    rule!(
        "antumbra_message_delete",
        "request/delete/#",
        "message-delete"
    ),
    rule!("antumbra_message_send", "request/send/#", "message-send"),
    rule!(
        "antumbra_message_devices",
        "request/devices",
        "message-devices"
    ),
];

/// Requests to shadows, one function for all.
pub const SHADOW_RULES: [Rule; 6] = [
    rule!("antumbra_shadow_get", "shadow/+/get", "shadow-requests"),
    rule!(
        "antumbra_shadow_update",
        "shadow/+/update",
        "shadow-requests"
    ),
    rule!(
        "antumbra_shadow_delete",
        "shadow/+/delete",
        "shadow-requests"
    ),
    rule!(
        "antumbra_shadow_named_get",
        "shadow/+/name/+/get",
        "shadow-requests"
    ),
    rule!(
        "antumbra_shadow_named_update",
        "shadow/+/name/+/update",
        "shadow-requests"
    ),
    rule!(
        "antumbra_shadow_named_delete",
        "shadow/+/name/+/delete",
        "shadow-requests"
    ),
];

/// The same on the topics that AWS keeps for its own shadows: for the local stack alone, so that a device
/// made for those works there as it is.
pub const AWS_SHADOW_RULES: [Rule; 6] = [
    rule!(
        "aws_shadow_get",
        "$aws/things/+/shadow/get",
        "shadow-requests"
    ),
    rule!(
        "aws_shadow_update",
        "$aws/things/+/shadow/update",
        "shadow-requests"
    ),
    rule!(
        "aws_shadow_delete",
        "$aws/things/+/shadow/delete",
        "shadow-requests"
    ),
    rule!(
        "aws_shadow_named_get",
        "$aws/things/+/shadow/name/+/get",
        "shadow-requests"
    ),
    rule!(
        "aws_shadow_named_update",
        "$aws/things/+/shadow/name/+/update",
        "shadow-requests"
    ),
    rule!(
        "aws_shadow_named_delete",
        "$aws/things/+/shadow/name/+/delete",
        "shadow-requests"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_reads_as_aws_reads_it() {
        assert_eq!(
            MESSAGE_RULES[1].sql,
            "SELECT encode(*, 'base64') AS payload, topic() AS topic, clientid() AS clientId, \
             get_mqtt_property('response_topic') AS responseTopic, \
             get_mqtt_property('correlation_data') AS correlationData, \
             timestamp() AS timestamp FROM 'request/get/#'"
        );
    }

    #[test]
    fn names_are_what_aws_takes_and_nobody_elses() {
        for (index, rule) in MESSAGE_RULES.iter().enumerate() {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(rule.name.chars().all(allowed), "{}", rule.name);
            let others = &MESSAGE_RULES[..index];
            assert!(others.iter().all(|other| other.name != rule.name));
        }
    }
}
