//! Failed messages, registrations and messages to devices over HTTP, on the whole stack.

use antumbra_local::stack::Options;
use serde_json::{Value, json};

use crate::support::{Home, eventually, registrations};

const QUARANTINE: &str = "/v1/queues/quarantine";

/// Messages of a queue by their body.
async fn bodies(home: &Home, path: &str) -> Vec<String> {
    let shown = home.get(path).await;
    let messages = shown["messages"].as_array().expect("a list").iter();
    let mut bodies: Vec<String> = messages
        .map(|one| one["body"].as_str().unwrap().to_owned())
        .collect();
    bodies.sort_unstable();
    bodies
}

async fn redrive(home: &Home, path: &str) -> (u16, Value) {
    home.call_api("POST", path, &[], &Value::Null).await
}

/// The number of messages with an outcome.
fn count(done: &Value, outcome: &str) -> u64 {
    let results = done["results"].as_array().expect("results").iter();
    let matching = results.filter(|one| one["outcome"] == outcome);
    matching.map(|one| one["count"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn quarantined_messages_are_shown_and_stay_until_they_are_redriven() {
    let home = Home::with_api(Options::default()).await;
    for text in ["no JSON", "[]"] {
        home.send("antumbra-inbound", text).await;
    }
    let both = ["[]".to_owned(), "no JSON".to_owned()];
    eventually("both in the quarantine", async || {
        (bodies(&home, QUARANTINE).await == both).then_some(())
    })
    .await;
    // Shown again: they stayed.
    let shown = home.get(QUARANTINE).await;
    assert_eq!(shown["hasMore"], false, "{shown}");
    let one = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["body"] == "[]")
        .unwrap();
    assert_eq!(one["reason"], "NotAnObject", "{one}");
    assert_eq!(one["route"], "to antumbra-inbound");
    assert_eq!(one["queue"], "antumbra-quarantine");
    assert!(one["sentAt"].as_str().unwrap().ends_with('Z'), "{one}");
    let queues = home.get("/v1/queues").await;
    let quarantine = json!({"name": "quarantine", "messages": 2, "hidden": 0});
    assert_eq!(queues["queues"][1], quarantine, "{queues}");

    // One of them: it comes back with its reason, under a new id.
    let id = one["id"].as_str().unwrap();
    let (status, done) = redrive(&home, &format!("{QUARANTINE}/redrive?messageId={id}")).await;
    assert_eq!((status, count(&done, "moved")), (200, 1), "{done}");
    eventually("both in the quarantine again", async || {
        (bodies(&home, QUARANTINE).await == both).then_some(())
    })
    .await;
    let (status, problem) = redrive(&home, &format!("{QUARANTINE}/redrive?messageId={id}")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("NotFound")));
    let (status, problem) = redrive(&home, "/v1/queues/nowhere/redrive").await;
    assert_eq!((status, &problem["code"]), (404, &json!("NotFound")));
    home.stop().await;
}

#[tokio::test]
async fn two_redrives_at_once_move_each_message_once() {
    let home = Home::with_api(Options::default()).await;
    // Messages that their source accepts, so that they do not come back.
    let sent: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    for number in &sent {
        let message =
            format!(r#"{{"thingName":"lamp","epochTime":"1564669331","number":{number}}}"#);
        home.send("antumbra-quarantine", &message).await;
    }
    let path = format!("{QUARANTINE}/redrive?to=inbound");
    let (one, two) = tokio::join!(redrive(&home, &path), redrive(&home, &path));
    let moved = count(&one.1, "moved") + count(&two.1, "moved");
    assert_eq!(moved, 40, "{one:?} {two:?}");
    let mut expected = sent;
    expected.sort_unstable();
    eventually("each message once in the inbox", async || {
        let page = home.get("/v1/messages/lamp?limit=100&bodies=true").await;
        let stored = page["messages"].as_array().expect("a list").iter();
        let mut numbers: Vec<String> = stored
            .map(|one| one["body"]["number"].to_string())
            .collect();
        numbers.sort_unstable();
        (numbers == expected).then_some(())
    })
    .await;
    home.stop().await;
}

#[tokio::test]
async fn a_list_of_large_messages_ends_before_the_response_is_too_large() {
    let home = Home::with_api(Options::default()).await;
    let large = "x".repeat(250 * 1024);
    for _ in 0..20 {
        home.send("antumbra-quarantine", &large).await;
    }
    let shown = home.get(&format!("{QUARANTINE}?limit=1000")).await;
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &shown["hasMore"]), (12, &json!(true)));
    let few = home.get(&format!("{QUARANTINE}?limit=3")).await;
    assert_eq!(few["messages"].as_array().unwrap().len(), 3);
    assert_eq!(few["hasMore"], true);
    // All of them are visible again.
    let queues = home.get("/v1/queues").await;
    let quarantine = json!({"name": "quarantine", "messages": 20, "hidden": 0});
    assert_eq!(queues["queues"][1], quarantine, "{queues}");
    home.stop().await;
}

