use antumbra_local::{
    listen::StartError,
    mqtt::{
        self, Broker, MAX_PAYLOAD_BYTES, Message, Properties, PublishError, Subscription,
        TopicFilter,
    },
};
use rumqttc::v5::mqttbytes::v5::PublishProperties;

use crate::device::{v4, v5};
use crate::support::soon;

async fn broker() -> Broker {
    mqtt::start(0).await.expect("the broker starts")
}

fn filter(text: &str) -> TopicFilter {
    TopicFilter::new(text).unwrap()
}

async fn next_message(subscription: &mut Subscription) -> Message {
    let message = soon("a message to the process", subscription.next()).await;
    message.expect("the broker runs")
}

#[tokio::test]
async fn mqtt_3_and_5_share_one_port() {
    let broker = broker().await;
    let mut old = v4::Device::new(broker.address(), "old").await;
    let mut new = v5::Device::new(broker.address(), "new").await;
    old.subscribe("to/old/#").await;
    new.subscribe("to/new/#").await;
    new.publish("to/old/1", false, "from new").await;
    old.publish("to/new/1", false, "from old").await;
    let message = old.next().await;
    assert_eq!(
        (message.topic.as_str(), &message.payload[..]),
        ("to/old/1", &b"from new"[..])
    );
    assert_eq!(message.qos, v4::QoS::AtLeastOnce);
    assert_eq!(new.text().await, "from old");
    broker.stop().await;
}

#[tokio::test]
async fn a_user_name_is_accepted() {
    let broker = broker().await;
    let old = |options: &mut v4::MqttOptions| {
        options.set_credentials("user", "password");
    };
    let new = |options: &mut v5::MqttOptions| {
        options.set_credentials("user", "password");
    };
    let old = v4::Device::with(broker.address(), "old", old).await;
    let new = v5::Device::with(broker.address(), "new", new).await;
    old.leave().await;
    new.leave().await;
    broker.stop().await;
}

#[tokio::test]
async fn the_process_subscribes_and_publishes() {
    let broker = broker().await;
    let mut subscription = broker.subscribe(filter("request/+/1"));
    let mut old = v4::Device::new(broker.address(), "old").await;
    let mut new = v5::Device::new(broker.address(), "new").await;
    old.subscribe("response/#").await;
    new.subscribe("response/#").await;

    old.publish("request/get/2", false, "no").await;
    old.publish("request/get/1", false, "{}").await;
    let message = next_message(&mut subscription).await;
    assert_eq!(message.topic, "request/get/1");
    assert_eq!(&message.payload[..], b"{}");
    assert_eq!(message.client_id.as_deref(), Some("old"));
    assert!(message.at_least_once && !message.retain);
    assert_eq!(message.properties, Properties::default());

    let properties = Properties {
        response_topic: Some("elsewhere".into()),
        correlation_data: Some("c1".into()),
        content_type: Some("application/json".into()),
        utf8: true,
        expiry_seconds: 60.try_into().ok(),
        user: vec![("a".into(), "1".into()), ("a".into(), "2".into())],
    };
    let response = Message {
        at_least_once: true,
        properties: properties.clone(),
        ..Message::new("response/get/1", "answer")
    };
    broker.publish(response).await.unwrap();
    assert_eq!(old.text().await, "answer");
    let message = new.next().await;
    assert_eq!(&message.payload[..], b"answer");
    let seen = message.properties.unwrap();
    assert_eq!(seen.response_topic, properties.response_topic);
    assert_eq!(seen.correlation_data, properties.correlation_data);
    assert_eq!(seen.content_type, properties.content_type);
    assert_eq!(seen.user_properties, properties.user);

    // From the process to devices, and to itself.
    let client = &new.client;
    let sent = PublishProperties {
        response_topic: Some("r".into()),
        correlation_data: Some("c2".into()),
        user_properties: properties.user.clone(),
        ..PublishProperties::default()
    };
    let (qos, topic) = (v5::QoS::AtLeastOnce, "request/query/1");
    client
        .publish_with_properties(topic, qos, false, "{}", sent)
        .await
        .unwrap();
    let message = next_message(&mut subscription).await;
    assert_eq!(message.properties.response_topic.as_deref(), Some("r"));
    assert_eq!(
        message.properties.correlation_data.as_deref(),
        Some(&b"c2"[..])
    );
    assert_eq!(message.properties.user, properties.user);
    broker
        .publish(Message::new("request/x/1", "own"))
        .await
        .unwrap();
    let own = next_message(&mut subscription).await;
    assert_eq!((&own.payload[..], own.client_id), (&b"own"[..], None));
    broker.stop().await;
    let last = soon("the end", subscription.next()).await;
    assert_eq!(last, None, "the broker is gone");
}

#[tokio::test]
async fn retained_messages_wait_for_an_exact_subscription() {
    let broker = broker().await;
    let mut device = v4::Device::new(broker.address(), "a").await;
    device.publish("state/1", true, "kept").await;
    let kept = Message {
        retain: true,
        ..Message::new("state/2", "kept by the process")
    };
    broker.publish(kept).await.unwrap();

    let mut later = v5::Device::new(broker.address(), "b").await;
    later.subscribe("state/1").await;
    let message = later.next().await;
    assert!(message.retain);
    assert_eq!(&message.payload[..], b"kept");
    later.subscribe("state/2").await;
    assert_eq!(later.text().await, "kept by the process");

    let mut wide = v4::Device::new(broker.address(), "c").await;
    wide.subscribe("state/#").await;
    device.publish("state/1", true, "").await;
    assert_eq!(wide.text().await, "", "the deletion is the first message");
    let mut last = v4::Device::new(broker.address(), "d").await;
    last.subscribe("state/1").await;
    device.publish("state/1", false, "fresh").await;
    let message = last.next().await;
    assert_eq!(
        (&message.payload[..], message.retain),
        (&b"fresh"[..], false)
    );
    broker.stop().await;
}

