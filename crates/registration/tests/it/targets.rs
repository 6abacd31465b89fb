//! Targets, as they are read from files.

use antumbra_registration::target::{EventBridge, QualityOfService};
use antumbra_registration::{Change, KeyAttributes, Queue, Registrations, Target, TopicError};

use crate::support::Given;

fn target(to: &str) -> Target {
    let env = |name: &str| match name {
        "QUEUE" => Some("https://sqs.eu-west-1.amazonaws.com/123456789012/alerts.fifo".to_owned()),
        "STAGE" => Some("test".to_owned()),
        _ => None,
    };
    let registrations =
        Registrations::load([("r.json", format!(r#"{{"name":"r","to":{to}}}"#))], &env)
            .unwrap_or_else(|errors| panic!("{errors}"));
    registrations.iter().next().unwrap().1.to.clone()
}

#[test]
fn queues_by_name_url_and_arn() {
    let queue = |text: &str| match target(&format!(r#"{{"sqs":{{"queue":"{text}"}}}}"#)) {
        Target::Sqs(sqs) => sqs.queue,
        other => panic!("{other:?}"),
    };
    assert_eq!(queue("alerts"), Queue::Name("alerts".to_owned()));
    assert!(!queue("alerts").is_fifo());
    assert_eq!(
        queue("alerts-${env:STAGE}.fifo"),
        Queue::Name("alerts-test.fifo".to_owned())
    );
    assert!(queue("alerts-${env:STAGE}.fifo").is_fifo());
    assert_eq!(
        queue("${env:QUEUE}"),
        Queue::Url("https://sqs.eu-west-1.amazonaws.com/123456789012/alerts.fifo".to_owned())
    );
    assert_eq!(
        queue("http://localhost:9324/000000000000/q").as_str(),
        "http://localhost:9324/000000000000/q"
    );
    assert!(
        matches!(queue("arn:aws-cn:sqs:cn-north-1:123456789012:a.fifo"), Queue::Arn(arn) if arn.ends_with(":a.fifo"))
    );
}

#[test]
fn options_and_their_defaults() {
    let Target::Sqs(sqs) =
        target(r#"{"sqs":{"queue":"q","delaySeconds":900,"attributes":{"stage":"${env:STAGE}"}}}"#)
    else {
        panic!()
    };
    assert_eq!(
        (sqs.delay_seconds, sqs.attributes["stage"].as_str()),
        (900, "test")
    );
    let Target::Sns(sns) =
        target(r#"{"sns":{"topic":"arn:aws:sns:eu-west-1:123456789012:a.fifo","subject":"Hi"}}"#)
    else {
        panic!()
    };
    assert_eq!(
        (sns.is_fifo(), sns.subject.as_deref(), sns.attributes.len()),
        (true, Some("Hi"), 0)
    );
    let Target::Mqtt(mqtt) = target(r#"{"mqtt":{"topic":"a"}}"#) else {
        panic!()
    };
    assert_eq!(mqtt.qos, QualityOfService::AtLeastOnce);
    let Target::Mqtt(mqtt) = target(r#"{"mqtt":{"topic":"a","qos":0}}"#) else {
        panic!()
    };
    assert_eq!(mqtt.qos, QualityOfService::AtMostOnce);
    let Target::EventBridge(bridge) =
        target(r#"{"eventbridge":{"bus":"arn:aws:events:eu-west-1:123456789012:event-bus/main"}}"#)
    else {
        panic!()
    };
    assert_eq!(bridge.detail_type, EventBridge::DETAIL_TYPE);
    assert_eq!(target(r#"{"clients":{}}"#).kind(), "clients");
}

#[test]
fn topic_values_stay_in_their_level() {
    let topic = |template: &str, given: &Given| match target(&format!(
        r#"{{"mqtt":{{"topic":"{template}"}}}}"#
    )) {
        Target::Mqtt(mqtt) => given.with(|change, _| mqtt.topic.render(change)),
        other => panic!("{other:?}"),
    };
    let given = Given::new("{}");
    assert_eq!(
        topic("${env:STAGE}/${id}/${name}/${state}/${operation}", &given).unwrap(),
        "test/device/main/reported/modify"
    );
    assert_eq!(topic("cost-$5/x", &given).unwrap(), "cost-$5/x");
    let odd = Given::new("{}").with_id("My House#1/+%\n\u{85}é");
    assert_eq!(
        topic("a/${id}", &odd).unwrap(),
        "a/My House%231%2F%2B%25%0A%C2%85é"
    );
    let other = Given::parse(r#"{"key":"SENSOR#1","shadow":false,"new":{}}"#);
    assert_eq!(topic("a/${operation}", &other).unwrap(), "a/modify");
    assert_eq!(
        topic("a/${id}", &other),
        Err(TopicError::NotAShadow { placeholder: "id" })
    );
    let of_key = |value: &str| match target(r#"{"mqtt":{"topic":"notification/${key:uuid}"}}"#) {
        Target::Mqtt(mqtt) => other.with(|change, _| {
            let key_attributes = KeyAttributes {
                partition: Some(("uuid", value)),
                sort: Some(("messageId", "1")),
            };
            mqtt.topic.render(&Change {
                key_attributes,
                ..*change
            })
        }),
        other => panic!("{other:?}"),
    };
    for value in ["testThing", "50%", "a b", "$5"] {
        assert_eq!(of_key(value).unwrap(), format!("notification/{value}"));
    }
    let attribute = "uuid".to_owned();
    for value in ["", "a/b", "+", "#sources", "a\u{0}"] {
        let attribute = attribute.clone();
        assert_eq!(of_key(value), Err(TopicError::NotALevel { attribute }));
    }
    assert_eq!(
        topic("a/${key:uuid}", &other),
        Err(TopicError::NoKeyAttribute { attribute })
    );
    let long = Given::new("{}").with_id(&"x".repeat(300));
    assert_eq!(
        topic("a/${id}", &long),
        Err(TopicError::TooLong {
            bytes: 302,
            limit: 256
        })
    );
}
