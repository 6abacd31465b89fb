//! Stream events: the fast decoder agrees with serde, and decoded records become notifications in JSON.

use std::cell::RefCell;

use antumbra_registration::{DiffCell, Parts};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{StreamBatch, Tape};

use crate::oracle::compare;

/// Buffers are reused as in the listener: nothing of one event may appear in the next.
#[derive(Default)]
struct Room {
    batch: StreamBatch,
    tape: Tape,
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
        room.notify(bytes);
    });
}

impl Room {
    fn notify(&mut self, event: &[u8]) {
        let model = Model::default();
        let parts = Parts {
            old: true,
            new: true,
            diff: true,
        };
        let Ok(records) = self.batch.read(event) else {
            return;
        };
        for record in records.iter().flatten() {
            let key = self.key.read(record);
            let Ok(images) = record.images(&mut self.tape) else {
                continue;
            };
            let item = ItemChange::new(record, key, images);
            for document in item.documents() {
                let diff = DiffCell::new(document.old, document.new, &model);
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
}