#[tokio::test]
async fn undeliverable_notifications_and_records_are_sent_by_the_listener() {
    let all = r#"{"name":"all","on":{"key":"^DS#"},"to":{"sqs":{"queue":"changes"}}}"#;
    let home = Home::with_api(Options {
        registrations: registrations([all]),
        ..Options::default()
    })
    .await;
    let url = home.stack.queue_url("changes");
    home.sqs
        .delete_queue()
        .queue_url(&url)
        .send()
        .await
        .unwrap();
    let report = json!({"led": "on"});
    let (status, _) = home
        .call_api("PATCH", "/v1/shadows/lamp/reported", &[], &report)
        .await;
    assert_eq!(status, 200);
    let path = "/v1/queues/undeliverable";
    let message = eventually("an undeliverable notification", async || {
        home.get(path).await["messages"].get(0).cloned()
    })
    .await;
    assert_eq!(message["route"], "to the target of all", "{message}");
    let notification: Value = serde_json::from_str(message["body"].as_str().unwrap()).unwrap();

    // Still missing: it comes back. Then the queue exists, and the same notification arrives.
    let redriven = async || {
        let (status, done) = redrive(&home, &format!("{path}/redrive")).await;
        (status == 200 && count(&done, "moved") == 1).then_some(())
    };
    eventually("a redrive", redriven).await;
    eventually("the notification again", async || {
        home.get(path).await["messages"].get(0).cloned()
    })
    .await;
    let call = home.sqs.create_queue().queue_name("changes");
    call.send().await.unwrap();
    eventually("a redrive", redriven).await;
    let arrived = home.received("changes", "lamp").await;
    let arrived: Value = serde_json::from_str(arrived.body().unwrap()).unwrap();
    assert_eq!(arrived, notification["notification"]);
    assert_eq!(bodies(&home, path).await.len(), 0);

    // The position of a record that the event source gave up.
    let streams = aws_sdk_dynamodbstreams::Client::new(&home.database());
    let table = streams.list_streams().table_name("antumbra").send().await;
    let stream = table.unwrap().streams()[0].stream_arn().unwrap().to_owned();
    let described = streams.describe_stream().stream_arn(&stream).send().await;
    let described = described.unwrap().stream_description.unwrap();
    let shard = described.shards()[0].shard_id().unwrap().to_owned();
    let number = notification["record"]["sequenceNumber"].as_str().unwrap();
    let range = json!({"version": "1.0", "requestContext": {"condition": "RetryAttemptsExhausted"},
        "DDBStreamBatchInfo": {"shardId": shard, "startSequenceNumber": number, "endSequenceNumber": number,
            "batchSize": 1, "streamArn": stream}});
    home.send("antumbra-undeliverable", &range.to_string())
        .await;
    eventually("a redrive", redriven).await;
    let again = home.received("changes", "lamp").await;
    let again: Value = serde_json::from_str(again.body().unwrap()).unwrap();
    assert_eq!(again["id"], arrived["id"]);
    home.stop().await;
}

