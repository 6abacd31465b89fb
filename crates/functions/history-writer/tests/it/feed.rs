//! The change feed: complete and in order, whatever happens to its writers and readers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use antumbra_service::access::IdRanges;
use antumbra_service::history::feed::{
    ChangeDeduplicator, EarlierChanges, FeedChange, FeedError, FeedFilter, FeedPage, FeedStart,
    Pattern, ShadowItem,
};
use antumbra_service::shadows::{Layout, ShadowId, Update};
use antumbra_shadow::{Document, Timestamp};
use antumbra_testkit::dynamodb::Reply;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::rig::{FEED, Rig};

pub(crate) async fn report(rig: &Rig, id: &str, json: &str) {
    let id = ShadowId::new(id).unwrap();
    let update = Update::report(id, Document::parse(json).unwrap());
    assert!(rig.shadows.update(update).await.unwrap().written);
}

async fn page(rig: &Rig, start: &FeedStart, limit: usize) -> FeedPage {
    let all = FeedFilter::default();
    let read = rig.feed.read(start, limit, Duration::ZERO, &all).await;
    read.unwrap()
}

/// Reads up to the end, and returns the changes with the start of what comes later.
pub(crate) async fn read(
    rig: &Rig,
    start: FeedStart,
    filter: &FeedFilter,
) -> (Vec<FeedChange>, FeedStart) {
    let (mut start, mut changes) = (start, Vec::new());
    loop {
        let page = rig.feed.read(&start, 3, Duration::ZERO, filter).await;
        let page = page.unwrap();
        changes.extend(page.changes);
        start = FeedStart::parse(&page.cursor.0);
        if !page.has_more {
            return (changes, start);
        }
    }
}

pub(crate) async fn all(rig: &Rig, start: FeedStart) -> Vec<FeedChange> {
    read(rig, start, &FeedFilter::default()).await.0
}

pub(crate) fn ids(changes: &[FeedChange]) -> Vec<&str> {
    changes.iter().map(|change| change.shadow.id()).collect()
}

/// The first appearances of changes are in order per document, and a change that comes again has the same content.
fn assert_in_order(changes: &[FeedChange]) {
    let mut seen: BTreeMap<&str, &FeedChange> = BTreeMap::new();
    let mut newest: BTreeMap<(&ShadowId, ShadowItem), (Timestamp, i64)> = BTreeMap::new();
    for change in changes {
        if let Some(before) = seen.insert(&change.id, change) {
            assert_eq!(before, change);
            continue;
        }
        let place = (change.change.time, change.change.version.0);
        let before = newest.insert((&change.shadow, change.item), place);
        let version = before.map_or(0, |(time, version)| {
            assert!(time < place.0, "{change:?}");
            version
        });
        assert_eq!(place.1, version + 1, "a gap before {change:?}");
    }
}

/// The one partition of a feed.
async fn reserve_number(rig: &Rig) {
    let key = |name: &str| AttributeValue::S(name.to_owned());
    let update = rig.table.client.update_item();
    let update = update.table_name(&rig.history_table);
    let update = update
        .key("PK", key("FEED#0"))
        .key("SK", key("COUNTER"))
        .update_expression("ADD #last :one")
        .expression_attribute_names("#last", "last")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
    update.send().await.unwrap();
}

/// Deletes expired segments, as DynamoDB does some time after the expiry.
pub(crate) async fn delete_expired(rig: &Rig) {
    for segment in segments(rig).await {
        let ttl: i128 = segment["ttl"].as_n().unwrap().parse().unwrap();
        if ttl * 1_000_000_000 <= rig.now().nanoseconds() {
            delete(rig, &segment).await;
        }
    }
}

async fn delete(rig: &Rig, item: &HashMap<String, AttributeValue>) {
    let delete = rig.table.client.delete_item();
    let delete = delete.table_name(&rig.history_table);
    let delete = delete.key("PK", item["PK"].clone());
    delete.key("SK", item["SK"].clone()).send().await.unwrap();
}

