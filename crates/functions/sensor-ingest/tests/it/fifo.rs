//! FIFO queues: no message of a group overtakes an earlier one.

use std::sync::atomic::Ordering;

use antumbra_service::sensors::{Connection, Outcome, Value};

use crate::support::{Home, counts, fifo, lock_signal};
use antumbra_testkit::SendReply;

#[tokio::test]
async fn messages_of_one_millisecond_keep_their_order() {
    let home = Home::new(&["a"]).await;
    // Ids that would sort in the opposite order.
    let texts: Vec<(String, String)> = (0..20)
        .map(|n| (format!("m{:02}", 99 - n), lock_signal("a", n % 2)))
        .collect();
    let messages: Vec<(&str, &str, &str)> = texts
        .iter()
        .map(|(id, text)| (id.as_str(), "g", text.as_str()))
        .collect();
    let summary = home.handle(&fifo(&messages)).await;
    assert_eq!(
        counts(
            &summary,
            [Outcome::First.as_str(), Outcome::Changed.as_str()]
        ),
        [1, 19]
    );
    let state = home.state("a").await;
    assert_eq!(
        (state.value.clone(), state.sequence()),
        (Some(Value::whole(1)), 19)
    );
}

#[tokio::test]
async fn a_rejected_message_does_not_stop_its_group() {
    let home = Home::new(&["a"]).await;
    let event = fifo(&[
        ("m1", "g", &lock_signal("a", 0)),
        ("m2", "g", "gibberish"),
        ("m3", "g", &lock_signal("a", 1)),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!((summary.failed.len(), summary.count("quarantined")), (0, 1));
    assert_eq!(home.state("a").await.sequence(), 1);
}

#[tokio::test]
async fn a_failure_stops_its_group_and_no_other() {
    let home = Home::new(&["a", "b", "busy"]).await;
    let event = fifo(&[
        ("m1", "g", &lock_signal("a", 0)),
        ("m2", "g", &lock_signal("busy", 0)),
        ("m3", "h", &lock_signal("b", 0)),
        ("m4", "g", "gibberish"),
        ("m5", "g", &lock_signal("a", 1)),
        ("m6", "h", &lock_signal("b", 1)),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!(summary.failed, ["m2", "m4", "m5"]);
    assert!(
        home.quarantine.quarantined().is_empty(),
        "not before the failed message ahead of it"
    );
    let a = home.state("a").await;
    assert_eq!(a.value, Some(Value::whole(0)), "m5 waits");
    assert_eq!(home.state("b").await.value, Some(Value::whole(1)));
    assert_eq!(home.state("busy").await.connection, Connection::Never);
    home.well.store(true, Ordering::SeqCst);
    let again = home.handle(&event).await;
    assert_eq!((again.failed.len(), again.count("quarantined")), (0, 1));
    assert_eq!(home.state("a").await.value, Some(Value::whole(1)));
}

#[tokio::test]
async fn a_failed_reading_or_quarantine_stops_its_group() {
    let home = Home::new(&["mute", "a", "b"]).await;
    home.quarantine.reply(|_| SendReply::Throttle);
    let event = fifo(&[
        ("m1", "g", &lock_signal("mute", 0)),
        ("m2", "g", &lock_signal("a", 0)),
        ("m3", "h", "gibberish"),
        ("m4", "h", &lock_signal("b", 0)),
    ]);
    assert_eq!(home.handle(&event).await.failed, ["m1", "m2", "m3", "m4"]);
}
