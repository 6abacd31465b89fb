//! Regression tests for faults of the library that this one grew from.
//!
//! Others are covered elsewhere: conflicts by `writers`, similar names and order within a batch by the contract
//! of `ShadowStore`, invalid rules by the tests of `registration`, cancelled transactions by those of `dynamodb`.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::{DocumentSet, ShadowId, Shadows, State, Version};
use antumbra_shadow::{Document, Mode, Model, Timestamp, merge};
use serde::{Deserialize, Serialize};
use serde_json::json;

fn shadows() -> Shadows<MemoryShadows> {
    Shadows::new(MemoryShadows::default())
}

fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

fn merged(stored: &str, sent: &str, mode: Mode) -> String {
    let document = |text: &str| Document::parse(text).unwrap();
    merge(
        &document(stored),
        &document(sent),
        mode,
        &Model::default(),
        Timestamp::default(),
    )
    .document
    .to_string()
}

#[tokio::test]
async fn a_first_set_optional_value_is_a_change_and_kept() {
    #[derive(Serialize, Deserialize)]
    struct Lamp {
        led: String,
        watt: Option<f64>,
    }
    let shadows = shadows();
    shadows
        .report(
            &lamp(),
            &Lamp {
                led: "on".into(),
                watt: None,
            },
        )
        .await
        .unwrap();
    let updated = shadows
        .report(
            &lamp(),
            &Lamp {
                led: "on".into(),
                watt: Some(4.5),
            },
        )
        .await
        .unwrap();
    assert!(updated.written);
    let read: Lamp = shadows
        .read(&lamp(), DocumentSet::Reported)
        .await
        .unwrap()
        .reported
        .unwrap()
        .document
        .to_value()
        .unwrap();
    assert_eq!(read.watt, Some(4.5));
}

#[tokio::test]
async fn reporting_an_unchanged_value_again_acknowledges() {
    let shadows = shadows();
    shadows
        .report(&lamp(), &json!({"led": "on"}))
        .await
        .unwrap();
    shadows
        .desire(&lamp(), &json!({"led": "on"}))
        .await
        .unwrap();
    let again = shadows
        .report(&lamp(), &json!({"led": "on"}))
        .await
        .unwrap();
    assert_eq!(again.acknowledged.len(), 1);
    assert_eq!(
        again.version(State::Reported),
        Version(1),
        "the report itself changed nothing"
    );
    assert_eq!(again.version(State::Desired), Version(2));
}

#[test]
fn the_server_master_writes_false_zero_and_the_empty_string() {
    let stored = r#"{"a":true,"b":5,"c":"x"}"#;
    assert_eq!(
        merged(stored, r#"{"a":false,"b":0,"c":""}"#, Mode::ServerIsMaster),
        r#"{"a":false,"b":0,"c":""}"#
    );
}

#[test]
fn results_and_arrays_merged_by_id_have_one_order() {
    let stored = r#"{"a":[{"id":"z"},{"id":"m"},{"id":"a"}]}"#;
    let sent = r#"{"a":[{"id":"q"},{"id":"a","v":1},{"id":"b"}]}"#;
    for _ in 0..20 {
        assert_eq!(
            merged(stored, sent, Mode::ServerIsMaster),
            r#"{"a":[{"id":"z"},{"id":"m"},{"id":"a","v":1},{"id":"q"},{"id":"b"}]}"#
        );
    }
}

#[tokio::test]
async fn one_and_one_point_zero_are_the_same() {
    let shadows = shadows();
    shadows.desire(&lamp(), &json!({"n": 1})).await.unwrap();
    let updated = shadows.report(&lamp(), &json!({"n": 1.0})).await.unwrap();
    assert_eq!(updated.acknowledged.len(), 1);
    assert!(
        !shadows
            .report(&lamp(), &json!({"n": 1}))
            .await
            .unwrap()
            .written
    );
}

#[test]
fn null_type_changes_and_arrays_do_not_panic() {
    let values = [
        "null",
        "true",
        "0",
        "\"\"",
        "[]",
        "{}",
        "[null]",
        "[1]",
        "[{}]",
        "[{\"id\":1}]",
        "{\"a\":null}",
        "{\"a\":1}",
        "{\"timestamp\":1}",
        "{\"timestamp\":null}",
        "{\"timestamp\":{}}",
        "[[1]]",
    ];
    for stored in values {
        for sent in values {
            for mode in [Mode::ServerIsMaster, Mode::ClientIsMaster, Mode::Patch] {
                let (stored, sent) = (format!(r#"{{"x":{stored}}}"#), format!(r#"{{"x":{sent}}}"#));
                let once = merged(&stored, &sent, mode);
                assert_eq!(merged(&once, &sent, mode), once, "{stored} {sent} {mode}");
            }
        }
    }
}
