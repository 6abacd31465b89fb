//! One sweep: how far was the queue read, and who was silent for too long by then.

use std::sync::Arc;
use std::time::Duration;

use antumbra_lambda_kit::metrics::{self, Unit};
use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::liveness::{
    IngestProgress, Limits, QueueProbe, SweepSummary, ingest_watermark, sweep,
};
use antumbra_service::notifications::Channel;
use antumbra_service::sensors::{LivenessIndex, PurgeQueue, purge_due};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_wire::signal::MARKER;
use serde::{Deserialize, Serialize};

use crate::NAME;

/// Time kept from the end of an invocation for the answer, and the part of all its time that this may be
/// at most.
const ANSWERING: Reserve = Reserve {
    time: Duration::from_millis(2000),
    share: 8,
};

/// Finds the sensors that fell silent.
pub struct Sweeper<L, P> {
    sensors: L,
    progress: P,
    gauge: Option<QueueProbe>,
    limits: Limits,
    clock: Arc<dyn Clock>,
}

/// Measures the queue of signals that has this URL, name or ARN. Progress is noted under its name, which
/// is the last part of each.
pub fn gauge(queue: Arc<dyn Channel>, named: &str, wait: Duration, settle: Duration) -> QueueProbe {
    let name = named.rsplit(['/', ':']).next().unwrap_or_default();
    QueueProbe {
        queue,
        name: name.to_owned(),
        marker: MARKER,
        wait,
        settle,
    }
}

/// What a sweep came to, as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Sensors looked at.
    pub checked: usize,
    /// Those found lost.
    pub lost: usize,
    /// Those that were heard meanwhile.
    pub rearmed: usize,
    /// Those that were lost already, or are gone.
    pub gone: usize,
    /// Looks that failed; the next sweep does them.
    pub failed: usize,
    /// Whether everything that was due has been looked at.
    pub finished: bool,
    /// How far the queue of signals is behind, in milliseconds; `None` if it was never read.
    pub behind_milliseconds: Option<u64>,
}

/// Why a sweep came to nothing at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// How far the queue was read is not known.
    #[error("the progress of the queue: {0}")]
    Progress(StoreError),
    /// Every look failed.
    #[error("{failed} looks failed, such as: {error}")]
    Looks {
        /// How many.
        failed: usize,
        /// One of the reasons.
        error: StoreError,
    },
}

impl<L: LivenessIndex, P: IngestProgress> Sweeper<L, P> {
    /// Without a gauge there is no queue to ask, and the time is the horizon.
    pub fn new(
        sensors: L,
        progress: P,
        gauge: Option<QueueProbe>,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Sweeper<L, P> {
        Sweeper {
            sensors,
            progress,
            gauge,
            limits,
            clock,
        }
    }

    /// Sweeps once. What is not done by the deadline is left to the next sweep.
    pub async fn run(&self, deadline: Timestamp) -> Result<Report, SweepError> {
        let start = self.clock.now();
        let deadline = ANSWERING.deadline(deadline, start);
        let ingest_watermark = match &self.gauge {
            Some(gauge) => ingest_watermark(gauge, &self.progress, &self.clock)
                .await
                .map_err(SweepError::Progress)?,
            None => Some(start),
        };
        let Some(ingest_watermark) = ingest_watermark else {
            tracing::warn!("the queue of signals was never read: nobody is found lost");
            return Ok(Report::default());
        };
        let swept = sweep(
            &self.sensors,
            ingest_watermark,
            deadline,
            self.limits,
            &self.clock,
        )
        .await;
        let behind = time_left(ingest_watermark, start);
        report(swept, behind)
    }
}

impl<L: PurgeQueue, P> Sweeper<L, P> {
    /// Takes away some of what unregistered sensors left behind, in the time that a sweep leaves. Nobody
    /// waits for it, and the next one goes on with it.
    pub async fn purge(&self, deadline: Timestamp) {
        let deadline = ANSWERING.deadline(deadline, self.clock.now());
        let more = || self.clock.now() < deadline;
        let left = time_left(self.clock.now(), deadline);
        let purge = purge_due(&self.sensors, &self.clock, more);
        match tokio::time::timeout(left, purge).await {
            Ok(Ok(ended)) => tracing::debug!(ended, "purged"),
            Ok(Err(error)) => tracing::warn!(%error, "a purge was not finished"),
            Err(_) => tracing::debug!("out of time for purges"),
        }
    }
}

fn report(swept: SweepSummary, behind: Duration) -> Result<Report, SweepError> {
    let checked = swept.checked();
    if let Some(error) = swept.failure {
        tracing::warn!(failed = swept.failed, %error, "looks failed");
        if checked == 0 {
            let failed = swept.failed;
            return Err(SweepError::Looks { failed, error });
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
    /// Writes the metrics of one invocation.
    pub fn emit(&self, now: Timestamp, took: Duration) {
        metrics::write(&self.metrics(now, took));
    }

    /// The metrics of one invocation, as they are logged.
    pub fn metrics(&self, now: Timestamp, took: Duration) -> String {
        let count = |value: usize| value as f64;
        let mut all = vec![
            ("checked", count(self.checked), Unit::Count),
            ("lost", count(self.lost), Unit::Count),
            ("rearmed", count(self.rearmed), Unit::Count),
            ("failed", count(self.failed), Unit::Count),
            (
                "unfinished",
                count(usize::from(!self.finished)),
                Unit::Count,
            ),
            ("duration", took.as_secs_f64() * 1000.0, Unit::Milliseconds),
        ];
        if let Some(behind) = self.behind_milliseconds {
            all.push(("behind", behind as f64, Unit::Milliseconds));
        }
        metrics::line(NAME, now, &all)
    }
}