async fn segments(rig: &Rig) -> Vec<HashMap<String, AttributeValue>> {
    let scan = rig.table.client.scan().table_name(&rig.history_table);
    let items = scan.send().await.unwrap().items.unwrap();
    let is_segment =
        |item: &HashMap<String, AttributeValue>| item["SK"].as_s().unwrap().starts_with("SEGMENT#");
    items.into_iter().filter(is_segment).collect()
}

#[tokio::test]
async fn the_feed_has_every_change_with_its_values() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        let empty = page(&rig, &FeedStart::Now, 10).await;
        assert!(empty.changes.is_empty() && !empty.has_more);
        report(&rig, "lamp-1", r#"{"led":"off","fan":{"speed":1}}"#).await;
        rig.pass(1);
        report(&rig, "lamp-1", r#"{"led":"on"}"#).await;
        report(&rig, "door-1", r#"{"open":[1,{"by":"x"}]}"#).await;
        rig.pass(1);
        let lamp = ShadowId::new("lamp-1").unwrap();
        let delete = rig.shadows.delete_shadow(&lamp, None, None, None);
        delete.await.unwrap();
        rig.record_all().await;
        // The position before the first change, of a feed that did not exist then.
        let start = FeedStart::parse(&empty.cursor.0);
        let changes = all(&rig, start.clone()).await;
        let lamps: Vec<String> = changes
            .iter()
            .filter(|change| change.shadow == lamp)
            .map(|change| {
                let values = change.change.documents.iter();
                let values = values.flat_map(|document| document.values.clone().unwrap());
                let value = |value: Option<String>| value.unwrap_or_default();
                let values = values.map(|leaf| {
                    format!("{} {}>{}", leaf.pointer, value(leaf.old), value(leaf.new))
                });
                let values: Vec<String> = values.collect();
                format!("{} {}", change.change.operation.as_str(), values.join(" "))
            })
            .collect();
        assert_eq!(
            lamps,
            [
                r#"insert /fan/speed >1 /led >"off""#,
                r#"modify /led "off">"on""#,
                r#"remove /fan/speed 1> /led "on">"#,
            ],
            "{layout:?}"
        );
        let unique: BTreeSet<&str> = changes.iter().map(|change| &change.id[..]).collect();
        assert_eq!((unique.len(), changes.len()), (4, 4));

        for (pattern, expected) in [
            (r#"{"new":{"led":["on"]}}"#, &["lamp-1"][..]),
            (r#"{"old":{"fan":{"speed":[1]}}}"#, &["lamp-1"]),
            (r#"{"new":{"fan":[{"exists":true}]}}"#, &[]),
            (r#"{"new":{"open":{"by":["x"]}}}"#, &["door-1"]),
            (
                r#"{"diff":{"updated":{"/led":{"new":["on"]}}}}"#,
                &["lamp-1"],
            ),
            (r#"{"operation":["insert"],"id":["door-1"]}"#, &["door-1"]),
            (r#"{"state":["desired"]}"#, &[]),
        ] {
            let filter = FeedFilter {
                pattern: Some(Pattern::of_change(pattern).unwrap()),
                ..FeedFilter::default()
            };
            let found = read(&rig, start.clone(), &filter).await.0;
            assert_eq!(ids(&found), expected, "{layout:?} {pattern}");
        }
        let doors = FeedFilter {
            ids: IdRanges::starting_with("door-"),
            ..FeedFilter::default()
        };
        let (found, end) = read(&rig, start.clone(), &doors).await;
        assert_eq!(ids(&found), ["door-1"]);
        // What was filtered does not come again.
        assert!(all(&rig, end).await.is_empty());
        let other = FeedFilter {
            name: Some("other".to_owned()),
            ..FeedFilter::default()
        };
        assert!(read(&rig, start, &other).await.0.is_empty());
    }
}

#[tokio::test]
async fn readers_start_at_the_oldest_change_at_a_time_or_now() {
    let mut rig = Rig::new(Layout::Separate).await;
    for hour in 0..4 {
        report(&rig, &format!("hour-{hour}"), r#"{"n":1}"#).await;
        rig.record_all().await;
        rig.pass(3600);
    }
    let oldest = all(&rig, FeedStart::Oldest).await;
    assert_eq!(ids(&oldest), ["hour-0", "hour-1", "hour-2", "hour-3"]);
    let since = Timestamp::from_nanoseconds(rig.now().nanoseconds() - 7_300_000_000_000);
    let since = all(&rig, FeedStart::Since(since)).await;
    assert_eq!(ids(&since), ["hour-2", "hour-3"]);
    let (none, now) = read(&rig, FeedStart::Now, &FeedFilter::default()).await;
    assert!(none.is_empty());
    report(&rig, "later", r#"{"n":1}"#).await;
    rig.record_all().await;
    assert_eq!(ids(&all(&rig, now).await), ["later"]);
    let (malformed, filter) = (FeedStart::parse("bm9uc2Vuc2U"), FeedFilter::default());
    let read = rig.feed.read(&malformed, 1, Duration::ZERO, &filter);
    assert_eq!(read.await, Err(FeedError::InvalidCursor));
}

#[tokio::test]
async fn a_reader_that_stops_anywhere_misses_nothing() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut rig = Rig::new(Layout::Separate).await;
    let (mut start, mut written) = (FeedStart::Oldest, 0);
    let (mut read, mut kept) = (Vec::new(), 0);
    let mut newer = ChangeDeduplicator::default();
    for _ in 0..12 {
        for _ in 0..random.usize(1..12) {
            rig.pass(1);
            let id = format!("lamp-{}", random.u8(0..5));
            written += 1;
            report(&rig, &id, &format!(r#"{{"n":{written}}}"#)).await;
        }
        // Batches that come again, from their start or from the middle, as after a failure of the response.
        let records = rig.records().await;
        rig.record(&records).await;
        if random.bool() {
            rig.record(&records[random.usize(0..records.len())..]).await;
        }
        // A reader that gets pages of any size, and restarts from any cursor that it had.
        for _ in 0..random.usize(0..8) {
            let page = page(&rig, &start, random.usize(1..6)).await;
            if random.u8(0..4) > 0 {
                start = FeedStart::parse(&page.cursor.0);
            }
            kept += page.changes.iter().filter(|one| newer.is_new(one)).count();
            read.extend(page.changes);
        }
    }
    let rest = all(&rig, start).await;
    kept += rest.iter().filter(|one| newer.is_new(one)).count();
    read.extend(rest);
    assert_in_order(&read);
    let unique: BTreeSet<&str> = read.iter().map(|change| &change.id[..]).collect();
    assert!(read.len() > unique.len(), "no change came again");
    assert_eq!((unique.len(), kept), (written, written));
}

#[tokio::test]
async fn an_empty_number_is_passed_only_when_nobody_can_write_it() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    report(&rig, "lamp", r#"{"n":1}"#).await;
    rig.record_all().await;
    let (first, start) = read(&rig, FeedStart::Oldest, &FeedFilter::default()).await;
    assert_eq!(first.len(), 1);
    // A writer reserves a number and is slow; another one is faster.
    let slow = segments(&rig).await.remove(0);
    reserve_number(&rig).await;
    report(&rig, "fan", r#"{"n":1}"#).await;
    rig.record_all().await;
    rig.pass(40);
    assert_eq!(all(&rig, start.clone()).await, []);
    // In time: its changes come first.
    let mut late = slow.clone();
    let sort = "SEGMENT#00000000000000000002".to_owned();
    late.insert("SK".to_owned(), AttributeValue::S(sort));
    let put = rig.table.client.put_item().table_name(&rig.history_table);
    put.set_item(Some(late.clone())).send().await.unwrap();
    assert_eq!(ids(&all(&rig, start.clone()).await), ["lamp", "fan"]);
    // Never: it is passed after 40 seconds.
    delete(&rig, &late).await;
    assert_eq!(all(&rig, start.clone()).await, []);
    rig.clock.advance(Duration::from_millis(1));
    assert_eq!(ids(&all(&rig, start).await), ["fan"]);
}

#[tokio::test]
async fn a_cursor_behind_which_changes_expired_is_refused_with_the_oldest_one() {
    for is_deleted in [false, true] {
        let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
        report(&rig, "first", r#"{"n":1}"#).await;
        rig.record_all().await;
        let end = page(&rig, &FeedStart::Oldest, 10).await.cursor;
        let old = page(&rig, &FeedStart::Oldest, 10).await;
        assert_eq!(ids(&old.changes), ["first"]);
        for n in 0..3 {
            report(&rig, &format!("old-{n}"), r#"{"n":1}"#).await;
            rig.record_all().await;
        }
        let week = u64::from(FEED.days) * 86_400;
        rig.pass(week - 100);
        report(&rig, "new", r#"{"n":1}"#).await;
        rig.record_all().await;
        // All is there until the last second, also for a reader that did not come for a week.
        let start = FeedStart::parse(&end.0);
        assert_eq!(all(&rig, start.clone()).await.len(), 4);
        let quiet = page(&rig, &FeedStart::Now, 10).await.cursor;
        rig.pass(200);
        if is_deleted {
            delete_expired(&rig).await;
        }
        let filter = FeedFilter::default();
        let read = rig.feed.read(&start, 10, Duration::ZERO, &filter).await;
        let Err(FeedError::Expired { oldest }) = read else {
            panic!("{is_deleted}: {read:?}");
        };
        assert_eq!(ids(&all(&rig, FeedStart::parse(&oldest.0)).await), ["new"]);
        assert_eq!(ids(&all(&rig, FeedStart::Oldest).await), ["new"]);
        // A reader that has read everything is never too late.
        rig.pass(10 * week);
        let quiet = FeedStart::parse(&quiet.0);
        assert!(all(&rig, quiet.clone()).await.is_empty());
        report(&rig, "newer", r#"{"n":1}"#).await;
        rig.record_all().await;
        assert_eq!(ids(&all(&rig, quiet).await), ["newer"]);
    }
}

#[tokio::test]
async fn lowering_feed_days_expires_a_cursor_once() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    // The first number is empty, as one that has expired.
    reserve_number(&rig).await;
    report(&rig, "week", r#"{"n":1}"#).await;
    rig.record_all().await;
    let writer = rig.writer_with(Some(antumbra_dynamodb::FeedConfig {
        days: 1,
        partitions: 1,
    }));
    for id in ["day", "late"] {
        report(&rig, id, r#"{"n":1}"#).await;
        let records = rig.records().await;
        rig.record_with(&writer, &records).await;
        rig.pass(86_000);
    }
    // The second change has expired, the first one has not.
    let page = page(&rig, &FeedStart::Oldest, 10).await;
    assert_eq!(ids(&page.changes), ["week"]);
    let (start, filter) = (FeedStart::parse(&page.cursor.0), FeedFilter::default());
    let read = rig.feed.read(&start, 10, Duration::ZERO, &filter).await;
    let Err(FeedError::Expired { oldest }) = read else {
        panic!("{read:?}");
    };
    assert_eq!(ids(&all(&rig, FeedStart::parse(&oldest.0)).await), ["late"]);
}

#[tokio::test]
async fn a_batch_that_is_too_large_for_one_segment_is_several_in_order() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    let padding = "i".repeat(1000);
    for n in 0..330 {
        rig.clock.advance(Duration::from_millis(1));
        report(
            &rig,
            &format!("{padding}{}", n % 110),
            &format!(r#"{{"n":{n}}}"#),
        )
        .await;
    }
    let records = rig.records().await;
    let summary = rig.record(&records).await;
    assert_eq!((summary.written, summary.not_appended), (330, 0));
    assert_eq!(segments(&rig).await.len(), 2);
    let changes = all(&rig, FeedStart::Oldest).await;
    assert_eq!(changes.len(), 330);
    assert_in_order(&changes);
}

#[tokio::test]
async fn writers_at_the_same_time_lose_nothing() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    for n in 0..40 {
        rig.pass(1);
        report(&rig, &format!("lamp-{}", n % 8), &format!(r#"{{"n":{n}}}"#)).await;
    }
    let records = rig.records().await;
    // As from two shards: each writer has its own documents, and starts the feed if it is the first.
    let shard = |which: usize| {
        let records = records.iter().enumerate();
        let records = records.filter(|(n, _)| n % 2 == which);
        records
            .map(|(_, record)| record.clone())
            .collect::<Vec<_>>()
    };
    let (even, odd) = (shard(0), shard(1));
    let other = rig.another_writer();
    tokio::join!(
        async {
            for batch in even.chunks(3) {
                rig.record(batch).await;
            }
        },
        async {
            for batch in odd.chunks(3) {
                rig.record_with(&other, batch).await;
            }
        },
    );
    let changes = all(&rig, FeedStart::Oldest).await;
    assert_eq!(changes.len(), 40);
    assert_in_order(&changes);
    let numbers: BTreeSet<String> = segments(&rig)
        .await
        .iter()
        .map(|segment| segment["SK"].as_s().unwrap().clone())
        .collect();
    assert_eq!(numbers.len(), 14);
}

#[tokio::test]
async fn changes_are_in_the_feed_only_when_their_entries_are_written() {
    let mut rig = Rig::with_partitions(Layout::Separate, 1).await;
    for n in 0..3 {
        rig.pass(1);
        report(&rig, "lamp", &format!(r#"{{"n":{n}}}"#)).await;
        report(&rig, "fan", &format!(r#"{{"n":{n}}}"#)).await;
    }
    let records = rig.records().await;
    // The first entries of both documents are written, the second ones are not.
    let throttled = |_| Reply::fail(400, "ProvisionedThroughputExceededException");
    let replies = (0..12).map(throttled);
    let replies: Vec<Reply> = std::iter::once(Reply::Pass).chain(replies).collect();
    rig.table.endpoint.script_next("BatchWriteItem", replies);
    let summary = rig.record(&records).await;
    assert_eq!((summary.written, summary.failed), (2, 4), "{summary:?}");
    rig.table.endpoint.script(|_| Reply::Pass);
    let (changes, start) = read(&rig, FeedStart::Oldest, &FeedFilter::default()).await;
    assert_eq!(ids(&changes), ["lamp", "fan"]);
    rig.record(&records[2..]).await;
    assert_eq!(ids(&all(&rig, start).await), ["lamp", "fan", "lamp", "fan"]);

    // A segment that is not written: the whole batch comes again, and its number stays empty.
    report(&rig, "door", r#"{"n":1}"#).await;
    let records = rig.records().await;
    let replies: Vec<Reply> = (0..12).map(throttled).collect();
    rig.table.endpoint.script_next("PutItem", replies);
    let summary = rig.record(&records).await;
    assert_eq!(
        (summary.written, summary.not_appended),
        (1, 1),
        "{summary:?}"
    );
    let first = antumbra_dynamodb::streams::sequence_number(&records[0]);
    assert_eq!(summary.resume_at.as_deref(), Some(first));
    rig.table.endpoint.script(|_| Reply::Pass);
    rig.record(&records).await;
    rig.pass(41);
    let changes = all(&rig, FeedStart::Oldest).await;
    assert_eq!(changes.len(), 7);
    assert_in_order(&changes);
}

#[tokio::test]
async fn a_reader_waits_for_a_change() {
    let mut rig = Rig::new(Layout::Separate).await;
    report(&rig, "lamp", r#"{"n":1}"#).await;
    rig.record_all().await;
    let (_, end) = read(&rig, FeedStart::Oldest, &FeedFilter::default()).await;
    let (before, filter) = (rig.now(), FeedFilter::default());
    let wait = Duration::from_secs(20);
    let page = rig.feed.read(&end, 10, wait, &filter).await.unwrap();
    assert!(page.changes.is_empty());
    assert_eq!(rig.now(), before.after(wait));
    // At once where there is one.
    let page = rig.feed.read(&FeedStart::Oldest, 10, wait, &filter).await;
    assert_eq!(page.unwrap().changes.len(), 1);
    assert_eq!(rig.now(), before.after(wait));
    // A restart of the writers with other settings changes nothing for readers.
    let writer = rig.writer_with(Some(antumbra_dynamodb::FeedConfig {
        days: 3,
        partitions: 9,
    }));
    report(&rig, "lamp", r#"{"n":2}"#).await;
    let records = rig.records().await;
    rig.record_with(&writer, &records).await;
    assert_eq!(ids(&all(&rig, end).await), ["lamp"]);
    // Without a feed only the history is written.
    let writer = rig.writer_with(None);
    report(&rig, "lamp", r#"{"n":3}"#).await;
    let records = rig.records().await;
    rig.record_with(&writer, &records).await;
    assert_eq!(all(&rig, FeedStart::Oldest).await.len(), 2);
}

#[tokio::test]
async fn the_feed_is_read_backwards_without_a_gap() {
    for partitions in [1, 4] {
        let mut rig = Rig::with_partitions(Layout::Separate, partitions).await;
        let none = rig.feed.before(&FeedStart::Now, 10).await.unwrap();
        assert_eq!(none, EarlierChanges::default());
        // More segments in a partition than one page reads, of one change and of several.
        for round in 0..130 {
            for device in 0..(1 + round % 3) {
                report(
                    &rig,
                    &format!("lamp-{device}"),
                    &format!("{{\"n\":{round}}}"),
                )
                .await;
            }
            rig.pass(1);
            rig.record_all().await;
        }
        let mut forwards: Vec<String> = all(&rig, FeedStart::Oldest)
            .await
            .into_iter()
            .map(|change| change.id)
            .collect();
        let mut backwards = Vec::new();
        let mut start = FeedStart::Now;
        loop {
            let page = rig.feed.before(&start, 43).await.unwrap();
            assert_eq!(page.kept_days, FEED.days);
            let times = page.changes.windows(2);
            let mut times = times.map(|two| two[0].change.time >= two[1].change.time);
            assert!(times.all(|newest_first| newest_first));
            assert!(page.changes.len() <= 43);
            backwards.extend(page.changes.into_iter().map(|change| change.id));
            match page.before {
                // Forwards from there, the same changes come again.
                Some(cursor) => {
                    let rest = all(&rig, FeedStart::At(cursor.clone())).await;
                    assert_eq!(rest.len(), backwards.len());
                    start = FeedStart::At(cursor);
                }
                None => break,
            }
        }
        forwards.sort();
        backwards.sort();
        assert_eq!(forwards.len(), 260 - 1);
        assert_eq!(backwards, forwards, "{partitions} partitions");
        // What has expired is not read.
        rig.clock.advance(Duration::from_secs(8 * 24 * 3600));
        let page = rig.feed.before(&FeedStart::Now, 10).await.unwrap();
        assert_eq!((page.changes.len(), page.before), (0, None));
        let forged = FeedStart::parse("forged");
        let forged = rig.feed.before(&forged, 10).await;
        assert_eq!(forged, Err(FeedError::InvalidCursor));
    }
}
