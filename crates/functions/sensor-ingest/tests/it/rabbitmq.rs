//! RabbitMQ through Amazon MQ: a batch is redelivered as a whole, or not at all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use antumbra_service::sensors::{Outcome, Value};

use crate::support::{Home, counts, lock_signal, rabbitmq};

#[tokio::test]
async fn messages_of_one_event_keep_their_order_by_queue() {
    let home = Home::new(&["a", "b"]).await;
    let [zero, one, other] = [
        lock_signal("a", 0),
        lock_signal("a", 1),
        lock_signal("b", 1),
    ];
    let event = rabbitmq(&[
        (
            "locks::/",
            &[
                (false, zero.as_bytes()),
                (false, one.as_bytes()),
                (false, zero.as_bytes()),
            ],
        ),
        ("yard::/", &[(false, other.as_bytes())]),
    ]);
    let summary = home.handle(&event).await;
    assert!(summary.response().is_ok());
    assert_eq!(
        counts(
            &summary,
            [Outcome::First.as_str(), Outcome::Changed.as_str()]
        ),
        [2, 2]
    );
    assert_eq!(home.state("a").await.value, Some(Value::whole(0)));
    assert_eq!(home.readings("a").await, ["0", "1", "0"]);
}

#[tokio::test]
async fn a_redelivered_batch_changes_nothing() {
    let home = Home::new(&["a", "busy"]).await;
    let [zero, one, busy] = [
        lock_signal("a", 0),
        lock_signal("a", 1),
        lock_signal("busy", 1),
    ];
    let messages = |redelivered| {
        let texts = [&zero, &one, &zero, &busy, &one];
        texts.map(|text| (redelivered, text.as_bytes()))
    };
    let summary = home.handle(&rabbitmq(&[("q::/", &messages(false))])).await;
    let error = summary.response().unwrap_err().to_string();
    assert_eq!(error, "1 of 5 messages failed");
    let before = home.state("a").await;
    assert_eq!(
        (before.value.clone(), before.sequence()),
        (Some(Value::whole(1)), 3)
    );

    // Twice more, as long as the store is busy, and once when it is not.
    for well in [false, false, true] {
        home.well.store(well, Ordering::SeqCst);
        home.clock.advance(Duration::from_secs(1));
        let again = home.handle(&rabbitmq(&[("q::/", &messages(true))])).await;
        assert_eq!(again.response().is_ok(), well);
        assert_eq!(home.state("a").await, before, "as if it had come once");
    }
    assert_eq!(home.readings("a").await, ["1", "0", "1", "0"]);

    // A new message with the same content is new.
    home.clock.advance(Duration::from_secs(60));
    let event = rabbitmq(&[("q::/", &[(false, zero.as_bytes())])]);
    assert_eq!(
        home.handle(&event).await.count(Outcome::Changed.as_str()),
        1
    );
    assert_eq!(home.state("a").await.sequence(), 4);
}

#[tokio::test]
async fn every_message_can_be_quarantined() {
    let home = Home::new(&[]).await;
    let long = "x".repeat(20_000);
    let event = rabbitmq(&[(
        "q::/",
        &[
            (false, b""),
            (false, b"\xff\xfe"),
            (false, b"{\"sensor_id\":\"\x00\"}"),
            (false, long.as_bytes()),
            (false, b"plain words"),
        ],
    )]);
    let summary = home.handle(&event).await;
    assert!(summary.response().is_ok(), "nothing is tried forever");
    assert_eq!(summary.count("quarantined"), 5);
    let quarantined = home.quarantine.quarantined();
    let texts: Vec<&str> = quarantined.iter().map(|(text, ..)| text.as_str()).collect();
    assert_eq!(texts[..3], ["(empty)", "//4=", "eyJzZW5zb3JfaWQiOiIAIn0="]);
    assert!(long.starts_with(texts[3]) && texts[3].len() > 6000);
    assert_eq!(texts[4], "plain words");
    let reasons: Vec<&str> = quarantined
        .iter()
        .map(|(_, reason, _)| reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        ["NotJson", "NotText", "NotJson", "TooLarge", "NotJson"]
    );
}
