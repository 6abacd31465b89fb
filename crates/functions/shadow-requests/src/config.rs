use antumbra_lambda_kit::config::{self, FunctionConfig};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::shadows::Layout;
use antumbra_shadow::{Model, word_enum};
use antumbra_wire::topic_prefix::TopicPrefix;

#[derive(Debug, Clone)]
pub struct Config {
    pub table: String,
    pub layout: Layout,
    /// A device can reach only the shadows of the thing named like its client id.
    pub own_shadows_only: bool,
    pub model: Model,
    pub order: Order,
    /// Reports remove the desired values that they reach, unless the request says otherwise.
    pub acknowledge: bool,
    pub accepted: AcceptedUpdates,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    pub topic_prefix: TopicPrefix,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            table: String::new(),
            layout: Layout::default(),
            own_shadows_only: false,
            model: config::default_merge_model(),
            order: Order::default(),
            acknowledge: false,
            accepted: AcceptedUpdates::default(),
            iot_endpoint: None,
            topic_prefix: TopicPrefix::default(),
        }
    }
}

word_enum! {
    /// Order of updates without a time of their own.
    #[derive(Default)]
    pub enum Order as "order" {
        /// By the rule's time.
        #[default]
        On = "on",
        /// By the rule's time, but values that are sent again do not become newer: saves writes of times.
        Changes = "changes",
        /// As they are executed.
        Off = "off",
    }
}

word_enum! {
    /// Updates that get a response on `accepted`. Rejected ones always get one.
    #[derive(Default)]
    pub enum AcceptedUpdates as "accepted updates" {
        /// All, as AWS IoT Device Shadow does.
        #[default]
        All = "all",
        /// Those that request it, by a `clientToken`, a `version`, `"verbose": true` or an MQTT 5 response topic.
        Requested = "requested",
    }
}

word_enum! {
    pub enum Switch as "switch" {
        On = "on",
        Off = "off",
    }
}

impl Config {
    /// Reads everything but what is about responses, for a function that publishes none.
    pub fn without_responses(environment: &mut Environment) -> Config {
        Config {
            table: environment.required("TABLE"),
            layout: config::layout(environment),
            own_shadows_only: environment.or("OWN_SHADOWS_ONLY", false),
            model: config::merge_model(environment),
            order: environment.or("MQTT_ORDER", Order::default()),
            acknowledge: environment.or("ACKNOWLEDGE", Switch::Off) == Switch::On,
            accepted: AcceptedUpdates::Requested,
            iot_endpoint: None,
            topic_prefix: environment.or("TOPIC_PREFIX", TopicPrefix::default()),
        }
    }
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        Config {
            accepted: environment.or("ACCEPTED", AcceptedUpdates::default()),
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            ..Config::without_responses(environment)
        }
    }
}
