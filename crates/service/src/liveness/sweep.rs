//! The sweep: checks every due sensor.

use std::time::Duration;

use antumbra_shadow::Timestamp;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep_until};

use crate::clock::{Clock, time_left};
use crate::paging::Cursor;
use crate::sensors::{CheckOutcome, LivenessIndex, SensorId};
use crate::store::StoreError;

/// Shards whose pages are read at the same time.
const SHARDS_AT_ONCE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sensors checked concurrently.
    pub at_once: usize,
    /// Sensors per page.
    pub page: usize,
    /// Shortest time between two pages of a shard.
    pub page_period: Duration,
}

impl Default for Limits {
    /// 64 at a time: 40,000 conditional writes of some ten milliseconds take less than ten seconds. A rearm moves the entry
    /// of the sensor in the index, which is two write units: 350 a second leave a third of the 1,000 units a second that
    /// DynamoDB allows for the key of a shard to signals of sensors that return.
    fn default() -> Limits {
        Limits {
            at_once: 64,
            page: 350,
            page_period: Duration::from_secs(1),
        }
    }
}

/// One of several sweeps at the same time, which divide the shards among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepGroup {
    number: u32,
    groups: u32,
}

/// A number of a group that is not below the number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no group {number} of {groups}")]
pub struct InvalidGroup {
    number: u32,
    groups: u32,
}

impl SweepGroup {
    /// A sweep of all shards.
    pub const ALL: SweepGroup = SweepGroup {
        number: 0,
        groups: 1,
    };

    /// A group by its number, from 0 on.
    ///
    /// # Errors
    /// If there are not so many groups.
    pub fn new(number: u32, groups: u32) -> Result<SweepGroup, InvalidGroup> {
        match number < groups {
            true => Ok(SweepGroup { number, groups }),
            false => Err(InvalidGroup { number, groups }),
        }
    }

    /// Returns whether a shard belongs to this group. Each belongs to one.
    pub fn has(self, shard: u32) -> bool {
        shard % self.groups == self.number
    }

    /// Returns whether this is the first group, which also does what is not divided.
    pub fn is_first(self) -> bool {
        self.number == 0
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

/// Checks every sensor of a group's shards that is due by the watermark, and marks those that were silent for too long by
/// then as lost. Stops at the deadline; the remaining sensors stay due. A live sensor costs its share of a read and one
/// write.
pub async fn sweep<L: LivenessIndex>(
    sensors: &L,
    group: SweepGroup,
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
    let mut shards: Vec<u32> = shards.filter(|shard| group.has(*shard)).collect();
    // Another one first every time: if there is not enough time, the next sweep begins elsewhere.
    let seconds = ingest_watermark.nanoseconds().div_euclid(1_000_000_000);
    let first = seconds
        .div_euclid(60)
        .rem_euclid(shards.len().max(1) as i128);
    shards.rotate_left(first as usize);
    let shards: Vec<_> = shards
        .into_iter()
        .map(|shard| pages(sensors, shard, ingest_watermark, limits))
        .collect();
    let due = stream::iter(shards).flatten_unordered(SHARDS_AT_ONCE);
    let looks = due
        .map(|found| async move {
            match found {
                // No check begins after the deadline; checks in flight may finish.
                Found::Due(..) if clock.now() >= deadline => Look::OutOfTime,
                Found::Due(id, true) => Look::Checked(sensors.rearm(&id).await),
                Found::Due(id, false) => Look::Checked(sensors.check(&id, ingest_watermark).await),
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
    /// A due sensor, and whether it seems to be live.
    Due(SensorId, bool),
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
    limits: Limits,
) -> BoxStream<'_, Found> {
    let first: (Option<Cursor>, Instant) = (None, Instant::now());
    stream::unfold(Some(first), move |next| async move {
        let (cursor, from) = next?;
        sleep_until(from).await;
        let from = Instant::now() + limits.page_period;
        match sensors
            .due(shard, ingest_watermark, limits.page, cursor.as_ref())
            .await
        {
            Ok(page) => {
                let live = sensors.are_live(&page.rows, ingest_watermark).await;
                // A check decides anyway; a rearm is only cheaper.
                let live = live.unwrap_or_else(|_| vec![false; page.rows.len()]);
                let rows = page.rows.into_iter().zip(live);
                let rows = rows.map(|(id, live)| Found::Due(id, live));
                let found: Vec<Found> = std::iter::once(Found::Page).chain(rows).collect();
                let next = page.next.map(|cursor| (Some(cursor), from));
                Some((found, next))
            }
            Err(error) => Some((vec![Found::Failed(error)], None)),
        }
    })
    .flat_map(stream::iter)
    .boxed()
}
