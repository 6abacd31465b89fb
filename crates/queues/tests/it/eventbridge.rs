//! Event buses: the wire protocol, and the queue of a bus.

use antumbra_queues::eventbridge::bus_queue;
use antumbra_queues::{Queues, QueuesConfig};
use serde_json::{Value, json};

use crate::operations::{call, config};

/// Calls EventBridge; an error is its type.
fn events(queues: &Queues, operation: &str, request: &Value) -> Result<Value, String> {
    let response = queues.eventbridge(operation, request.to_string().as_bytes());
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    match response.status().as_u16() {
        200 => Ok(body),
        _ => Err(body["__type"].as_str().unwrap().to_owned()),
    }
}

fn entry(bus: &str, detail: &str) -> Value {
    json!({"Source": "antumbra", "DetailType": "Shadow Changed", "Detail": detail, "EventBusName": bus})
}

/// Bodies in the queue of a bus.
async fn received(queues: &Queues, bus: &str) -> Vec<String> {
    let url = queues.queue_url(&bus_queue(bus));
    let request = json!({"QueueUrl": url, "MaxNumberOfMessages": 10, "VisibilityTimeout": 0});
    let found = call(queues, "ReceiveMessage", request).await.unwrap();
    let messages = found["Messages"].as_array().cloned().unwrap_or_default();
    let body = |message: &Value| message["Body"].as_str().unwrap().to_owned();
    messages.iter().map(body).collect()
}

#[tokio::test]
async fn events_arrive_in_the_queue_of_their_bus_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let data_dir = Some(directory.path().to_owned());
        Queues::open(QueuesConfig {
            data_dir,
            ..config()
        })
    };
    let queues = open().unwrap();
    let made = events(&queues, "CreateEventBus", &json!({"Name": "alerts"})).unwrap();
    let arn = "arn:aws:events:us-east-1:000000000000:event-bus/alerts";
    assert_eq!(made, json!({ "EventBusArn": arn }));
    let detail = r#"{"n":12345678901234567890.123456789}"#;
    let mut dated = entry(arn, detail);
    dated["Time"] = json!(1_700_000_000);
    dated["Resources"] = json!(["lamp"]);
    let put = json!({"Entries": [dated, entry("default", "{}")]});
    let result = events(&queues, "PutEvents", &put).unwrap();
    assert_eq!(result["FailedEntryCount"], 0, "{result}");
    drop(queues);

    let queues = open().unwrap();
    let [event] = &received(&queues, "alerts").await[..] else {
        panic!("one event");
    };
    assert!(
        event.ends_with(&format!(",\"detail\":{detail}}}")),
        "{event}"
    );
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["id"], result["Entries"][0]["EventId"]);
    assert_eq!(event["time"], "2023-11-14T22:13:20Z");
    assert_eq!(event["resources"], json!(["lamp"]));
    let names = ["version", "detail-type", "source", "account", "region"];
    let values = names.map(|name| event[name].as_str().unwrap().to_owned());
    let expected = [
        "0",
        "Shadow Changed",
        "antumbra",
        "000000000000",
        "us-east-1",
    ];
    assert_eq!(values, expected);
    assert_eq!(received(&queues, "default").await.len(), 1);
    let buses = events(&queues, "ListEventBuses", &json!({})).unwrap();
    let names = buses["EventBuses"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|bus| &bus["Name"]).collect();
    assert_eq!(names, ["alerts", "default"]);
}

#[test]
fn each_entry_has_its_own_result() {
    let queues = Queues::open(config()).unwrap();
    let elsewhere = "arn:aws:events:eu-west-1:123456789012:event-bus/default";
    let mut nameless = entry("default", "{}");
    nameless["DetailType"] = json!("");
    let put = json!({"Entries": [
        entry("default", "[1]"), entry("missing", "{}"), entry("default", "{}"), nameless,
        entry(elsewhere, "{}"),
    ]});
    let result = events(&queues, "PutEvents", &put).unwrap();
    assert_eq!(result["FailedEntryCount"], 4);
    let code = |at: usize| result["Entries"][at]["ErrorCode"].as_str();
    let codes = [0, 1, 2, 3, 4].map(code);
    let invalid = Some("InvalidArgument");
    assert_eq!(
        codes,
        [Some("MalformedDetail"), invalid, None, invalid, invalid]
    );
}

#[test]
fn calls_beyond_the_limits_are_refused() {
    let queues = Queues::open(config()).unwrap();
    let half = format!(r#"{{"x":"{}"}}"#, "x".repeat(512 * 1024));
    for (operation, request, error) in [
        ("PutEvents", json!({"Entries": []}), "ValidationException"),
        (
            "PutEvents",
            json!({"Entries": vec![entry("default", "{}"); 11]}),
            "ValidationException",
        ),
        (
            "PutEvents",
            json!({"Entries": vec![entry("default", &half); 2]}),
            "ValidationException",
        ),
        ("PutEvents", json!({}), "SerializationException"),
        ("PutRule", json!({}), "UnknownOperationException"),
    ] {
        assert_eq!(events(&queues, operation, &request), Err(error.to_owned()));
    }
    let fits = json!({"Entries": [entry("default", &half)]});
    assert_eq!(
        events(&queues, "PutEvents", &fits).unwrap()["FailedEntryCount"],
        0
    );
}
