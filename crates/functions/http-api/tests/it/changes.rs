//! `/v1/changes`: the change feed as pages and as a stream.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::history::two_reports;
use crate::support::{TOKEN, TestApi};

fn ids(page: &Value) -> Vec<&str> {
    let changes = page["changes"].as_array().unwrap().iter();
    let ids = changes.map(|change| change["changeId"].as_str().unwrap());
    ids.collect()
}

#[tokio::test]
async fn changes_are_read_from_a_cursor() {
    let api = TestApi::start().await;
    let before = api.get("/v1/changes").await.ok(200);
    assert_eq!(ids(&before), [""; 0]);
    two_reports(&api).await;
    let cursor = before["cursor"].as_str().unwrap();
    let first = api
        .get(&format!("/v1/changes?limit=1&cursor={cursor}"))
        .await
        .ok(200);
    assert_eq!(
        first["changes"],
        json!([{
            "changeId": "change-1",
            "id": "lamp-7",
            "name": "main",
            "time": "2026-01-31T12:00:00Z",
            "version": 1,
            "operation": "insert",
            "clientToken": "shift-1",
            "documents": ["reported"],
            "changes": [
                {"state": "reported", "path": "/fan", "new": 1},
                {"state": "reported", "path": "/led", "new": "off"},
            ],
        }])
    );
    assert_eq!(first["hasMore"], true);
    let cursor = first["cursor"].as_str().unwrap();
    let after = format!("/v1/changes?cursor={cursor}");
    let rest = api.get(&after).await.ok(200);
    assert_eq!(
        (ids(&rest), &rest["hasMore"]),
        (vec!["change-2"], &json!(false))
    );
    for (selection, expected) in [
        ("prefix=lamp-", &["change-1", "change-2"][..]),
        ("prefix=door-", &[]),
        (r#"pattern={"new":{"led":["on"]}}"#, &["change-2"]),
    ] {
        let selection = selection.replace('{', "%7B").replace('}', "%7D");
        let selection = selection.replace('"', "%22");
        let path = format!("/v1/changes?cursor=oldest&{selection}");
        let found = api.get(&path).await.ok(200);
        assert_eq!(ids(&found), expected, "{selection}");
    }
    let now = api.get("/v1/changes?cursor=now&wait=20").await.ok(200);
    assert_eq!(ids(&now), [""; 0]);
    for query in [
        "wait=21",
        "limit=0",
        "cursor=AAAA",
        "pattern=no",
        "pattern=%7B%22led%22:%5B1%5D%7D",
    ] {
        let invalid = api.get(&format!("/v1/changes?{query}")).await;
        invalid.problem(400, "InvalidQuery");
    }
    // A week later.
    api.clock.advance(Duration::from_secs(8 * 86_400));
    let expired = api.get(&after).await;
    let oldest = expired.problem(410, "CursorExpired")["oldestCursor"].clone();
    let oldest = oldest.as_str().unwrap();
    let path = format!("/v1/changes?cursor={oldest}");
    assert_eq!(ids(&api.get(&path).await.ok(200)), [""; 0]);
}

#[tokio::test]
async fn callers_read_the_changes_that_they_were_granted() {
    let lists = ["changes:read:lamp-7", "changes:read:door-1", "shadows:read"];
    let api = TestApi::start_with(&lists).await;
    two_reports(&api).await;
    let read = async |list: &str| {
        let path = "/v1/changes?cursor=oldest";
        api.request_as(list, "GET", path).send().await
    };
    let lamps = read("changes:read:lamp-7").await.ok(200);
    assert_eq!(ids(&lamps), ["change-1", "change-2"]);
    let doors = read("changes:read:door-1").await.ok(200);
    assert_eq!(ids(&doors), [""; 0]);
    // What the caller may not read does not come later either.
    assert_eq!(doors["hasMore"], false);
    read("shadows:read").await.problem(403, "Forbidden");
}

#[tokio::test]
async fn a_stream_continues_after_the_last_event() {
    let api = TestApi::start().await;
    two_reports(&api).await;
    let open = async |path: &str, last: &str| {
        let mut stream = TcpStream::connect(api.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\naccept: text/event-stream\r\n{last}\r\n",
            api.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream).lines()
    };
    // Two changes, then the cursor behind them.
    let mut lines = open("/v1/changes?cursor=oldest", "").await;
    let (mut changes, mut last) = (Vec::new(), None);
    while last.is_none() {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            let change: Value = serde_json::from_str(data).unwrap();
            changes.push(change["changeId"].as_str().unwrap().to_owned());
        }
        last = line.strip_prefix("id: ").map(str::to_owned);
    }
    assert_eq!(changes, ["change-1", "change-2"]);
    let last = format!("last-event-id: {}\r\n", last.unwrap());
    let mut lines = open("/v1/changes?cursor=oldest", &last).await;
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(!line.starts_with("data: "), "{line}");
        if line.starts_with("id: ") {
            break;
        }
    }
    // A cursor that cannot be used is an error, as for pages.
    let mut lines = open("/v1/changes?cursor=AAAA", "").await;
    let status = lines.next_line().await.unwrap().unwrap();
    assert!(status.starts_with("HTTP/1.1 400"), "{status}");
}
