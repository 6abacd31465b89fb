//! The laws of the port `Channel`, for every channel.

use antumbra_publish::{EventBridgeChannel, IotChannel, SnsChannel, SqsChannel};
use antumbra_service::notifications::Channel;
use serde_json::json;

use crate::message::{letters, message, messages, reason, send_all};
use crate::scripted::config_of;
use crate::{eventbridge, iot, sns, sqs};
use antumbra_testkit::http::{Endpoint, Response};

/// The behaviour of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Accepts,
    Throttles,
    Denies,
    HangsUp,
}

/// A channel and its scripted service.
struct Rig {
    name: &'static str,
    channel: Box<dyn Channel>,
    endpoint: Endpoint,
}

impl Rig {
    /// The bodies of each call.
    fn calls(&self) -> Vec<Vec<String>> {
        let requests = self.endpoint.requests();
        let bodies = |request| match self.name {
            "sqs" | "sqs fifo" => sqs::bodies(request),
            "sns" | "sns fifo" => sns::bodies(request),
            "eventbridge" => eventbridge::bodies(request),
            _ => vec![request.body.clone()],
        };
        requests.iter().map(bodies).collect()
    }
}

fn rigs(behaviour: Behaviour) -> Vec<Rig> {
    let aws = |name, channel, endpoint| Rig {
        name,
        channel,
        endpoint,
    };
    let mut rigs = Vec::new();
    for (name, queue) in [("sqs", "alerts"), ("sqs fifo", "alerts.fifo")] {
        let endpoint = Endpoint::start(move |request| sqs::respond(behaviour, request));
        let client = aws_sdk_sqs::Client::new(&config_of(&endpoint));
        let url = format!("http://127.0.0.1:1/000000000000/{queue}");
        let channel = Box::new(SqsChannel::new(&client, &url));
        rigs.push(aws(name, channel, endpoint));
    }
    for (name, topic) in [("sns", "alerts"), ("sns fifo", "alerts.fifo")] {
        let endpoint = Endpoint::start(move |request| sns::respond(behaviour, request));
        let client = aws_sdk_sns::Client::new(&config_of(&endpoint));
        let arn = format!("arn:aws:sns:us-east-1:000000000000:{topic}");
        let channel = Box::new(SnsChannel::new(&client, &arn));
        rigs.push(aws(name, channel, endpoint));
    }
    let endpoint = Endpoint::start(move |request| eventbridge::respond(behaviour, request));
    let client = aws_sdk_eventbridge::Client::new(&config_of(&endpoint));
    let channel = Box::new(EventBridgeChannel::new(&client, "alerts"));
    rigs.push(aws("eventbridge", channel, endpoint));

    let endpoint = Endpoint::start(move |_| iot::respond(behaviour));
    let client = aws_sdk_iotdataplane::Client::new(&config_of(&endpoint));
    let channel = Box::new(IotChannel::new(&client));
    rigs.push(aws("iot", channel, endpoint));

    rigs
}

#[tokio::test]
async fn all_messages_arrive_in_order_with_the_fewest_calls() {
    for count in [1, 9, 10, 11, 25] {
        for rig in rigs(Behaviour::Accepts) {
            let messages = messages(count);
            let results = send_all(&*rig.channel, &messages).await;
            assert_eq!(letters(&results), ".".repeat(count), "{}", rig.name);
            let calls = rig.calls();
            let limits = rig.channel.limits();
            let expected = count.div_ceil(limits.batch_count);
            assert_eq!(calls.len(), expected, "{}: calls", rig.name);
            let sent: Vec<_> = messages.iter().map(|message| &message.body).collect();
            let arrived = calls.concat();
            assert_eq!(arrived.iter().collect::<Vec<_>>(), sent, "{}", rig.name);
        }
    }
}

#[tokio::test]
async fn an_empty_batch_makes_no_call() {
    for rig in rigs(Behaviour::Accepts) {
        assert_eq!(rig.channel.send(&[]).await, [], "{}", rig.name);
        assert_eq!(rig.calls().len(), 0, "{}", rig.name);
    }
}

#[tokio::test]
async fn a_throttled_or_lost_call_is_retryable() {
    for behaviour in [Behaviour::Throttles, Behaviour::HangsUp] {
        for rig in rigs(behaviour) {
            let count = rig.channel.limits().batch_count;
            let results = rig.channel.send(&messages(count)).await;
            assert_eq!(
                letters(&results),
                "r".repeat(count),
                "{} {behaviour:?}",
                rig.name
            );
            assert_eq!(rig.calls().len(), 1, "{} {behaviour:?}: calls", rig.name);
        }
    }
}

#[tokio::test]
async fn a_denied_call_is_permanent_with_the_reason() {
    for rig in rigs(Behaviour::Denies) {
        let results = rig.channel.send(&messages(3)).await;
        assert_eq!(letters(&results), "ppp", "{}", rig.name);
        let reason_text = reason(&results[0]);
        let words = [
            "AccessDenied",
            "AuthorizationError",
            "Forbidden",
            "NotAuthorized",
        ];
        assert!(
            words.iter().any(|word| reason_text.contains(word)),
            "{reason_text}"
        );
    }
}

#[tokio::test]
async fn an_invalid_message_does_not_affect_the_others() {
    for rig in rigs(Behaviour::Accepts) {
        let mut messages = messages(3);
        let limit = rig.channel.limits().message_bytes;
        messages[1].body = json!({ "long": "x".repeat(limit) }).to_string();
        let results = rig.channel.send(&messages).await;
        assert_eq!(letters(&results), ".p.", "{}", rig.name);
        let reason_text = reason(&results[1]);
        assert!(
            reason_text.contains(&limit.to_string()),
            "{}: {reason_text}",
            rig.name
        );
        let arrived = rig.calls().concat();
        assert_eq!(arrived, [message(0).body, message(2).body], "{}", rig.name);
        // Without other messages there is no call.
        let calls = rig.calls().len();
        assert_eq!(letters(&rig.channel.send(&messages[1..2]).await), "p");
        assert_eq!(rig.calls().len(), calls, "{}", rig.name);
    }
}

/// A rejection of the whole call in the JSON protocol.
pub(crate) fn rejection(status: u16, code: &str) -> Response {
    Response::new(status, json!({ "__type": code, "message": "no" }))
}
