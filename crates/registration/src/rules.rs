//! The table of MQTT operations, and the AWS IoT rules that follow from it.
//!
//! One table for everybody: the templates deploy these rules, the local stack evaluates them, the functions
//! parse topics by them, registrations may not publish to them, and tests compare. To add an inbox operation, add a line to the table in
//! [`Operation`] and serve it in `message-requests`.
//!
//! All rules share one `SELECT`: the payload in base64, so that a payload which is not JSON reaches the
//! function and gets its response; the topic; the client id; and the MQTT 5 properties that a response needs.
//! `#` matches one or more levels, never none: `request/get` alone triggers no rule.

pub const SQL_VERSION: &str = "2016-03-23";

/// Selects the content of `RuleEvent`, the event that a function gets.
pub const SELECT: &str = "SELECT encode(*, 'base64') AS payload, topic() AS topic, clientid() AS clientId, \
     get_mqtt_property('response_topic') AS responseTopic, \
     get_mqtt_property('correlation_data') AS correlationData, timestamp() AS timestamp, \
     get_user_properties('timestamp') AS userTimestamp";

/// One AWS IoT rule: the function that receives the messages of a topic filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Name on AWS: letters, digits and underscores.
    pub name: &'static str,
    pub filter: &'static str,
    /// Name of the function, without the deployment's prefix.
    pub function: &'static str,
}

impl Rule {
    /// Returns the SQL statement of the rule.
    pub fn sql(&self) -> String {
        format!("{SELECT} FROM '{}'", self.filter)
    }
}

/// Makes [`Operation`] from lines of: variant, word, topic levels after the word, function.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident: $word:literal, $names:literal => $function:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {
            $($(#[$doc])* $variant,)+
        }

        impl Operation {
            pub const ALL: &[Operation] = &[$(Operation::$variant),+];

            /// Second level of its request and response topics.
            pub fn word(self) -> &'static str {
                match self { $(Operation::$variant => $word,)+ }
            }

            /// Shape of its request topics, with `<uuid>` and `<messageId>` in place of names.
            pub fn topic(self) -> &'static str {
                match self { $(Operation::$variant => concat!("request/", $word, $names),)+ }
            }

            /// The rule that passes its requests to the function that serves them.
            pub fn rule(self) -> Rule {
                match self {
                    $(Operation::$variant => Rule {
                        name: concat!("antumbra_message_", $word),
                        filter: match $names {
                            "" => concat!("request/", $word),
                            _ => concat!("request/", $word, "/#"),
                        },
                        function: $function,
                    },)+
                }
            }
        }
    };
}

operations! {
    /// Returns the ids of the oldest and the newest message.
    Query: "query", "/<uuid>" => "message-query";
    Get: "get", "/<uuid>/<messageId>" => "message-get";
    /// Returns the id of the next newer message.
    Next: "next", "/<uuid>/<messageId>" => "message-next";
    /// Returns the id of the next older message.
    Prev: "prev", "/<uuid>/<messageId>" => "message-next";
    /// Lists messages, a page at a time.
    List: "list", "/<uuid>" => "message-query";
    Delete: "delete", "/<uuid>/<messageId>" => "message-delete";
    /// Sends a message for a device to the outbound queue.
    Send: "send", "/<uuid>" => "message-send";
    /// Lists known sources, a page at a time.
    Devices: "devices", "" => "message-query";
}

impl Operation {
    pub fn function(self) -> &'static str {
        self.rule().function
    }

    /// Returns the operation of a request topic, by its first two levels.
    pub fn of_topic(topic: &str) -> Option<Operation> {
        let word = topic.strip_prefix("request/")?.split('/').next()?;
        let mut all = Self::ALL.iter().copied();
        all.find(|operation| operation.word() == word)
    }
}

/// Returns the rules for requests to the inbox and to shadows: all rules of a deployment.
pub fn deployed_rules() -> impl Iterator<Item = Rule> {
    let inbox = Operation::ALL.iter().map(|operation| operation.rule());
    inbox.chain(SHADOW_RULES)
}

const fn shadow_rule(name: &'static str, filter: &'static str) -> Rule {
    let function = "shadow-requests";
    Rule {
        name,
        filter,
        function,
    }
}

pub const SHADOW_RULES: [Rule; 6] = [
    shadow_rule("antumbra_shadow_get", "shadow/+/get"),
    shadow_rule("antumbra_shadow_update", "shadow/+/update"),
    shadow_rule("antumbra_shadow_delete", "shadow/+/delete"),
    shadow_rule("antumbra_shadow_named_get", "shadow/+/name/+/get"),
    shadow_rule("antumbra_shadow_named_update", "shadow/+/name/+/update"),
    shadow_rule("antumbra_shadow_named_delete", "shadow/+/name/+/delete"),
];

/// Rules for the topics of AWS IoT Device Shadow. Only the local stack has them, so that devices made for AWS's
/// own shadows work with it unchanged.
pub const AWS_SHADOW_RULES: [Rule; 6] = [
    shadow_rule("aws_shadow_get", "$aws/things/+/shadow/get"),
    shadow_rule("aws_shadow_update", "$aws/things/+/shadow/update"),
    shadow_rule("aws_shadow_delete", "$aws/things/+/shadow/delete"),
    shadow_rule("aws_shadow_named_get", "$aws/things/+/shadow/name/+/get"),
    shadow_rule(
        "aws_shadow_named_update",
        "$aws/things/+/shadow/name/+/update",
    ),
    shadow_rule(
        "aws_shadow_named_delete",
        "$aws/things/+/shadow/name/+/delete",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sql_is_what_aws_expects() {
        assert_eq!(
            Operation::Get.rule().sql(),
            "SELECT encode(*, 'base64') AS payload, topic() AS topic, clientid() AS clientId, \
             get_mqtt_property('response_topic') AS responseTopic, \
             get_mqtt_property('correlation_data') AS correlationData, \
             timestamp() AS timestamp, get_user_properties('timestamp') AS userTimestamp FROM 'request/get/#'"
        );
    }

    #[test]
    fn rule_names_are_valid_and_unique() {
        let mut names: Vec<&str> = deployed_rules().map(|rule| rule.name).collect();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(names.iter().all(|name| name.chars().all(allowed)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_filter_covers_the_topics_of_its_operation_and_no_others() {
        for operation in Operation::ALL {
            let topic = operation.topic();
            let filter = operation.rule().filter;
            match filter.strip_suffix("/#") {
                Some(prefix) => assert!(topic.starts_with(&format!("{prefix}/"))),
                None => assert_eq!(filter, topic),
            }
            assert_eq!(Operation::of_topic(topic), Some(*operation));
        }
        for topic in [
            "",
            "request",
            "request/",
            "request/put/a",
            "Request/get/a",
            "/request/get/a",
        ] {
            assert_eq!(Operation::of_topic(topic), None, "{topic}");
        }
    }
}
