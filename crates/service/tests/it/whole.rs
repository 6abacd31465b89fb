//! The shadow as a whole: one version for both documents, over deletes too, and the times of leaves.

use std::sync::Arc;
use std::time::Duration;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::ManualClock;
use antumbra_service::shadows::{
    Delete, DesiredMode, DocumentSet, ExpectedVersion, Layout, ShadowId, Shadows, State, Update,
    UpdateResult, VERSION_KEPT, Version,
};
use antumbra_shadow::{Document, Mode, Timestamp};

type Sdk = Shadows<MemoryShadows>;

fn sdk(layout: Layout) -> (Sdk, Arc<ManualClock>) {
    let start = Timestamp::from_nanoseconds(1_700_000_000 * 1_000_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let shadows = Shadows::with_clock(MemoryShadows::new(layout), clock.clone());
    (shadows, clock)
}

fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

fn report(json: &str) -> Update {
    Update::report(lamp(), Document::parse(json).unwrap())
        .mode(Mode::Patch)
        .desired_mode(DesiredMode::IgnoreDesiredState)
        .read_both()
}

fn desire(json: &str) -> Update {
    Update::desire(lamp(), Document::parse(json).unwrap()).read_both()
}

async fn delete(shadows: &Sdk) {
    let delete = Delete {
        shadow: lamp(),
        reported: Some(ExpectedVersion::Any),
        desired: Some(ExpectedVersion::Any),
        other_version: None,
        time: None,
    };
    shadows.delete(delete).await.unwrap();
}

async fn whole(shadows: &Sdk) -> i64 {
    let read = shadows.read(&lamp(), DocumentSet::Both).await;
    read.unwrap().version.0
}

#[tokio::test]
async fn the_whole_has_one_version_and_every_change_raises_it() {
    for (layout, versions) in [
        (Layout::Separate, [1, 2, 3, 5]),
        (Layout::Combined, [1, 2, 3, 4]),
    ] {
        let (shadows, _) = sdk(layout);
        let both = desire(r#"{"fan":3}"#).and_report(Document::parse(r#"{"fan":1}"#).unwrap());
        let updates = [
            report(r#"{"led":1}"#),
            desire(r#"{"led":2}"#),
            report(r#"{"led":3}"#),
            both,
        ];
        for (update, version) in updates.into_iter().zip(versions) {
            shadows.update(update).await.unwrap();
            assert_eq!(whole(&shadows).await, version, "{layout:?}");
        }
    }
}

#[tokio::test]
async fn an_update_of_another_version_of_the_whole_is_a_conflict() {
    for layout in [Layout::Separate, Layout::Combined] {
        let (shadows, _) = sdk(layout);
        let conditional =
            |update: Update, version| update.expected_shadow_version(Version(version));
        let first = conditional(report(r#"{"led":1}"#), 1);
        assert!(shadows.update(first).await.unwrap_err().is_conflict());
        shadows
            .update(conditional(report(r#"{"led":1}"#), 0))
            .await
            .unwrap();
        shadows
            .update(conditional(desire(r#"{"led":2}"#), 1))
            .await
            .unwrap();
        for wrong in [0, 1, 3] {
            for update in [report(r#"{"led":9}"#), desire(r#"{"led":9}"#)] {
                let refused = shadows.update(conditional(update, wrong)).await;
                assert!(refused.unwrap_err().is_conflict(), "{layout:?} {wrong}");
            }
        }
        let updated = shadows.update(conditional(report(r#"{"led":2}"#), 2)).await;
        assert_eq!(updated.unwrap().shadow_version, Version(3));
    }
}

/// Also if one document only exists, or if both have different versions.
#[tokio::test]
async fn a_delete_with_a_version_requires_that_of_the_shadow() {
    for layout in [Layout::Separate, Layout::Combined] {
        for updates in [
            vec![report(r#"{"led":1}"#)],
            vec![desire(r#"{"led":1}"#), desire(r#"{"led":2}"#)],
            vec![
                report(r#"{"led":1}"#),
                report(r#"{"led":2}"#),
                desire(r#"{"led":1}"#),
            ],
        ] {
            let (shadows, _) = sdk(layout);
            for update in updates {
                shadows.update(update).await.unwrap();
            }
            let version = whole(&shadows).await;
            for wrong in [version - 1, version + 1] {
                let wrong = Some(Version(wrong));
                let refused = shadows.delete_shadow(&lamp(), wrong, None, None).await;
                assert!(refused.unwrap_err().is_conflict());
                assert_eq!(whole(&shadows).await, version);
            }
            let right = Some(Version(version));
            let deleted = shadows.delete_shadow(&lamp(), right, None, None).await;
            assert_eq!(deleted.unwrap(), Version(version));
            let gone = shadows.read(&lamp(), DocumentSet::Both).await;
            assert!(gone.unwrap_err().is_not_found());
        }
    }
}

#[tokio::test]
async fn the_version_never_falls_over_a_delete_within_two_days() {
    for layout in [Layout::Separate, Layout::Combined] {
        let (shadows, clock) = sdk(layout);
        shadows.update(report(r#"{"led":1}"#)).await.unwrap();
        shadows.update(desire(r#"{"led":2}"#)).await.unwrap();
        shadows.update(desire(r#"{"led":3}"#)).await.unwrap();
        assert_eq!(whole(&shadows).await, 3);
        delete(&shadows).await;
        assert!(
            shadows
                .read(&lamp(), DocumentSet::Both)
                .await
                .unwrap_err()
                .is_not_found()
        );

        clock.advance(VERSION_KEPT - Duration::from_secs(1));
        let again = shadows.update(report(r#"{"led":1}"#)).await.unwrap();
        assert_eq!(again.shadow_version, Version(4), "{layout:?}");
        assert_eq!(whole(&shadows).await, 4);
        let more = shadows.update(desire(r#"{"led":1}"#)).await.unwrap();
        assert!(more.version(State::Desired) >= Version(1));
        let before = whole(&shadows).await;
        assert!(before > 4);
        // An existing shadow keeps its version after the version of the deleted one has expired.
        clock.advance(VERSION_KEPT * 2);
        assert_eq!(whole(&shadows).await, before);

        delete(&shadows).await;
        clock.advance(VERSION_KEPT);
        shadows.update(report(r#"{"led":1}"#)).await.unwrap();
    }
}

#[tokio::test]
async fn each_leaf_has_the_time_of_its_last_change() {
    for layout in [Layout::Separate, Layout::Combined] {
        let (shadows, clock) = sdk(layout);
        shadows
            .update(report(r#"{"fan":1,"led":{"r":1,"g":2}}"#))
            .await
            .unwrap();
        clock.advance(Duration::from_secs(60));
        let updated = shadows
            .update(report(r#"{"fan":1,"led":{"g":3},"new":[1]}"#))
            .await;
        let metadata = |updated: &UpdateResult| {
            let held = updated.reported.as_ref().unwrap();
            held.leaf_times().metadata(&held.document)
        };
        let expected = concat!(
            r#"{"fan":{"timestamp":1700000000},"led":{"g":{"timestamp":1700000060},"#,
            r#""r":{"timestamp":1700000000}},"new":[{"timestamp":1700000060}]}"#
        );
        assert_eq!(metadata(&updated.unwrap()), expected);
        // A change of the other document changes nothing here.
        clock.advance(Duration::from_secs(60));
        shadows.update(desire(r#"{"fan":2}"#)).await.unwrap();
        let read = shadows.read(&lamp(), DocumentSet::Both).await.unwrap();
        let held = read.reported.unwrap();
        assert_eq!(held.leaf_times().metadata(&held.document), expected);
    }
}

/// A document that fits is kept, whether or not the times of its leaves fit beside it.
#[tokio::test]
async fn no_document_is_rejected_for_the_times_of_its_leaves() {
    let (shadows, clock) = sdk(Layout::Separate);
    let padding = "x".repeat(400 * 1024 - 200);
    for n in 0..40 {
        let update = report(&format!(r#"{{"pad":"{padding}","n":{{"{n:02}":1}}}}"#));
        clock.advance(Duration::from_secs(1));
        let Ok(updated) = shadows.update(update).await else {
            assert!(n > 0);
            return;
        };
        if updated.reported.unwrap().times.is_none() {
            return;
        }
    }
    panic!("the limit was never reached");
}
