//! Settings of webhook deliveries.

use std::time::Duration;

use antumbra_publish::webhook::Allow;
use antumbra_service::deliveries::{Delays, Policy};

#[derive(Debug, Clone)]
pub struct Webhooks {
    /// Endpoints that may be called beside the public internet.
    pub allow: Allow,
    pub policy: Policy,
    pub timeout: Duration,
    /// Concurrent invocations for each of the two deliveries queues.
    pub concurrency: usize,
}

/// Endpoints on this machine are allowed, and retries follow within seconds.
impl Default for Webhooks {
    fn default() -> Webhooks {
        let allow = "http://localhost, http://127.0.0.0/8, http://[::1]";
        let delays = Delays {
            first: Duration::from_secs(2),
            longest: Duration::from_secs(60),
            ..Delays::default()
        };
        Webhooks {
            // A test shows that it can be parsed.
            allow: allow.parse().unwrap_or_default(),
            policy: Policy {
                delays,
                open_first: Duration::from_secs(5),
                open_longest: Duration::from_secs(30),
                ..Policy::default()
            },
            timeout: antumbra_publish::webhook::TIMEOUT,
            concurrency: 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_endpoints_are_allowed_by_default() {
        assert_ne!(Webhooks::default().allow, Allow::default());
    }
}
