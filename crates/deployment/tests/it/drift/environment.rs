//! Environment variables: the template sets exactly those that the code reads, to valid values.

use std::collections::{BTreeMap, BTreeSet};

use antumbra_lambda_kit::config::{FunctionConfig, names};
use antumbra_lambda_kit::environment::Environment;
use antumbra_message_requests::config::{InboxConfig, SendConfig};
use antumbra_wire::rules::Operation;

use crate::functions::{functions, in_code};
use crate::scenario::TARGETS;
use crate::template::Stack;

/// Variables that are only for functions outside AWS.
const ELSEWHERE: &str = "AWS_ENDPOINT_URL";

struct Reader {
    names: BTreeSet<String>,
    read: fn(BTreeMap<String, String>) -> Result<(), String>,
}

fn reader<S: FunctionConfig>() -> Reader {
    Reader {
        names: names::<S>(),
        read: |set| {
            let mut environment = Environment::from_lookup(move |name| set.get(name).cloned());
            S::from_env(&mut environment);
            environment.finish().map_err(|error| error.to_string())
        },
    }
}

fn readers() -> BTreeMap<String, Reader> {
    let mut readers: BTreeMap<String, Reader> = [
        (
            antumbra_history_writer::NAME,
            reader::<antumbra_history_writer::Config>(),
        ),
        (
            antumbra_http_api::NAME,
            reader::<antumbra_http_api::Config>(),
        ),
        (
            antumbra_liveness_sweep::NAME,
            reader::<antumbra_liveness_sweep::Config>(),
        ),
        (
            antumbra_message_ingest::NAME,
            reader::<antumbra_message_ingest::Config>(),
        ),
        (
            antumbra_sensor_ingest::NAME,
            reader::<antumbra_sensor_ingest::Config>(),
        ),
        (
            antumbra_shadow_requests::NAME,
            reader::<antumbra_shadow_requests::Config>(),
        ),
        (
            antumbra_stream_listener::NAME,
            reader::<antumbra_stream_listener::Config>(),
        ),
        (
            antumbra_webhook_deliver::NAME,
            reader::<antumbra_webhook_deliver::Config>(),
        ),
    ]
    .map(|(name, reader)| (name.to_owned(), reader))
    .into();
    for operation in Operation::ALL {
        let reader = match operation {
            Operation::Send => reader::<SendConfig>(),
            _ => reader::<InboxConfig>(),
        };
        readers.insert(operation.function().to_owned(), reader);
    }
    assert_eq!(readers.keys().cloned().collect::<BTreeSet<_>>(), in_code());
    readers
}

#[test]
fn variables_that_are_set_are_those_that_are_read() {
    let readers = readers();
    for (name, function) in functions(&Stack::deploy(&[])) {
        let set: BTreeSet<String> = function.environment.into_keys().collect();
        let mut read = readers[&name].names.clone();
        assert!(read.remove(ELSEWHERE), "{name}");
        assert_eq!(set, read, "{name}");
    }
}

#[test]
fn variables_have_valid_values() {
    let others = [
        ("Combined", "true"),
        ("OwnShadowsOnly", "false"),
        ("MqttOrder", "changes"),
        ("Acknowledge", "on"),
        ("Accepted", "requested"),
        ("MaxFutureSeconds", "0"),
        ("AutoRegister", "true"),
        ("SensorData", "scalar"),
        ("SensorIdPattern", "0x[0-9a-f]+"),
        ("MessageRetentionDays", "30"),
        ("WebhookAllow", "http://localhost"),
    ];
    let readers = readers();
    for given in [&[][..], &TARGETS, &others] {
        for (name, function) in functions(&Stack::deploy(given)) {
            let read = (readers[&name].read)(function.environment);
            assert_eq!(read, Ok(()), "{name}");
        }
    }
}

/// The exceptions: the local broker authenticates nobody, and endpoints that are tried locally are on this machine.
#[test]
fn the_local_stack_has_the_defaults_of_the_template() {
    use antumbra_local::stack;
    let exceptions = ["OWN_SHADOWS_ONLY", "WEBHOOK_ALLOW"];
    let functions = functions(&Stack::deploy(&[])).into_values();
    let set: BTreeSet<(String, String)> = functions.flat_map(|one| one.environment).collect();
    let by_user = set.iter().filter(|(name, _)| !stack::is_own(name));
    let names: BTreeSet<&str> = by_user.clone().map(|(name, _)| &name[..]).collect();
    assert!(names.len() > 30, "{names:?}");
    assert_eq!(names.len(), by_user.clone().count(), "one value per name");
    for (name, value) in by_user.filter(|(name, _)| !exceptions.contains(&&name[..])) {
        match stack::default(name) {
            Some(default) => assert_eq!(default, value, "{name}"),
            None => {
                let given = stack::Settings::from([(&name[..], &value[..])]);
                assert_eq!(given.differences(), [], "the function has another default");
            }
        }
    }
}

/// Names are those of the local stack.
#[test]
fn variables_name_the_right_tables_and_queues() {
    let main = antumbra_dynamodb::MAIN.name;
    let messages = antumbra_dynamodb::MESSAGES.name;
    for (name, function) in functions(&Stack::deploy(&[])) {
        for (variable, value) in &function.environment {
            let inbox = name.starts_with("message-");
            let expected = match &variable[..] {
                "TABLE" if inbox => messages,
                "TABLE" => main,
                "MESSAGES_TABLE" => messages,
                "QUARANTINE_QUEUE_URL" => "antumbra-quarantine",
                "UNDELIVERABLE_QUEUE_URL" => "antumbra-undeliverable",
                "SPILL_QUEUE_URL" => "antumbra-spill.fifo",
                "OUTBOUND_QUEUE_URL" => "antumbra-outbound",
                "INBOUND_QUEUE_URL" => "antumbra-inbound",
                "SIGNALS_QUEUE_URL" => "antumbra-signals",
                "DELIVERIES_QUEUE_URL" => "antumbra-deliveries",
                "DELIVERIES_FIFO_QUEUE_URL" => "antumbra-deliveries.fifo",
                "DELIVERIES_DEAD_QUEUE_URL" => "antumbra-deliveries-dead",
                "DELIVERIES_DEAD_FIFO_QUEUE_URL" => "antumbra-deliveries-dead.fifo",
                other => {
                    assert!(!other.ends_with("_URL"), "{name}: {other}");
                    continue;
                }
            };
            let found = value.rsplit('/').next();
            assert_eq!(found, Some(expected), "{name}: {variable}");
        }
    }
}
