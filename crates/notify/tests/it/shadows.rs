//! Messages made of both documents of a shadow, stored in one item or in two.

use std::sync::{Arc, Mutex};

use antumbra_notify::ReadDocuments;
use antumbra_service::shadows::{ShadowId, StoreError, StoredDocument, Version};
use antumbra_shadow::{Document, State, Timestamp};
use serde_json::{Value, json};

use crate::channels::{Bench, assert_done};
use crate::stream::Record;

type Read = Result<Option<StoredDocument>, StoreError>;

/// A table that responds to every read alike, and records the reads.
#[derive(Clone)]
struct Table {
    response: Read,
    reads: Arc<Mutex<Vec<(ShadowId, State)>>>,
}

impl Table {
    fn reader(&self) -> ReadDocuments {
        let table = self.clone();
        Box::new(move |wanted| {
            let response = wanted.iter().map(|_| table.response.clone()).collect();
            table.reads.lock().unwrap().extend(wanted);
            Box::pin(async move { response })
        })
    }
}

fn table(response: Read) -> Table {
    Table {
        response,
        reads: Arc::default(),
    }
}

fn held(json: &str, version: i64) -> Read {
    Ok(Some(StoredDocument {
        document: Document::parse(json).unwrap(),
        version: Version(version),
        timestamp: Timestamp::from_nanoseconds(1_600_000_000_000_000_000),
        zone: None,
        client_token: None,
        times: None,
        times_version: 0,
    }))
}

fn registrations() -> [Value; 2] {
    ["delta", "documents"].map(|form| {
        let topic = format!("shadow/${{shadow}}/update/{form}");
        json!({"name": form, "as": format!("shadow-{form}"), "to": {"mqtt": {"topic": topic}}})
    })
}

/// A write of one document of a shadow, with its own time; an empty text is no document.
fn half(state: &str, sequence: u64, at: u64, old: &str, new: &str) -> Record {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let image = |version: u64, document: Value| json!({"version": version, "timestamp": at * 1_000_000_000, "clientToken": "t", state: document});
    let sort = if state == "reported" {
        "DSR#main"
    } else {
        "DSD#main"
    };
    Record {
        old: parse(old).map(|document| image(sequence, document)),
        new: parse(new).map(|document| image(sequence + 1, document)),
        ..Record::new("DS#lamp", sort, sequence)
    }
}

fn notifications(bench: &Bench) -> Vec<(String, Value)> {
    let arrived = bench.at("mqtt").accepted().into_iter();
    arrived
        .map(|message| {
            let body = serde_json::from_str(&message.body).unwrap();
            (message.topic.unwrap(), body)
        })
        .collect()
}

#[tokio::test]
async fn a_combined_item_is_notified_as_delta_and_documents() {
    let bench = Bench::new(&registrations());
    let image = |version: u64, desired: Value| {
        json!({
            "version": version, "timestamp": 1_700_000_060_000_000_000_u64, "clientToken": "t",
            "reported": {"led": "off", "fan": 1}, "desired": desired,
            "reportedTimes": "1700000060000000:60s,0", "desiredTimes": "1700000060000000:0",
        })
    };
    let record = Record {
        old: Some(image(4, json!({"led": "off"}))),
        new: Some(image(5, json!({"led": "on"}))),
        ..Record::new("DS#lamp", "DSC#light", 7)
    };
    let summary = bench.handle_records(&[record]).await;
    assert_eq!(
        (summary.matched, summary.sent, summary.undeliverable),
        (1, 2, 0)
    );
    let at = |seconds: u64| json!({"timestamp": seconds});
    let reported = json!({"fan": at(1_700_000_000), "led": at(1_700_000_060)});
    let desired = json!({"led": at(1_700_000_060)});
    let sections = |led: &str, version: u64| {
        json!({
            "state": {"desired": {"led": led}, "reported": {"led": "off", "fan": 1}},
            "metadata": {"desired": desired, "reported": reported}, "version": version,
        })
    };
    let expected = vec![
        (
            "shadow/lamp/name/light/update/delta".to_owned(),
            json!({
                "version": 5, "timestamp": 1_700_000_060, "state": {"led": "on"},
                "metadata": {"led": at(1_700_000_060)}, "clientToken": "t",
            }),
        ),
        (
            "shadow/lamp/name/light/update/documents".to_owned(),
            json!({
                "previous": sections("off", 4), "current": sections("on", 5),
                "timestamp": 1_700_000_060, "clientToken": "t",
            }),
        ),
    ];
    assert_eq!(notifications(&bench), expected);
}

