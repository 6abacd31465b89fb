//! Prints the latency of deliveries to healthy endpoints while others never respond, and the executions that this needs.
//!
//! `cargo run --release -p antumbra-webhook-deliver --example dead_endpoints -- 10000 1000 20 60`: 10,000 webhooks a second
//! for a minute to 1,000 endpoints, 20 of them dead.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod load;

use std::time::Duration;

use antumbra_service::deliveries::Policy;
use load::{Load, run};

fn main() {
    let given: Vec<u32> = std::env::args()
        .skip(1)
        .map(|text| {
            text.parse()
                .expect("numbers: WEBHOOKS ENDPOINTS DEAD SECONDS")
        })
        .collect();
    let [webhooks_per_second, endpoints, dead, seconds] =
        given.try_into().unwrap_or([10_000, 1_000, 20, 60]);
    let load = Load {
        webhooks_per_second,
        endpoints,
        dead: 0,
        slow: 0,
        seconds,
        executions: 1_000,
        batch: 10,
        policy: Policy::default(),
    };
    let dead = Load { dead, ..load };
    // Each attempt waits for its own timeout.
    let waits = Policy {
        slow_after: Duration::from_secs(3600),
        ..load.policy
    };
    println!(
        "| {webhooks_per_second} webhooks a second, {endpoints} endpoints | p50 | p99 | longest | executions at once | in flight | requests to dead endpoints | open circuits |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, load) in [
        ("none dead".to_owned(), load),
        (format!("{} dead", dead.dead), dead),
        (
            format!("{} dead, without probes by slow attempts", dead.dead),
            Load {
                policy: waits,
                ..dead
            },
        ),
        (
            "none dead, one message an execution".to_owned(),
            Load {
                batch: 1,
                executions: 10_000,
                ..load
            },
        ),
    ] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let measured = runtime.block_on(run(load));
        assert_eq!((measured.missing, measured.quarantined), (0, 0));
        println!(
            "| {name} | {} ms | {} ms | {} ms | {} | {} | {} | {} |",
            measured.p50.as_millis(),
            measured.p99.as_millis(),
            measured.longest.as_millis(),
            measured.executions_at_once,
            measured.in_flight,
            measured.dead_requests,
            measured.open_circuits,
        );
    }
}
