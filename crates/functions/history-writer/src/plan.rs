//! The entries of an event, in the order of the stream.

use antumbra_service::shadows::ShadowId;
use antumbra_shadow::Model;
use antumbra_wire::history::{Entry, SegmentEntry};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::stream::{EventError, Record, StreamBatch, Tape, Undecodable};

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Sequence number of each record.
    pub(crate) sequence_numbers: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    /// Position of each entry's record.
    pub(crate) records: Vec<usize>,
    /// Each entry as it stands in the change feed.
    pub(crate) changes: Vec<SegmentEntry>,
    /// Records that cannot be recorded, now or later.
    pub(crate) unrecorded: usize,
    /// Time of the oldest record, in seconds since 1970.
    pub(crate) oldest_seconds: Option<f64>,
}

impl Plan {
    pub(crate) fn new(event: &[u8], model: &Model) -> Result<Plan, EventError> {
        let mut batch = StreamBatch::default();
        let (mut key, mut tape) = (KeyBuffer::default(), Tape::default());
        let mut plan = Plan::default();
        for record in batch.read(event)?.iter() {
            let planned = record.and_then(|record| {
                plan.sequence_numbers
                    .push(record.sequence_number().into_owned());
                plan.record(record, model, &mut key, &mut tape)
            });
            if let Err(undecodable) = planned {
                let number = undecodable.sequence_number.clone().unwrap_or_default();
                tracing::error!(record = number, %undecodable, "a change is not recorded");
                plan.unrecorded += 1;
                plan.sequence_numbers.truncate(undecodable.index);
                plan.sequence_numbers.push(number);
            }
        }
        Ok(plan)
    }

    /// Drops the entries for which it is true, and returns their number.
    pub(crate) fn drop_purged(&mut self, purged: &[bool]) -> usize {
        fn keep<T>(items: &mut Vec<T>, purged: &[bool]) {
            let mut purged = purged.iter();
            items.retain(|_| !purged.next().copied().unwrap_or_default());
        }
        keep(&mut self.entries, purged);
        keep(&mut self.records, purged);
        keep(&mut self.changes, purged);
        purged.iter().filter(|purged| **purged).count()
    }

    fn record(
        &mut self,
        record: Record<'_>,
        model: &Model,
        key: &mut KeyBuffer,
        tape: &mut Tape,
    ) -> Result<(), Undecodable> {
        let created = record.created_seconds();
        let earlier = self.oldest_seconds.into_iter().chain(created);
        self.oldest_seconds = earlier.reduce(f64::min);
        let key = key.read(record);
        if key.item.shadow().is_none() {
            return Ok(());
        }
        let images = record.images(tape)?;
        let change = ItemChange::new(record, key, images);
        let Some(entry) = Entry::of(&change, model) else {
            return Ok(());
        };
        // Other programs may write shadows that nobody can ask for. Keys of all others fit.
        if let Err(error) = ShadowId::named(&entry.key.id, &entry.key.name) {
            let record = &*record.sequence_number();
            tracing::error!(record, %error, "a change is not recorded");
            self.unrecorded += 1;
            return Ok(());
        }
        self.changes.push(SegmentEntry {
            key: entry.key.clone(),
            change_id: record.event_id().into_owned(),
            operation: entry.operation,
        });
        self.entries.push(entry);
        self.records.push(record.index());
        Ok(())
    }
}
