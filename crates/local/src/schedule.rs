//! An EventBridge schedule: invokes a function periodically.
//!
//! Ticks during a running invocation are skipped, and failed invocations are not retried: the next one follows
//! anyway.

use std::time::Duration;

use antumbra_service::clock::{Clock, ShiftedClock};
use bytes::Bytes;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior};

use crate::function::{Function, FunctionError};
use crate::task::Running;
use crate::{ACCOUNT, REGION};

/// Invokes the function once, as its schedule does.
pub async fn tick(function: &Function, clock: &ShiftedClock) -> Result<Bytes, FunctionError> {
    let event = json!({
        "version": "0",
        "id": uuid::Uuid::new_v4().to_string(),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": clock.now().to_string(),
        "region": REGION,
        "resources": [format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/{}", function.name())],
        "detail": {},
    });
    function.invoke(event.to_string().into()).await
}

/// Starts the schedule; the first invocation follows after one period.
pub fn start(period: Duration, function: Function, clock: ShiftedClock) -> Running {
    Running::start(|stop| async move {
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if let Err(error) = tick(&function, &clock).await {
                tracing::warn!(function = function.name(), %error, "scheduled invocation failed");
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::function::HandlerError;

    #[tokio::test(start_paused = true)]
    async fn a_function_is_invoked_every_period_even_if_it_fails() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let function = Function::new("f", Duration::from_secs(10), move |event: Bytes| {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            assert!(event.starts_with(b"{"));
            async move {
                match call {
                    1 => Err(HandlerError("on purpose".to_owned())),
                    _ => Ok(event),
                }
            }
        });
        let schedule = start(Duration::from_secs(60), function, ShiftedClock::default());
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        tokio::time::sleep(Duration::from_secs(182)).await;
        schedule.stop().await;
        assert_eq!(calls.load(Ordering::SeqCst), 4);
    }
}
