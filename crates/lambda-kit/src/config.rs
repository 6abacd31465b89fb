//! What a function is told by its environment, read in one place.
//!
//! A function's settings are a type of its library and not a part of its `main`, so that what it reads can be
//! listed and held against what the deployment sets.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use aws_config::SdkConfig;

use crate::environment::{Environment, EnvironmentError};
use crate::{sdk, telemetry};

/// What one function is told.
pub trait FunctionConfig: Sized {
    /// Reads all of it. Which variables are looked at never depends on what others hold.
    fn read(environment: &mut Environment) -> Self;
}

/// What every function is told.
struct Every {
    log_level: String,
    /// Another AWS, such as a local stack.
    endpoint: Option<String>,
}

impl FunctionConfig for Every {
    fn read(environment: &mut Environment) -> Every {
        Every {
            log_level: environment.or("LOG_LEVEL", "info".to_owned()),
            endpoint: environment.optional("AWS_ENDPOINT_URL"),
        }
    }
}

/// Starts the logs and reads the process's environment: a function's settings, and how it calls AWS.
pub async fn start<S: FunctionConfig>() -> Result<(S, SdkConfig), EnvironmentError> {
    let mut environment = Environment::process();
    let every = Every::read(&mut environment);
    telemetry::start(&every.log_level);
    let settings = S::read(&mut environment);
    environment.finish()?;
    Ok((settings, sdk::config(every.endpoint).await))
}

/// The names of all variables that a function with these settings looks at.
///
/// ```
/// use antumbra_lambda_kit::environment::Environment;
/// use antumbra_lambda_kit::config::{Settings, names};
///
/// struct Table(String);
/// impl Settings for Table {
///     fn read(environment: &mut Environment) -> Table {
///         Table(environment.required("TABLE"))
///     }
/// }
/// assert_eq!(Vec::from_iter(names::<Table>()), ["AWS_ENDPOINT_URL", "LOG_LEVEL", "TABLE"]);
/// ```
pub fn names<S: FunctionConfig>() -> BTreeSet<String> {
    let asked: Rc<RefCell<BTreeSet<String>>> = Rc::default();
    let asking = Rc::clone(&asked);
    let mut environment = Environment::of(move |name| {
        asking.borrow_mut().insert(name.to_owned());
        None
    });
    Every::read(&mut environment);
    S::read(&mut environment);
    asked.take()
}
