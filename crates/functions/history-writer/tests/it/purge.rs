//! Purges: the past of a shadow is deleted, stays deleted, and a shadow that is created again has a past of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_dynamodb::streams::Record;
use antumbra_dynamodb::{DynamoDbSensors, PurgeState, SensorConfig};
use antumbra_service::history::feed::{FeedFilter, FeedStart};
use antumbra_service::history::{ChangeQuery, Operation, purged_until};
use antumbra_service::purges::{Purge, PurgeQueue, purge_due};
use antumbra_service::shadows::{Delete, Layout, ShadowId, Update};
use antumbra_service::store::StoreError;
use antumbra_shadow::Document;
use antumbra_testkit::dynamodb::Reply;
use antumbra_wire::history::{HistoryKey, part_sort};
use antumbra_wire::items::ShadowItem;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use serde_json::json;

use crate::rig::Rig;

const LAYOUTS: [Layout; 2] = [Layout::Separate, Layout::Combined];

fn named(name: &str) -> ShadowId {
    ShadowId::named("lamp", name).unwrap()
}

fn sensors(rig: &Rig) -> DynamoDbSensors {
    let config = SensorConfig::new(&rig.table.name);
    let sensors = DynamoDbSensors::new(rig.table.client.clone(), config);
    sensors.with_history(Some(rig.history.clone()))
}

