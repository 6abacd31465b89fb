//! The past of shadows: `?at`, `/history`, `/diff` and `?purge`.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, FeedConfig, ShadowTableConfig};
use antumbra_service::clock::Clock as _;
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::{Document, Model, Patch};
use antumbra_wire::history::{Entry, EntryDocument, HistoryKey, Operation, SegmentEntry};
use antumbra_wire::items::ShadowItem;
use serde_json::json;

use crate::support::TestApi;

const LAMP: &str = "/v1/shadows/lamp-7";
const NOON: &str = "2026-01-31T12:00:00Z";
const LATER: &str = "2026-01-31T12:01:00Z";

/// Reports twice, a minute apart, and records both writes as the history writer does, also in the change feed.
pub(crate) async fn two_reports(api: &TestApi) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut before: Option<(Document, u64)> = None;
    for (version, led) in [(1, "off"), (2, "on")] {
        let document = Document::from_value(&json!({"led": led, "fan": 1})).unwrap();
        let path = format!("{LAMP}/reported?clientToken=shift-{version}");
        api.patch(&path, document.as_str()).await.ok(200);
        let time = u64::try_from(api.clock.now().nanoseconds()).unwrap();
        let diff = before.as_ref().map(|(before, _)| {
            Patch::between(before, &document, &Model::default(), usize::MAX).unwrap()
        });
        entries.push(Entry {
            key: HistoryKey {
                id: "lamp-7".to_owned(),
                name: "main".to_owned(),
                item: ShadowItem::Reported,
                time,
                version,
            },
            operation: match version {
                1 => Operation::Insert,
                _ => Operation::Modify,
            },
            previous_time: before.as_ref().map(|(_, time)| *time),
            client_token: Some(format!("shift-{version}")),
            reported: Some(EntryDocument {
                diff,
                document: (version == 1).then(|| document.clone()),
            }),
            desired: None,
        });
        before = Some((document, time));
        api.clock.advance(Duration::from_secs(60));
    }
    let deadline = api.clock.now().after(Duration::from_secs(30));
    let written = api.history.write(&entries, deadline, &*api.clock).await;
    assert_eq!(written.written, [true, true]);
    let config = FeedConfig {
        days: 7,
        partitions: 4,
    };
    let settings = api.history.ensure_feed(config, api.clock.now()).await;
    let change = |entry: &Entry| SegmentEntry {
        key: entry.key.clone(),
        change_id: format!("change-{}", entry.key.version),
        operation: entry.operation,
    };
    let changes: Vec<SegmentEntry> = entries.iter().map(change).collect();
    let feed = (&settings.unwrap(), config.days);
    api.history
        .append(feed, &changes, &*api.clock)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_shadow_is_read_as_it_was_at_a_time() {
    let api = TestApi::start().await;
    two_reports(&api).await;
    for (at, version, led) in [
        (NOON, 1, "off"),
        ("2026-01-31T13:00:59.999+01:00", 1, "off"),
        (LATER, 2, "on"),
        ("2100-01-01T00:00:00Z", 2, "on"),
    ] {
        let at = at.replace('+', "%2B");
        let found = api.get(&format!("{LAMP}?at={at}")).await.ok(200);
        assert_eq!(found["reported"]["version"], version, "{at}");
        assert_eq!(found["reported"]["document"]["led"], led, "{at}");
    }
    let early = format!("{LAMP}?at=2026-01-31T11:59:59Z");
    api.get(&early).await.problem(404, "DidNotExist");
    let ancient = format!("{LAMP}?at=2025-01-01T00:00:00Z");
    api.get(&ancient).await.problem(410, "BeforeRetention");
    let named = format!("{LAMP}/name/light?at={NOON}");
    api.get(&named).await.problem(404, "DidNotExist");
    let other = format!("{LAMP}?at=yesterday");
    api.get(&other).await.problem(400, "InvalidQuery");
    // The writes of the desired document are not recorded yet.
    api.patch(&format!("{LAMP}/desired"), r#"{"led":"off"}"#)
        .await
        .ok(200);
    api.clock.advance(Duration::from_secs(1));
    api.patch(&format!("{LAMP}/desired"), r#"{"led":"on"}"#)
        .await
        .ok(200);
    api.get(&format!("{LAMP}?at={LATER}"))
        .await
        .problem(404, "NotRecorded");
}

#[tokio::test]
async fn recorded_changes_are_listed_newest_first() {
    let api = TestApi::start().await;
    two_reports(&api).await;
    let page = api.get(&format!("{LAMP}/history?limit=1")).await.ok(200);
    assert_eq!(
        page["entries"],
        json!([{
            "time": LATER,
            "version": 2,
            "operation": "modify",
            "clientToken": "shift-2",
            "documents": ["reported"],
            "changes": [{"state": "reported", "path": "/led", "old": "off", "new": "on"}],
        }])
    );
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = api
        .get(&format!("{LAMP}/history?limit=1&cursor={cursor}"))
        .await
        .ok(200);
    assert_eq!(rest["entries"][0]["operation"], "insert");
    let other = format!("{LAMP}/history?path=/led&cursor={cursor}");
    api.get(&other).await.problem(400, "Invalid");

    let led = format!("{LAMP}/history?path=/led&from={NOON}&to={NOON}");
    let page = api.get(&led).await.ok(200);
    let changes = json!([{"state": "reported", "path": "/led", "new": "off"}]);
    assert_eq!(page["entries"][0]["changes"], changes);
    assert_eq!(page["entries"].as_array().unwrap().len(), 1);
    api.get(&format!("{LAMP}/history?path=led"))
        .await
        .problem(400, "InvalidQuery");
    let none = api.get("/v1/shadows/fan/history").await.ok(200);
    assert_eq!(none, json!({"entries": []}));
}

#[tokio::test]
async fn two_times_are_compared() {
    let api = TestApi::start().await;
    two_reports(&api).await;
    let found = api
        .get(&format!("{LAMP}/diff?from={NOON}&to={LATER}"))
        .await
        .ok(200);
    assert_eq!(
        found,
        json!({
            "id": "lamp-7",
            "name": "main",
            "from": NOON,
            "to": LATER,
            "changes": [{"state": "reported", "path": "/led", "old": "off", "new": "on"}],
        })
    );
    let same = api.get(&format!("{LAMP}/diff?from={LATER}")).await.ok(200);
    assert_eq!(same["changes"], json!([]));
    let early = format!("{LAMP}/diff?from=2025-01-01T00:00:00Z");
    api.get(&early).await.problem(410, "BeforeRetention");
}

/// Steps of the purge of a shadow until it waits for writers that are running.
async fn purge(api: &TestApi, shadow: &ShadowId) -> usize {
    let config = ShadowTableConfig::new(&api.table);
    let shadows = DynamoDbShadows::new(api.database.clone(), config);
    let purged = shadows.delete_past(&api.history, shadow, &*api.clock, drop);
    purged.await.unwrap().deleted
}

#[tokio::test]
async fn a_purge_deletes_a_shadow_and_its_past() {
    let api = TestApi::start().await;
    two_reports(&api).await;
    let lamp = ShadowId::new("lamp-7").unwrap();
    // A plain delete keeps the past.
    api.delete(&format!("{LAMP}?purge=false")).await.ok(204);
    assert_eq!(purge(&api, &lamp).await, 0);
    api.delete(&format!("{LAMP}/name/a%23b?purge=true"))
        .await
        .ok(204);
    assert_eq!(purge(&api, &lamp).await, 0, "of another shadow");
    let recorded = api.get(&format!("{LAMP}/history")).await.ok(200);
    assert_eq!(recorded["entries"].as_array().unwrap().len(), 2);

    api.patch(&format!("{LAMP}/reported"), r#"{"led":"on"}"#)
        .await
        .ok(200);
    let other = api.request("DELETE", &format!("{LAMP}?purge=true"));
    let other = other.header("if-match", "\"r1.d0\"").send().await;
    other.problem(412, "PreconditionFailed");
    assert_eq!(purge(&api, &lamp).await, 0, "nothing was deleted");
    for _ in 0..2 {
        api.delete(&format!("{LAMP}?purge=true")).await.ok(204);
    }
    api.get(LAMP).await.problem(404, "NotFound");
    assert_eq!(purge(&api, &lamp).await, 2);
    let recorded = api.get(&format!("{LAMP}/history")).await.ok(200);
    assert_eq!(recorded, json!({"entries": []}));
    let changes = api.get("/v1/changes?cursor=oldest").await.ok(200);
    assert_eq!(changes["changes"], json!([]));
    api.get(&format!("{LAMP}?at={NOON}"))
        .await
        .problem(404, "NotRecorded");
    for query in ["purge=1", "purge=TRUE", "purge", "purge=true&purge=true"] {
        let response = api.delete(&format!("{LAMP}?{query}")).await;
        response.problem(400, "InvalidQuery");
    }
}

#[tokio::test]
async fn a_purge_needs_the_grant_of_an_administrator() {
    let (write, admin) = ("shadows:write:lamp-7", "shadows:admin:lamp-7");
    let api = TestApi::start_with(&[write, admin]).await;
    two_reports(&api).await;
    for query in [
        "purge=true",
        "%70urge=true",
        "purge=tru%65",
        "purge=false&purge=true",
        "purge=true&purge=false",
        "purge=TRUE",
        "purge",
        "x=1&purge=true",
    ] {
        for path in [LAMP.to_owned(), format!("{LAMP}/name/main")] {
            api.endpoint.take_calls();
            let request = api.request_as(write, "DELETE", &format!("{path}?{query}"));
            let refused = request.send().await.problem(403, "Forbidden");
            let detail = "the grant shadows:admin:lamp-7 is missing";
            assert_eq!(refused["detail"], detail, "{query}");
            assert!(api.endpoint.take_calls().is_empty(), "{query}");
        }
    }
    let delete = |grants| api.request_as(grants, "DELETE", LAMP).send();
    delete(write).await.ok(204);
    let purge = api.request_as(admin, "DELETE", &format!("{LAMP}?purge=true"));
    purge.send().await.ok(204);
}
