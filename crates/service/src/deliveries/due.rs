//! Queues deliveries whose time has come, and releases held deliveries in the background.

use antumbra_shadow::Timestamp;

use super::ports::{DueEntry, DueIndex, DueTask, History};
use super::queues::Queues;
use super::redeliver::{RedeliverError, Release, release};
use crate::clients::ClientStore;
use crate::clock::Clock;

const PAGE: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DueSummary {
    /// Deliveries queued because their time had come.
    pub queued: usize,
    /// Held deliveries queued because their client was enabled.
    pub released: usize,
    /// Entries that failed; the next run repeats them.
    pub failed: usize,
    /// Everything due was processed.
    pub finished: bool,
}

/// Queues everything that is due, until the deadline. Two runs at the same time do no harm: a delivery that is
/// queued twice is attempted once.
pub async fn queue_due<S, H>(
    clients: &S,
    store: &H,
    queues: &Queues,
    clock: &dyn Clock,
    deadline: Timestamp,
) -> DueSummary
where
    S: ClientStore,
    H: DueIndex + History,
{
    let mut summary = DueSummary {
        finished: true,
        ..DueSummary::default()
    };
    for shard in 0..store.shards() {
        loop {
            if clock.now() >= deadline {
                summary.finished = false;
                return summary;
            }
            let entries = match store.due(shard, clock.now(), PAGE).await {
                Ok(entries) => entries,
                Err(error) => {
                    tracing::warn!(shard, %error, "due deliveries not read");
                    summary.failed += 1;
                    break;
                }
            };
            let mut failed = 0;
            let is_last = entries.len() < PAGE;
            for entry in entries {
                let done = process(
                    clients,
                    store,
                    queues,
                    clock,
                    deadline,
                    &entry,
                    &mut summary,
                );
                if let Err(error) = done.await {
                    tracing::warn!(shard, key = entry.key, %error, "a due entry failed");
                    failed += 1;
                }
            }
            summary.failed += failed;
            // The next run reads failed entries again.
            if is_last || failed > 0 {
                break;
            }
        }
    }
    summary.finished &= summary.failed == 0;
    summary
}

async fn process<S: ClientStore, H: DueIndex + History>(
    clients: &S,
    store: &H,
    queues: &Queues,
    clock: &dyn Clock,
    deadline: Timestamp,
    entry: &DueEntry,
    summary: &mut DueSummary,
) -> Result<(), RedeliverError> {
    match &entry.task {
        DueTask::Nothing => {}
        DueTask::Queue(record, mode) => {
            queues.send(*mode, &record.message()).await?;
            summary.queued += 1;
        }
        DueTask::Release(client) => {
            let more = || clock.now() < deadline;
            let Release { queued, finished } =
                release(clients, store, queues, clock, client, more).await?;
            summary.released += queued;
            if !finished {
                summary.finished = false;
                return Ok(());
            }
        }
    }
    Ok(store.remove_due(entry).await?)
}
