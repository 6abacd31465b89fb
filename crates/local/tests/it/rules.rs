//! Rules: the functions that messages invoke, their events, and failed invocations.

use std::time::Duration;

use antumbra_lambda_kit::functions::AsynchronousSettings;
use antumbra_local::{
    mqtt::{self, Broker, Message},
    queues::Queues,
    rules::{self, RuleTarget},
    task::Running,
    unkind::Unkind,
};
use antumbra_wire::rules::{Operation, Rule};
use antumbra_wire::topic_prefix::TopicPrefix;

use serde_json::{Value, json};

use crate::{
    device::{v4, v5},
    support::{Calls, function, queues, soon},
};

struct Stack {
    broker: Broker,
    rules: Running,
    calls: Calls,
    queues: Queues,
}

fn settings(max_retries: u32) -> AsynchronousSettings {
    AsynchronousSettings {
        max_retries,
        max_event_age: Duration::from_secs(60),
        on_failure: "failures",
    }
}

async fn stack(rules: &[Rule]) -> Stack {
    let broker = mqtt::start(0).await.unwrap();
    let (emulated, client) = queues().await;
    let made = client.create_queue().queue_name("failures").send().await;
    made.unwrap();
    let (function, calls) = function("message-get");
    let targets = rules.iter().map(|rule| RuleTarget {
        rule: *rule,
        function: function.clone(),
        settings: settings(0),
    });
    let rules = rules::start(
        &broker,
        targets.collect(),
        &TopicPrefix::default(),
        emulated.queues(),
        &Unkind::default(),
    );
    Stack {
        broker,
        rules: rules.unwrap(),
        calls,
        queues: emulated,
    }
}

/// Receives messages of the failure queue.
async fn failures(queues: &Queues) -> Vec<Value> {
    let wait = Some(Duration::from_secs(20));
    let received = queues.queues().receive("failures", 10, None, wait).await;
    let received = received.unwrap().into_iter();
    received
        .map(|message| serde_json::from_str(&message.body).unwrap())
        .collect()
}

#[tokio::test]
async fn a_message_invokes_the_function_of_its_topic() {
    let mut stack = stack(&[Operation::Get.rule()]).await;
    let (broker, calls) = (&stack.broker, &mut stack.calls);
    let mut old = v4::Device::new(broker.address(), "old").await;
    // The rule matches neither the parent level nor another operation.
    for topic in ["request/get", "request/query/a", "request/get/a/b"] {
        old.publish(topic, false, "{}").await;
    }
    let call = calls.next().await;
    let timestamp = call.event["timestamp"].as_u64().unwrap();
    assert!(timestamp > 1_700_000_000_000, "{timestamp}");
    let expected = json!({
        "payload": "e30=", "topic": "request/get/a/b", "clientId": "old", "timestamp": timestamp,
    });
    assert_eq!(call.event, expected);
    call.succeed();
    let new = v5::Device::new(broker.address(), "new").await;
    let properties = rumqttc::v5::mqttbytes::v5::PublishProperties {
        response_topic: Some("response/get/x".to_owned()),
        correlation_data: Some(vec![1, 2, 3].into()),
        ..Default::default()
    };
    let qos = v5::QoS::AtLeastOnce;
    let (topic, payload) = ("request/get/a/b/c", vec![0, 255]);
    let published = new
        .client
        .publish_with_properties(topic, qos, false, payload, properties);
    published.await.unwrap();
    let call = calls.next().await;
    assert_eq!(call.event["responseTopic"], "response/get/x");
    assert_eq!(call.event["correlationData"], "AQID");
    assert_eq!(call.event["payload"], "AP8=");
    call.succeed();
}

