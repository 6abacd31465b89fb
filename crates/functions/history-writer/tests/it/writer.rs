//! One invocation of the writer, and the answers of the reader.

use std::time::Duration;

use antumbra_service::history::feed::{FeedFilter, FeedStart};
use antumbra_service::history::{ChangeQuery, Operation, RecordedChange, StateAt};
use antumbra_service::shadows::{ClientToken, Delete, ExpectedVersion, Layout, ShadowId, Update};
use antumbra_shadow::{Document, Timestamp};
use antumbra_testkit::dynamodb::Reply;
use antumbra_wire::history::{Entry, HistoryKey, SegmentEntry};
use antumbra_wire::items::ShadowItem;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::rig::{DAYS, Rig, start};

pub(crate) fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

pub(crate) async fn report(rig: &Rig, id: &ShadowId, json: &str) {
    let update = Update::report(id.clone(), Document::parse(json).unwrap());
    assert!(rig.shadows.update(update).await.unwrap().written);
}

pub(crate) async fn changes(rig: &Rig, path: Option<&str>) -> Vec<RecordedChange> {
    let query = ChangeQuery {
        shadow: lamp(),
        from: None,
        to: None,
        path: path.map(str::to_owned),
    };
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let page = rig
            .reader
            .changes(&query, 2, cursor.as_ref(), rig.now())
            .await
            .unwrap();
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            return rows;
        }
    }
}

/// Pointer, old and new value of each changed value, newest change first.
fn values(changes: &[RecordedChange]) -> Vec<(String, String, String)> {
    let leaves = changes.iter().flat_map(|change| &change.documents);
    let leaves = leaves.flat_map(|document| document.values.clone().unwrap());
    leaves
        .map(|leaf| {
            (
                leaf.pointer,
                leaf.old.unwrap_or_default(),
                leaf.new.unwrap_or_default(),
            )
        })
        .collect()
}

fn row(pointer: &str, old: &str, new: &str) -> (String, String, String) {
    (pointer.to_owned(), old.to_owned(), new.to_owned())
}

pub(crate) async fn state(rig: &Rig, at: Timestamp) -> String {
    match rig.reader.state_at(&lamp(), at, rig.now()).await.unwrap() {
        StateAt::Existed(shadow) => shadow.reported.unwrap().document.to_string(),
        StateAt::DidNotExist => "did not exist".to_owned(),
        StateAt::BeforeRetention { .. } => "before the retention".to_owned(),
        StateAt::NotRecorded => "not recorded".to_owned(),
    }
}

