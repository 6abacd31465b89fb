//! Nothing is allocated per record once the buffers are warm.

use antumbra_registration::{DiffCell, Parts};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_testkit::stream::{self, Order, Shape};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{ReadRecord, Record, RecordHandler, Tape, Undecodable, read_each};

#[test]
fn none_when_warm() {
    for shape in [Shape::Small, Shape::Large] {
        check(&stream::event(20, shape, Order::Same, 3));
    }
}

fn check(event: &[u8]) {
    let mut tape = Tape::default();
    let mut writer = Writer {
        model: Model::default(),
        key: KeyBuffer::default(),
        diff: DiffBuffer::default(),
        out: String::new(),
        notifications: 0,
    };
    let mut listen = || {
        read_each(event, &mut tape, &mut writer).unwrap();
        writer.notifications
    };
    assert_eq!(listen(), 20);
    let warm = allocation_counter::measure(|| {
        assert_eq!(listen(), 20);
    });
    assert_eq!(warm.count_total, 0);
}

/// Writes the notification of every change.
struct Writer {
    model: Model,
    key: KeyBuffer,
    diff: DiffBuffer,
    out: String,
    notifications: usize,
}

impl RecordHandler for Writer {
    fn restart(&mut self) {
        self.notifications = 0;
    }

    fn needs_images(&mut self, _: Record<'_>) -> bool {
        true
    }

    fn record(&mut self, read: Result<ReadRecord<'_>, Undecodable>) {
        let read = read.unwrap();
        let record = read.record;
        let item = ItemChange::new(record, self.key.read(record), read.images().unwrap());
        let parts = Parts {
            old: true,
            new: true,
            diff: true,
        };
        for document in item.documents() {
            let diff = DiffCell::new(document.old, document.new, &self.model);
            let diff = diff.in_buffer(&mut self.diff);
            let change = item.change(document, &diff);
            let state = change.shadow.map(|shadow| shadow.state);
            let id = NotificationId::new(&record.event_id(), "all", state);
            let out = &mut self.out;
            notification::write(out, id, "all", &change, parts, usize::MAX).unwrap();
            self.notifications += 1;
        }
    }
}
