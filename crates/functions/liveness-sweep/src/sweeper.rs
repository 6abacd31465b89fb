//! One sweep: how far the signals queue was read, which sensors were silent for too long by then, and which
//! deliveries are due.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries};
use antumbra_lambda_kit::metrics::{Metric, Unit};
use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::deliveries::{DueSummary, Queues, queue_due};
use antumbra_service::liveness::{
    IngestProgress, Limits, QueueProbe, SweepGroup, SweepSummary, ingest_watermark, sweep,
};
use antumbra_service::notifications::Channel;
use antumbra_service::purges::{PurgeQueue, purge_due};
use antumbra_service::sensors::{LivenessIndex, MARKER};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Time kept back for the response.
const RESPONSE: Reserve = Reserve {
    time: Duration::from_millis(2000),
    share: 8,
};

pub struct Sweeper<L, P> {
    sensors: L,
    progress: P,
    probe: Option<QueueProbe>,
    limits: Limits,
    deliveries: Option<DueQueue>,
    clock: Arc<dyn Clock>,
}

/// The due index and the queues it feeds.
pub struct DueQueue {
    pub clients: DynamoDbClients,
    pub store: DynamoDbDeliveries,
    pub queues: Queues,
}

/// Probe of the signals queue with this URL, name or ARN. Its progress is recorded under the queue's name,
/// which is the last part of each.
pub fn queue_probe(
    queue: Arc<dyn Channel>,
    url: &str,
    wait: Duration,
    settle: Duration,
) -> QueueProbe {
    let name = url.rsplit(['/', ':']).next().unwrap_or_default();
    QueueProbe {
        queue,
        name: name.to_owned(),
        marker: MARKER,
        wait,
        settle,
    }
}

/// Result of a sweep, returned by the function.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub checked: usize,
    pub lost: usize,
    /// Sensors that sent a signal meanwhile.
    pub rearmed: usize,
    /// Sensors that were lost already, or are unregistered.
    pub gone: usize,
    /// Checks that failed; the next sweep repeats them.
    pub failed: usize,
    /// All due sensors were checked.
    pub finished: bool,
    /// Delay of the signals queue in milliseconds; `None` if it was never read.
    pub behind_milliseconds: Option<u64>,
}

/// Error of a sweep that checked nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    #[error("the progress of the signals queue could not be read: {0}")]
    Progress(StoreError),
    #[error("all {failed} checks failed, one of them: {error}")]
    Checks { failed: usize, error: StoreError },
}

