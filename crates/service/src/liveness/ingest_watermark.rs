//! The ingest watermark: the time up to which all sent signals have been ingested.

use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use crate::clock::{Clock, time_left};
use crate::notifications::{Channel, Message, dispatch_one};
use crate::store::{SendFuture, StoreError};

/// Limit by which the queue's clock may be behind: a marker with an earlier sent time within this limit still
/// belongs to this sweep.
const CLOCKS_APART: Duration = Duration::from_secs(1);
/// First and longest wait between two checks for the marker.
const CHECK_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(800));

/// Progress of reading a queue, by the queue's own sent times.
///
/// Laws: recording an earlier time changes nothing, and every later read sees the recorded time.
pub trait IngestProgress: Send + Sync {
    /// Records that everything sent to the queue until this time has been ingested.
    fn note(&self, queue: &str, sent: Timestamp) -> impl SendFuture<Result<(), StoreError>>;

    /// Returns the recorded time; `None` before the first.
    fn reached(&self, queue: &str) -> impl SendFuture<Result<Option<Timestamp>, StoreError>>;
}

/// Measures how far a queue has been read.
#[derive(Clone)]
pub struct QueueProbe {
    pub queue: Arc<dyn Channel>,
    /// Name under which progress is recorded.
    pub name: String,
    pub marker: &'static str,
    /// Time to wait for the marker.
    pub wait: Duration,
    /// Time to wait for signals that the marker overtook: a standard queue keeps no strict order, and
    /// another instance may still be at work on an earlier batch.
    pub settle: Duration,
}

/// Sends a marker and waits for it. Returns the time up to which everything sent has been ingested: the
/// marker's sent time if it came through, that of an earlier marker if the queue is behind, `None` if no marker
/// ever came through.
pub async fn ingest_watermark<P: IngestProgress>(
    probe: &QueueProbe,
    progress: &P,
    clock: &dyn Clock,
) -> Result<Option<Timestamp>, StoreError> {
    let start = clock.now();
    let until = start.after(probe.wait);
    let marker = Message {
        id: format!("liveness-{}", start.nanoseconds()),
        key: "liveness".to_owned(),
        body: probe.marker.to_owned(),
        ..Message::default()
    };
    let sent = dispatch_one(Arc::clone(&probe.queue), marker, until, clock).await;
    let mut reached = progress.reached(&probe.name).await?;
    if sent.is_err() {
        // The queue did not accept the marker; only the recorded progress is known.
        return Ok(reached.map(|reached| reached.min(start)));
    }
    let mut seen_at = clock.now();
    let mut pause = CHECK_PAUSES.0;
    let is_own = |reached: Option<Timestamp>| {
        reached.is_some_and(|reached| reached.after(CLOCKS_APART) >= start)
    };
    while !is_own(reached) && clock.now().after(pause) <= until {
        clock.sleep(pause).await;
        pause = (pause * 2).min(CHECK_PAUSES.1);
        let now = progress.reached(&probe.name).await?;
        if now != reached {
            (reached, seen_at) = (now, clock.now());
        }
    }
    let settling = time_left(clock.now(), seen_at.after(probe.settle));
    clock.sleep(settling).await;
    Ok(reached.map(|reached| reached.min(clock.now())))
}
