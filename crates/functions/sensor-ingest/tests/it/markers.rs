//! Markers: the recorded progress of the queue never exceeds the actual one.

use std::sync::atomic::Ordering;

use antumbra_service::liveness::IngestProgress;
use antumbra_service::sensors::MARKER;
use antumbra_testkit::sensors::sample::at;

use crate::support::{Home, QUEUE, fifo, lock_signal, sqs};

#[tokio::test]
async fn a_marker_is_recorded_with_its_sent_time() {
    let home = Home::new(&["a"]).await;
    let event = sqs(&[
        ("m1", 70, MARKER),
        ("m2", 60, &lock_signal("a", 1)),
        ("m3", 80, MARKER),
    ]);
    let summary = home.handle(&event).await;
    assert_eq!((summary.failed.len(), summary.count("quarantined")), (0, 0));
    assert_eq!(home.progress.reached(QUEUE).await, Ok(Some(at(80))));
    home.handle(&sqs(&[("m1", 70, MARKER)])).await;
    assert_eq!(
        home.progress.reached(QUEUE).await,
        Ok(Some(at(80))),
        "never back"
    );
}

#[tokio::test]
async fn a_marker_fails_with_an_earlier_message() {
    let home = Home::new(&["a", "busy"]).await;
    let event = sqs(&[
        ("m1", 60, MARKER),
        ("m2", 70, &lock_signal("busy", 1)),
        ("m3", 80, MARKER),
    ]);
    let mut summary = home.handle(&event).await;
    summary.failed.sort();
    assert_eq!(summary.failed, ["m2", "m3"]);
    assert_eq!(home.progress.reached(QUEUE).await, Ok(Some(at(60))));
    home.well.store(true, Ordering::SeqCst);
    assert!(home.handle(&event).await.failed.is_empty());
    assert_eq!(home.progress.reached(QUEUE).await, Ok(Some(at(80))));
}

#[tokio::test]
async fn a_marker_that_cannot_be_recorded_fails() {
    let home = Home::new(&[]).await;
    home.progress.fail(true);
    let event = sqs(&[("m1", 60, MARKER)]);
    assert_eq!(home.handle(&event).await.failed, ["m1"]);
    home.progress.fail(false);
    assert!(home.handle(&event).await.failed.is_empty());
}

#[tokio::test]
async fn progress_of_a_fifo_queue_is_recorded_under_its_name() {
    let home = Home::new(&[]).await;
    home.handle(&fifo(&[("m1", "liveness", MARKER)])).await;
    assert_eq!(home.progress.reached(QUEUE).await, Ok(None));
    let reached = home.progress.reached("antumbra-signals.fifo").await;
    assert_eq!(reached, Ok(Some(at(60))));
}