#[tokio::test]
async fn a_last_will_is_sent_when_a_device_vanishes() {
    let broker = broker().await;
    let mut subscription = broker.subscribe(filter("gone/#"));
    let mut watcher = v4::Device::new(broker.address(), "watcher").await;
    watcher.subscribe("gone/#").await;

    let polite = |options: &mut v4::MqttOptions| {
        let will = v4::LastWill::new("gone/polite", "x", v4::QoS::AtLeastOnce, false);
        options.set_last_will(will);
    };
    v4::Device::with(broker.address(), "polite", polite)
        .await
        .leave()
        .await;
    let old = |options: &mut v4::MqttOptions| {
        let will = v4::LastWill::new("gone/old", "o", v4::QoS::AtLeastOnce, false);
        options.set_last_will(will);
    };
    v4::Device::with(broker.address(), "old", old)
        .await
        .vanish();
    assert_eq!(
        watcher.text().await,
        "o",
        "no last will after a regular disconnect"
    );
    let message = next_message(&mut subscription).await;
    assert_eq!(
        (message.topic.as_str(), message.client_id.as_deref()),
        ("gone/old", Some("old"))
    );
    let new = |options: &mut v5::MqttOptions| {
        let will = v5::LastWill::new("gone/new", "n", v5::QoS::AtLeastOnce, false, None);
        options.set_last_will(will);
    };
    v5::Device::with(broker.address(), "new", new)
        .await
        .vanish();
    assert_eq!(watcher.text().await, "n");
    broker.stop().await;
}

#[tokio::test]
async fn a_session_keeps_messages_for_a_disconnected_device() {
    let broker = broker().await;
    let durable = |options: &mut v4::MqttOptions| {
        options.set_clean_session(false);
    };
    let mut device = v4::Device::with(broker.address(), "d", durable).await;
    device.subscribe("for/d").await;
    device.leave().await;
    let message = Message {
        at_least_once: true,
        ..Message::new("for/d", "while away")
    };
    broker.publish(message).await.unwrap();
    let mut device = v4::Device::with(broker.address(), "d", durable).await;
    assert_eq!(device.text().await, "while away");
    broker.stop().await;
}

#[tokio::test]
async fn the_limits_are_those_of_iot_core() {
    const ROOM: usize = 2 * MAX_PAYLOAD_BYTES;
    let broker = broker().await;
    let mut subscription = broker.subscribe(filter("size/#"));
    let roomy = |options: &mut v4::MqttOptions| {
        options.set_max_packet_size(ROOM, ROOM);
    };
    let connect = |id: &'static str| v4::Device::with(broker.address(), id, roomy);
    let mut receiver = connect("receiver").await;
    receiver.subscribe("size/#").await;

    let mut sender = connect("fits").await;
    let full = "x".repeat(MAX_PAYLOAD_BYTES);
    sender.publish("size/fits", false, &full).await;
    assert_eq!(receiver.next().await.payload.len(), MAX_PAYLOAD_BYTES);
    assert_eq!(
        next_message(&mut subscription).await.payload.len(),
        MAX_PAYLOAD_BYTES
    );

    let (once, twice) = (v4::QoS::AtLeastOnce, v4::QoS::ExactlyOnce);
    let over = [
        (
            "a-byte-more",
            once,
            "size/a-byte-more".to_owned(),
            full.clone() + "x",
        ),
        (
            "far-more",
            once,
            "size/far-more".to_owned(),
            full.repeat(2)[..ROOM - 99].to_owned(),
        ),
        (
            "deep",
            once,
            "size/1/2/3/4/5/6/7/8".to_owned(),
            String::new(),
        ),
        (
            "long",
            once,
            format!("size/{}", "t".repeat(256)),
            String::new(),
        ),
        ("qos-2", twice, "size/qos-2".to_owned(), String::new()),
    ];
    for (id, qos, topic, payload) in over {
        let sender = connect(id).await;
        sender
            .client
            .publish(topic, qos, false, payload)
            .await
            .unwrap();
        sender.closed().await;
    }
    sender.publish("size/last", false, "ok").await;
    assert_eq!(receiver.text().await, "ok", "nothing else arrives");
    assert_eq!(next_message(&mut subscription).await.topic, "size/last");

    let error = broker.publish(Message::new("size/x", full + "x")).await;
    assert!(matches!(error, Err(PublishError::Limit(_))));
    broker.stop().await;
}

#[tokio::test]
async fn stopping_frees_the_port() {
    let first = broker().await;
    let port = first.address().port();
    let error = mqtt::start(port).await.err().unwrap();
    assert!(
        matches!(error, StartError::PortTaken { port: p, .. } if p == port),
        "{error}"
    );
    let old = v4::Device::new(first.address(), "old").await;
    let new = v5::Device::new(first.address(), "new").await;
    first.stop().await;
    old.closed().await;
    new.closed().await;
    mqtt::start(port).await.unwrap().stop().await;
}
