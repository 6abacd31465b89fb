//! Order of updates by time, in any order of invocations.

use std::time::Duration;

use antumbra_memory::MemoryShadows;
use antumbra_service::clock::Clock;
use antumbra_service::shadows::{Layout, ShadowId, ShadowStore};
use antumbra_shadow_requests::{Config, Order, RequestSummary};
use antumbra_testkit::{Failing, Faults};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Function, START, configured, event_at, function, in_memory, sections};

/// Milliseconds after the start of the clock.
fn after(milliseconds: i64) -> i64 {
    START * 1000 + milliseconds
}

async fn respond<P: ShadowStore>(
    function: &Function<P>,
    topic: &str,
    payload: &Value,
    time: i64,
) -> RequestSummary {
    let event = event_at(topic, "lamp", payload.to_string().as_bytes(), time);
    let deadline = function.clock.now().after(Duration::from_secs(10));
    let summary = function.requests.respond(&event, deadline).await.unwrap();
    function.responses.take_accepted();
    summary
}

async fn reported(store: &MemoryShadows, shadow: &ShadowId) -> (String, i64) {
    let sections = sections(store, shadow).await;
    let document = sections.reported.map(|reported| reported.document);
    (document.unwrap_or_default().to_string(), sections.version)
}

fn lamp() -> ShadowId {
    ShadowId::new("lamp").unwrap()
}

#[tokio::test]
async fn the_newest_update_wins_in_any_order_of_invocations() {
    for layout in [Layout::Separate, Layout::Combined] {
        for (topic, shadow) in [
            ("shadow/lamp/update", lamp()),
            (
                "shadow/lamp/name/light/update",
                ShadowId::named("lamp", "light").unwrap(),
            ),
        ] {
            for seed in 0..20_i64 {
                let (function, store) = in_memory(layout);
                // Each message arrives twice.
                let mut arrivals: Vec<i64> = (0..40).collect();
                arrivals.sort_by_key(|n| (n + 1) * (seed * 2 + 7919) % 101);
                for n in arrivals.into_iter().map(|n| n % 20 + 1) {
                    let fan = if n % 3 == 0 {
                        json!(null)
                    } else {
                        json!({"speed": n})
                    };
                    let update =
                        json!({"state": {"reported": {"led": n, "fan": fan, "list": [n]}}});
                    respond(&function, topic, &update, after(n)).await;
                }
                let expected = r#"{"fan":{"speed":20},"led":20,"list":[20]}"#;
                assert_eq!(reported(&store, &shadow).await.0, expected, "{seed}");
            }
        }
    }
}