impl<L: LivenessIndex, P: IngestProgress> Sweeper<L, P> {
    /// Without a probe there is no queue, and silence is measured until now.
    pub fn new(
        sensors: L,
        progress: P,
        probe: Option<QueueProbe>,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Sweeper<L, P> {
        Sweeper {
            sensors,
            progress,
            probe,
            limits,
            deliveries: None,
            clock,
        }
    }

    /// Sweeps due deliveries too.
    #[must_use]
    pub fn with_deliveries(self, deliveries: DueQueue) -> Sweeper<L, P> {
        let deliveries = Some(deliveries);
        Sweeper { deliveries, ..self }
    }

    /// Sweeps the shards of a group once. Sensors that are not checked by the deadline are left to the next sweep.
    pub async fn sweep(
        &self,
        group: SweepGroup,
        deadline: Timestamp,
    ) -> Result<Report, SweepError> {
        let start = self.clock.now();
        let deadline = RESPONSE.deadline(deadline, start);
        let watermark = match &self.probe {
            Some(probe) => ingest_watermark(probe, &self.progress, &*self.clock)
                .await
                .map_err(SweepError::Progress)?,
            None => Some(start),
        };
        let Some(watermark) = watermark else {
            tracing::warn!("the signals queue was never read; no sensor is marked as lost");
            return Ok(Report::default());
        };
        let clock = &*self.clock;
        let sensors = &self.sensors;
        let swept = sweep(sensors, group, watermark, deadline, self.limits, clock).await;
        report(swept, time_left(watermark, start))
    }
}

impl<L: PurgeQueue, P> Sweeper<L, P> {
    /// Deletes data of unregistered sensors and of purged shadows in the time that is left. The next sweep continues.
    pub async fn purge(&self, deadline: Timestamp) {
        let deadline = RESPONSE.deadline(deadline, self.clock.now());
        let more = || self.clock.now() < deadline;
        let left = time_left(self.clock.now(), deadline);
        let purge = purge_due(&self.sensors, &*self.clock, more);
        match tokio::time::timeout(left, purge).await {
            Ok(Ok(finished)) => {
                tracing::debug!(finished, "purged unregistered sensors and shadows")
            }
            Ok(Err(error)) => tracing::warn!(%error, "purge failed"),
            Err(_) => tracing::debug!("no time left for the purge"),
        }
    }
}

#[async_trait]
impl<L: LivenessIndex + PurgeQueue, P: IngestProgress> Handler for Sweeper<L, P> {
    /// Sweeps, then purges; queues due deliveries meanwhile. The metric `duration` is that of the sweep alone.
    /// Of several groups only the first purges.
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let start = self.clock.now();
        let group = group(&invocation.event)?;
        let sensors = async {
            let swept = self.sweep(group, invocation.deadline).await;
            let duration = time_left(start, self.clock.now());
            if group.is_first() {
                self.purge(invocation.deadline).await;
            }
            (swept, duration)
        };
        let deliveries = async {
            let deadline = RESPONSE.deadline(invocation.deadline, start);
            match &self.deliveries {
                Some(DueQueue {
                    clients,
                    store,
                    queues,
                }) => queue_due(clients, store, queues, group, &*self.clock, deadline).await,
                None => DueSummary::default(),
            }
        };
        let ((swept, duration), due) = tokio::join!(sensors, deliveries);
        let report = swept.map_err(|error| HandlerError::new("SweepError", error))?;
        let mut metrics = report.metrics(duration);
        metrics.push(Metric::count("deliveriesQueued", due.queued));
        metrics.push(Metric::count("deliveriesReleased", due.released));
        metrics.push(Metric::count("deliveriesFailed", due.failed));
        Response::json(&report, metrics)
    }
}

/// The group in a schedule's input: `{"group": 3, "groups": 16}`. Any other event is for a sweep of everything.
fn group(event: &[u8]) -> Result<SweepGroup, HandlerError> {
    #[derive(Deserialize)]
    struct Input {
        group: u32,
        groups: u32,
    }
    match serde_json::from_slice(event) {
        Ok(Input { group, groups }) => SweepGroup::new(group, groups).map_err(HandlerError::event),
        Err(_) => Ok(SweepGroup::ALL),
    }
}

fn report(swept: SweepSummary, behind: Duration) -> Result<Report, SweepError> {
    let checked = swept.checked();
    if let Some(error) = swept.failure {
        tracing::warn!(failed = swept.failed, %error, "checks failed");
        if checked == 0 {
            let failed = swept.failed;
            return Err(SweepError::Checks { failed, error });
        }
    }
    Ok(Report {
        checked,
        lost: swept.lost,
        rearmed: swept.rearmed,
        gone: swept.gone,
        failed: swept.failed,
        finished: swept.finished,
        behind_milliseconds: Some(behind.as_millis() as u64),
    })
}

impl Report {
    pub fn metrics(&self, duration: Duration) -> Vec<Metric> {
        let milliseconds = |name, value| Metric::new(name, value, Unit::Milliseconds);
        let mut metrics = vec![
            Metric::count("checked", self.checked),
            Metric::count("lost", self.lost),
            Metric::count("rearmed", self.rearmed),
            Metric::count("failed", self.failed),
            Metric::count("unfinished", usize::from(!self.finished)),
            milliseconds("duration", duration.as_secs_f64() * 1000.0),
        ];
        let behind = self.behind_milliseconds.map(|behind| behind as f64);
        metrics.extend(behind.map(|behind| milliseconds("behind", behind)));
        metrics
    }
}
