//! Undeliverable notifications are sent again to the current target of their registration.

use antumbra_notify::{ResendError, StoredNotification};
use antumbra_service::clock::Clock;
use antumbra_service::notifications::{ChannelLimits, Message};
use antumbra_testkit::{SQS_LIMITS, SendReply};
use serde_json::{Value, json};

use crate::channels::{Bench, Fakes, TIME, registrations};
use crate::stream::Record;

fn to_queue(queue: &str) -> Value {
    let attributes = json!({ "team": "alerts" });
    json!({ "name": "all", "to": { "sqs": { "queue": queue, "attributes": attributes } } })
}

/// Undeliverable notification of a change that its target rejects, and the message that was attempted.
async fn undeliverable(
    registration: &Value,
    address: &str,
    fakes: Fakes,
) -> (StoredNotification, Message) {
    let bench = Bench::on(fakes, std::slice::from_ref(registration));
    bench
        .at(address)
        .reply(|_| SendReply::deny("QueueDoesNotExist"));
    let summary = bench.handle_records(&[Record::small("lamp", 1)]).await;
    assert_eq!((summary.sent, summary.undeliverable), (0, 1));
    // The bytes themselves: a value would sort the members.
    let body = bench.fakes.undeliverable.accepted()[0].body.clone();
    let tried = bench.at(address).calls()[0][0].clone();
    (StoredNotification::parse(&body).unwrap(), tried)
}

async fn send(
    undeliverable: &StoredNotification,
    list: &[Value],
    fakes: &Fakes,
) -> Result<(), ResendError> {
    let clock = crate::channels::clock();
    let deadline = clock.now().after(TIME);
    undeliverable
        .send(&registrations(list), fakes, deadline, &clock)
        .await
}

#[tokio::test]
async fn an_undeliverable_notification_is_sent_as_it_was() {
    let mqtt = json!({ "name": "all", "to": { "mqtt": { "topic": "changes/${id}", "qos": 1 } } });
    for (registration, address) in [(to_queue("missing"), "sqs missing"), (mqtt, "mqtt")] {
        let (undeliverable, tried) = undeliverable(&registration, address, Fakes::default()).await;
        assert_eq!(undeliverable.reason, "QueueDoesNotExist");
        assert!(undeliverable.is_complete());
        let fakes = Fakes::default();
        send(&undeliverable, &[registration], &fakes).await.unwrap();
        let sorted = |mut message: Message| {
            message.attributes.sort();
            message
        };
        let arrived = fakes.at(address).accepted();
        assert_eq!(arrived.len(), 1);
        assert_eq!(sorted(arrived[0].clone()), sorted(tried));
    }
}

#[tokio::test]
async fn the_current_target_of_the_registration_is_used() {
    let (undeliverable, _) =
        undeliverable(&to_queue("missing"), "sqs missing", Fakes::default()).await;
    let fakes = Fakes::default();
    send(&undeliverable, &[to_queue("there")], &fakes)
        .await
        .unwrap();
    assert_eq!(fakes.at("sqs there").accepted().len(), 1);

    fakes
        .at("sqs there")
        .reply(|_| SendReply::deny("AccessDenied"));
    let again = send(&undeliverable, &[to_queue("there")], &fakes).await;
    assert_eq!(again, Err(ResendError::Rejected("AccessDenied".to_owned())));
    let no_registration = ResendError::NoRegistration("all".to_owned());
    assert_eq!(
        send(&undeliverable, &[], &fakes).await,
        Err(no_registration.clone())
    );
    let mut off = to_queue("there");
    off["enabled"] = false.into();
    assert_eq!(
        send(&undeliverable, &[off], &fakes).await,
        Err(no_registration)
    );
}

#[tokio::test]
async fn an_incomplete_notification_cannot_be_resent() {
    let fakes = Fakes::default();
    fakes.undeliverable.set_limits(ChannelLimits {
        message_bytes: 300,
        ..SQS_LIMITS
    });
    let (undeliverable, _) = undeliverable(&to_queue("missing"), "sqs missing", fakes).await;
    assert!(!undeliverable.is_complete());
    let sent = send(&undeliverable, &[to_queue("there")], &Fakes::default()).await;
    assert_eq!(sent, Err(ResendError::Nothing));
}

#[test]
fn messages_of_other_senders_are_not_notifications() {
    for text in [
        "",
        "7",
        r#"{"reason":"x"}"#,
        r#"{"requestContext":{},"DDBStreamBatchInfo":{}}"#,
        r#"{"ruleName":"antumbra_message_get","failures":[]}"#,
    ] {
        assert!(StoredNotification::parse(text).is_none(), "{text}");
    }
}
