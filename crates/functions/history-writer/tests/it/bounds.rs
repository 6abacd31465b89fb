//! Reads of the history: few calls, whatever has expired and however large the entries are.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbHistory, HistoryConfig};
use antumbra_service::history::ChangeQuery;
use antumbra_service::shadows::{Layout, Update};
use antumbra_shadow::Document;
use antumbra_wire::history::{Entry, EntryDocument, HistoryKey, Operation};
use antumbra_wire::items::ShadowItem;

use crate::rig::{DAYS, Rig, start};
use crate::writer::{lamp, report, state};

/// Writes entries of a document, one a second.
async fn write(
    rig: &Rig,
    history: &DynamoDbHistory,
    count: u64,
    document: impl Fn(u64) -> Document,
) {
    let time = |n: u64| {
        let time = start().after(Duration::from_secs(n));
        u64::try_from(time.nanoseconds()).unwrap()
    };
    let entry = |n: u64| Entry {
        key: HistoryKey {
            id: "lamp".to_owned(),
            name: "main".to_owned(),
            item: ShadowItem::Reported,
            time: time(n),
            version: n + 1,
        },
        operation: match n {
            0 => Operation::Insert,
            _ => Operation::Modify,
        },
        previous_time: n.checked_sub(1).map(time),
        client_token: None,
        reported: Some(EntryDocument {
            diff: None,
            document: Some(document(n)),
        }),
        desired: None,
    };
    let entries: Vec<Entry> = (0..count).map(entry).collect();
    let deadline = rig.now().after(Duration::from_secs(30));
    let written = history.write(&entries, deadline, &*rig.clock).await;
    assert!(written.written.iter().all(|written| *written));
}

fn queries(rig: &Rig) -> usize {
    let calls = rig.table.endpoint.take_operations();
    calls.iter().filter(|call| *call == "Query").count()
}

fn all_changes() -> ChangeQuery {
    ChangeQuery {
        shadow: lamp(),
        from: None,
        to: None,
        path: None,
    }
}

#[tokio::test]
async fn expired_entries_that_are_not_deleted_yet_take_few_calls() {
    // Entries that were kept for fewer days than those of today are passed in pages.
    for (days, most) in [(DAYS, 4), (1, 8)] {
        let rig = Rig::new(Layout::Separate).await;
        let config = HistoryConfig {
            table: rig.history_table.clone(),
            days,
        };
        let history = DynamoDbHistory::new(rig.table.client.clone(), config);
        let document = |n: u64| Document::parse(&format!(r#"{{"n":{n}}}"#)).unwrap();
        write(&rig, &history, 120, document).await;
        rig.pass(u64::from(days) * 86_400 + 120);
        rig.table.endpoint.take_calls();
        assert_eq!(state(&rig, start()).await, "did not exist");
        let count = queries(&rig);
        assert!(count <= most, "{count}");
        let query = all_changes();
        let page = rig.reader.changes(&query, 1, None, rig.now()).await;
        let page = page.unwrap();
        assert_eq!((page.rows, page.next), (vec![], None));
        assert_eq!(queries(&rig), 2);
    }
}

#[tokio::test]
async fn a_page_of_large_changes_reads_no_more_than_it_returns() {
    let rig = Rig::new(Layout::Separate).await;
    let mut random = fastrand::Rng::with_seed(1);
    let values: Vec<String> = (0..80)
        .map(|_| (0..100_000).map(|_| random.alphanumeric()).collect())
        .collect();
    let document = |n: u64| {
        let value = &values[n as usize];
        Document::parse(&format!(r#"{{"value":"{value}"}}"#)).unwrap()
    };
    write(&rig, &rig.history, 80, document).await;
    rig.pass(100);
    rig.table.endpoint.take_calls();
    let (mut versions, mut cursor) = (Vec::new(), None);
    loop {
        let query = all_changes();
        let page = rig.reader.changes(&query, 1000, cursor.as_ref(), rig.now());
        let page = page.await.unwrap();
        let count = queries(&rig);
        assert!(count <= 6, "{count}");
        versions.extend(page.rows.iter().map(|row| row.version.0));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(versions, (1..=80).rev().collect::<Vec<i64>>());
}

/// Both documents have large entries, of which not all are read at a time.
#[tokio::test]
async fn pages_of_large_changes_of_both_documents_are_in_order() {
    let mut rig = Rig::new(Layout::Separate).await;
    let value = "x".repeat(300_000);
    let mut times = Vec::new();
    for n in 0..30 {
        rig.pass(1);
        // Most changes of one document come before those of the other.
        let document = Document::parse(&format!(r#"{{"n":{n},"value":"{n}{value}"}}"#)).unwrap();
        let update = match n {
            0..12 | 20 | 29 => Update::report(lamp(), document),
            _ => Update::desire(lamp(), document),
        };
        assert!(rig.shadows.update(update).await.unwrap().written);
        times.push(rig.now());
    }
    // An event has 16 MB at most.
    for batch in rig.records().await.chunks(10) {
        rig.record(batch).await;
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let query = all_changes();
        let page = rig.reader.changes(&query, 1000, cursor.as_ref(), rig.now());
        let page = page.await.unwrap();
        found.extend(page.rows.iter().map(|row| row.time));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    times.reverse();
    assert_eq!(found, times);
}

#[tokio::test]
async fn a_state_since_the_last_change_takes_one_query() {
    let mut rig = Rig::new(Layout::Combined).await;
    report(&rig, &lamp(), r#"{"n":1}"#).await;
    let written = rig.now();
    rig.record_all().await;
    rig.pass(10);
    rig.table.endpoint.take_calls();
    assert_eq!(state(&rig, rig.now()).await, r#"{"n":1}"#);
    assert_eq!(queries(&rig), 0, "the present");
    assert_eq!(state(&rig, written).await, r#"{"n":1}"#);
    assert_eq!(queries(&rig), 1);
}
