use std::time::Duration;

use antumbra_lambda_kit::config::{FunctionConfig, tenants};
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::webhook::{self, Allow};
use antumbra_service::deliveries::{Delays, Policy};

const HOUR: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, Clone)]
pub struct Config {
    pub table: String,
    /// Deliveries in order, for clients in mode `every`, and their dead letters.
    pub fifo_queue_url: String,
    pub dead_fifo_queue_url: String,
    /// Deliveries in any order, for clients in mode `latest`, and their dead letters.
    pub queue_url: String,
    pub dead_queue_url: String,
    /// Queue for messages that name no known delivery.
    pub quarantine_queue_url: String,
    /// Endpoints that may be called beside the public internet.
    pub allow: Allow,
    /// Retention of the delivery history.
    pub retention: Duration,
    pub policy: Policy,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Sets the message group of standard queues, for fair queues. Only AWS accepts it.
    pub tenants: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            table: String::new(),
            fifo_queue_url: String::new(),
            dead_fifo_queue_url: String::new(),
            queue_url: String::new(),
            dead_queue_url: String::new(),
            quarantine_queue_url: String::new(),
            allow: Allow::default(),
            retention: 30 * 24 * HOUR,
            policy: Policy::default(),
            timeout: webhook::TIMEOUT,
            tenants: false,
        }
    }
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let default = Config::default();
        let days: u16 = environment.or("DELIVERY_RETENTION_DAYS", 30);
        let disable_hours = default.policy.disable_after.as_secs() / HOUR.as_secs();
        let disable_hours: u16 = environment.or("DISABLE_AFTER_HOURS", disable_hours as u16);
        let delays = default.policy.delays;
        Config {
            table: environment.required("TABLE"),
            fifo_queue_url: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
            dead_fifo_queue_url: environment.required("DELIVERIES_DEAD_FIFO_QUEUE_URL"),
            queue_url: environment.required("DELIVERIES_QUEUE_URL"),
            dead_queue_url: environment.required("DELIVERIES_DEAD_QUEUE_URL"),
            quarantine_queue_url: environment.required("QUARANTINE_QUEUE_URL"),
            allow: environment.or("WEBHOOK_ALLOW", default.allow),
            retention: 24 * HOUR * u32::from(days),
            policy: Policy {
                max_attempts: environment.or("DELIVERY_MAX_ATTEMPTS", default.policy.max_attempts),
                delays: Delays {
                    curve: environment.or("RETRY_CURVE", delays.curve),
                    first: environment.seconds("RETRY_FIRST_SECONDS", delays.first),
                    longest: environment.seconds("RETRY_LONGEST_SECONDS", delays.longest),
                },
                disable_after: HOUR * u32::from(disable_hours),
                ..default.policy
            },
            timeout: default.timeout,
            tenants: tenants(environment),
        }
    }
}
