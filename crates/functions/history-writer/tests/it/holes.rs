//! Changes that are missing in the history: what is known around them, and never the state of another write.

use std::time::Duration;

use antumbra_service::clock::time_left;
use antumbra_service::shadows::Layout;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::rig::{DAYS, Rig, start};
use crate::writer::{changes, lamp, report, state};

const DAY: u64 = 86_400;

/// Deletes the shadow, and lets the rest of its items expire.
async fn delete_and_forget(rig: &Rig) {
    delete(rig).await;
    rig.pass(3 * DAY);
    for sort in ["DSR#main", "DSD#main", "DSC#main"] {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let expired = rig.table.client.delete_item().table_name(&rig.table.name);
        let expired = expired.key("PK", text("DS#lamp")).key("SK", text(sort));
        expired.send().await.unwrap();
    }
}

async fn delete(rig: &Rig) {
    let deleted = rig.shadows.delete_shadow(&lamp(), None, None, None).await;
    deleted.unwrap();
}

#[tokio::test]
async fn a_lost_entry_is_a_hole_and_not_a_wrong_answer() {
    let mut rig = Rig::new(Layout::Separate).await;
    let mut times = Vec::new();
    for n in 0..6 {
        rig.pass(10);
        // A document that is large beside its diff.
        let rest = "x".repeat(2000);
        report(&rig, &lamp(), &format!(r#"{{"n":{n},"rest":"{rest}"}}"#)).await;
        times.push(rig.now());
    }
    let mut records = rig.records().await;
    records.remove(3);
    rig.record(&records).await;
    for (n, time) in times.iter().enumerate() {
        let found = state(&rig, *time).await;
        match n {
            // The state before the hole may have ended in it, and the one after it leads back into it.
            2..=4 => assert_eq!(found, "not recorded", "{n}"),
            _ => assert!(found.starts_with(&format!(r#"{{"n":{n},"#)), "{n}: {found}"),
        }
    }
}

/// A document that is created again continues the versions of the deleted one.
#[tokio::test]
async fn a_lost_delete_is_a_hole_although_the_versions_are_consecutive() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        report(&rig, &lamp(), r#"{"n":1}"#).await;
        let mut times = vec![rig.now()];
        rig.pass(10);
        delete(&rig).await;
        times.push(rig.now());
        rig.pass(10);
        times.push(rig.now());
        rig.pass(10);
        report(&rig, &lamp(), r#"{"n":2}"#).await;
        let created = rig.now();
        let mut records = rig.records().await;
        records.remove(1);
        rig.record(&records).await;
        let versions: Vec<i64> = changes(&rig, None)
            .await
            .iter()
            .map(|one| one.version.0)
            .collect();
        assert_eq!(versions, [2, 1], "{layout:?}");
        for changes_later in [false, true] {
            if changes_later {
                rig.pass(10);
                report(&rig, &lamp(), r#"{"n":3}"#).await;
                rig.record_all().await;
            }
            for at in &times {
                assert_eq!(state(&rig, *at).await, "not recorded", "{layout:?} {at}");
            }
            assert_eq!(state(&rig, created).await, r#"{"n":2}"#, "{layout:?}");
        }
    }
}

#[tokio::test]
async fn a_document_whose_first_changes_are_lost_may_have_existed() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        rig.pass(10);
        report(&rig, &lamp(), r#"{"n":1}"#).await;
        let first = rig.now();
        rig.pass(10);
        delete(&rig).await;
        let deleted = rig.now();
        rig.pass(10);
        report(&rig, &lamp(), r#"{"n":2}"#).await;
        let records = rig.records().await;
        rig.record(&records[2..]).await;
        assert_eq!(state(&rig, first).await, "not recorded", "{layout:?}");
        assert_eq!(state(&rig, deleted).await, "did not exist", "{layout:?}");
        assert_eq!(state(&rig, rig.now()).await, r#"{"n":2}"#, "{layout:?}");
    }
}

/// Versions begin again when a deleted document is forgotten.
#[tokio::test]
async fn equal_versions_of_another_document_are_a_hole() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        report(&rig, &lamp(), r#"{"n":1}"#).await;
        let first = rig.now();
        rig.record_all().await;
        rig.pass(10);
        let deleted = rig.now();
        delete_and_forget(&rig).await;
        report(&rig, &lamp(), r#"{"n":2}"#).await;
        rig.pass(10);
        let second = rig.now();
        report(&rig, &lamp(), r#"{"n":3}"#).await;
        let records = rig.records().await;
        rig.record(&records[records.len() - 1..]).await;
        for at in [first, deleted] {
            assert_eq!(state(&rig, at).await, "not recorded", "{layout:?} {at}");
        }
        assert_eq!(state(&rig, second).await, r#"{"n":3}"#, "{layout:?}");
        // The diff is larger than the document, so it is not stored, and the document before it is not known.
        let newest = &changes(&rig, None).await[0];
        assert_eq!(newest.version.0, 2, "{layout:?}");
        assert_eq!(newest.documents[0].values, None, "{layout:?}");
    }
}

#[tokio::test]
async fn a_delete_of_another_document_with_the_same_version_is_a_hole() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        report(&rig, &lamp(), r#"{"n":1}"#).await;
        rig.record_all().await;
        rig.pass(10);
        let deleted = rig.now();
        delete_and_forget(&rig).await;
        report(&rig, &lamp(), r#"{"n":2}"#).await;
        rig.pass(10);
        delete(&rig).await;
        assert_eq!(state(&rig, deleted).await, "not recorded", "{layout:?}");
    }
}

#[tokio::test]
async fn changes_are_not_reverted_on_another_document_with_the_same_version() {
    for layout in [Layout::Separate, Layout::Combined] {
        let mut rig = Rig::new(layout).await;
        let large = |n: u8, rest: &str| format!(r#"{{"n":{n},"rest":"{}"}}"#, rest.repeat(2000));
        for n in 0..3 {
            report(&rig, &lamp(), &large(n, "x")).await;
            rig.pass(100);
        }
        rig.record_all().await;
        delete_and_forget(&rig).await;
        for n in 0..3 {
            report(&rig, &lamp(), &large(n, "y")).await;
            rig.pass(100);
        }
        // The entry with the document has expired.
        let now = start().after(Duration::from_secs(u64::from(DAYS) * DAY + 50));
        rig.clock.advance(time_left(rig.now(), now));
        let at = start().after(Duration::from_secs(150));
        assert_eq!(state(&rig, at).await, "not recorded", "{layout:?}");
    }
}
