//! Sources and their last contact.

use std::time::Duration;

use antumbra_service::inbox::{
    MessageIndex, MessageReader, MessageWriter, Range, SourceTracker, Sources, contact_hour,
};
use antumbra_service::paging::{Cursor, seal_cursor};
use antumbra_testkit::all_pages;

use super::{at, id, message, source};
use crate::store::inbox;

#[tokio::test]
async fn the_last_contact_is_kept_to_the_hour_and_only_increases() {
    let inbox = &inbox().await;
    for time in ["12:34:56.789", "10:00:00", "11:59:59"] {
        let time = at(&format!("2026-01-31T{time}Z"));
        inbox.touch(&source("lamp"), time).await.unwrap();
    }
    inbox
        .touch(&source("door"), at("2026-02-01T00:00:00Z"))
        .await
        .unwrap();
    let page = inbox.sources(10, None).await.unwrap();
    let contacts: Vec<_> = page
        .rows
        .iter()
        .map(|contact| (contact.source.as_str(), contact.last_contact.to_string()))
        .collect();
    assert_eq!(
        contacts,
        [
            ("door", "2026-02-01T00:00:00Z"),
            ("lamp", "2026-01-31T12:34:56.789Z")
        ]
        .map(|(name, time)| (name, contact_hour(&source(name), at(time)).to_string()))
    );
    assert_eq!(page.next, None);
}

#[test]
fn the_hours_of_sources_begin_at_different_times_and_contain_the_contact() {
    let contact = at("2026-01-31T12:34:56.789Z");
    let mut begins: Vec<String> = (0..1000)
        .map(|number| {
            let hour = contact_hour(&source(&format!("thing-{number}")), contact);
            assert!(hour <= contact && contact < hour.after(Duration::from_secs(3600)));
            assert_eq!(
                contact_hour(&source(&format!("thing-{number}")), hour),
                hour
            );
            assert_eq!(hour.to_string().len(), "2026-01-31T12:34:56Z".len());
            hour.to_string()
        })
        .collect();
    begins.sort();
    begins.dedup();
    assert!(begins.len() > 600, "{}", begins.len());
}

#[tokio::test]
async fn pages_of_all_shards_are_in_order() {
    let inbox = &inbox().await;
    let mut names: Vec<String> = (0..100).map(|number| format!("thing-{number}")).collect();
    for name in &names {
        inbox.touch(&source(name), at(super::NOON)).await.unwrap();
    }
    names.sort();
    for limit in [1, 7, 100] {
        let all = all_pages(limit, async |cursor| {
            inbox.sources(limit, cursor).await.unwrap()
        });
        let all: Vec<String> = all.await.iter().map(|one| one.source.to_string()).collect();
        assert_eq!(all, names, "{limit}");
    }
}

#[tokio::test]
async fn pages_contain_every_source() {
    let inbox = &inbox().await;
    for number in 0..7 {
        let name = format!("thing-{number}");
        inbox.touch(&source(&name), at(super::NOON)).await.unwrap();
    }
    let all = all_pages(3, async |cursor| inbox.sources(3, cursor).await.unwrap()).await;
    let all: Vec<String> = all.iter().map(|one| one.source.to_string()).collect();
    assert_eq!(
        all,
        (0..7).map(|n| format!("thing-{n}")).collect::<Vec<_>>()
    );
    for foreign in [
        Cursor("nonsense".to_owned()),
        seal_cursor(&["sources", "another-table", "thing-1"]),
        seal_cursor(&["sources", &inbox.table, ""]),
        seal_cursor(&["inbox", "thing-1", "oldest", "1"]),
    ] {
        assert!(
            inbox.sources(3, Some(&foreign)).await.is_err(),
            "{foreign:?}"
        );
    }
    assert!(inbox.sources(0, None).await.is_err());
    assert!(inbox.sources(1001, None).await.is_err());
}

#[tokio::test]
async fn messages_and_sources_are_listed_separately() {
    let inbox = &inbox().await;
    inbox.touch(&source("lamp"), at(super::NOON)).await.unwrap();
    inbox
        .store(&message("sources", "lamp", "{}"))
        .await
        .unwrap();
    let all = Range::default();
    assert_eq!(inbox.ids(&source("lamp"), &all, 10).await.unwrap(), []);
    assert_eq!(
        inbox.ids(&source("sources"), &all, 10).await.unwrap(),
        [id("lamp")]
    );
    assert!(
        inbox
            .get(&source("sources"), &id("lamp"))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(inbox.sources(10, None).await.unwrap().rows.len(), 1);
}
