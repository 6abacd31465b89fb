//! The sustained run: senders, receivers, and the final check.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::home::{Home, QUEUE};
use crate::measure::{Meter, Second};
use crate::plan::Plan;
use crate::received::{self, Received};
use crate::send::{self, Sent};
use crate::verify;

/// Number of receivers of notifications.
const RECEIVERS: usize = 8;

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) reports: u64,
    pub(crate) signals: u64,
    pub(crate) notifications: u64,
    pub(crate) deliveries: u64,
    pub(crate) duplicates: usize,
    /// Time until the last response to a report, and until the last notification and delivery.
    pub(crate) reported: Duration,
    pub(crate) settled: Duration,
    pub(crate) seconds: Vec<Second>,
    pub(crate) faults: Vec<String>,
}

/// Runs the plan and returns the stack.
pub(crate) async fn run(mut home: Home, plan: &Plan) -> (Home, Outcome) {
    let meter = Arc::new(Meter::default());
    let sent = Sent::none(plan.devices, plan.sensors());
    let (notified, delivered) = (Arc::<Received>::default(), Arc::<Received>::default());
    let mut receiving = receivers(&home, &notified, &meter);
    if let Some(endpoint) = home.endpoint.take() {
        let (delivered, meter) = (Arc::clone(&delivered), Arc::clone(&meter));
        receiving.spawn(received::deliveries(endpoint, delivered, meter));
    }

    let begin = Instant::now();
    let (end, ended) = oneshot::channel();
    let watching = tokio::spawn({
        let meter = Arc::clone(&meter);
        async move { meter.watch(ended).await }
    });
    let total = plan.reports_per_second * plan.seconds;
    let devices = plan.devices;
    let of = move |at: usize| at % devices;
    let rate = Some(plan.reports_per_second);
    let reporting = send::reports(&home, total, rate, of, &sent, &meter);
    let signals = plan.signals_per_second * plan.seconds;
    let signalling = send::signals(&home, signals, plan.signals_per_second, Arc::clone(&sent));
    let (reported, ()) = tokio::join!(
        async {
            reporting.join_all().await;
            begin.elapsed()
        },
        signalling
    );
    let faults = verify::everything(&home, &sent, &notified, &delivered).await;
    let settled = begin.elapsed();
    // The receiver is gone only if the meter has failed, and then joining it fails.
    let _ = end.send(());
    let seconds = watching.await.unwrap();
    let outcome = Outcome {
        reports: sent.reports(),
        signals: sent.signals(),
        notifications: notified.total(),
        deliveries: delivered.total(),
        duplicates: notified.duplicates() + delivered.duplicates(),
        reported,
        settled,
        seconds,
        faults,
    };
    receiving.shutdown().await;
    (home, outcome)
}

/// Starts the receivers of notifications.
pub(crate) fn receivers(
    home: &Home,
    notified: &Arc<Received>,
    meter: &Arc<Meter>,
) -> tokio::task::JoinSet<()> {
    let mut receiving = tokio::task::JoinSet::new();
    for _ in 0..RECEIVERS {
        let queue = home.stack.queue_url(QUEUE);
        let (notified, meter) = (Arc::clone(notified), Arc::clone(meter));
        receiving.spawn(received::notifications(home.sqs(), queue, notified, meter));
    }
    receiving
}
