//! Cursors of the change feed, and pages of bounded size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antumbra_service::history::feed::{FeedError, FeedFilter, FeedStart, Pattern};
use antumbra_service::shadows::Layout;
use antumbra_testkit::dynamodb::Reply;
use antumbra_wire::history::{HistoryKey, Operation, SegmentEntry};
use antumbra_wire::items::ShadowItem;

use crate::feed::{all, delete_expired, ids, read, report};
use crate::rig::{FEED, Rig};

const DAY: u64 = 86_400;

fn pattern(pattern: &str) -> FeedFilter {
    FeedFilter {
        pattern: Some(Pattern::of_change(pattern).unwrap()),
        ..FeedFilter::default()
    }
}

/// The cursor of a refusal.
async fn oldest(rig: &Rig, start: &FeedStart) -> FeedStart {
    let filter = FeedFilter::default();
    let read = rig.feed.read(start, 10, Duration::ZERO, &filter).await;
    match read {
        Err(FeedError::Expired { oldest }) => FeedStart::At(oldest),
        read => panic!("{read:?}"),
    }
}

#[tokio::test]
async fn changes_that_expire_behind_the_oldest_cursor_are_not_passed_silently() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    report(&rig, "before", r#"{"n":1}"#).await;
    rig.record_all().await;
    let (_, start) = read(&rig, FeedStart::Now, &FeedFilter::default()).await;
    for id in ["first", "second"] {
        report(&rig, id, r#"{"n":1}"#).await;
        rig.record_all().await;
        rig.pass(DAY);
    }
    rig.pass(u64::from(FEED.days) * DAY - 2 * DAY + 100);
    delete_expired(&rig).await;
    let start = oldest(&rig, &start).await;
    assert_eq!(ids(&all(&rig, start.clone()).await), ["second"]);
    rig.pass(DAY);
    delete_expired(&rig).await;
    report(&rig, "third", r#"{"n":1}"#).await;
    rig.record_all().await;
    rig.pass(41);
    let start = oldest(&rig, &start).await;
    assert_eq!(ids(&all(&rig, start).await), ["third"]);
}

#[tokio::test]
async fn a_pattern_that_matches_little_loads_a_hundred_changes_at_a_time() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    for n in 0..250 {
        report(&rig, &format!("lamp-{n}"), &format!(r#"{{"n":{n}}}"#)).await;
    }
    rig.record_all().await;
    rig.table.endpoint.take_calls();
    let last = pattern(r#"{"new":{"n":[249]}}"#);
    let (start, wait) = (FeedStart::Oldest, Duration::ZERO);
    let page = rig.feed.read(&start, 1, wait, &last).await.unwrap();
    assert_eq!(ids(&page.changes), ["lamp-249"]);
    let calls = rig.table.endpoint.take_operations();
    let loads = calls.iter().filter(|call| *call == "BatchGetItem");
    assert_eq!(loads.count(), 4, "{calls:?}");

    // What is loaded and not returned comes with the next page.
    let some = pattern(r#"{"new":{"n":[{"numeric":[">",95,"<",110]}]}}"#);
    let (found, end) = read(&rig, FeedStart::Oldest, &some).await;
    let expected: Vec<String> = (96..110).map(|n| format!("lamp-{n}")).collect();
    assert_eq!(ids(&found), expected);
    assert!(all(&rig, end).await.is_empty());
}

/// Appends changes whose entries were purged.
async fn append_purged(rig: &Rig, count: u64) {
    let change = |n: u64| SegmentEntry {
        key: HistoryKey {
            id: format!("lamp-{n}"),
            name: "main".to_owned(),
            item: ShadowItem::Reported,
            time: 1_700_000_000_000_000_000 + n,
            version: 1,
        },
        change_id: n.to_string(),
        operation: Operation::Insert,
    };
    let changes: Vec<SegmentEntry> = (0..count).map(change).collect();
    let settings = rig.history.ensure_feed(FEED, rig.now()).await.unwrap();
    for batch in changes.chunks(500) {
        let feed = (&settings, FEED.days);
        let appended = rig.history.append(feed, batch, &*rig.clock).await;
        appended.unwrap();
    }
}

#[tokio::test]
async fn a_page_of_the_feed_ends_after_a_thousand_changes_or_five_seconds() {
    for is_slow in [false, true] {
        let mut rig = Rig::new(Layout::Separate).await;
        append_purged(&rig, 2500).await;
        rig.pass(1);
        report(&rig, "last", r#"{"n":1}"#).await;
        rig.record_all().await;
        let loads = Arc::new(AtomicUsize::new(0));
        let (seen, clock) = (Arc::clone(&loads), Arc::clone(&rig.clock));
        rig.table.endpoint.script(move |call| {
            if call.operation == "BatchGetItem" {
                seen.fetch_add(1, Ordering::SeqCst);
                if is_slow {
                    clock.advance(Duration::from_secs(1));
                }
            }
            Reply::Pass
        });
        let (mut start, filter) = (FeedStart::Oldest, FeedFilter::default());
        let mut pages = 0;
        let page = loop {
            let page = rig.feed.read(&start, 1, Duration::ZERO, &filter).await;
            let page = page.unwrap();
            pages += 1;
            // Each load is repeated, as nothing is found; the cursor is checked before.
            let most = if is_slow { 8 } else { 24 };
            assert!(loads.swap(0, Ordering::SeqCst) <= most, "{pages}");
            if !page.has_more {
                break page;
            }
            assert_eq!(page.changes, [], "{pages}");
            start = FeedStart::parse(&page.cursor.0);
        };
        assert!(pages > 2, "{pages}");
        assert_eq!(ids(&page.changes), ["last"]);
    }
}
