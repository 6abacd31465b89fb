//! Events of queues, as AWS documents them, to messages.

use antumbra_testkit::table::cases;
use antumbra_wire::events::{rabbitmq, sqs};

fn event(name: &str) -> Vec<u8> {
    let path = format!("{}/testdata/queues/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

#[test]
fn a_standard_queue_has_no_order_even_with_groups() {
    let event = event("sqs-standard");
    let messages = sqs::read(&event).unwrap();
    let read = messages.iter().map(|m| {
        assert_eq!(m.group, None);
        format!("{} {} {}", m.id, m.sent, m.receives)
    });
    let expected = [
        "059f36b4-87a3-44ab-83d2-661975830a7d 2018-12-17T21:37:29.183Z 1",
        "2e1424d4-f796-459a-8184-9c92662be6da 2018-12-17T21:37:30.636Z 3",
    ];
    assert_eq!(read.collect::<Vec<_>>(), expected);
    assert_eq!(messages[0].body, r#"{"sensor_id":"0xA","data":1}"#);
}

#[test]
fn a_fifo_queue_keeps_order_by_group() {
    let event = event("sqs-fifo");
    let messages = sqs::read(&event).unwrap();
    assert_eq!(messages[0].group.as_deref(), Some("TestSensor"));
}

#[test]
fn a_record_that_cannot_be_named_fails_the_event() {
    let table = r#"
        «» | not an SQS event
        {} | missing field `Records`
        {"Records":[{}]} | missing field `messageId`
        {"Records":[{"messageId":"m","body":"","eventSourceARN":"a","attributes":{}}]} | missing field `SentTimestamp`
        {"Records":[{"messageId":"m","body":"","eventSourceARN":"a","attributes":{"SentTimestamp":"soon"}}]} | message m was sent at "soon"
    "#;
    for [event, expected] in cases(table) {
        let error = sqs::read(event.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&expected), "{event}: {error}");
    }
    let huge = vec![b' '; antumbra_wire::limits::EVENT_BYTES + 1];
    let errors = [
        sqs::read(&huge).unwrap_err().to_string(),
        rabbitmq::read(&huge).unwrap_err().to_string(),
    ];
    assert!(
        errors.iter().all(|error| error.contains("16777217 bytes")),
        "{errors:?}"
    );
}

#[test]
fn all_queues_of_a_rabbitmq_event_are_read_in_order() {
    let event = event("rabbitmq");
    assert!(rabbitmq::is_event(&event));
    assert!(!rabbitmq::is_event(&self::event("sqs-standard")));
    let messages = rabbitmq::read(&event).unwrap();
    let bodies: Vec<_> = messages.iter().map(|m| m.body.as_deref().ok()).collect();
    assert_eq!(
        bodies,
        [
            Some(r#"{"sensor_id": "0xA", "data": 1}"#),
            Some(r#"{"sensor_id": "TestSensor", "data": 0}"#),
            None,
        ]
    );
    assert_eq!(messages[0].queue, "sensors-queue::vh_sensors");
    assert_eq!(
        (messages[1].id.as_str(), messages[1].redelivered),
        ("m-2", true)
    );
    assert_eq!(messages[2].body.as_ref().unwrap_err().0, "/////w==");
}

#[test]
fn a_message_without_an_id_is_known_by_queue_content_and_time() {
    let id = |queue: &str, data: &str, timestamp: &str| {
        let event = format!(
            r#"{{"rmqMessagesByQueue":{{"{queue}":[{{"basicProperties":{{"timestamp":{timestamp}}},"data":"{data}"}}]}}}}"#
        );
        rabbitmq::read(event.as_bytes()).unwrap()[0].id.clone()
    };
    let first = id("a", "eA==", "1");
    assert_eq!(first, id("a", "eA==", "1"));
    for other in [
        id("b", "eA==", "1"),
        id("a", "eQ==", "1"),
        id("a", "eA==", "2"),
    ] {
        assert_ne!(first, other);
    }
    assert_eq!(first.len(), 32);
}

#[test]
fn other_events_are_not_rabbitmqs() {
    for event in [
        "",
        "[]",
        "{}",
        r#"{"rmqMessagesByQueue":[]}"#,
        r#"{"rmqMessagesByQueue":{"q":[{}]}}"#,
        r#"{"rmqMessagesByQueue":{"q":[{"data":7}]}}"#,
    ] {
        assert!(rabbitmq::read(event.as_bytes()).is_err(), "{event}");
    }
}
