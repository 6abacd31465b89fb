//! A function's configuration as a type of its library, so that the variables it reads can be listed and
//! compared with those that the deployment sets.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use antumbra_service::history::DEFAULT_DAYS;
use antumbra_service::history::feed::DEFAULT_FEED_DAYS;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;
use aws_types::SdkConfig;

use crate::environment::{Environment, EnvironmentError};
use crate::{metrics, sdk, telemetry};

pub trait FunctionConfig: Sized {
    /// Reads all variables. The set of variables must not depend on the values of others.
    fn from_env(environment: &mut Environment) -> Self;
}

/// Configuration that every function has.
#[derive(Debug)]
pub struct Common {
    pub log_level: String,
    /// Logs metrics.
    pub metrics: bool,
    /// Endpoint of a local stack instead of AWS.
    pub endpoint: Option<String>,
}

impl FunctionConfig for Common {
    fn from_env(environment: &mut Environment) -> Common {
        Common {
            log_level: environment.or("LOG_LEVEL", "info".to_owned()),
            metrics: environment.or("METRICS", true),
            endpoint: environment.optional("AWS_ENDPOINT_URL"),
        }
    }
}

/// Returns whether standard queues get the tenant of a message as its group, for fair queues. Only AWS accepts it.
pub fn tenants(environment: &Environment) -> bool {
    environment.optional("AWS_ENDPOINT_URL").is_none()
}

/// Seconds that a timestamp may lie in the future, unless configured otherwise.
const MAX_FUTURE_SECONDS: u64 = 300;

/// The model of functions that merge documents, unless configured otherwise.
pub fn default_merge_model() -> Model {
    Model {
        max_future: Some(Duration::from_secs(MAX_FUTURE_SECONDS)),
        ..Model::default()
    }
}

/// Names of members, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldNames(pub Vec<String>);

impl FromStr for FieldNames {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldNames, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        let is_twice = |at: usize| names[..at].contains(&names[at]);
        match names.iter().any(String::is_empty) || (0..names.len()).any(is_twice) {
            true => Err(format!(
                "{text:?} is not a list of names, separated by commas"
            )),
            false => Ok(FieldNames(names)),
        }
    }
}

impl fmt::Display for FieldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Reads the members of documents that make timestamped values and identify elements.
pub fn shadow_model(environment: &mut Environment) -> Model {
    let default = Model::default();
    Model {
        timestamp_fields: environment
            .or("TIMESTAMP_FIELDS", FieldNames(default.timestamp_fields))
            .0,
        id_field: environment.or("ID_FIELD", default.id_field),
        ..Model::default()
    }
}

/// The same for functions that merge documents: with the bound for timestamps in the future, which 0 switches off.
pub fn merge_model(environment: &mut Environment) -> Model {
    let seconds = environment.or("MAX_FUTURE_SECONDS", MAX_FUTURE_SECONDS);
    Model {
        max_future: (seconds > 0).then(|| Duration::from_secs(seconds)),
        ..shadow_model(environment)
    }
}

/// Reads how the two documents of a shadow are stored.
pub fn layout(environment: &mut Environment) -> Layout {
    match environment.or("COMBINED", false) {
        true => Layout::Combined,
        false => Layout::Separate,
    }
}

/// Reads the history table and the days for which it keeps changes; `None` without its name, or with 0 days.
pub fn history(environment: &mut Environment) -> Option<(String, u32)> {
    let days = environment.or("HISTORY_DAYS", DEFAULT_DAYS);
    let table = environment.optional("HISTORY_TABLE");
    Some((table.filter(|_| days > 0)?, days))
}

/// Reads for how many days the change feed can be read: at most as long as the history, and 0 if it is switched off.
pub fn feed_days(environment: &mut Environment) -> u32 {
    let days = environment.or("FEED_DAYS", DEFAULT_FEED_DAYS);
    days.min(environment.or("HISTORY_DAYS", DEFAULT_DAYS))
}

/// Starts logging, reads the function's configuration and prepares the AWS configuration.
pub async fn start<C: FunctionConfig>() -> Result<(C, SdkConfig), EnvironmentError> {
    let mut environment = Environment::process();
    let common = Common::from_env(&mut environment);
    telemetry::start(&common.log_level);
    metrics::set_logged(common.metrics);
    let config = C::from_env(&mut environment);
    environment.finish()?;
    Ok((config, sdk::config(common.endpoint)))
}

/// Names of all variables that a function with this configuration reads.
pub fn names<C: FunctionConfig>() -> BTreeSet<String> {
    let read: Rc<RefCell<BTreeSet<String>>> = Rc::default();
    let reading = Rc::clone(&read);
    let mut environment = Environment::from_lookup(move |name| {
        reading.borrow_mut().insert(name.to_owned());
        None
    });
    Common::from_env(&mut environment);
    C::from_env(&mut environment);
    read.take()
}
