//! Quarantine of messages that can never be processed: unchanged, with the reason, or reported as missing.

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::Channel;
use antumbra_service::quarantine::{Quarantine, QuarantinedMessage};
use antumbra_testkit::{RecordingChannel, SendReply, attribute};

/// Replies by a message's body: `busy`, `refuse`, or anything else, which it accepts.
fn queue() -> Arc<RecordingChannel> {
    let queue = RecordingChannel::with_limits(10, 4000);
    queue.reply(|message| match message.body.as_str() {
        "busy" => SendReply::Throttle,
        "refuse" => SendReply::deny("no such queue"),
        _ => SendReply::Accept,
    });
    Arc::new(queue)
}

fn refused(text: &str, detail: &str) -> QuarantinedMessage {
    QuarantinedMessage {
        id: "m-1".to_owned(),
        text: text.to_owned(),
        source: "in".to_owned(),
        origin: None,
        reason: "NotJson",
        detail: detail.to_owned(),
    }
}

#[tokio::test]
async fn a_message_is_quarantined_unchanged_with_its_reason() {
    let queue = queue();
    let clock = ManualClock::default();
    let deadline = clock.now().after(Duration::from_secs(5));
    let quarantine = Quarantine::new(Arc::clone(&queue) as Arc<dyn Channel>);
    let long = "ž".repeat(1000);
    let all = [refused("{ nope", "at byte 2"), refused("{", &long)];
    assert!(quarantine.send(&all, deadline, &clock).await.is_empty());
    let accepted = queue.accepted();
    assert_eq!(accepted[0].body, "{ nope");
    let attributes = [
        ("reason", "NotJson"),
        ("source", "in"),
        ("detail", "at byte 2"),
    ];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(accepted[0].attributes, attributes);
    assert_eq!(accepted[1].attributes[2].1.chars().count(), 300);
    assert!(accepted[1].bytes() + quarantine.text_bytes() <= 4000 + 1);
}

#[tokio::test]
async fn messages_that_are_not_quarantined_are_reported() {
    let clock = ManualClock::default();
    let deadline = clock.now().after(Duration::from_secs(5));
    let quarantine = Quarantine::new(queue());
    let all = ["fine", "busy", "fine", "refuse"].map(|text| refused(text, ""));
    let left = quarantine.send(&all, deadline, &clock).await;
    let left: Vec<_> = left.iter().map(|l| (l.index, l.reason.as_str())).collect();
    let late = "the quarantine did not respond in time";
    assert_eq!(left, [(1, late), (3, "no such queue")]);
}

/// A body that nearly fills a message is quarantined with less detail.
#[tokio::test]
async fn a_text_at_the_limit_leaves_less_room_for_the_detail() {
    let clock = ManualClock::default();
    let deadline = clock.now().after(Duration::from_secs(5));
    let reason = "reasonStringNotJson".len();
    let source = "sourceStringin".len();
    let detail = "detailString".len();
    for (text, from, kept) in [
        (
            4000 - reason - source - detail - 9,
            Some("in"),
            Some("at byte 2"),
        ),
        (
            4000 - reason - source - detail - 7,
            Some("in"),
            Some("at byte"),
        ),
        (4000 - reason - source - detail, Some("in"), None),
        (4000 - reason - source, Some("in"), None),
        (4000 - reason, None, None),
    ] {
        let queue = queue();
        let quarantine = Quarantine::new(Arc::clone(&queue) as Arc<dyn Channel>);
        let all = [refused(&"x".repeat(text), "at byte 2")];
        assert!(quarantine.send(&all, deadline, &clock).await.is_empty());
        let accepted = queue.accepted();
        assert!(accepted[0].bytes() <= 4000);
        let value = |name| attribute(&accepted[0], name);
        assert_eq!((value("source"), value("detail")), (from, kept), "{text}");
    }
}
