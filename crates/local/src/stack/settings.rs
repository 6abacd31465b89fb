//! Settings of the functions. They read the same variables as on AWS: those that name tables and queues are set by the
//! stack, all others by the user; what is not set has the default of the template.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use antumbra_dynamodb::{HISTORY, MAIN, MESSAGES};
use antumbra_lambda_kit::config::{Common, FunctionConfig, names};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::functions::{FUNCTIONS, queues};
use antumbra_message_requests::config::{InboxConfig, SendConfig};
use antumbra_publish::webhook::Allow;

use crate::ACCOUNT;

/// Values of the template's default parameters that are not the defaults of the code, and two that differ from the
/// template: the broker authenticates nobody, and endpoints that are tried locally are on this machine.
const DEFAULTS: [(&str, &str); 6] = [
    ("METRICS", "false"),
    ("MESSAGE_RETENTION_DAYS", "30"),
    ("DELIVERY_RETENTION_DAYS", "7"),
    ("RETENTION", "*=30"),
    ("OWN_SHADOWS_ONLY", "false"),
    ("WEBHOOK_ALLOW", THIS_MACHINE),
];

const THIS_MACHINE: &str = "http://localhost, http://127.0.0.0/8, http://[::1]";

/// Variables with the URL of a queue.
const QUEUES: [(&str, &str); 10] = [
    ("UNDELIVERABLE_QUEUE_URL", queues::UNDELIVERABLE),
    ("SPILL_QUEUE_URL", queues::SPILL),
    ("QUARANTINE_QUEUE_URL", queues::QUARANTINE),
    ("OUTBOUND_QUEUE_URL", queues::OUTBOUND),
    ("INBOUND_QUEUE_URL", queues::INBOUND),
    ("SIGNALS_QUEUE_URL", queues::SIGNALS),
    ("DELIVERIES_QUEUE_URL", queues::DELIVERIES),
    ("DELIVERIES_FIFO_QUEUE_URL", queues::DELIVERIES_FIFO),
    ("DELIVERIES_DEAD_QUEUE_URL", queues::DELIVERIES_DEAD),
    (
        "DELIVERIES_DEAD_FIFO_QUEUE_URL",
        queues::DELIVERIES_DEAD_FIFO,
    ),
];

/// Other variables that the stack sets: names and endpoints, the registrations, the tokens of the HTTP API instead of those of
/// API Gateway, and the filters of the streams, of which it has none.
const OWN: [&str; 10] = [
    "TABLE",
    "MESSAGES_TABLE",
    "HISTORY_TABLE",
    "AWS_ENDPOINT_URL",
    "IOT_ENDPOINT",
    "REGISTRATIONS",
    "AUTH",
    "GRANTS_CLAIM",
    "IAM_GRANTS",
    "STREAM_KINDS",
];

/// Variables of the functions, as the user sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

/// Faults of all variables that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(String::as_str).collect::<Vec<_>>().join("; "))]
pub struct SettingsError(pub BTreeSet<String>);

impl<const N: usize> From<[(&str, &str); N]> for Settings {
    fn from(variables: [(&str, &str); N]) -> Settings {
        variables.into_iter().collect()
    }
}

impl<Name: Into<String>, Value: Into<String>> FromIterator<(Name, Value)> for Settings {
    fn from_iter<I: IntoIterator<Item = (Name, Value)>>(variables: I) -> Settings {
        let texts = |(name, value): (Name, Value)| (name.into(), value.into());
        Settings(variables.into_iter().map(texts).collect())
    }
}

impl Settings {
    /// Returns a variable that the user has set; an empty one counts as missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// Sets a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Settings {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The variables of a function, with services at this endpoint.
    pub(super) fn environment(&self, function: &str, endpoint: &str) -> Environment {
        let (given, function) = (self.0.clone(), function.to_owned());
        let endpoint = endpoint.to_owned();
        Environment::from_lookup(move |name| match is_own(name) {
            true => own(&function, name, &endpoint),
            false => {
                let given = given.get(name).filter(|value| !value.is_empty());
                given.cloned().or_else(|| default(name).map(str::to_owned))
            }
        })
    }

