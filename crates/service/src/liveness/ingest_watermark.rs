//! The ingest watermark: the time up to which all sent signals have been ingested.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use crate::clock::{Clock, time_left};
use crate::notifications::{Channel, ChannelMessage, Message, dispatch};
use crate::store::StoreError;

/// Limit by which the queue's clock may be behind: a marker with an earlier sent time within this limit still
/// belongs to this sweep.
const CLOCKS_APART: Duration = Duration::from_secs(1);
/// The first and the longest wait between two looks whether the marker is there.
const LOOKS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(800));

/// Progress of reading a queue, by the queue's own sent times.
///
/// Laws: what is noted never goes back, whoever notes an earlier time, and is seen by every look that
/// follows.
pub trait IngestProgress: Send + Sync {
    /// Notes that what was sent to the queue until then has been taken in.
    fn note(
        &self,
        queue: &str,
        sent: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Until when it has; `None` before the first note.
    fn reached(
        &self,
        queue: &str,
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
}

/// Measures how far a queue has been read.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct QueueProbe {
    /// The way into the queue.
    pub queue: Arc<dyn Channel>,
    /// The queue's name, under which progress is noted.
    pub name: String,
    pub marker: &'static str,
    /// Time to wait for the marker.
    pub wait: Duration,
    /// Time to wait for signals that the marker overtook: a standard queue keeps no strict order, and
    /// another instance may still be at work on an earlier batch.
    pub settle: Duration,
}

/// Sends a marker and waits for it. Returns until when everything that was sent has been taken in: the
/// marker's own time where it came through, an earlier one's where the queue is behind, `None` where none
/// ever came through.
pub async fn ingest_watermark<P: IngestProgress>(
    gauge: &QueueProbe,
    progress: &P,
    clock: &dyn Clock,
) -> Result<Option<Timestamp>, StoreError> {
    let start = clock.now();
    let until = start.after(gauge.wait);
    let marker = [ChannelMessage {
        channel: 0,
        message: Message {
            id: format!("liveness-{}", start.nanoseconds()),
            key: "liveness".to_owned(),
            body: gauge.marker.to_owned(),
            ..Message::default()
        },
    }];
    let sent = dispatch(&[Arc::clone(&gauge.queue)], &marker, until, clock).await;
    let mut reached = progress.reached(&gauge.name).await?;
    if sent.sent == 0 {
        // The queue takes nothing, so how far it was read is all there is to know.
        return Ok(reached.map(|reached| reached.min(start)));
    }
    let mut seen_at = clock.now();
    let mut pause = LOOKS.0;
    let is_own = |reached: Option<Timestamp>| {
        reached.is_some_and(|reached| reached.after(CLOCKS_APART) >= start)
    };
    while !is_own(reached) && clock.now().after(pause) <= until {
        clock.sleep(pause).await;
        pause = (pause * 2).min(LOOKS.1);
        let now = progress.reached(&gauge.name).await?;
        if now != reached {
            (reached, seen_at) = (now, clock.now());
        }
    }
    let settling = time_left(clock.now(), seen_at.after(gauge.settle));
    clock.sleep(settling).await;
    Ok(reached.map(|reached| reached.min(clock.now())))
}
