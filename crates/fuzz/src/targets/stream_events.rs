//! Stream events: the fast decoder agrees with serde, and decoded records become notifications in JSON.

use std::cell::RefCell;

use antumbra_registration::{DiffCell, Parts};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{
    ReadRecord, Record, RecordHandler, StreamBatch, Tape, Undecodable, read_each,
};

use crate::oracle::compare;

/// Buffers are reused as in the listener: nothing of one event may appear in the next.
#[derive(Default)]
struct Room {
    batch: StreamBatch,
    tape: Tape,
    writer: Writer,
}

#[derive(Default)]
struct Writer {
    model: Model,
    key: KeyBuffer,
    diff: DiffBuffer,
    out: String,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

pub(crate) fn run(bytes: &[u8]) {
    ROOM.with_borrow_mut(|room| {
        if let Err(parted) = compare(bytes, &mut room.batch, &mut room.tape) {
            panic!("{parted}");
        }
        // An event that cannot be read has been compared.
        let _ = read_each(bytes, &mut room.tape, &mut room.writer);
    });
}

impl RecordHandler for Writer {
    fn restart(&mut self) {}

    fn needs_images(&mut self, _: Record<'_>) -> bool {
        true
    }

    fn record(&mut self, read: Result<ReadRecord<'_>, Undecodable>) {
        let Ok(read) = read else {
            return;
        };
        let record = read.record;
        let Ok(images) = read.images() else {
            return;
        };
        let item = ItemChange::new(record, self.key.read(record), images);
        let parts = Parts {
            old: true,
            new: true,
            diff: true,
        };
        for document in item.documents() {
            let diff = DiffCell::new(document.old, document.new, &self.model);
            let diff = diff.in_buffer(&mut self.diff);
            let change = item.change(document, &diff);
            let id = NotificationId::new(&record.event_id(), "fuzz", document.state);
            let limit = usize::MAX;
            notification::write(&mut self.out, id, "fuzz", &change, parts, limit).unwrap();
            let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&self.out);
            assert!(parsed.is_ok(), "{parsed:?}: {}", self.out);
        }
    }
}