    /// Checks all variables.
    pub fn check(&self) -> Result<(), SettingsError> {
        let faults = readers().into_iter().flat_map(|(function, reader)| {
            let mut environment = self.environment(function, "");
            (reader.read)(&mut environment);
            let error = environment.finish().err();
            error.map_or(Vec::new(), |error| error.faults().to_vec())
        });
        let faults: BTreeSet<String> = faults.collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(SettingsError(faults)),
        }
    }

    /// Variables whose values change the configuration of a function.
    pub fn differences(&self) -> Vec<(&str, &str)> {
        let configurations = |settings: &Settings| {
            let read = |(function, reader): (&str, Reader)| {
                (reader.read)(&mut settings.environment(function, ""))
            };
            readers().into_iter().map(read).collect::<Vec<_>>()
        };
        let all = configurations(self);
        let differs = |(name, _): &(&String, &String)| {
            let mut others = self.clone();
            others.0.remove(*name);
            configurations(&others) != all
        };
        let given = self.0.iter().filter(differs);
        given.map(|(name, value)| (&name[..], &value[..])).collect()
    }
}

/// Names of all variables, by function.
pub fn variables() -> BTreeMap<&'static str, BTreeSet<String>> {
    readers()
        .into_iter()
        .map(|(function, reader)| (function, (reader.names)()))
        .collect()
}

/// Returns whether the stack sets a variable, and not the user.
pub fn is_own(variable: &str) -> bool {
    OWN.contains(&variable) || QUEUES.iter().any(|(name, _)| *name == variable)
}

/// Endpoints of webhooks that are allowed beside the public internet, unless the user sets others.
pub fn default_webhook_allow() -> Allow {
    // A test shows that it can be parsed.
    THIS_MACHINE.parse().unwrap_or_default()
}

/// Returns the default of a variable, if the function itself has another.
pub fn default(variable: &str) -> Option<&'static str> {
    let found = DEFAULTS.iter().find(|(name, _)| *name == variable);
    found.map(|(_, value)| *value)
}

fn own(function: &str, variable: &str, endpoint: &str) -> Option<String> {
    let queue = QUEUES.iter().find(|(name, _)| *name == variable);
    if let Some((_, queue)) = queue {
        return Some(format!("{endpoint}/{ACCOUNT}/{queue}"));
    }
    let is_inbox = function.starts_with("message-");
    match variable {
        "TABLE" if is_inbox => Some(MESSAGES.name.to_owned()),
        "TABLE" => Some(MAIN.name.to_owned()),
        "MESSAGES_TABLE" => Some(MESSAGES.name.to_owned()),
        "HISTORY_TABLE" => Some(HISTORY.name.to_owned()),
        "AWS_ENDPOINT_URL" => Some(endpoint.to_owned()),
        _ => None,
    }
}

/// Reads the configuration of a function.
struct Reader {
    names: fn() -> BTreeSet<String>,
    /// Returns the configuration as text, to compare it.
    read: fn(&mut Environment) -> String,
}

fn readers() -> Vec<(&'static str, Reader)> {
    let functions = FUNCTIONS.iter();
    functions
        .map(|function| (function.name, reader_of(function.name)))
        .collect()
}

fn reader_of(function: &str) -> Reader {
    match function {
        antumbra_history_writer::NAME => reader::<antumbra_history_writer::Config>(),
        antumbra_http_api::NAME => reader::<antumbra_http_api::Config>(),
        antumbra_liveness_sweep::NAME => reader::<antumbra_liveness_sweep::Config>(),
        antumbra_message_ingest::NAME => reader::<antumbra_message_ingest::Config>(),
        antumbra_sensor_ingest::NAME => reader::<antumbra_sensor_ingest::Config>(),
        antumbra_shadow_requests::NAME => reader::<antumbra_shadow_requests::Config>(),
        antumbra_stream_listener::NAME => reader::<antumbra_stream_listener::Config>(),
        antumbra_webhook_deliver::NAME => reader::<antumbra_webhook_deliver::Config>(),
        "message-send" => reader::<SendConfig>(),
        // All other functions serve requests of the inbox.
        _ => reader::<InboxConfig>(),
    }
}