async fn report(rig: &Rig, id: &ShadowId, n: u32) {
    rig.pass(1);
    let document = Document::parse(&format!(r#"{{"n":{n}}}"#)).unwrap();
    let update = Update::report(id.clone(), document.clone()).and_desire(document);
    assert!(rig.shadows.update(update).await.unwrap().written);
}

/// Deletes a shadow and queues the purge of its past, as the HTTP API does.
async fn delete_and_queue(rig: &Rig, id: &ShadowId) {
    rig.pass(1);
    let deleted = rig.shadows.delete_timed(Delete::whole(id.clone()));
    let deleted = deleted.await.unwrap();
    let until = purged_until(deleted, rig.now());
    let store = rig.shadows.store();
    store.queue_purge(id, until, rig.now()).await.unwrap();
}

async fn sweep(rig: &Rig) -> Result<usize, StoreError> {
    purge_due(&sensors(rig), &*rig.clock, || true).await
}

/// Sweeps until the purge is done.
async fn purge(rig: &Rig) {
    assert_eq!(sweep(rig).await, Ok(0));
    rig.pass(20 * 60);
    assert_eq!(sweep(rig).await, Ok(1));
}

/// Operations and versions that are recorded of a shadow, oldest first.
async fn recorded(rig: &Rig, id: &ShadowId) -> Vec<(Operation, i64)> {
    let query = ChangeQuery {
        shadow: id.clone(),
        from: None,
        to: None,
        path: None,
    };
    let page = rig.reader.changes(&query, 1000, None, rig.now()).await;
    let rows = page.unwrap().rows.into_iter().rev();
    rows.map(|row| (row.operation, row.version.0)).collect()
}

/// Sort keys of the device's items in the history table, without the markers of purges.
async fn stored(rig: &Rig) -> Vec<String> {
    let entries = rig.entries().await.into_iter();
    let keys = entries.map(|item| item["SK"].as_s().unwrap().clone());
    let mut keys: Vec<String> = keys.filter(|key| !key.starts_with("PURGE#")).collect();
    keys.sort();
    keys
}

fn documents(layout: Layout) -> usize {
    match layout {
        Layout::Separate => 2,
        Layout::Combined => 1,
    }
}

#[tokio::test]
async fn only_the_past_of_the_purged_shadow_is_deleted() {
    for layout in LAYOUTS {
        let mut rig = Rig::new(layout).await;
        let names = ["a#b", "a", "a#b#", "a%23b", "main"];
        for name in names {
            report(&rig, &named(name), 1).await;
            report(&rig, &named(name), 2).await;
        }
        rig.record_all().await;
        delete_and_queue(&rig, &named("a#b")).await;
        rig.record_all().await;
        purge(&rig).await;
        let each = documents(layout);
        // The delete has no values, and tells those who follow the changes.
        let left = vec![(Operation::Remove, 2); each];
        assert_eq!(recorded(&rig, &named("a#b")).await, left);
        for name in &names[1..] {
            let recorded = recorded(&rig, &named(name)).await;
            assert_eq!(recorded.len(), 2 * each, "{name}");
        }
        assert_eq!(sensors(&rig).due_purges(rig.now(), 100).await, Ok(vec![]));
    }
}

/// A change that the writer gets after the purge is done, such as one of a batch that failed for hours.
#[tokio::test]
async fn changes_that_come_late_are_dropped_and_a_new_shadow_keeps_its_past() {
    for layout in LAYOUTS {
        let mut rig = Rig::new(layout).await;
        let lamp = named("main");
        report(&rig, &lamp, 1).await;
        report(&rig, &lamp, 2).await;
        report(&rig, &named("other"), 1).await;
        let late = rig.records().await;
        delete_and_queue(&rig, &lamp).await;
        purge(&rig).await;
        report(&rig, &lamp, 3).await;
        report(&rig, &lamp, 4).await;
        let each = documents(layout);

        // In one batch with the delete and with what came after it.
        let mut batch = late.clone();
        batch.extend(rig.records().await);
        for _ in 0..2 {
            let summary = rig.record(&batch).await;
            assert_eq!(summary.purged, 2 * each, "{summary:?}");
            assert_eq!((summary.written, summary.failed), (4 * each, 0));
            assert_eq!(summary.resume_at, None);
        }
        let each_twice = |changes: &[(Operation, i64)]| -> Vec<(Operation, i64)> {
            let changes = changes.iter();
            changes.flat_map(|one| vec![*one; each]).collect()
        };
        let kept = [
            (Operation::Remove, 2),
            (Operation::Insert, 3),
            (Operation::Modify, 4),
        ];
        assert_eq!(recorded(&rig, &lamp).await, each_twice(&kept));
        assert_eq!(recorded(&rig, &named("other")).await.len(), each);

        // The feed has what is recorded, and nothing else.
        let (start, filter) = (FeedStart::Oldest, FeedFilter::default());
        let page = rig.feed.read(&start, 1000, Duration::ZERO, &filter).await;
        let changes = page.unwrap().changes;
        assert_eq!(changes.len(), 4 * each, "{changes:?}");

        // Again, long after.
        rig.pass(30 * 86_400);
        assert_eq!(rig.record(&late).await.purged, 2 * each);
    }
}

/// A writer that has read that there is no purge writes after the past was deleted.
#[tokio::test]
async fn what_a_running_writer_adds_is_deleted_by_the_last_step() {
    for layout in LAYOUTS {
        let mut rig = Rig::new(layout).await;
        let lamp = named("main");
        report(&rig, &lamp, 1).await;
        let late = rig.records().await;
        delete_and_queue(&rig, &lamp).await;
        assert_eq!(sweep(&rig).await, Ok(0));
        let nothing = json!({"Responses": {}});
        let replies = [Reply::Respond(200, nothing)];
        rig.table.endpoint.script_next("BatchGetItem", replies);
        let summary = rig.record(&late).await;
        assert_eq!(summary.written, documents(layout));
        assert_eq!(sweep(&rig).await, Ok(0), "not due yet");
        assert_eq!(recorded(&rig, &lamp).await.len(), documents(layout));
        rig.pass(20 * 60);
        assert_eq!(sweep(&rig).await, Ok(1));
        assert_eq!(recorded(&rig, &lamp).await, []);
    }
}

#[tokio::test]
async fn a_sweep_that_comes_late_also_waits_for_running_writers() {
    let mut rig = Rig::new(Layout::Separate).await;
    report(&rig, &named("main"), 1).await;
    rig.record_all().await;
    delete_and_queue(&rig, &named("main")).await;
    rig.pass(2 * 3600);
    purge(&rig).await;
}

#[tokio::test]
async fn a_second_purge_reaches_further() {
    let mut rig = Rig::new(Layout::Separate).await;
    let lamp = named("main");
    for n in 0..2 {
        report(&rig, &lamp, n).await;
        rig.record_all().await;
        delete_and_queue(&rig, &lamp).await;
        // The same request again changes nothing.
        delete_and_queue(&rig, &lamp).await;
        rig.record_all().await;
        assert_eq!(sweep(&rig).await, Ok(0));
        let left = vec![(Operation::Remove, i64::from(n) + 1); 2];
        assert_eq!(recorded(&rig, &lamp).await, left, "{n}");
    }
    rig.pass(20 * 60);
    assert_eq!(sweep(&rig).await, Ok(1));
}

/// A shadow whose delete is not remembered any more.
#[tokio::test]
async fn a_shadow_that_was_deleted_long_ago_can_be_purged() {
    let mut rig = Rig::new(Layout::Combined).await;
    let lamp = named("main");
    report(&rig, &lamp, 1).await;
    rig.record_all().await;
    let delete = rig.table.client.delete_item().table_name(&rig.table.name);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let delete = delete.key("PK", text("DS#lamp"));
    delete.key("SK", text("DSC#main")).send().await.unwrap();
    rig.records().await;
    rig.pass(60);
    delete_and_queue(&rig, &lamp).await;
    purge(&rig).await;
    assert_eq!(recorded(&rig, &lamp).await, []);
    report(&rig, &lamp, 2).await;
    rig.record_all().await;
    assert_eq!(recorded(&rig, &lamp).await, [(Operation::Insert, 1)]);
}

/// Puts entries of a shadow with their parts, and returns the number of items.
async fn fill(rig: &Rig, entries: u64, parts_of: impl Fn(u64) -> usize) -> usize {
    let mut items = Vec::new();
    let mut put = |sort: String| {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let item = HashMap::from([("PK", text("DS#lamp")), ("SK", text(&sort))]);
        let item = item
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let put = PutRequest::builder().set_item(Some(item.collect()));
        items.push(
            WriteRequest::builder()
                .put_request(put.build().unwrap())
                .build(),
        );
    };
    for n in 0..entries {
        let key = HistoryKey {
            id: "lamp".to_owned(),
            name: "a#b".to_owned(),
            item: ShadowItem::ALL[n as usize % 3],
            time: 1_700_000_000_000_000_000 + n,
            version: n + 1,
        };
        put(key.sort());
        (1..=parts_of(n)).for_each(|part| put(part_sort(&key.sort(), part)));
    }
    for batch in items.chunks(25) {
        let write = rig.table.client.batch_write_item();
        let write = write.request_items(&rig.history_table, batch.to_vec());
        write.send().await.unwrap();
    }
    items.len()
}

#[tokio::test]
async fn thousands_of_entries_with_parts_are_deleted_page_by_page() {
    let rig = Rig::new(Layout::Separate).await;
    let parts = |n: u64| if n.is_multiple_of(50) { 3 } else { 0 };
    let count = fill(&rig, 4000, parts).await;
    assert_eq!(count, 4240);
    delete_and_queue(&rig, &named("a#b")).await;
    rig.table.endpoint.take_calls();
    let (store, shadow) = (rig.shadows.store(), named("a#b"));
    let (mut steps, mut deleted) = (0, 0);
    while !stored(&rig).await.is_empty() {
        let step = store.purge_step(&rig.history, &shadow, rig.now());
        let step = step.await.unwrap();
        assert!(step.deleted <= 1000, "{step:?}");
        steps += 1;
        deleted += step.deleted;
        // No part is missing of an entry that is there.
        let left = stored(&rig).await;
        let parts = left.iter().filter(|key| key.starts_with("PART#")).count();
        assert!(parts == 240 || left.len() == parts, "{parts}");
    }
    assert_eq!((steps, deleted), (5, 4240));
    purge(&rig).await;
}

/// A writer that missed the marker adds an entry that the purge has passed already.
#[tokio::test]
async fn a_purge_that_takes_longer_than_it_waits_examines_the_past_again() {
    let rig = Rig::new(Layout::Separate).await;
    fill(&rig, 2500, |_| 0).await;
    delete_and_queue(&rig, &named("a#b")).await;
    let (store, shadow) = (rig.shadows.store(), named("a#b"));
    let step = || store.purge_step(&rig.history, &shadow, rig.now());
    assert_eq!(step().await.unwrap().state, PurgeState::Deletes);
    // The first entry is still there, the two others are behind the position.
    assert_eq!(fill(&rig, 3, |_| 0).await, 3);
    rig.pass(21 * 60);
    let (mut steps, mut deleted) = (0, 0);
    loop {
        let step = step().await.unwrap();
        deleted += step.deleted;
        steps += 1;
        match step.state {
            PurgeState::Deletes => assert!(steps < 10),
            PurgeState::Done => break,
            state => panic!("{state:?}"),
        }
    }
    assert_eq!(stored(&rig).await, [""; 0]);
    assert_eq!(deleted, 1502);
}

/// The process ends at every call in turn, before or after the call took place; then the next sweep continues.
#[tokio::test]
async fn a_purge_that_is_stopped_anywhere_continues() {
    // The calls before look for due purges, in 16 shards.
    for stop_at in 15.. {
        let rig = Rig::new(Layout::Separate).await;
        fill(&rig, 16, |n| usize::from(n.is_multiple_of(4))).await;
        delete_and_queue(&rig, &named("a#b")).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        rig.table.endpoint.script(move |_| {
            match seen.fetch_add(1, Ordering::SeqCst) {
                call if call < stop_at => Reply::Pass,
                // Every other call takes place, and none after it.
                call if call == stop_at && stop_at % 2 == 1 => {
                    Reply::pass_then_fail(400, "AccessDeniedException")
                }
                _ => Reply::fail(400, "AccessDeniedException"),
            }
        });
        let stopped = sweep(&rig).await;
        rig.table.endpoint.script(|_| Reply::Pass);
        if stopped.is_ok() {
            assert!(stop_at > 30, "{stop_at}");
            break;
        }
        purge(&rig).await;
        assert_eq!(stored(&rig).await, [""; 0], "{stop_at}");
    }
}

#[tokio::test]
async fn the_writer_reads_one_item_for_a_batch_unless_there_was_a_purge() {
    let mut rig = Rig::new(Layout::Separate).await;
    report(&rig, &named("main"), 1).await;
    let first: Vec<Record> = rig.records().await;
    rig.table.endpoint.take_calls();
    let reads = |rig: &Rig| {
        let calls = rig.table.endpoint.take_operations();
        calls.iter().filter(|call| *call == "BatchGetItem").count()
    };
    rig.record(&first).await;
    assert_eq!(reads(&rig), 1);
    delete_and_queue(&rig, &named("main")).await;
    purge(&rig).await;
    report(&rig, &named("main"), 2).await;
    let second = rig.records().await;
    rig.table.endpoint.take_calls();
    rig.record(&second[2..]).await;
    assert_eq!(reads(&rig), 1, "all changes are newer");
    rig.record(&first).await;
    assert_eq!(reads(&rig), 2);
}

/// A batch whose markers cannot be read is repeated as a whole.
#[tokio::test]
async fn nothing_is_written_while_markers_cannot_be_read() {
    let mut rig = Rig::new(Layout::Separate).await;
    report(&rig, &named("main"), 1).await;
    let records = rig.records().await;
    let denied = Reply::fail(400, "AccessDeniedException");
    rig.table.endpoint.script_next("BatchGetItem", [denied]);
    let summary = rig.record(&records).await;
    assert_eq!((summary.written, summary.failed), (0, 2), "{summary:?}");
    assert!(summary.resume_at.is_some());
    assert_eq!(stored(&rig).await, [""; 0]);
}

/// A failing purge of a shadow does not keep sensors from being purged.
#[tokio::test]
async fn purges_of_shadows_are_left_alone_without_a_history() {
    let rig = Rig::new(Layout::Separate).await;
    delete_and_queue(&rig, &named("main")).await;
    let sensors = sensors(&rig).with_history(None);
    assert_eq!(sensors.due_purges(rig.now(), 100).await, Ok(vec![]));
    assert_eq!(purge_due(&sensors, &*rig.clock, || true).await, Ok(0));
    let due = self::sensors(&rig).due_purges(rig.now(), 100).await;
    assert_eq!(due, Ok(vec![Purge::Past(named("main"))]));
}
