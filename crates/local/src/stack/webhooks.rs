//! Properties of webhook deliveries that have no variables. Tests make them short.

use std::time::Duration;

use antumbra_service::deliveries::Policy;
use antumbra_webhook_deliver::Config;

#[derive(Debug, Clone)]
pub struct Webhooks {
    /// Replaces the policy that variables set.
    pub policy: Option<Policy>,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Concurrent invocations for each of the two deliveries queues.
    pub concurrency: usize,
}

impl Default for Webhooks {
    fn default() -> Webhooks {
        Webhooks {
            policy: None,
            timeout: antumbra_publish::webhook::TIMEOUT,
            concurrency: 32,
        }
    }
}

impl Webhooks {
    pub(super) fn apply(&self, config: Config) -> Config {
        Config {
            policy: self.policy.unwrap_or(config.policy),
            timeout: self.timeout,
            ..config
        }
    }
}
