//! The sweep: checks every due sensor.

use antumbra_shadow::Timestamp;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};

use crate::clock::{Clock, time_left};
use crate::paging::Cursor;
use crate::sensors::{CheckOutcome, LivenessIndex, SensorId};
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sensors checked concurrently.
    pub at_once: usize,
    /// Sensors per page.
    pub page: usize,
}

impl Default for Limits {
    /// 64 at a time: 40,000 conditional writes of some ten milliseconds take less than ten seconds.
    fn default() -> Limits {
        Limits {
            at_once: 64,
            page: 250,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepSummary {
    /// Sensors that became lost by this sweep.
    pub lost: usize,
    /// Sensors that sent a signal meanwhile; they are checked again at their deadline.
    pub rearmed: usize,
    /// Sensors that were lost already or are unregistered.
    pub gone: usize,
    pub pages: usize,
    /// Checks and pages that failed; the next sweep repeats them.
    pub failed: usize,
    /// Reason of one of these failures.
    pub failure: Option<StoreError>,
    /// True if every due sensor was checked. The others stay due.
    pub finished: bool,
}

impl SweepSummary {
    pub fn checked(&self) -> usize {
        self.lost + self.rearmed + self.gone
    }

    fn fail(&mut self, error: StoreError) {
        self.failed += 1;
        self.finished = false;
        self.failure = Some(error);
    }
}

/// Checks every sensor due by the horizon and marks those that were silent for too long by then as lost. Stops
/// at the deadline; the remaining sensors stay due.
pub async fn sweep<L: LivenessIndex>(
    sensors: &L,
    ingest_watermark: Timestamp,
    deadline: Timestamp,
    limits: Limits,
    clock: &dyn Clock,
) -> SweepSummary {
    let mut swept = SweepSummary {
        finished: true,
        ..SweepSummary::default()
    };
    let shards = 0..sensors.shards();
    let shards: Vec<_> = shards
        .map(|shard| pages(sensors, shard, ingest_watermark, limits.page))
        .collect();
    let due = stream::select_all(shards);
    let looks = due
        .map(|found| async move {
            match found {
                // No check begins after the deadline; checks in flight may finish.
                Found::Due(_) if clock.now() >= deadline => Look::OutOfTime,
                Found::Due(id) => Look::Checked(sensors.check(&id, ingest_watermark).await),
                Found::Page => Look::Page,
                Found::Failed(error) => Look::Failed(error),
            }
        })
        .buffer_unordered(limits.at_once.max(1));
    let mut looks = std::pin::pin!(looks);
    loop {
        let Ok(look) = tokio::time::timeout(time_left(clock.now(), deadline), looks.next()).await
        else {
            swept.finished = false;
            return swept;
        };
        match look {
            None => return swept,
            Some(Look::Page) => swept.pages += 1,
            Some(Look::Checked(Ok(CheckOutcome::Lost))) => swept.lost += 1,
            Some(Look::Checked(Ok(CheckOutcome::Rearmed))) => swept.rearmed += 1,
            Some(Look::Checked(Ok(CheckOutcome::Gone))) => swept.gone += 1,
            Some(Look::Checked(Err(error)) | Look::Failed(error)) => swept.fail(error),
            Some(Look::OutOfTime) => {
                swept.finished = false;
                return swept;
            }
        }
    }
}

enum Found {
    Page,
    Due(SensorId),
    Failed(StoreError),
}

enum Look {
    Page,
    Checked(Result<CheckOutcome, StoreError>),
    Failed(StoreError),
    OutOfTime,
}

/// Returns all due sensors of a shard, page by page. Removing checked sensors from the index does not disturb
/// later pages, because a page starts after a key and not at a position. Boxed, because a caller that spawns a
/// sweep needs a type that the compiler can name.
fn pages<L: LivenessIndex>(
    sensors: &L,
    shard: u32,
    ingest_watermark: Timestamp,
    limit: usize,
) -> BoxStream<'_, Found> {
    let next: Option<Option<Cursor>> = Some(None);
    stream::unfold(next, move |next| async move {
        let cursor = next?;
        match sensors
            .due(shard, ingest_watermark, limit, cursor.as_ref())
            .await
        {
            Ok(page) => {
                let rows = page.rows.into_iter().map(Found::Due);
                let found: Vec<Found> = std::iter::once(Found::Page).chain(rows).collect();
                Some((found, page.next.map(Some)))
            }
            Err(error) => Some((vec![Found::Failed(error)], None)),
        }
    })
    .flat_map(stream::iter)
    .boxed()
}
