//! Dead endpoints delay no delivery to others.
#![allow(clippy::unwrap_used)]

#[path = "../examples/dead_endpoints/load.rs"]
mod load;

use std::time::Duration;

use antumbra_service::deliveries::Policy;
use load::{Load, Measured, run};

/// Deliveries of half a minute, with too few executions for attempts that all wait for their own timeout.
fn load() -> Load {
    Load {
        webhooks_per_second: 200,
        endpoints: 50,
        dead: 0,
        slow: 0,
        seconds: 30,
        executions: 100,
        batch: 10,
        policy: Policy::default(),
    }
}

fn complete(measured: Measured) -> Measured {
    assert_eq!((measured.missing, measured.quarantined), (0, 0));
    measured
}

#[tokio::test(start_paused = true)]
async fn dead_endpoints_do_not_change_the_latency_of_healthy_ones() {
    let healthy = complete(run(load()).await);
    assert_eq!((healthy.dead_requests, healthy.open_circuits), (0, 0));
    let dead = Load { dead: 5, ..load() };
    let measured = complete(run(dead).await);
    assert_eq!(measured.open_circuits, 5);
    for (with_dead, without) in [
        (measured.p50, healthy.p50),
        (measured.p99, healthy.p99),
        (measured.longest, healthy.longest),
    ] {
        let ratio = with_dead.as_secs_f64() / without.as_secs_f64();
        assert!(ratio < 1.05, "{healthy:?} {measured:?}");
    }
    eprintln!("none dead: {healthy:?}\n5 of 50 dead: {measured:?}");
    // Each gets the requests of two seconds, and then a probe.
    assert!(measured.dead_requests < 5 * 15, "{measured:?}");
    // Deliveries that wait are in the due index, and their messages are delayed. In flight are those of the executions.
    let bound = 10 * measured.executions_at_once;
    assert!(measured.in_flight <= bound, "{measured:?}");
    assert!(measured.delayed > 5 * 20, "{measured:?}");
}

/// Without the probe, attempts that wait for their own timeout take all executions.
#[tokio::test(start_paused = true)]
async fn without_the_probe_dead_endpoints_take_all_executions() {
    let policy = Policy {
        slow_after: Duration::from_secs(3600),
        ..Policy::default()
    };
    let waits = Load {
        dead: 5,
        policy,
        ..load()
    };
    let measured = complete(run(waits).await);
    assert_eq!(measured.executions_at_once, 100);
    assert!(measured.p99 > Duration::from_secs(1), "{measured:?}");
}

/// A slow endpoint gets the requests of two seconds, then none until it responds. Nothing is lost or late by more than that.
#[tokio::test(start_paused = true)]
async fn slow_endpoints_receive_everything_within_seconds() {
    let slow = Load { slow: 5, ..load() };
    let measured = complete(run(slow).await);
    assert_eq!(measured.open_circuits, 0);
    let longest = measured.longest_of_slow;
    assert!(longest < Duration::from_secs(8), "{measured:?}");
    assert!(
        measured.longest < Duration::from_millis(400),
        "{measured:?}"
    );
}
