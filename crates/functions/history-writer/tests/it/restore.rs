//! After a table was restored to an earlier time: nobody continues in the change feed behind changes that were not read, and
//! no state is that of another time.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use antumbra_service::history::feed::{FeedError, FeedFilter, FeedPage, FeedStart};
use antumbra_service::shadows::{Layout, ShadowId, Update};
use antumbra_shadow::Document;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::rig::Rig;
use crate::writer::{lamp, report, state};

type Item = HashMap<String, AttributeValue>;

async fn items_of(rig: &Rig, table: &str) -> Vec<Item> {
    let scan = rig.table.client.scan().table_name(table);
    scan.send().await.unwrap().items.unwrap()
}

async fn items(rig: &Rig) -> Vec<Item> {
    items_of(rig, &rig.history_table).await
}

/// Gives the history table the items that it had.
async fn restore(rig: &Rig, before: &[Item]) {
    restore_table(rig, &rig.history_table, before).await;
}

/// Gives a table the items that it had, as a point-in-time restore does.
async fn restore_table(rig: &Rig, table: &str, before: &[Item]) {
    for item in items_of(rig, table).await {
        let delete = rig.table.client.delete_item();
        let delete = delete.table_name(table);
        let delete = delete
            .key("PK", item["PK"].clone())
            .key("SK", item["SK"].clone());
        delete.send().await.unwrap();
    }
    for item in before {
        let put = rig.table.client.put_item().table_name(table);
        put.set_item(Some(item.clone())).send().await.unwrap();
    }
    // A restore takes minutes at least.
    rig.pass(300);
}

/// Records changes of shadows of these numbers, each in a batch of its own.
async fn record(rig: &mut Rig, numbers: std::ops::Range<u32>) {
    for number in numbers {
        rig.pass(1);
        let id = ShadowId::new(format!("lamp-{number}")).unwrap();
        let document = Document::parse(r#"{"led":"on"}"#).unwrap();
        rig.shadows
            .update(Update::report(id, document))
            .await
            .unwrap();
        rig.record_all().await;
    }
}

async fn page(rig: &Rig, start: &FeedStart, limit: usize) -> Result<FeedPage, FeedError> {
    let all = FeedFilter::default();
    rig.feed.read(start, limit, Duration::ZERO, &all).await
}

/// Ids of all changes from a position on, and the position behind them.
async fn read(rig: &Rig, start: FeedStart) -> Result<(BTreeSet<String>, FeedStart), FeedError> {
    let (mut start, mut found) = (start, BTreeSet::new());
    loop {
        let page = page(rig, &start, 3).await?;
        let ids = page.changes.iter().map(|change| change.shadow.id());
        found.extend(ids.map(str::to_owned));
        start = FeedStart::parse(&page.cursor.0);
        if !page.has_more {
            return Ok((found, start));
        }
    }
}

fn lamps(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    let numbers = numbers.into_iter();
    numbers.map(|number| format!("lamp-{number}")).collect()
}

#[tokio::test]
async fn a_cursor_from_after_the_restored_time_is_answered_with_the_oldest() {
    // Numbers of changes that are recorded after the restore: fewer than were lost, as many, and more.
    for again in [0, 1, 10, 20] {
        let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
        record(&mut rig, 0..5).await;
        let early = page(&rig, &FeedStart::Oldest, 2).await.unwrap().cursor;
        let (_, kept) = read(&rig, FeedStart::Oldest).await.unwrap();
        let before = items(&rig).await;
        record(&mut rig, 5..15).await;
        let (_, late) = read(&rig, FeedStart::Oldest).await.unwrap();

        restore(&rig, &before).await;
        record(&mut rig, 15..15 + again).await;
        let new = 15..15 + again;
        let Err(FeedError::Expired { oldest }) = page(&rig, &late, 3).await else {
            panic!("{again}: changes are skipped");
        };
        let (found, after) = read(&rig, FeedStart::At(oldest)).await.unwrap();
        assert_eq!(found, lamps((0..5).chain(new.clone())), "{again}");
        assert_eq!(read(&rig, after).await.unwrap().0, lamps([]));

        // Positions that the restored table has continue.
        assert_eq!(read(&rig, kept).await.unwrap().0, lamps(new.clone()));
        let early = FeedStart::parse(&early.0);
        let (found, _) = read(&rig, early).await.unwrap();
        assert_eq!(found, lamps((2..5).chain(new)), "{again}");
    }
}

/// A reader that stopped between the changes of one batch.
#[tokio::test]
async fn a_cursor_within_a_lost_segment_is_answered_with_the_oldest() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    record(&mut rig, 0..1).await;
    let before = items(&rig).await;
    let batch = async |rig: &mut Rig, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let id = ShadowId::new(format!("lamp-{number}")).unwrap();
            let document = Document::parse(r#"{"led":"on"}"#).unwrap();
            let update = Update::report(id, document);
            rig.shadows.update(update).await.unwrap();
        }
        rig.record_all().await;
    };
    batch(&mut rig, 1..5).await;
    let within = page(&rig, &FeedStart::Oldest, 3).await.unwrap().cursor;
    let within = FeedStart::parse(&within.0);
    assert_eq!(page(&rig, &within, 9).await.unwrap().changes.len(), 2);
    restore(&rig, &before).await;
    assert!(page(&rig, &within, 9).await.is_err());
    batch(&mut rig, 5..9).await;
    assert!(page(&rig, &within, 9).await.is_err());
}