#[tokio::test]
async fn a_time_in_the_message_comes_before_the_rules() {
    let (function, store) = in_memory(Layout::Separate);
    let update =
        |led: i64, time: Value| json!({"state": {"reported": {"led": led}}, "timestamp": time});
    let topic = "shadow/lamp/update";
    respond(&function, topic, &update(2, json!(START)), after(1)).await;
    respond(
        &function,
        topic,
        &update(1, json!("2023-11-14T22:13:19.999Z")),
        after(2),
    )
    .await;
    assert_eq!(reported(&store, &lamp()).await.0, r#"{"led":2}"#);

    let event = |led: i64, time: String| {
        let payload = json!({"state": {"reported": {"led": led}}}).to_string();
        let event = json!({
            "payload": STANDARD.encode(payload), "topic": topic, "clientId": "lamp",
            "timestamp": after(3), "userTimestamp": [time],
        });
        event.to_string().into_bytes()
    };
    let deadline = function.clock.now().after(Duration::from_secs(10));
    for (led, time) in [(4, START + 2), (3, START + 1)] {
        let event = event(led, time.to_string());
        function.requests.respond(&event, deadline).await.unwrap();
    }
    assert_eq!(reported(&store, &lamp()).await.0, r#"{"led":4}"#);

    for time in [json!("yesterday"), json!(true), json!(null)] {
        let summary = respond(&function, topic, &update(5, time), after(4)).await;
        assert_eq!(summary.code, Some(400));
    }
}

/// A, B, A: the second A is a write of times only, and B comes late.
#[tokio::test]
async fn a_value_sent_again_becomes_newer_without_a_new_version() {
    for (order, expected, version) in [
        (Order::On, r#"{"led":"a"}"#, 1),
        (Order::Changes, r#"{"led":"b"}"#, 2),
        (Order::Off, r#"{"led":"b"}"#, 2),
    ] {
        let store = MemoryShadows::new(Layout::Separate);
        let config = Config {
            order,
            ..Config::default()
        };
        let function = configured(store.clone(), config);
        for (led, time) in [("a", 1), ("a", 3), ("b", 2)] {
            let update = json!({"state": {"reported": {"led": led}}});
            respond(&function, "shadow/lamp/update", &update, after(time)).await;
        }
        let found = reported(&store, &lamp()).await;
        assert_eq!(found, (expected.to_owned(), version), "{order:?}");
    }
}

#[tokio::test]
async fn a_delete_is_ordered_by_its_time() {
    for layout in [Layout::Separate, Layout::Combined] {
        let (function, store) = in_memory(layout);
        let update = |led: i64| json!({"state": {"reported": {"led": led}}});
        respond(&function, "shadow/lamp/update", &update(1), after(10)).await;
        respond(&function, "shadow/lamp/delete", &json!({}), after(9)).await;
        assert_eq!(reported(&store, &lamp()).await.0, r#"{"led":1}"#);

        respond(&function, "shadow/lamp/delete", &json!({}), after(20)).await;
        respond(&function, "shadow/lamp/update", &update(2), after(19)).await;
        assert!(sections(&store, &lamp()).await.is_absent(), "{layout:?}");
        respond(&function, "shadow/lamp/update", &update(3), after(21)).await;
        let late = json!({"state": {"reported": {"fan": 1}}});
        respond(&function, "shadow/lamp/update", &late, after(18)).await;
        assert_eq!(reported(&store, &lamp()).await.0, r#"{"led":3}"#);
    }
}

#[tokio::test]
async fn old_requests_other_than_updates_are_dropped() {
    let (function, store) = in_memory(Layout::Separate);
    let update = json!({"state": {"reported": {"led": 1}}});
    let summary = respond(&function, "shadow/lamp/update", &update, after(-299_000)).await;
    assert!(!summary.dropped);
    for topic in ["shadow/lamp/get", "shadow/lamp/delete"] {
        for (age, dropped) in [(59_999, false), (60_001, true)] {
            let summary = respond(&function, topic, &json!({}), after(-age)).await;
            assert_eq!(summary.dropped, dropped, "{topic} {age}");
            assert_eq!(summary.code, None);
            respond(&function, "shadow/lamp/update", &update, after(-age)).await;
        }
    }
    assert!(!sections(&store, &lamp()).await.is_absent());
}

/// Lambda repeats the invocation, and after the last one keeps the event in the quarantine queue.
#[tokio::test]
async fn an_update_that_cannot_be_made_fails_the_invocation() {
    let faults = [
        Faults {
            throttled: 1.0,
            ..Faults::default()
        },
        Faults {
            lost_before: 1.0,
            ..Faults::default()
        },
    ];
    for faults in faults {
        let function = function(Failing::new(MemoryShadows::default(), faults, 1));
        let payload = br#"{"state":{"reported":{"led":1}}}"#;
        let event = event_at("shadow/lamp/update", "lamp", payload, after(0));
        let deadline = function.clock.now().after(Duration::from_secs(10));
        let error = function
            .requests
            .respond(&event, deadline)
            .await
            .unwrap_err();
        assert_eq!(error.kind, "UpdateFailed");
        assert!(function.responses.take_accepted().is_empty());
    }
}

#[tokio::test]
async fn reports_acknowledge_if_the_deployment_or_the_request_enables_it() {
    let topic = "shadow/lamp/update";
    for (deployment, request, left) in [
        (false, None, r#"{"led":1}"#),
        (false, Some(true), "{}"),
        (true, None, "{}"),
        (true, Some(false), r#"{"led":1}"#),
    ] {
        let store = MemoryShadows::new(Layout::Separate);
        let config = Config {
            acknowledge: deployment,
            ..Config::default()
        };
        let function = configured(store.clone(), config);
        let desire = json!({"state": {"desired": {"led": 1}}});
        respond(&function, topic, &desire, after(1)).await;
        let mut report = json!({"state": {"reported": {"led": 1}}});
        if let Some(acknowledge) = request {
            report["acknowledge"] = acknowledge.into();
        }
        respond(&function, topic, &report, after(2)).await;
        let desired = sections(&store, &lamp()).await.desired.unwrap().document;
        assert_eq!(desired.as_str(), left, "{deployment} {request:?}");
        // A repeated invocation does not restore acknowledged values.
        respond(&function, topic, &desire, after(1)).await;
        let desired = sections(&store, &lamp()).await.desired.unwrap().document;
        assert_eq!(desired.as_str(), left, "{deployment} {request:?}");
    }
}

#[tokio::test]
async fn a_time_far_in_the_future_is_rejected() {
    let (function, store) = in_memory(Layout::Separate);
    let update =
        json!({"state": {"reported": {"led": 1}}, "timestamp": START + 301, "verbose": true});
    let (_, response) = function
        .request("shadow/lamp/update", update.to_string().as_bytes())
        .await;
    let verdict = &response["verdicts"]["reported"][0]["verdict"];
    assert_eq!(*verdict, "kept: future", "{response}");
    assert_eq!(reported(&store, &lamp()).await.0, "{}");
}
