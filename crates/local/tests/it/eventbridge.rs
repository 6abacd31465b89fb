//! The target `eventbridge`, with the SDK's client and the local bus.

use antumbra_local::queues::bus_queue;
use antumbra_local::stack::Options;
use serde_json::{Value, json};

use crate::support::{Home, registrations};

/// Sends each change to a bus of its own and to the default bus.
fn rules() -> [String; 2] {
    let arn = "arn:aws:events:us-east-1:000000000000:event-bus/default";
    [
        json!({"name": "alerts", "to": {"eventbridge": {"bus": "alerts", "detailType": "Alert"}}}),
        json!({"name": "all", "send": ["new"], "to": {"eventbridge": {"bus": arn}}}),
    ]
    .map(|rule: Value| rule.to_string())
}

#[tokio::test]
async fn changes_arrive_on_the_bus_of_their_registration() {
    let home = Home::with_api(Options {
        registrations: registrations(rules()),
        ..Options::default()
    })
    .await;
    let report = json!({"reported": {"led": 12345678901234567890_u64}});
    let path = "/v1/shadows/lamp/reported";
    let (status, body) = home.call_api("PATCH", path, &[], &report["reported"]).await;
    assert_eq!(status, 200, "{body}");
    for (bus, detail_type, member) in [
        ("alerts", "Alert", "/detail/diff/added/~1led"),
        ("default", "Shadow Changed", "/detail/new/led"),
    ] {
        let found = home.receive(&bus_queue(bus), 20).await;
        let body = found[0].body().unwrap();
        let event: Value = serde_json::from_str(body).unwrap();
        assert_eq!(event["detail-type"], detail_type, "{body}");
        assert_eq!(event["source"], "antumbra");
        assert_eq!(event["detail"]["shadow"]["id"], "lamp");
        let value = event.pointer(member);
        assert_eq!(value, Some(&json!(12345678901234567890_u64)), "{body}");
    }
    let undeliverable = home.receive("antumbra-undeliverable", 0).await;
    assert!(undeliverable.is_empty(), "{undeliverable:?}");
    home.stop().await;
}
