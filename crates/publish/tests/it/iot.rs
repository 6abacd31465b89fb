//! AWS IoT: requests and the meaning of responses.

use antumbra_local::mqtt::TopicFilter;
use antumbra_publish::IotChannel;
use antumbra_service::notifications::{Channel, Message};
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_sdk_iotdataplane::Client;

use crate::contract::{Behaviour, rejection};
use crate::message::{letters, message, messages, reason};
use crate::scripted::config_of;
use antumbra_testkit::http::{Endpoint, Response};

pub(crate) fn respond(behaviour: Behaviour) -> Response {
    match behaviour {
        Behaviour::Accepts => Response::ok(""),
        Behaviour::Throttles => rejection(429, "ThrottlingException"),
        Behaviour::Denies => rejection(403, "ForbiddenException"),
        Behaviour::HangsUp => Response::HangUp,
    }
}

fn channel(endpoint: &Endpoint) -> IotChannel {
    IotChannel::new(&Client::new(&config_of(endpoint)))
}

#[tokio::test]
async fn a_topic_gets_the_body_with_its_quality_of_service() {
    let endpoint = Endpoint::start(|_| respond(Behaviour::Accepts));
    let once = Message {
        topic: Some("shadows/My House/reported".to_owned()),
        qos: 0,
        ..message(1)
    };
    let sent = channel(&endpoint).send(&[message(0), once]).await;
    assert_eq!(letters(&sent), "..");
    let requests = endpoint.requests();
    assert_eq!(requests[0].path(), "/topics/shadows%2Fboiler?qos=1");
    assert_eq!(requests[0].body, "{\"n\":0}");
    assert_eq!(
        requests[1].path(),
        "/topics/shadows%2FMy%20House%2Freported?qos=0"
    );
}

#[tokio::test]
async fn the_local_data_plane_publishes_to_the_broker() {
    let broker = antumbra_local::mqtt::start(0).await.unwrap();
    let queues = antumbra_local::queues::start_with_mqtt(0, broker.publisher());
    let queues = queues.await.unwrap();
    let filter = TopicFilter::new("response/#").unwrap();
    let mut subscription = broker.subscribe(filter);
    let client = Client::new(&antumbra_local::clients::sdk_config(queues.address()));
    let response = Message {
        topic: Some("response/get/My House \u{e5}%2F".to_owned()),
        correlation_data: Some("AQID".to_owned()),
        ..message(0)
    };
    let too_deep = Message {
        topic: Some("$aws/a/b/c/d/e/f/g/h/i".to_owned()),
        ..message(1)
    };
    let sent = IotChannel::new(&client).send(&[too_deep, response]).await;
    assert_eq!(letters(&sent), "p.");
    assert!(reason(&sent[0]).contains("9 slashes"), "{sent:?}");
    let received = subscription.next().await.unwrap();
    assert_eq!(received.topic, "response/get/My House \u{e5}%2F");
    assert_eq!(&received.payload[..], message(0).body.as_bytes());
    assert!(received.at_least_once && received.client_id.is_none());
    let data = received.properties.correlation_data;
    assert_eq!(data.as_deref(), Some(&[1, 2, 3][..]));
}

#[tokio::test]
async fn invalid_messages_do_not_affect_others() {
    let endpoint = Endpoint::start(|_| respond(Behaviour::Accepts));
    let mut messages = messages(7);
    messages[1].topic = Some("shadows/+".to_owned());
    messages[2].topic = None;
    messages[3].topic = Some("a/".repeat(9));
    messages[5].qos = 2;
    let results = channel(&endpoint).send(&messages).await;
    assert_eq!(letters(&results), ".ppp.p.");
    assert!(reason(&results[1]).contains("'+'"));
    assert!(reason(&results[5]).contains("QoS 2"));
    assert_eq!(endpoint.requests().len(), 3);
}

#[test]
fn each_message_is_a_call_and_thirty_two_are_in_flight() {
    let config = aws_types::SdkConfig::builder()
        .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
        .build();
    let channel = IotChannel::connect(&config, Some("endpoint.example"), TopicPrefix::default());
    assert_eq!(channel.limits().batch_count, 1);
    assert_eq!(channel.concurrent_calls(), 32);
}

#[tokio::test]
async fn rejections_are_retryable_or_permanent() {
    for (status, code, expected) in [
        (400, "InvalidRequestException", "p"),
        (401, "UnauthorizedException", "p"),
        (405, "MethodNotAllowedException", "p"),
        (413, "RequestEntityTooLargeException", "p"),
        (400, "ThrottlingException", "r"),
        (503, "ServiceUnavailableException", "r"),
    ] {
        let endpoint = Endpoint::start(move |_| {
            Response::new(status, "{\"message\":\"no\"}").with_header("x-amzn-errortype", code)
        });
        let results = channel(&endpoint).send(&messages(1)).await;
        assert_eq!(letters(&results), expected, "{code}");
        assert!(reason(&results[0]).contains(code), "{results:?}");
    }
}
