//! Nothing is allocated per record once the buffers are warm.

use antumbra_registration::{DiffCell, Parts};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_testkit::stream::{self, Order, Shape};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{StreamBatch, Tape};

#[test]
fn none_when_warm() {
    for shape in [Shape::Small, Shape::Large] {
        check(&stream::event(20, shape, Order::Same, 3));
    }
}

fn check(event: &[u8]) {
    let (mut batch, mut tape, mut key) = (
        StreamBatch::default(),
        Tape::default(),
        KeyBuffer::default(),
    );
    let (mut buffer, mut out) = (DiffBuffer::default(), String::new());
    let model = Model::default();
    let parts = Parts {
        old: true,
        new: true,
        diff: true,
    };
    let mut listen = || {
        let mut notifications = 0;
        for record in batch.read(event).unwrap().iter() {
            let record = record.unwrap();
            let key = key.read(record);
            let item = ItemChange::new(record, key, record.images(&mut tape).unwrap());
            for document in item.documents() {
                let diff = DiffCell::new(document.old, document.new, &model).in_buffer(&mut buffer);
                let change = item.change(document, &diff);
                let state = change.shadow.map(|shadow| shadow.state);
                let id = NotificationId::new(&record.event_id(), "all", state);
                notification::write(&mut out, id, "all", &change, parts, usize::MAX).unwrap();
                notifications += 1;
            }
        }
        notifications
    };
    assert_eq!(listen(), 20);
    let warm = allocation_counter::measure(|| {
        assert_eq!(listen(), 20);
    });
    assert_eq!(warm.count_total, 0);
}
