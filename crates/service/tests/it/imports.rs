//! Documents taken over from other systems, on both layouts.

use std::sync::Arc;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::ManualClock;
use antumbra_service::shadows::{
    DocumentSet, HeldValues, Layout, ShadowId, Shadows, State, StoredDocument, Update, Version,
};
use antumbra_shadow::{Document, Timestamp};

type Sdk = Shadows<MemoryShadows>;

fn both_layouts() -> [Sdk; 2] {
    let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    [Layout::Separate, Layout::Combined].map(|layout| {
        let clock = Arc::new(ManualClock::new(now));
        Shadows::with_clock(MemoryShadows::new(layout), clock)
    })
}

fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-01-31T{time}Z")).unwrap()
}

/// Values with the times since when they are held.
fn held(values: &[(&str, &str)]) -> Vec<HeldValues> {
    let held = values.iter().map(|(since, json)| HeldValues {
        since: at(since),
        values: Document::parse(json).unwrap(),
    });
    held.collect()
}

async fn stored(shadows: &Sdk) -> StoredDocument {
    let shadow = shadows.read(&lamp(), DocumentSet::Both).await.unwrap();
    shadow.reported.unwrap()
}

#[tokio::test]
async fn both_documents_are_imported_in_one_write_with_their_times() {
    for shadows in both_layouts() {
        let reported = held(&[
            ("10:00:00", r#"{"led":"on"}"#),
            ("11:00:00", r#"{"fan":1}"#),
        ]);
        let desired = held(&[("10:30:00", r#"{"led":"on"}"#)]);
        let import = Update::import(lamp(), reported, desired);
        assert!(shadows.would_write(&import).await.unwrap());
        assert!(shadows.read(&lamp(), DocumentSet::Both).await.is_err());
        let done = shadows.update(import.clone()).await.unwrap();
        assert!(done.written);
        let versions = [State::Reported, State::Desired].map(|state| done.version(state));
        assert_eq!(versions, [Version(1); 2]);
        let found = stored(&shadows).await;
        let metadata = found.leaf_times().metadata(&found.document);
        let [fan, led] =
            [at("11:00:00"), at("10:00:00")].map(|time| time.nanoseconds() / 1_000_000_000);
        assert_eq!(
            metadata,
            format!(r#"{{"fan":{{"timestamp":{fan}}},"led":{{"timestamp":{led}}}}}"#)
        );
        let desired = done.desired.unwrap();
        assert_eq!(
            desired.document.as_str(),
            r#"{"led":"on"}"#,
            "nothing is acknowledged"
        );

        assert!(!shadows.would_write(&import).await.unwrap());
        assert!(!shadows.update(import).await.unwrap().written);
        assert_eq!(stored(&shadows).await, found);
    }
}

#[tokio::test]
async fn only_older_values_are_replaced() {
    for shadows in both_layouts() {
        let import =
            |since: &str, json: &str| Update::import(lamp(), held(&[(since, json)]), vec![]);
        let document = Document::parse(r#"{"led":"stored","fan":1}"#).unwrap();
        shadows
            .update(Update::report(lamp(), document).time(at("10:00:00.9")))
            .await
            .unwrap();
        for (since, led) in [
            ("09:59:59", "stored"),
            // The stored time is kept as a whole second.
            ("10:00:00.5", "stored"),
            ("10:00:01", "imported"),
        ] {
            shadows
                .update(import(since, r#"{"led":"imported","new":{"since":1}}"#))
                .await
                .unwrap();
            let found = stored(&shadows).await.document;
            assert_eq!(
                found.view().get("led").unwrap().as_str().unwrap(),
                led,
                "{since}"
            );
            assert_eq!(found.view().get("fan").unwrap().raw(), "1", "{since}");
        }
        // A report without a time is of now.
        shadows
            .report(&lamp(), &serde_json::json!({"led": "now"}))
            .await
            .unwrap();
        let done = shadows
            .update(import("11:59:00", r#"{"led":"imported"}"#))
            .await
            .unwrap();
        assert!(!done.written);
    }
}

#[tokio::test]
async fn a_deleted_shadow_comes_back_only_with_newer_values() {
    for shadows in both_layouts() {
        let import =
            |since: &str| Update::import(lamp(), held(&[(since, r#"{"led":"on"}"#)]), vec![]);
        shadows.update(import("10:00:00")).await.unwrap();
        shadows
            .delete_shadow(&lamp(), None, None, None)
            .await
            .unwrap();
        assert!(!shadows.update(import("11:00:00")).await.unwrap().written);
        assert!(shadows.read(&lamp(), DocumentSet::Both).await.is_err());
        assert!(shadows.update(import("12:00:01")).await.unwrap().written);
    }
}