#[tokio::test]
async fn every_change_is_listed_with_old_and_new_values() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        report(&rig, &lamp(), r#"{"led":"off","fan":{"speed":1}}"#).await;
        rig.pass(1);
        let update = Update::report(lamp(), Document::parse(r#"{"led":"on"}"#).unwrap());
        let update = update.client_token(ClientToken::new("night-shift").unwrap());
        rig.shadows.update(update).await.unwrap();
        rig.pass(1);
        rig.shadows
            .delete_shadow(&lamp(), None, None, None)
            .await
            .unwrap();
        rig.record_all().await;

        let all = changes(&rig, None).await;
        let operations: Vec<Operation> = all.iter().map(|change| change.operation).collect();
        assert_eq!(
            operations,
            [Operation::Remove, Operation::Modify, Operation::Insert]
        );
        assert_eq!(all[1].client_token.as_deref(), Some("night-shift"));
        assert_eq!(all[1].time, start().after(Duration::from_secs(1)));
        let versions: Vec<i64> = all.iter().map(|change| change.version.0).collect();
        assert_eq!(versions, [2, 2, 1]);
        assert_eq!(
            values(&all),
            [
                row("/fan/speed", "1", ""),
                row("/led", "\"on\"", ""),
                row("/led", "\"off\"", "\"on\""),
                row("/fan/speed", "", "1"),
                row("/led", "", "\"off\""),
            ],
            "{layout:?}"
        );
        let led = changes(&rig, Some("/led")).await;
        assert_eq!(
            values(&led),
            [
                row("/led", "\"on\"", ""),
                row("/led", "\"off\"", "\"on\""),
                row("/led", "", "\"off\""),
            ]
        );
    }
}

#[tokio::test]
async fn the_answer_says_why_a_state_is_unknown() {
    let mut rig = Rig::new(Layout::Separate).await;
    rig.pass(10);
    let created = rig.now();
    report(&rig, &lamp(), r#"{"n":0}"#).await;
    rig.pass(10);
    report(&rig, &lamp(), r#"{"n":1}"#).await;
    let second = rig.now();
    rig.record_all().await;
    assert_eq!(state(&rig, start()).await, "did not exist");
    assert_eq!(state(&rig, created).await, r#"{"n":0}"#);
    // A change that is not recorded yet.
    rig.pass(10);
    report(&rig, &lamp(), r#"{"n":2}"#).await;
    rig.pass(10);
    report(&rig, &lamp(), r#"{"n":3}"#).await;
    assert_eq!(state(&rig, rig.now()).await, r#"{"n":3}"#);
    assert_eq!(state(&rig, second).await, "not recorded");
    rig.record_all().await;
    assert_eq!(state(&rig, second).await, r#"{"n":1}"#);
    // Later everything is too old, except the state that never changed since.
    let end = rig.now();
    rig.clock
        .advance(Duration::from_secs(u64::from(DAYS) * 86_400 + 60));
    assert_eq!(state(&rig, second).await, "before the retention");
    assert_eq!(state(&rig, end).await, r#"{"n":3}"#);
    assert!(changes(&rig, None).await.is_empty());
}

#[tokio::test]
async fn states_are_rebuilt_backwards_where_the_start_has_expired() {
    let mut rig = Rig::new(Layout::Separate).await;
    let rest = "x".repeat(2000);
    let document = |n| format!(r#"{{"n":{n},"rest":"{rest}"}}"#);
    report(&rig, &lamp(), &document(0)).await;
    for n in 1..6 {
        rig.pass(100);
        report(&rig, &lamp(), &document(n)).await;
    }
    rig.record_all().await;
    // The entry with the document has expired, and the change after it.
    let kept = Duration::from_secs(u64::from(DAYS) * 86_400);
    let now = start().after(kept).after(Duration::from_secs(150));
    for (seconds, expected) in [(150, Some(1)), (250, Some(2)), (450, Some(4)), (99, None)] {
        let at = start().after(Duration::from_secs(seconds));
        let found = rig.reader.state_at(&lamp(), at, now).await.unwrap();
        match (found, expected) {
            (StateAt::Existed(shadow), Some(n)) => {
                assert_eq!(shadow.reported.unwrap().document.to_string(), document(n));
            }
            (StateAt::BeforeRetention { .. }, None) => {}
            (other, _) => panic!("{seconds}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn after_a_failed_entry_no_later_one_of_the_item_is_written() {
    let mut rig = Rig::new(Layout::Separate).await;
    let fan = ShadowId::new("fan").unwrap();
    for n in 0..3 {
        rig.pass(1);
        report(&rig, &lamp(), &format!(r#"{{"n":{n}}}"#)).await;
        report(&rig, &fan, &format!(r#"{{"n":{n}}}"#)).await;
    }
    let records = rig.records().await;
    // The first entries of both items are written, the second ones are not.
    let throttled = |_| Reply::fail(400, "ProvisionedThroughputExceededException");
    let replies: Vec<Reply> = std::iter::once(Reply::Pass)
        .chain((0..12).map(throttled))
        .collect();
    rig.table.endpoint.script_next("BatchWriteItem", replies);
    let summary = rig.record(&records).await;
    assert_eq!((summary.written, summary.failed), (2, 4), "{summary:?}");
    let third = antumbra_dynamodb::streams::sequence_number(&records[2]);
    assert_eq!(summary.resume_at.as_deref(), Some(third));
    assert_eq!(rig.entries().await.len(), 2);
}

#[tokio::test]
async fn writing_again_changes_nothing() {
    let mut rig = Rig::new(Layout::Combined).await;
    for n in 0..40 {
        rig.pass(1);
        report(&rig, &lamp(), &format!(r#"{{"n":{n}}}"#)).await;
    }
    rig.shadows.delete(Delete::whole(lamp())).await.unwrap();
    let records = rig.records().await;
    let items = async |rig: &Rig| {
        let entries = rig.entries().await;
        let mut items: Vec<String> = entries
            .iter()
            .map(|item| {
                let mut attributes: Vec<String> =
                    item.iter().map(|one| format!("{one:?}")).collect();
                attributes.sort();
                attributes.join(" ")
            })
            .collect();
        items.sort();
        items
    };
    rig.record(&records).await;
    let once = items(&rig).await;
    assert_eq!(once.len(), 41);
    rig.pass(1000);
    rig.record(&records[20..]).await;
    rig.record(&records).await;
    assert_eq!(items(&rig).await, once);
}

#[tokio::test]
async fn a_delete_is_known_by_its_time_before_it_is_recorded() {
    let mut rig = Rig::new(Layout::Separate).await;
    let document = Document::parse(r#"{"led":"on"}"#).unwrap();
    let both = Update::report(lamp(), document.clone()).and_desire(document);
    rig.shadows.update(both).await.unwrap();
    rig.record_all().await;
    // The documents are deleted one after the other.
    let any = Some(ExpectedVersion::Any);
    let mut between = None;
    for (reported, desired) in [(any, None), (None, any)] {
        rig.pass(10);
        let delete = Delete {
            shadow: lamp(),
            reported,
            desired,
            other_version: None,
            time: None,
        };
        rig.shadows.delete(delete).await.unwrap();
        rig.pass(10);
        between.get_or_insert(rig.now());
    }
    let at = async |rig: &Rig| {
        let (id, at) = (lamp(), between.unwrap());
        match rig.reader.state_at(&id, at, rig.now()).await.unwrap() {
            StateAt::Existed(shadow) => Some((shadow.reported.is_some(), shadow.desired.is_some())),
            _ => None,
        }
    };
    assert_eq!(at(&rig).await, Some((false, true)));
    rig.record_all().await;
    assert_eq!(at(&rig).await, Some((false, true)));
}

/// Other programs may write shadows that ours refuse.
#[tokio::test]
async fn a_shadow_with_a_name_that_is_too_long_is_not_recorded_and_blocks_nobody() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    report(&rig, &lamp(), r#"{"n":1}"#).await;
    let name = "n".repeat(300);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let get = rig.table.client.get_item().table_name(&rig.table.name);
    let get = get.key("PK", text("DS#lamp")).key("SK", text("DSR#main"));
    let mut item = get.send().await.unwrap().item.unwrap();
    item.insert("SK".to_owned(), text(&format!("DSR#{name}")));
    let put = rig.table.client.put_item().table_name(&rig.table.name);
    put.set_item(Some(item)).send().await.unwrap();
    let records = rig.records().await;
    let summary = rig.record(&records).await;
    assert_eq!((summary.written, summary.unrecorded), (1, 1), "{summary:?}");
    assert_eq!((summary.failed, summary.resume_at), (0, None));

    // One that is in the feed already.
    let key = HistoryKey {
        id: "lamp".to_owned(),
        name,
        item: ShadowItem::Reported,
        time: u64::try_from(rig.now().nanoseconds()).unwrap(),
        version: 1,
    };
    let entry = Entry {
        key: key.clone(),
        operation: Operation::Insert,
        previous_time: None,
        client_token: None,
        reported: None,
        desired: None,
    };
    let deadline = rig.now().after(Duration::from_secs(30));
    let written = rig.history.write(&[entry], deadline, &*rig.clock).await;
    assert_eq!(written.written, [true]);
    let change = SegmentEntry {
        key,
        change_id: "other".to_owned(),
        operation: Operation::Insert,
    };
    let settings = rig.history.feed_settings().await.unwrap().unwrap();
    let appended = rig
        .history
        .append((&settings, 7), &[change], &*rig.clock)
        .await;
    appended.unwrap();
    report(&rig, &lamp(), r#"{"n":2}"#).await;
    rig.record_all().await;
    let (start, filter) = (FeedStart::Oldest, FeedFilter::default());
    let page = rig.feed.read(&start, 10, Duration::ZERO, &filter).await;
    let page = page.unwrap();
    let versions: Vec<i64> = page
        .changes
        .iter()
        .map(|one| one.change.version.0)
        .collect();
    assert_eq!((versions, page.has_more), (vec![1, 2], false));
}