#[tokio::test]
async fn the_unchanged_document_of_a_shadow_is_read_once() {
    let documents = table(held(r#"{"led":"off"}"#, 3));
    let bench = Bench::new(&registrations()).with_reader(documents.reader());
    let records = [
        half("desired", 1, 10, r#"{"led": "off"}"#, r#"{"led": "on"}"#),
        half("desired", 2, 11, r#"{"led": "on"}"#, r#"{"led": "off"}"#),
    ];
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.sent, summary.resume_at), (3, None));
    let lamp = ShadowId::new("lamp").unwrap();
    assert_eq!(*documents.reads.lock().unwrap(), [(lamp, State::Reported)]);
    let notifications = notifications(&bench);
    let versions: Vec<_> = notifications
        .iter()
        .map(|(topic, body)| {
            let version = body.pointer("/current/version").unwrap_or(&body["version"]);
            (topic.rsplit('/').next().unwrap(), version.as_i64().unwrap())
        })
        .collect();
    assert_eq!(versions, [("delta", 5), ("documents", 5), ("documents", 6)]);
    assert_eq!(notifications[1].1["previous"]["version"], 4);
}

/// Two records of one write are one change: no intermediate state is notified, and nothing is read.
#[tokio::test]
async fn two_records_of_one_write_are_notified_once() {
    let documents = table(held("{}", 99));
    let bench = Bench::new(&registrations()).with_reader(documents.reader());
    let records = [
        half("desired", 1, 10, r#"{"a": 1}"#, r#"{"a": 2}"#),
        half("reported", 5, 10, r#"{"a": 1}"#, r#"{"a": 2}"#),
    ];
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.sent, summary.records), (1, 2));
    assert!(documents.reads.lock().unwrap().is_empty());
    let (topic, body) = notifications(&bench).remove(0);
    assert_eq!(topic, "shadow/lamp/update/documents");
    assert_eq!(body["previous"]["version"], 1 + 5);
    assert_eq!(body["current"]["version"], 2 + 6);
    assert_eq!(
        body["current"]["state"],
        json!({"desired": {"a": 2}, "reported": {"a": 2}})
    );
}

/// If the event contains the other document, its state in the event is used and not the current one.
#[tokio::test]
async fn documents_of_the_event_are_preferred_to_the_table() {
    let documents = table(held("{}", 99));
    let bench = Bench::new(&registrations()).with_reader(documents.reader());
    let records = [
        half("reported", 1, 10, r#"{"a": 1}"#, r#"{"a": 2}"#),
        half("desired", 3, 11, r#"{"a": 3}"#, r#"{"a": 4}"#),
        half("reported", 2, 12, r#"{"a": 2}"#, r#"{"a": 4}"#),
    ];
    bench.handle_records(&records).await;
    assert!(documents.reads.lock().unwrap().is_empty());
    let notifications = notifications(&bench);
    let deltas: Vec<_> = notifications
        .iter()
        .filter(|(topic, _)| topic.ends_with("delta"))
        .map(|(_, body)| (body["state"]["a"].clone(), body["version"].clone()))
        .collect();
    assert_eq!(deltas, [(json!(3), json!(2 + 3)), (json!(4), json!(2 + 4))]);
}

#[tokio::test]
async fn a_deleted_shadow_is_not_notified_and_a_deleted_document_is() {
    let bench = Bench::new(&registrations()).with_reader(table(Ok(None)).reader());
    let gone = half("reported", 1, 10, r#"{"a": 1}"#, "");
    let summary = bench.handle_records(std::slice::from_ref(&gone)).await;
    assert_done(&summary, 0, 0);
    let bench = Bench::new(&registrations()).with_reader(table(held(r#"{"a":1}"#, 3)).reader());
    bench.handle_records(&[gone]).await;
    let notifications = notifications(&bench);
    assert_eq!(notifications[0].1["state"], json!({"a": 1}));
    assert_eq!(notifications[1].1["current"]["version"], 3);
}

#[tokio::test]
async fn unreadable_documents_are_retried_or_undeliverable() {
    let record = half("desired", 1, 10, "", r#"{"a": 1}"#);
    for error in [
        StoreError::Throttled,
        StoreError::Unavailable("down".into()),
    ] {
        let bench = Bench::new(&registrations()).with_reader(table(Err(error)).reader());
        let records = [Record::small("other", 9), record.clone()];
        let summary = bench.handle_records(&records).await;
        assert!(summary.resume_at.is_some());
        assert_eq!((summary.sent, summary.undeliverable), (0, 0));
    }
    let never = table(Err(StoreError::Invalid("no such table".into())));
    for bench in [
        Bench::new(&registrations()).with_reader(never.reader()),
        Bench::new(&registrations()),
    ] {
        let summary = bench.handle_records(std::slice::from_ref(&record)).await;
        assert_eq!((summary.resume_at, summary.undeliverable), (None, 2));
        assert_eq!(bench.undeliverable()[0]["registration"], "delta");
    }
}
