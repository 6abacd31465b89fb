//! SNS: requests and the meaning of responses.

use antumbra_publish::{SnsChannel, group_id};
use antumbra_service::notifications::{Channel, Message};

use crate::contract::Behaviour;
use crate::message::{letters, message, messages, reason, sent};
use crate::scripted::config_of;
use antumbra_testkit::http::{Endpoint, Request, Response};

const ARN: &str = "arn:aws:sns:us-east-1:123456789012:alerts";

fn entry(n: usize, name: &str) -> String {
    format!("PublishBatchRequestEntries.member.{}.{name}", n + 1)
}

/// A field of the query protocol.
fn field(request: &Request, name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(request.body.as_bytes());
    let found = fields.find(|(given, _)| given == name);
    found.map(|(_, value)| value.into_owned())
}

pub(crate) fn bodies(request: &Request) -> Vec<String> {
    (0..)
        .map_while(|n| field(request, &entry(n, "Message")))
        .collect()
}

pub(crate) fn respond(behaviour: Behaviour, request: &Request) -> Response {
    match behaviour {
        Behaviour::Accepts => entries(request, |_| None),
        Behaviour::Throttles => refused(429, "Throttling"),
        Behaviour::Denies => refused(403, "AuthorizationError"),
        Behaviour::HangsUp => Response::HangUp,
    }
}

fn entries(request: &Request, failure: impl Fn(usize) -> Option<(&'static str, bool)>) -> Response {
    let (mut successful, mut failed) = (String::new(), String::new());
    let ids = (0..).map_while(|n| field(request, &entry(n, "Id")));
    for (n, id) in ids.enumerate() {
        match failure(n) {
            None => successful.push_str(&format!(
                "<member><Id>{id}</Id><MessageId>m</MessageId></member>"
            )),
            Some((code, ours)) => failed.push_str(&format!(
                "<member><Id>{id}</Id><Code>{code}</Code><Message>because</Message>\
                 <SenderFault>{ours}</SenderFault></member>"
            )),
        }
    }
    Response::ok(format!(
        "<PublishBatchResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\">\
         <PublishBatchResult><Failed>{failed}</Failed><Successful>{successful}</Successful>\
         </PublishBatchResult></PublishBatchResponse>"
    ))
}

fn refused(status: u16, code: &str) -> Response {
    Response::new(
        status,
        format!(
            "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error>\
             <Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
        ),
    )
}

fn accepting() -> Endpoint {
    Endpoint::start(|request| respond(Behaviour::Accepts, request))
}

fn channel(endpoint: &Endpoint, topic: &str) -> SnsChannel {
    SnsChannel::new(&aws_sdk_sns::Client::new(&config_of(endpoint)), topic)
}

#[tokio::test]
async fn a_topic_gets_body_subject_and_attributes() {
    let endpoint = accepting();
    let with_subject = Message {
        subject: Some("Basement".to_owned()),
        ..message(1)
    };
    assert_eq!(
        sent(&channel(&endpoint, ARN), &[message(0), with_subject]).await,
        ".."
    );
    let requests = endpoint.requests();
    let sent_field = |name: &str| field(&requests[0], name);
    assert_eq!(sent_field("Action").as_deref(), Some("PublishBatch"));
    assert_eq!(sent_field("TopicArn").as_deref(), Some(ARN));
    for (n, name, value) in [
        (0, "Id", Some("0")),
        (0, "Message", Some("{\"n\":0}")),
        (0, "Subject", None),
        (0, "MessageAttributes.entry.1.Name", Some("state")),
        (
            0,
            "MessageAttributes.entry.1.Value.DataType",
            Some("String"),
        ),
        (
            0,
            "MessageAttributes.entry.1.Value.StringValue",
            Some("reported"),
        ),
        (0, "MessageGroupId", None),
        (1, "Id", Some("1")),
        (1, "Subject", Some("Basement")),
    ] {
        assert_eq!(sent_field(&entry(n, name)).as_deref(), value, "{n} {name}");
    }
}

#[tokio::test]
async fn a_fifo_topic_gets_group_and_deduplication() {
    let endpoint = accepting();
    let odd = Message {
        key: "DS#Küche#DSR#main".to_owned(),
        ..message(0)
    };
    assert_eq!(
        sent(&channel(&endpoint, &format!("{ARN}.fifo")), &[odd]).await,
        "."
    );
    let sent_field = |name: &str| field(&endpoint.requests()[0], &entry(0, name));
    assert_eq!(
        sent_field("MessageGroupId"),
        Some(group_id("DS#Küche#DSR#main"))
    );
    assert_eq!(
        sent_field("MessageDeduplicationId").as_deref(),
        Some("id-0")
    );
}

#[tokio::test]
async fn each_entry_has_its_own_result() {
    let endpoint = Endpoint::start(|request| {
        entries(request, |n| match n {
            0 => Some(("InternalError", false)),
            2 => Some(("InvalidParameter", true)),
            _ => None,
        })
    });
    let results = channel(&endpoint, ARN).send(&messages(4)).await;
    assert_eq!(letters(&results), "r.p.");
    assert_eq!(
        reason(&results[2]),
        format!("SNS {ARN}: InvalidParameter: because")
    );
}

#[tokio::test]
async fn rejected_calls_are_retryable_or_permanent() {
    for (status, code, expected) in [
        (404, "NotFound", "pp"),
        (400, "InvalidParameter", "pp"),
        (400, "KMSAccessDenied", "pp"),
        (400, "KMSThrottling", "rr"),
        (400, "Throttled", "rr"),
        (403, "InvalidClientTokenId", "rr"),
        (500, "InternalError", "rr"),
    ] {
        let endpoint = Endpoint::start(move |_| refused(status, code));
        let results = channel(&endpoint, ARN).send(&messages(2)).await;
        assert_eq!(letters(&results), expected, "{code}: {results:?}");
    }
}

#[tokio::test]
async fn a_topic_is_called_where_it_is() {
    let endpoint = accepting();
    let topic = "arn:aws:sns:eu-west-1:123456789012:alerts";
    let channel = channel(&endpoint, topic);
    assert_eq!(channel.limits().batch_bytes, 256 * 1024);
    assert_eq!(sent(&channel, &messages(1)).await, ".");
    let signed = endpoint.requests()[0].header("authorization").to_owned();
    assert!(signed.contains("/eu-west-1/sns/"), "{signed}");
}
