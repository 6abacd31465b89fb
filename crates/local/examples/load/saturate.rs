//! The highest rates that the stack sustains: senders continue as fast as their reports and signals are processed.
//!
//! A bounded number of them is on its way, so that nothing piles up behind the measured rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_sqs::types::QueueAttributeName::{
    ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesNotVisible as InFlight,
};
use tokio::task::JoinSet;

use crate::home::Home;
use crate::measure::{Meter, Spread, processor_seconds};
use crate::plan::Plan;
use crate::received::Received;
use crate::run::receivers;
use crate::send::{self, Sent};
use crate::verify;

/// Reports without their notification, and signals in their queue, at most.
const MAX_ON_THE_WAY: u64 = 1000;
const REPORTERS: usize = 64;
const SIGNALLERS: usize = 4;
/// Time before a measurement begins: caches fill and backlogs form.
const WARM_UP: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(1);
const SIGNALS_QUEUE: &str = "antumbra-signals";

/// A sustained rate.
#[derive(Debug)]
pub(crate) struct Rate {
    what: &'static str,
    per_second: f64,
    /// Processor time of the whole process for each.
    microseconds: f64,
    /// Time until the notification; empty for signals.
    latency: Spread,
}

impl Rate {
    pub(crate) fn sentence(&self) -> String {
        let (what, rate, each) = (self.what, self.per_second, self.microseconds);
        let (median, percentile_99) = (self.latency.at(0.5), self.latency.at(0.99));
        let mut text = format!("{rate:.0} {what} a second, {each:.0} µs of processor time each");
        if self.latency.count() > 0 {
            text += &format!(
                "; a notification arrived after {median:.0} ms (median), {percentile_99:.0} ms (99 %)"
            );
        }
        text
    }
}

/// Measures reports, then signals, and returns the faults too.
pub(crate) async fn measure(home: &Home, plan: &Plan) -> (Vec<Rate>, Vec<String>) {
    let (mut rates, mut faults) = (Vec::new(), Vec::new());
    if plan.reports_per_second > 0 {
        let (rate, found) = reports(home, plan).await;
        println!("{}", rate.sentence());
        rates.push(rate);
        faults.extend(found);
    }
    if plan.signals_per_second > 0 {
        let (rate, found) = signals(home, plan).await;
        println!("{}", rate.sentence());
        rates.push(rate);
        faults.extend(found);
    }
    (rates, faults)
}

async fn reports(home: &Home, plan: &Plan) -> (Rate, Vec<String>) {
    let meter = Arc::new(Meter::default());
    let sent = Sent::none(plan.devices, 0);
    let notified = Arc::<Received>::default();
    let mut receiving = receivers(home, &notified, &meter);
    let ended = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    let reported = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..REPORTERS {
        let (shadows, sent, meter) = (home.shadows(), Arc::clone(&sent), Arc::clone(&meter));
        let (ended, next) = (Arc::clone(&ended), Arc::clone(&next));
        let (reported, notified) = (Arc::clone(&reported), Arc::clone(&notified));
        workers.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                if reported.load(Ordering::Relaxed) >= notified.total() + MAX_ON_THE_WAY {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                reported.fetch_add(1, Ordering::Relaxed);
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (device, begin) = (at % sent.versions.len(), Instant::now());
                send::report(&shadows, device, at, &sent).await;
                meter.report(begin.elapsed());
            }
        });
    }
    let rate = sustained("reports", plan, &meter, || notified.total()).await;
    ended.store(true, Ordering::Relaxed);
    workers.join_all().await;
    verify::until_received(&notified, sent.reports()).await;
    let mut faults = verify::notifications(&sent, &notified);
    faults.extend(notified.faults());
    receiving.shutdown().await;
    (rate, faults)
}

async fn signals(home: &Home, plan: &Plan) -> (Rate, Vec<String>) {
    let sent = Sent::none(0, plan.sensors());
    let ended = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    // Both grow.
    let (accepted, processed) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let mut workers = JoinSet::new();
    for _ in 0..SIGNALLERS {
        let (sqs, queue) = (home.sqs(), home.stack.queue_url(SIGNALS_QUEUE));
        let (sent, ended, next) = (Arc::clone(&sent), Arc::clone(&ended), Arc::clone(&next));
        let (accepted, processed) = (Arc::clone(&accepted), Arc::clone(&processed));
        workers.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                let limit = processed.load(Ordering::Relaxed) + MAX_ON_THE_WAY;
                if accepted.load(Ordering::Relaxed) >= limit {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                let first = next.fetch_add(send::BATCH, Ordering::Relaxed);
                send::signal_batch(&sqs, &queue, first..first + send::BATCH, &sent).await;
                accepted.fetch_add(send::BATCH as u64, Ordering::Relaxed);
            }
        });
    }
    let counting = tokio::spawn({
        let (sqs, queue) = (home.sqs(), home.stack.queue_url(SIGNALS_QUEUE));
        let (accepted, processed) = (Arc::clone(&accepted), Arc::clone(&processed));
        async move {
            loop {
                // Read first: signals that are accepted in between count as waiting, not as processed.
                let accepted = accepted.load(Ordering::Relaxed);
                let waiting = in_queue(&sqs, &queue).await;
                processed.fetch_max(accepted.saturating_sub(waiting), Ordering::Relaxed);
                tokio::time::sleep(10 * PAUSE).await;
            }
        }
    });
    let rate = sustained("signals", plan, &Meter::default(), || {
        processed.load(Ordering::Relaxed)
    })
    .await;
    ended.store(true, Ordering::Relaxed);
    workers.join_all().await;
    let faults = verify::all_readings(home, &sent).await;
    counting.abort();
    (rate, faults)
}

/// Measures how fast a count grows, after a time to warm up.
async fn sustained(
    what: &'static str,
    plan: &Plan,
    meter: &Meter,
    count: impl Fn() -> u64,
) -> Rate {
    tokio::time::sleep(WARM_UP).await;
    meter.close(WARM_UP, 0.0);
    let (begin, before, used) = (Instant::now(), count(), processor_seconds());
    tokio::time::sleep(Duration::from_secs(plan.seconds as u64)).await;
    let (took, count) = (begin.elapsed(), (count() - before) as f64);
    let used = processor_seconds() - used;
    Rate {
        what,
        per_second: count / took.as_secs_f64(),
        microseconds: used * 1e6 / count,
        latency: meter.close(took, used).notifications,
    }
}

async fn in_queue(sqs: &aws_sdk_sqs::Client, queue: &str) -> u64 {
    let request = sqs.get_queue_attributes().queue_url(queue);
    let request = request.attribute_names(Visible).attribute_names(InFlight);
    let response = request.send().await.unwrap();
    let attributes = response.attributes.unwrap_or_default();
    let counts = attributes
        .values()
        .map(|count| count.parse::<u64>().unwrap());
    counts.sum()
}
