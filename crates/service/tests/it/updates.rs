//! Guarantees of report, desire, read, delete and list, on both layouts.

use std::sync::Arc;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::shadows::{
    ClientToken, Delete, DesiredMode, DocumentSet, ExpectedVersion, Layout, Read, Shadow,
    ShadowError, ShadowId, Shadows, State, StoreError, Update, UpdateResult, Version, Zone,
};
use antumbra_service::store::ErrorClass;
use antumbra_shadow::{Document, DocumentError, Mode, Model, Timestamp, Verdict};
use antumbra_testkit::all_pages;
use serde_json::{Value, json};

type Sdk = Shadows<MemoryShadows>;

fn sdk(layout: Layout) -> Sdk {
    let clock = ManualClock::new(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
    Shadows::with_clock(MemoryShadows::new(layout), Arc::new(clock))
}

fn both_layouts() -> [Sdk; 2] {
    [sdk(Layout::Separate), sdk(Layout::Combined)]
}

fn lamp() -> ShadowId {
    ShadowId::new("My House#Basement#Lightning Controller").unwrap()
}

fn document(text: &str) -> Document {
    Document::parse(text).unwrap()
}

async fn reports(shadows: &Sdk, report: Value) -> UpdateResult {
    shadows.report(&lamp(), &report).await.unwrap()
}

async fn desires(shadows: &Sdk, desired: Value) -> UpdateResult {
    shadows.desire(&lamp(), &desired).await.unwrap()
}

async fn apply(shadows: &Sdk, update: Update) -> UpdateResult {
    shadows.update(update).await.unwrap()
}

async fn read(shadows: &Sdk, parts: DocumentSet) -> Shadow {
    shadows.read(&lamp(), parts).await.unwrap()
}

fn reported(updated: &UpdateResult) -> &str {
    updated.reported.as_ref().unwrap().document.as_str()
}

fn desired(updated: &UpdateResult) -> &str {
    updated.desired.as_ref().unwrap().document.as_str()
}

#[tokio::test]
async fn a_report_creates_then_merges() {
    for shadows in both_layouts() {
        let first = reports(&shadows, json!({"led": "on"})).await;
        assert!(first.written);
        assert_eq!(first.version(State::Reported), Version(1));
        assert_eq!(first.attempts, 1);
        let second = reports(&shadows, json!({"watt": 4})).await;
        assert_eq!(second.version(State::Reported), Version(2));
        assert_eq!(reported(&second), r#"{"led":"on","watt":4}"#);
        let mut verdicts = Vec::new();
        let changes = second.reported_changes.as_ref().unwrap();
        changes.for_each(|change| verdicts.push((change.pointer.to_owned(), change.verdict)));
        assert_eq!(
            verdicts,
            [
                ("/led".to_owned(), Verdict::Unsent),
                ("/watt".to_owned(), Verdict::Added)
            ]
        );
    }
}

#[tokio::test]
async fn a_report_that_changes_nothing_writes_nothing() {
    for shadows in both_layouts() {
        reports(&shadows, json!({"led": "on"})).await;
        let again = reports(&shadows, json!({"led": "on"})).await;
        assert!(!again.written);
        assert_eq!(again.version(State::Reported), Version(1));
    }
}

#[tokio::test]
async fn the_first_report_creates_even_when_empty() {
    for shadows in both_layouts() {
        assert!(reports(&shadows, json!({})).await.written);
        assert!(
            read(&shadows, DocumentSet::Reported)
                .await
                .reported
                .is_some()
        );
    }
}

#[tokio::test]
async fn a_written_document_has_time_zone_and_token() {
    for shadows in both_layouts() {
        let update = Update::report(lamp(), document(r#"{"led":"on"}"#))
            .client_token(ClientToken::new("job-12").unwrap())
            .zone(Zone::new("Europe/Stockholm").unwrap());
        apply(&shadows, update).await;
        let held = read(&shadows, DocumentSet::Reported)
            .await
            .reported
            .unwrap();
        assert_eq!(held.client_token.unwrap().as_str(), "job-12");
        assert_eq!(held.zone.unwrap().as_str(), "Europe/Stockholm");
        assert_eq!(held.timestamp.to_string(), "2026-01-31T12:00:00Z");
    }
}

/// By reports, desires, timed updates as over MQTT, and acknowledgements.
#[tokio::test]
async fn a_zone_stays_until_a_writer_names_another() {
    let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    for (layout, expected) in [
        (Layout::Separate, ["Asia/Tokyo", "Europe/Oslo"]),
        // One item has one zone.
        (Layout::Combined, ["Asia/Tokyo", "Asia/Tokyo"]),
    ] {
        let shadows = sdk(layout);
        let zones = async || {
            let shadow = shadows.read(&lamp(), DocumentSet::Both).await.unwrap();
            [shadow.reported, shadow.desired].map(|held| {
                held.unwrap()
                    .zone
                    .map_or("none".to_owned(), |zone| zone.to_string())
            })
        };
        let desire = Update::desire(lamp(), document(r#"{"led":"on","fan":1}"#));
        let desire = desire.zone(Zone::new("Europe/Oslo").unwrap());
        shadows.update(desire).await.unwrap();
        let report = Update::report(lamp(), document(r#"{"led":"off"}"#));
        let report = report.zone(Zone::new("Asia/Tokyo").unwrap());
        shadows.update(report).await.unwrap();
        assert_eq!(zones().await, expected, "{layout:?}");

        let without_zone = [
            Update::report(lamp(), document(r#"{"led":"dim"}"#)),
            Update::desire(lamp(), document(r#"{"fan":2}"#)),
            Update::report(lamp(), document(r#"{"led":"blue"}"#)).time(now),
            Update::report(lamp(), document(r#"{"fan":2}"#)),
        ];
        for update in without_zone {
            assert!(shadows.update(update).await.unwrap().written);
            assert_eq!(zones().await, expected, "{layout:?}");
        }
        let left = shadows.read(&lamp(), DocumentSet::Desired).await.unwrap();
        let left = left.desired.unwrap().document;
        assert_eq!(left.as_str(), r#"{"led":"on"}"#, "the fan is acknowledged");
    }
}

#[tokio::test]
async fn a_report_acknowledges_desired_values() {
    for shadows in both_layouts() {
        let wanted = json!({"led": {"value": "on"}, "fan": {"speed": 2, "mode": "auto"}});
        desires(&shadows, wanted).await;
        let report =
            json!({"led": {"timestamp": 1_769_860_000, "value": "on"}, "fan": {"speed": 2.0}});
        let updated = reports(&shadows, report).await;
        assert_eq!(desired(&updated), r#"{"fan":{"mode":"auto"}}"#);
        let pointers = updated.acknowledged.pointers(1000).unwrap();
        assert_eq!(pointers, ["/fan/speed", "/led/value"]);
        let shadow = read(&shadows, DocumentSet::Both).await;
        assert_eq!(shadow.delta.unwrap().as_str(), r#"{"fan":{"mode":"auto"}}"#);
    }
}

#[tokio::test]
async fn a_report_that_ignores_desired_acknowledges_nothing() {
    for shadows in both_layouts() {
        desires(&shadows, json!({"led": "on"})).await;
        let update = Update::report(lamp(), document(r#"{"led":"on"}"#))
            .desired_mode(DesiredMode::IgnoreDesiredState);
        let updated = apply(&shadows, update).await;
        assert!(updated.acknowledged.is_empty());
        let shadow = read(&shadows, DocumentSet::Both).await;
        assert_eq!(shadow.desired.unwrap().document.as_str(), r#"{"led":"on"}"#);
        assert!(
            shadow.delta.unwrap().is_empty(),
            "it is so, though not acknowledged"
        );
    }
}

#[tokio::test]
async fn null_removes_a_desired_value() {
    for shadows in both_layouts() {
        desires(&shadows, json!({"led": "on", "fan": 2})).await;
        let updated = desires(&shadows, json!({"led": null})).await;
        assert_eq!(desired(&updated), r#"{"fan":2}"#);
    }
}

#[tokio::test]
async fn both_documents_change_in_one_write() {
    for shadows in both_layouts() {
        let update = Update::report(lamp(), document(r#"{"led":"off"}"#))
            .and_desire(document(r#"{"led":"on"}"#));
        let updated = apply(&shadows, update).await;
        assert_eq!(
            (reported(&updated), desired(&updated)),
            (r#"{"led":"off"}"#, r#"{"led":"on"}"#)
        );
        assert_eq!(
            (
                updated.version(State::Reported),
                updated.version(State::Desired)
            ),
            (Version(1), Version(1))
        );
    }
}

#[tokio::test]
async fn the_expected_version_is_enforced() {
    for shadows in both_layouts() {
        let update = Update::report(lamp(), document(r#"{"led":"on"}"#));
        let missing = shadows
            .update(update.clone().expected(Version(3)))
            .await
            .unwrap_err();
        let conflict = StoreError::Conflict {
            expected: Version(3),
            actual: None,
        };
        assert_eq!(
            missing,
            ShadowError::Store {
                error: conflict,
                attempts: 1
            }
        );
        apply(&shadows, update.clone().expected(Version::NONE)).await;
        let exists = shadows
            .update(update.clone().expected(Version::NONE))
            .await
            .unwrap_err();
        assert!(exists.is_conflict(), "creating over an existing one");
        let other = Update::report(lamp(), document(r#"{"led":"off"}"#)).expected(Version(1));
        assert_eq!(
            apply(&shadows, other).await.version(State::Reported),
            Version(2)
        );
    }
}

#[tokio::test]
async fn mode_and_model_are_chosen_per_update() {
    for shadows in both_layouts() {
        let model = Model {
            timestamp_fields: vec!["ts".to_owned()],
            ..Model::default()
        };
        let update = |text: &str| Update::report(lamp(), document(text)).model(model.clone());
        apply(&shadows, update(r#"{"t":{"ts":200,"v":1},"x":1}"#)).await;
        let late = apply(&shadows, update(r#"{"t":{"ts":100,"v":2}}"#)).await;
        assert_eq!(reported(&late), r#"{"t":{"ts":200,"v":1},"x":1}"#);
        let master = apply(
            &shadows,
            update(r#"{"t":{"ts":300,"v":3}}"#).mode(Mode::ClientIsMaster),
        )
        .await;
        assert_eq!(reported(&master), r#"{"t":{"ts":300,"v":3}}"#);
    }
}

#[tokio::test]
async fn a_time_too_far_in_the_future_is_rejected() {
    let model = Model {
        max_future: Some(std::time::Duration::from_secs(60)),
        ..Model::default()
    };
    let shadows = sdk(Layout::Separate).with_model(model);
    let report = json!({"t": {"timestamp": "2027-01-01T00:00:00Z", "value": 1}});
    let updated = reports(&shadows, report).await;
    assert_eq!(reported(&updated), "{}");
    let changes = updated.reported_changes.unwrap();
    changes.for_each(|change| assert_eq!(change.verdict, Verdict::Future));
}

#[tokio::test]
async fn many_updates_give_one_result_each_in_order() {
    for shadows in both_layouts() {
        let shadow = |n: usize| ShadowId::new(format!("lamp-{n}")).unwrap();
        let mut updates: Vec<Update> = (0..50)
            .map(|n| Update::report(shadow(n % 20), document(&format!(r#"{{"n{n}":{n}}}"#))))
            .collect();
        updates[7] = updates[7].clone().expected(Version(99));
        let results = shadows.update_many(&updates).await;
        assert_eq!(results.len(), 50);
        for (n, result) in results.iter().enumerate() {
            match (n, result) {
                (7, Err(error)) => assert!(error.is_conflict()),
                (n, Ok(updated)) => {
                    // The second update of a shadow comes after the first, the third after the second.
                    let before = if n % 20 == 7 { n / 20 - 1 } else { n / 20 };
                    assert_eq!(
                        updated.version(State::Reported),
                        Version(before as i64 + 1),
                        "{n}"
                    );
                    assert!(reported(updated).contains(&format!(r#""n{n}":{n}"#)));
                }
                (n, result) => panic!("{n}: {result:?}"),
            }
        }
        let reads: Vec<Read> = (0..20)
            .map(|n| Read {
                shadow: shadow(n),
                parts: DocumentSet::Both,
            })
            .collect();
        let read = shadows.read_many(&reads).await;
        assert_eq!(
            read[3]
                .as_ref()
                .unwrap()
                .reported
                .as_ref()
                .unwrap()
                .document
                .as_str(),
            r#"{"n23":23,"n3":3,"n43":43}"#
        );
    }
}

#[tokio::test]
async fn deleting_and_listing() {
    for shadows in both_layouts() {
        for name in ["main", "light", "climate"] {
            let shadow = ShadowId::named("house", name).unwrap();
            let update = Update::report(shadow, document("{}")).and_desire(document(r#"{"a":1}"#));
            apply(&shadows, update).await;
        }
        let next = async |cursor: Option<&_>| shadows.list("house", 2, cursor).await.unwrap();
        let listed = all_pages(2, next).await.into_iter();
        let mut listed: Vec<_> = listed
            .map(|one| (one.shadow.name().to_owned(), one.state))
            .collect();
        listed.sort();
        assert_eq!(listed.len(), 6);
        assert_eq!(listed[0], ("climate".to_owned(), State::Reported));
        let light = ShadowId::named("house", "light").unwrap();
        let whole = Delete {
            shadow: light.clone(),
            reported: Some(ExpectedVersion::Any),
            desired: Some(ExpectedVersion::Any),
            other_version: None,
            time: None,
        };
        shadows.delete(whole.clone()).await.unwrap();
        shadows.delete(whole).await.unwrap();
        assert!(
            shadows
                .read(&light, DocumentSet::Both)
                .await
                .unwrap_err()
                .is_not_found()
        );
        assert_eq!(
            shadows.list("house", 1000, None).await.unwrap().rows.len(),
            4
        );
        for limit in [0, 1001] {
            assert_eq!(
                shadows
                    .list("house", limit, None)
                    .await
                    .unwrap_err()
                    .class(),
                ErrorClass::Invalid
            );
        }
    }
}

#[tokio::test]
async fn bad_input_has_its_own_error_and_writes_nothing() {
    for shadows in both_layouts() {
        let refused = shadows.report(&lamp(), &json!([1])).await.unwrap_err();
        assert_eq!(
            refused,
            ShadowError::Document(DocumentError::NotAnObject { found: "an array" })
        );
        assert_eq!(refused.class(), ErrorClass::Invalid);
        let large = json!({"a": "x".repeat(401 * 1024)});
        let refused = shadows.report(&lamp(), &large).await.unwrap_err();
        assert!(
            matches!(refused, ShadowError::Store { error: StoreError::TooLarge { bytes, limit: 409_600 }, .. } if bytes > 410_000),
            "{refused}"
        );
        assert_eq!(refused.class(), ErrorClass::TooLarge);
        assert!(
            Document::parse(r#"{"a":1e200}"#)
                .unwrap_err()
                .to_string()
                .contains("near 1e200")
        );
        assert!(
            "Sideways"
                .parse::<Mode>()
                .unwrap_err()
                .to_string()
                .contains("ServerIsMaster")
        );
        assert!(
            shadows
                .read(&lamp(), DocumentSet::Both)
                .await
                .unwrap_err()
                .is_not_found(),
            "nothing was written"
        );
    }
}

#[tokio::test]
async fn times_come_from_the_injected_clock() {
    let shadows = sdk(Layout::Separate);
    let clock = ManualClock::default();
    clock.sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(clock.now().to_string(), "1970-01-01T00:00:05Z");
    let updated = reports(&shadows, json!({})).await;
    assert_eq!(
        updated.reported.unwrap().timestamp,
        Timestamp::parse("2026-01-31T12:00:00Z").unwrap()
    );
}

#[tokio::test]
async fn reporting_an_unchanged_value_again_acknowledges() {
    for shadows in both_layouts() {
        reports(&shadows, json!({"led": "on"})).await;
        desires(&shadows, json!({"led": "on"})).await;
        let again = reports(&shadows, json!({"led": "on"})).await;
        assert_eq!(again.acknowledged.len(), 1);
        assert!(again.version(State::Desired) > Version(1));
    }
}

#[tokio::test]
async fn an_optional_value_that_is_set_later_is_a_change() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Lamp {
        watt: Option<f64>,
    }
    for shadows in both_layouts() {
        for watt in [None, Some(4.5)] {
            let updated = shadows.report(&lamp(), &Lamp { watt }).await.unwrap();
            assert!(updated.written);
            let stored = read(&shadows, DocumentSet::Reported)
                .await
                .reported
                .unwrap();
            assert_eq!(stored.document.to_value::<Lamp>().unwrap().watt, watt);
        }
    }
}
