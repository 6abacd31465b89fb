//! The same reports with more devices in the table.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::home::Home;
use crate::measure::{Meter, Spread, resident_megabytes};
use crate::plan::Plan;
use crate::received::Received;
use crate::run::receivers;
use crate::send::{self, Sent};
use crate::verify::until_received;

/// Duration of each measurement.
const SECONDS: usize = 20;

/// Measurement with one number of devices.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) devices: usize,
    pub(crate) reports: Spread,
    pub(crate) notifications: Spread,
    pub(crate) cores: f64,
    pub(crate) megabytes: usize,
    pub(crate) on_disk: u64,
    pub(crate) start_seconds: f64,
}

/// Devices that no other measurement uses, so that each is new at first.
pub(crate) async fn measure(first: Home, plan: &Plan) -> (Vec<Row>, Vec<String>) {
    first.stack.stop().await;
    let plan = Plan {
        signals_per_second: 0,
        ..plan.clone()
    };
    let mut home = Home::start(&plan).await;
    let most = plan.growth.iter().copied().max().unwrap_or_default();
    let sent = Sent::none(most, 0);
    let notified = Arc::<Received>::default();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    let mut there = 0;
    for devices in plan.growth.clone() {
        let meter = Arc::new(Meter::default());
        let mut receiving = receivers(&home, &notified, &meter);
        let of = move |at: usize| there + at;
        let filling = send::reports(&home, devices - there, None, of, &sent, &meter);
        filling.join_all().await;
        there = devices;
        until_received(&notified, sent.reports()).await;
        meter.close(std::time::Duration::from_secs(1), 0.0);

        let (end, ended) = oneshot::channel();
        let watching = tokio::spawn({
            let meter = Arc::clone(&meter);
            async move { meter.watch(ended).await }
        });
        let rate = plan.reports_per_second;
        // Far apart from each other, and every one as often as any other.
        let of = move |at: usize| at.wrapping_mul(7919) % devices;
        let reporting = send::reports(&home, rate * SECONDS, Some(rate), of, &sent, &meter);
        reporting.join_all().await;
        until_received(&notified, sent.reports()).await;
        // As in the sustained run.
        let _ = end.send(());
        let seconds = watching.await.unwrap();
        let megabytes = resident_megabytes();
        receiving.shutdown().await;
        let begin = Instant::now();
        home = home.start_again(&plan).await;
        rows.push(Row {
            devices,
            reports: Spread::all(seconds.iter().map(|second| &second.reports)),
            notifications: Spread::all(seconds.iter().map(|second| &second.notifications)),
            cores: seconds.iter().map(|second| second.cores).sum::<f64>() / seconds.len() as f64,
            megabytes,
            on_disk: home.megabytes(),
            start_seconds: begin.elapsed().as_secs_f64(),
        });
        if notified.total() != sent.reports() {
            let (received, sent) = (notified.total(), sent.reports());
            faults.push(format!(
                "{devices} devices: {sent} reports, {received} notifications"
            ));
        }
    }
    faults.extend(notified.faults());
    home.stack.stop().await;
    (rows, faults)
}
