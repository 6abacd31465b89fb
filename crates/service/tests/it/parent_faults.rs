//! Faults of the library this grew from, each kept out by a test of its own name.
//!
//! Those about the notification rules and the DynamoDB adapter stand beside the code they are about.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::{
    DocumentSet, Layout, ShadowId, ShadowStore, Shadows, State, Update, Version,
};
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

#[tokio::test]
async fn a_conflict_is_read_merged_and_written_again() {
    let store = MemoryShadows::default();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let shadows = Shadows::new(store.clone());
            tokio::spawn(async move {
                for n in 0..20 {
                    let value = json!({format!("w{writer}"): n});
                    let update =
                        Update::report(lamp(), Document::from_value(&value).unwrap()).retries(1000);
                    shadows.update(update).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let held = Shadows::new(store)
        .read(&lamp(), DocumentSet::Reported)
        .await
        .unwrap()
        .reported
        .unwrap();
    assert_eq!(held.version, Version(160));
    assert_eq!(held.document.view().children().count(), 8);
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

#[tokio::test]
async fn two_operations_on_one_id_stay_two() {
    let shadows = shadows();
    let update = |text: &str| Update::report(lamp(), Document::parse(text).unwrap());
    let results = shadows
        .update_many(&[update(r#"{"a":1}"#), update(r#"{"b":2}"#)])
        .await;
    let versions: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().unwrap().version(State::Reported))
        .collect();
    assert_eq!(versions, [Version(1), Version(2)]);
}

#[tokio::test]
async fn names_that_run_together_stay_apart() {
    for layout in [Layout::Separate, Layout::Combined] {
        let shadows = Shadows::new(MemoryShadows::new(layout));
        let one = ShadowId::named("a", "bc").unwrap();
        let other = ShadowId::named("ab", "c").unwrap();
        let update = |shadow: &ShadowId, n: u8| {
            Update::report(
                shadow.clone(),
                Document::from_value(&json!({"n": n})).unwrap(),
            )
        };
        let results = shadows
            .update_many(&[update(&one, 1), update(&other, 2)])
            .await;
        assert!(
            results
                .iter()
                .all(|result| result.as_ref().unwrap().version(State::Reported) == Version(1))
        );
        assert_eq!(
            shadows
                .read(&one, DocumentSet::Reported)
                .await
                .unwrap()
                .reported
                .unwrap()
                .document
                .as_str(),
            r#"{"n":1}"#
        );
    }
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

/// The parent's manager cannot be given its own DynamoDB persistence; here the manager takes any.
#[test]
fn the_manager_takes_every_persistence() {
    fn takes<P: ShadowStore>() -> fn(P) -> Shadows<P> {
        Shadows::new
    }
    let _ = takes::<MemoryShadows>();
}
