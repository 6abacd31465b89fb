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
    pub enum Switch as "switch" {
        On = "on",
        Off = "off",
    }
}

impl Config {
    /// Reads everything but the endpoint of AWS IoT, for a function that publishes no responses.
    pub fn without_responses(environment: &mut Environment) -> Config {
        Config {
            table: environment.required("TABLE"),
            layout: config::layout(environment),
            own_shadows_only: environment.or("OWN_SHADOWS_ONLY", false),
            model: config::merge_model(environment),
            order: environment.or("MQTT_ORDER", Order::default()),
            acknowledge: environment.or("ACKNOWLEDGE", Switch::Off) == Switch::On,
            iot_endpoint: None,
            topic_prefix: environment.or("TOPIC_PREFIX", TopicPrefix::default()),
        }
    }
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        Config {
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            ..Config::without_responses(environment)
        }
    }
}
