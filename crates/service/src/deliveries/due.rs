//! Queues deliveries whose time has come, and releases held deliveries in the background.

use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;
use futures_util::{StreamExt as _, stream};

use super::ports::{DueEntry, DueIndex, DueTask, History};
use super::queues::Queues;
use super::redeliver::{RedeliverError, Release, release};
use crate::clients::{ClientId, ClientStore, Mode};
use crate::clock::Clock;
use crate::liveness::SweepGroup;
use crate::notifications::{Message, dispatch};

const PAGE: usize = 100;
/// Shards that are processed at the same time, and entries that are removed at the same time in each.
const SHARDS_AT_ONCE: usize = 4;
const REMOVED_AT_ONCE: usize = 16;
/// Most time for queueing the deliveries of a page, so that a queue that fails does not stop the rest.
const QUEUE_TIME: Duration = Duration::from_secs(5);

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

/// The ports of a run.
struct Run<'a, S, H> {
    clients: &'a S,
    store: &'a H,
    queues: &'a Queues,
    clock: &'a dyn Clock,
    deadline: Timestamp,
}

/// Queues everything that is due in the shards of a group, until the deadline. Two runs at the same time do no harm: a
/// delivery that is queued twice is attempted once.
pub async fn queue_due<S, H>(
    clients: &S,
    store: &H,
    queues: &Queues,
    group: SweepGroup,
    clock: &dyn Clock,
    deadline: Timestamp,
) -> DueSummary
where
    S: ClientStore,
    H: DueIndex + History,
{
    let run = Run {
        clients,
        store,
        queues,
        clock,
        deadline,
    };
    let shards = (0..store.shards()).filter(|shard| group.has(*shard));
    let shards: Vec<_> = shards.map(|shard| run.shard(shard)).collect();
    let mut shards = stream::iter(shards).buffer_unordered(SHARDS_AT_ONCE);
    let mut summary = DueSummary {
        finished: true,
        ..DueSummary::default()
    };
    while let Some(shard) = shards.next().await {
        summary.queued += shard.queued;
        summary.released += shard.released;
        summary.failed += shard.failed;
        summary.finished &= shard.finished && shard.failed == 0;
    }
    summary
}

impl<S: ClientStore, H: DueIndex + History> Run<'_, S, H> {
    async fn shard(&self, shard: u32) -> DueSummary {
        let mut summary = DueSummary {
            finished: true,
            ..DueSummary::default()
        };
        loop {
            if self.clock.now() >= self.deadline {
                summary.finished = false;
                return summary;
            }
            let entries = match self.store.due(shard, self.clock.now(), PAGE).await {
                Ok(entries) => entries,
                Err(error) => {
                    tracing::warn!(shard, %error, "due deliveries not read");
                    summary.failed += 1;
                    return summary;
                }
            };
            let is_last = entries.len() < PAGE;
            let failed = self.page(&entries, &mut summary).await;
            summary.failed += failed;
            // The next run reads failed entries again.
            if is_last || failed > 0 {
                return summary;
            }
        }
    }

    /// Processes a page of a shard. Returns the number of entries that failed. Entries of one shard have no order: of the
    /// deliveries that must be sent in order, only the first is in the index.
    async fn page(&self, entries: &[DueEntry], summary: &mut DueSummary) -> usize {
        let mut done: Vec<&DueEntry> = Vec::new();
        let mut failed = 0;
        for mode in [Mode::Every, Mode::Latest] {
            let of_mode = entries.iter().filter_map(|entry| match &entry.task {
                DueTask::Queue(record, of) if *of == mode => Some((entry, record.message())),
                _ => None,
            });
            let (of_mode, messages): (Vec<&DueEntry>, Vec<Message>) = of_mode
                .map(|(entry, message)| (entry, message.to_queue()))
                .unzip();
            let queue = Arc::clone(self.queues.of(mode));
            let until = self.deadline.min(self.clock.now().after(QUEUE_TIME));
            let sent = dispatch(queue, &messages, until, self.clock).await;
            for rejected in &sent.rejected {
                let (key, reason) = (&of_mode[rejected.index].key, &rejected.reason);
                tracing::warn!(key, reason, "a due delivery was not queued");
            }
            let rejected = sent.rejected.iter().map(|rejected| rejected.index);
            let unsent: Vec<usize> = rejected.chain(sent.unsent.iter().copied()).collect();
            failed += unsent.len();
            summary.queued += sent.sent;
            let queued = of_mode.into_iter().enumerate();
            done.extend(queued.filter_map(|(at, entry)| (!unsent.contains(&at)).then_some(entry)));
        }
        for entry in entries {
            match &entry.task {
                DueTask::Queue(..) => {}
                DueTask::Nothing => done.push(entry),
                DueTask::Release(client) => match self.release(client).await {
                    Ok(Release { queued, finished }) => {
                        summary.released += queued;
                        summary.finished &= finished;
                        done.extend(finished.then_some(entry));
                    }
                    Err(error) => {
                        tracing::warn!(key = entry.key, %error, "a due entry failed");
                        failed += 1;
                    }
                },
            }
        }
        let removes: Vec<_> = done
            .iter()
            .map(|entry| self.store.remove_due(entry))
            .collect();
        let mut removes = stream::iter(removes).buffer_unordered(REMOVED_AT_ONCE);
        while let Some(removed) = removes.next().await {
            if let Err(error) = removed {
                tracing::warn!(%error, "a due entry was not removed");
                failed += 1;
            }
        }
        failed
    }

    async fn release(&self, client: &ClientId) -> Result<Release, RedeliverError> {
        let more = || self.clock.now() < self.deadline;
        release(
            self.clients,
            self.store,
            self.queues,
            self.clock,
            client,
            more,
        )
        .await
    }
}