#[tokio::test]
async fn failed_updates_over_mqtt_are_made_by_their_time() {
    let home = Home::with_api(Options::default()).await;
    // {"state":{"reported":{"led":"old","fan":1}}}
    let payload = "eyJzdGF0ZSI6eyJyZXBvcnRlZCI6eyJsZWQiOiJvbGQiLCJmYW4iOjF9fX0=";
    let failed = json!({"version": "1.0", "requestContext": {
            "functionArn": "arn:aws:lambda:us-east-1:000000000000:function:antumbra-shadow-requests:$LATEST",
            "condition": "RetriesExhausted"},
        "requestPayload": {"payload": payload, "topic": "shadow/lamp/update", "clientId": "lamp",
            "timestamp": 1_700_000_000_000_i64}});
    home.send("antumbra-quarantine", &failed.to_string()).await;
    let report = json!({"led": "new"});
    home.call_api("PATCH", "/v1/shadows/lamp/reported", &[], &report)
        .await;
    let (status, done) = redrive(&home, &format!("{QUARANTINE}/redrive")).await;
    assert_eq!((status, count(&done, "moved")), (200, 1), "{done}");
    let shadow = home.get("/v1/shadows/lamp").await;
    let expected = json!({"led": "new", "fan": 1});
    assert_eq!(shadow["reported"]["document"], expected, "{shadow}");
    home.stop().await;
}

#[tokio::test]
async fn registrations_are_shown_as_they_are_in_force() {
    let files = [
        (
            "b.json",
            r#"{"name":"b","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#,
        ),
        (
            "a.json",
            r#"{"name":"a","description":"Lamps","enabled":false,"to":{"mqtt":{"topic":"t"}}}"#,
        ),
    ];
    let files: Vec<(String, String)> = files
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let home = Home::with_api(Options {
        registration_files: files.clone(),
        ..Options::default()
    })
    .await;
    let first = home.get("/v1/registrations?limit=1").await;
    let a = json!({"name": "a", "description": "Lamps", "enabled": false, "target": "mqtt", "file": "a.json"});
    assert_eq!(first["registrations"], json!([a]), "{first}");
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = home
        .get(&format!("/v1/registrations?limit=1&cursor={cursor}"))
        .await;
    let b = json!({"name": "b", "enabled": true, "target": "sqs", "file": "b.json"});
    assert_eq!(second, json!({"registrations": [b]}));
    let shown = home.get("/v1/registrations/b").await;
    let queue = &shown["registration"]["to"]["sqs"]["queue"];
    assert_eq!(queue, "${env:QUEUE}", "{shown}");
    let (status, problem) = home
        .call_api("GET", "/v1/registrations/c", &[], &Value::Null)
        .await;
    assert_eq!((status, &problem["code"]), (404, &json!("NotFound")));
    let reloaded = home.stack.reload(Default::default(), files[..1].to_vec());
    reloaded.await.unwrap();
    let shown = home.get("/v1/registrations").await;
    assert_eq!(shown["registrations"].as_array().unwrap().len(), 1);
    home.stop().await;
}

#[tokio::test]
async fn a_message_to_a_device_is_in_the_outbound_queue() {
    let home = Home::with_api(Options::default()).await;
    let path = "/v1/messages/lamp%207";
    let message = json!({"message": {"led": "on"}});
    let (status, sent) = home.call_api("POST", path, &[], &message).await;
    assert_eq!((status, &sent["uuid"]), (202, &json!("lamp 7")), "{sent}");
    let arrived = home.received("antumbra-outbound", "lamp 7").await;
    let arrived: Value = serde_json::from_str(arrived.body().unwrap()).unwrap();
    let expected = json!({"idempotencyKey": sent["idempotencyKey"], "message": {"led": "on"}, "uuid": "lamp 7"});
    assert_eq!(arrived, expected);
    // Sent again with its key: one message, the first response.
    let key = [("idempotency-key", "k-1")];
    let (_, first) = home.call_api("POST", path, &key, &message).await;
    let (status, second) = home.call_api("POST", path, &key, &message).await;
    assert_eq!((status, &second), (202, &first));
    home.received("antumbra-outbound", "lamp 7").await;
    assert_eq!(home.receive("antumbra-outbound", 0).await.len(), 0);
    for (path, body, expected) in [
        (path, json!({}), 400),
        (path, json!({"message": 1, "more": 1}), 400),
        ("/v1/messages/$lamp", json!({"message": 1}), 400),
        (path, json!({"message": "x".repeat(1024 * 1024 - 40)}), 413),
    ] {
        let (status, problem) = home.call_api("POST", path, &[], &body).await;
        assert_eq!(status, expected, "{problem}");
    }
    home.stop().await;
}
