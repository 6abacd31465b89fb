//! Publishing over HTTP, with the SDK and with raw requests.

use antumbra_local::{
    clients::sdk_config,
    mqtt::{self, Broker, Subscription, TopicFilter},
    queues::{self, Queues},
};
use aws_sdk_iotdataplane::{
    Client, error::ProvideErrorMetadata as _, primitives::Blob, types::PayloadFormatIndicator,
};

use crate::device::v4;
use crate::support::{exchange, soon};

async fn stack() -> (Broker, Queues, Client, Subscription) {
    let broker = mqtt::start(0).await.unwrap();
    let queues = queues::start_with_mqtt(0, broker.publisher()).await;
    let queues = queues.unwrap();
    let client = Client::new(&sdk_config(queues.address()));
    let published = broker.subscribe(TopicFilter::new("#").unwrap());
    (broker, queues, client, published)
}

fn post(path: &str, header: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}content-length: 2\r\n\r\nhi"
    )
}

#[tokio::test]
async fn every_publish_option_of_the_sdk_arrives() {
    let (_broker, _queues, client, mut published) = stack().await;
    let call = client
        .publish()
        .topic("request/get/a b/+5%/\u{e5}".replace('+', "-"));
    let call = call.qos(1).payload(Blob::new([0, 255]));
    let call = call
        .response_topic("response/get/x y+z")
        .correlation_data("AQID");
    let call = call.content_type("application/json").message_expiry(30);
    let call = call.payload_format_indicator(PayloadFormatIndicator::Utf8Data);
    let call = call.user_properties(r#"[{"a":"1"},{"b":"2"},{"a":"3"}]"#);
    call.send().await.unwrap();
    let message = soon("a message", published.next()).await.unwrap();
    assert_eq!(message.topic, "request/get/a b/-5%/\u{e5}");
    assert_eq!(&message.payload[..], [0, 255]);
    assert_eq!(message.client_id, None);
    assert!(message.at_least_once && !message.retain);
    let of = message.properties;
    assert_eq!(of.response_topic.as_deref(), Some("response/get/x y+z"));
    assert_eq!(of.correlation_data.as_deref(), Some(&[1, 2, 3][..]));
    assert_eq!(of.content_type.as_deref(), Some("application/json"));
    assert_eq!(of.expiry_seconds.map(std::num::NonZeroU32::get), Some(30));
    assert!(of.utf8);
    let user: Vec<_> = of.user.iter().map(|(n, v)| format!("{n}{v}")).collect();
    assert_eq!(user, ["a1", "b2", "a3"]);
}

#[tokio::test]
async fn published_messages_reach_devices_and_can_be_retained() {
    let (broker, _queues, client, _) = stack().await;
    let call = client.publish().topic("lamps/7").retain(true);
    let call = call.payload(Blob::new("on"));
    call.send().await.unwrap();
    let mut late = v4::Device::new(broker.address(), "late").await;
    late.subscribe("lamps/7").await;
    assert_eq!(late.text().await, "on");
}

#[tokio::test]
async fn slashes_in_topics_need_no_escape() {
    let (_broker, queues, _, mut published) = stack().await;
    let request = post("/topics/request/devices?qos=1", "");
    let response = exchange(queues.address(), &request).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let message = soon("a message", published.next()).await.unwrap();
    assert_eq!(message.topic, "request/devices");
}

#[tokio::test]
async fn requests_that_aws_rejects_are_rejected() {
    let (_broker, queues, client, _) = stack().await;
    for topic in ["a/+", "a/#", &"a/".repeat(9), &"x".repeat(257)] {
        let refused = client.publish().topic(topic).send().await.unwrap_err();
        assert_eq!(refused.code(), Some("InvalidRequestException"), "{topic}");
    }
    let large = Blob::new(vec![b'x'; 128 * 1024 + 1]);
    let refused = client.publish().topic("a").payload(large).send().await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Some("RequestEntityTooLargeException"));
    let bad_data = "x-amz-mqtt5-correlation-data: ?\r\n";
    let bad_user = "x-amz-mqtt5-user-properties: e30=\r\n";
    let bad_format = "x-amz-mqtt5-payload-format-indicator: TEXT\r\n";
    for (path, header, status) in [
        ("/topics/a?qos=2", "", 400),
        ("/topics/a?retain=maybe", "", 400),
        ("/topics/a?messageExpiry=soon", "", 400),
        ("/topics/%FF", "", 400),
        ("/topics/", "", 400),
        ("/topics/a", bad_data, 400),
        ("/topics/a", bad_user, 400),
        ("/topics/a", bad_format, 400),
    ] {
        let response = exchange(queues.address(), &post(path, header)).await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(response.starts_with(&expected), "{path}: {response}");
    }
    let get = post("/topics/a", "").replace("POST", "GET");
    let response = exchange(queues.address(), &get).await;
    assert!(response.starts_with("HTTP/1.1 405"), "{response}");
}
