//! What the function is told by its environment.

use std::time::Duration;

use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::webhook::Allow;
use antumbra_service::deliveries::{Delays, Policy};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub table: String,
    /// The queue of deliveries in order, and that of the others.
    pub ordered: String,
    pub unordered: String,
    /// What may be called beside the public internet.
    pub allow: Allow,
    /// How long is remembered what was sent.
    pub retention: Duration,
    pub policy: Policy,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let days: u16 = environment.or("RETENTION_DAYS", 30);
        let otherwise = Policy::default();
        let mut seconds = |name, otherwise: Duration| {
            Duration::from_secs(environment.or(name, otherwise.as_secs()))
        };
        let first = seconds("RETRY_FIRST_SECONDS", otherwise.delays.first);
        let longest = seconds("RETRY_LONGEST_SECONDS", otherwise.delays.longest);
        Config {
            table: environment.required("TABLE"),
            ordered: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
            unordered: environment.required("DELIVERIES_QUEUE_URL"),
            allow: environment.or("WEBHOOK_ALLOW", Allow::default()),
            retention: DAY * u32::from(days),
            policy: Policy {
                turns: environment.or("DELIVERY_TURNS", otherwise.turns),
                delays: Delays {
                    curve: environment.or("RETRY_CURVE", otherwise.delays.curve),
                    first,
                    longest,
                },
                ..otherwise
            },
        }
    }
}
