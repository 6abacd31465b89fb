//! Prints the figures of the history and of the change feed in docs/performance.md: storage per change, the state at a
//! time, readers of the feed, and the alternative that was rejected.
//!
//! `cargo run --release -p antumbra-history-writer --example history_figures`. Uses the embedded database over HTTP.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod alternative;
mod feed;
mod load;
mod state;
mod storage;

use std::time::Duration;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let entries = std::env::args().nth(1);
    let most: u64 = entries.map_or(100_000, |text| text.parse().unwrap());
    storage::print();
    runtime.block_on(async {
        state::print(most).await;
        feed::print().await;
        alternative::print().await;
    });
}

/// The median and the 99th percentile, in milliseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    (at(50), at(99))
}