/// A cursor of the end, before and after changes, is no cursor of another table.
#[tokio::test]
async fn cursors_stay_valid_without_a_restore() {
    let mut rig = Rig::with_partitions(Layout::Separate, 4).await;
    record(&mut rig, 0..1).await;
    let mut cursor = page(&rig, &FeedStart::Now, 10).await.unwrap().cursor;
    for number in 1..20 {
        let start = FeedStart::parse(&cursor.0);
        assert_eq!(read(&rig, start.clone()).await.unwrap().0, lamps([]));
        record(&mut rig, number..number + 1).await;
        let (found, next) = read(&rig, start).await.unwrap();
        assert_eq!(found, lamps([number]));
        let FeedStart::At(next) = next else {
            panic!("{next:?}");
        };
        cursor = next;
        rig.pass(u64::from(number) * 60);
    }
}

#[tokio::test]
async fn a_restored_document_is_not_the_state_of_later_times() {
    for layout in [Layout::Separate, Layout::Combined] {
        for is_deleted in [false, true] {
            let mut rig = Rig::new(layout).await;
            let write = async |rig: &Rig, n: u32| {
                rig.pass(10);
                report(rig, &lamp(), &format!(r#"{{"n":{n}}}"#)).await;
            };
            write(&rig, 1).await;
            let first = rig.now();
            if is_deleted {
                rig.pass(10);
                let id = lamp();
                let deleted = rig.shadows.delete_shadow(&id, None, None, None);
                deleted.await.unwrap();
            }
            let kept = rig.now();
            let before = items_of(&rig, &rig.table.name).await;
            write(&rig, 2).await;
            let second = rig.now();
            write(&rig, 3).await;
            let third = rig.now();
            rig.record_all().await;
            restore_table(&rig, &rig.table.name, &before).await;
            // A restored table has another stream.
            rig.records().await;

            let case = format!("{layout:?} {is_deleted}");
            let restored = match is_deleted {
                true => "did not exist",
                false => r#"{"n":1}"#,
            };
            assert_eq!(state(&rig, first).await, r#"{"n":1}"#, "{case}");
            assert_eq!(state(&rig, kept).await, restored, "{case}");
            assert_eq!(state(&rig, second).await, r#"{"n":2}"#, "{case}");
            // Nothing tells the time of the restore.
            assert_eq!(state(&rig, third).await, "not recorded", "{case}");
            assert_eq!(state(&rig, rig.now()).await, restored, "{case}");
            write(&rig, 4).await;
            rig.record_all().await;
            assert_eq!(state(&rig, second).await, r#"{"n":2}"#, "{case}");
            assert_eq!(state(&rig, third).await, "not recorded", "{case}");
            assert_eq!(state(&rig, rig.now()).await, r#"{"n":4}"#, "{case}");
        }
    }
}
