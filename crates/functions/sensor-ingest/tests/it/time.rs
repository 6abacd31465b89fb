//! An invocation ends before its deadline, even if the store does not respond.

use antumbra_service::sensors::Outcome;

use crate::support::{Home, TIME, counts, lock_signal, sqs};

#[tokio::test(start_paused = true)]
async fn unresponsive_calls_fail_in_time_and_the_rest_is_stored() {
    let home = Home::new(&["a", "stuck"]).await;
    let event = sqs(&[
        ("m1", 60, &lock_signal("stuck", 0)),
        ("m2", 60, &lock_signal("a", 0)),
        ("m3", 61, &lock_signal("stuck", 1)),
        ("m4", 61, "gibberish"),
    ]);
    let started = tokio::time::Instant::now();
    let summary = home.handle(&event).await;
    assert!(started.elapsed() < TIME);
    assert_eq!(summary.failed, ["m1", "m3"]);
    assert_eq!(
        counts(&summary, [Outcome::First.as_str(), "quarantined"]),
        [1, 1]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stuck_sensor_blocks_no_other() {
    let ids: Vec<String> = (0..200).map(|n| format!("s{n}")).collect();
    let mut names: Vec<&str> = ids.iter().map(String::as_str).collect();
    names.insert(0, "stuck");
    let home = Home::new(&names).await;
    let texts: Vec<String> = names.iter().map(|id| lock_signal(id, 1)).collect();
    let messages: Vec<(&str, i64, &str)> = names
        .iter()
        .zip(&texts)
        .map(|(id, text)| (*id, 60, text.as_str()))
        .collect();
    let summary = home.handle(&sqs(&messages)).await;
    assert_eq!(summary.failed, ["stuck"]);
    assert_eq!(summary.count(Outcome::First.as_str()), 200);
}