#[tokio::test]
async fn a_failed_invocation_goes_to_the_failure_queue_and_is_not_repeated() {
    let mut stack = stack(&[Operation::Get.rule()]).await;
    let publish = |n: u32| {
        let message = Message::new(format!("request/get/a/{n}"), "{}");
        stack.broker.publish(message)
    };
    publish(0).await.unwrap();
    stack.calls.next().await.fail();
    publish(1).await.unwrap();
    let next = stack.calls.next().await;
    assert_eq!(next.event["topic"], "request/get/a/1");
    // Dropping the call makes the function panic.
    drop(next);
    let mut failed_events = Vec::new();
    while failed_events.len() < 2 {
        failed_events.extend(soon("a failure", failures(&stack.queues)).await);
    }
    failed_events.sort_by_key(|record| record["requestPayload"]["topic"].to_string());
    let [failed, panicked] = failed_events.as_slice() else {
        panic!("{failed_events:?}");
    };
    assert_eq!(failed["requestContext"]["condition"], "RetriesExhausted");
    assert_eq!(failed["requestContext"]["approximateInvokeCount"], 1);
    assert_eq!(
        failed["requestContext"]["functionArn"],
        "arn:aws:lambda:us-east-1:000000000000:function:message-get"
    );
    assert_eq!(failed["requestPayload"]["topic"], "request/get/a/0");
    assert_eq!(
        failed["responsePayload"]["errorMessage"],
        "failed: to order"
    );
    assert_eq!(panicked["responsePayload"]["errorMessage"], "panicked");
}

#[tokio::test]
async fn a_slow_invocation_delays_others_only_at_the_concurrency_limit() {
    let mut stack = stack(&[Operation::Get.rule()]).await;
    for n in 0..12 {
        let message = Message::new(format!("request/get/a/{n}"), "{}");
        stack.broker.publish(message).await.unwrap();
    }
    let mut running = Vec::new();
    for _ in 0..10 {
        running.push(stack.calls.next().await);
    }
    assert!(stack.calls.is_empty());
    for call in running {
        call.succeed();
    }
    // The two waiting messages are processed although the rules stop.
    let waiting = [stack.calls.next().await, stack.calls.next().await];
    let stopping = tokio::spawn(stack.rules.stop());
    for call in waiting {
        call.succeed();
    }
    soon("the end", stopping).await.unwrap();
    let late = Message::new("request/get/a/late", "{}");
    stack.broker.publish(late).await.unwrap();
    assert!(stack.calls.is_empty());
}

#[tokio::test]
async fn a_rule_with_an_invalid_filter_does_not_start() {
    let broker = mqtt::start(0).await.unwrap();
    let (queues, _) = queues().await;
    let rule = Rule {
        filter: "a/#/b",
        ..Operation::Query.rule()
    };
    let target = RuleTarget {
        rule,
        function: function("f").0,
        settings: settings(0),
    };
    let error = rules::start(
        &broker,
        vec![target],
        &TopicPrefix::default(),
        queues.queues(),
        &Unkind::default(),
    );
    let error = error.unwrap_err();
    assert!(error.to_string().contains("`a/#/b`"), "{error}");
}

/// An event that was accepted is invoked after a restart, and a failed one is repeated.
#[tokio::test]
async fn accepted_events_survive_the_rules_and_failed_ones_are_repeated() {
    let broker = mqtt::start(0).await.unwrap();
    let (queues, _) = queues().await;
    let start = |retries: u32| {
        let (function, calls) = function("shadow-requests");
        let target = RuleTarget {
            rule: Operation::Get.rule(),
            function,
            settings: settings(retries),
        };
        let rules = rules::start(
            &broker,
            vec![target],
            &TopicPrefix::default(),
            queues.queues(),
            &Unkind::default(),
        );
        (rules.unwrap(), calls)
    };
    let (rules, mut calls) = start(2);
    for n in 0..11 {
        let message = Message::new(format!("request/get/a/{n}"), "{}");
        broker.publish(message).await.unwrap();
    }
    let mut running = Vec::new();
    for _ in 0..10 {
        running.push(calls.next().await);
    }
    running.pop().unwrap().fail();
    let eleventh = calls.next().await;
    for call in running.into_iter().chain([eleventh]) {
        call.succeed();
    }
    soon("the end", rules.stop()).await;
    let waiting = queues.queues().counts("__shadow-requests").unwrap();
    assert_eq!(
        (waiting.visible, waiting.in_flight),
        (0, 1),
        "for the retry"
    );
}