fn reader<C: FunctionConfig + Debug>() -> Reader {
    Reader {
        names: names::<C>,
        read: |environment| {
            let common = Common::from_env(environment);
            format!("{common:?} {:?}", C::from_env(environment))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each variable that is not its default. Values of `AUTO_REGISTER_…` need `AUTO_REGISTER`.
    const OTHER: [(&str, &str); 35] = [
        ("ACCEPTED", "requested"),
        ("ACKNOWLEDGE", "on"),
        ("AUTO_REGISTER", "true"),
        ("AUTO_REGISTER_LOCATION", "Bergen/A/1/1"),
        ("AUTO_REGISTER_SILENCE_SECONDS", "60"),
        ("AUTO_REGISTER_TYPE", "lock"),
        ("COMBINED", "true"),
        ("CONCURRENCY", "3"),
        ("DATA", "scalar"),
        ("DELIVERY_MAX_ATTEMPTS", "3"),
        ("DELIVERY_RETENTION_DAYS", "1"),
        ("DISABLE_AFTER_HOURS", "1"),
        ("FEED_DAYS", "1"),
        ("FEED_PARTITIONS", "2"),
        ("GRACE_SECONDS", "0.2"),
        ("HISTORY_DAYS", "3"),
        ("ID_FIELD", "key"),
        ("LOG_LEVEL", "debug"),
        ("MARKER_WAIT_SECONDS", "1"),
        ("MAX_FUTURE_SECONDS", "0"),
        ("MESSAGE_ID_DIGITS", "5"),
        ("MESSAGE_RETENTION_DAYS", "0"),
        ("METRICS", "true"),
        ("MQTT_ORDER", "off"),
        ("OWN_SHADOWS_ONLY", "true"),
        ("QUEUE_BYTES", "1024"),
        ("RETENTION", "lock=1"),
        ("RETRY_CURVE", "logarithmic"),
        ("RETRY_FIRST_SECONDS", "1"),
        ("RETRY_LONGEST_SECONDS", "2"),
        ("SENSOR_ID_PATTERN", "[a-z]+"),
        ("SHARDS", "2"),
        ("TIMESTAMP_FIELDS", "at"),
        ("TOKENS", "private"),
        ("TOPIC_PREFIX", "stage/"),
    ];
    const TEXTS: [(&str, &str); 3] = [
        ("messageIdKey", "number"),
        ("uuidKey", "device"),
        ("WEBHOOK_ALLOW", "example.com"),
    ];

    #[test]
    fn every_variable_of_a_function_works() {
        let settings: Settings = OTHER.into_iter().chain(TEXTS).collect();
        settings.check().unwrap();
        let working: BTreeSet<&str> = settings.differences().into_iter().map(|(n, _)| n).collect();
        let all: BTreeSet<String> = variables().into_values().flatten().collect();
        let by_user = all.iter().map(String::as_str).filter(|name| !is_own(name));
        assert_eq!(working, by_user.collect());
    }

    #[test]
    fn values_that_are_the_default_are_not_differences() {
        let settings = Settings::from([("DATA", "binary"), ("SHARDS", ""), ("COMBINED", "true")]);
        assert_eq!(settings.differences(), [("COMBINED", "true")]);
    }

    #[test]
    fn the_stack_sets_names_and_endpoints_itself() {
        let settings = Settings::from([("TABLE", "mine"), ("QUARANTINE_QUEUE_URL", "mine")]);
        assert_eq!(settings.differences(), []);
        let mut environment = settings.environment("message-get", "http://here");
        assert_eq!(environment.required("TABLE"), "antumbra-messages");
        let queue = environment.required("QUARANTINE_QUEUE_URL");
        assert_eq!(queue, "http://here/000000000000/antumbra-quarantine");
    }

    #[test]
    fn all_faults_are_reported_once() {
        let settings = Settings::from([("SHARDS", "many"), ("DATA", "maybe")]);
        let SettingsError(faults) = settings.check().unwrap_err();
        let names: Vec<&str> = faults.iter().map(|fault| &fault[..4]).collect();
        assert_eq!(names, ["DATA", "SHAR"], "{faults:?}");
    }

    #[test]
    fn webhooks_to_this_machine_are_allowed_by_default() {
        assert_ne!(default_webhook_allow(), Allow::default());
    }
}
