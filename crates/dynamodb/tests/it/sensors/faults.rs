//! Throttling, failures and lost responses.

use antumbra_service::sensors::{
    CheckOutcome, Connection, LivenessIndex, Outcome, Reading, ReadingStore, SensorError,
    SensorStore, StateStore, StoreError, Value, Version,
};
use antumbra_testkit::dynamodb::Reply;
use antumbra_testkit::sensors::sample::{
    at, id, new, record, registered, sensor, signal, somewhere, state,
};
use serde_json::json;

use super::sort_keys;
use crate::store::sensors;

fn throttled() -> Reply {
    Reply::fail(400, "ProvisionedThroughputExceededException")
}

fn broken() -> Reply {
    Reply::fail(500, "InternalServerError")
}

/// The state is written, the response is lost, the SDK repeats the call: nothing is counted twice.
#[tokio::test]
async fn a_signal_whose_response_was_lost_counts_once() {
    let store = sensors().await;
    registered(&*store, "s").await;
    record(&*store, &signal("s", 1, 1, 1)).await;
    store.lose_response("UpdateItem");
    let outcome = record(&*store, &signal("s", 0, 2, 2)).await;
    assert_eq!(outcome, Outcome::Duplicate, "it meets itself");
    let state = state(&*store, "s").await;
    assert_eq!((state.sequence(), state.value), (1, Some(Value::whole(0))));
}

#[tokio::test]
async fn a_check_whose_response_was_lost_reports_its_own_loss() {
    let store = sensors().await;
    registered(&*store, "s").await;
    store.lose_response("UpdateItem");
    let checked = store.check(&id("s"), at(3600)).await;
    assert_eq!(checked, Ok(CheckOutcome::Lost));
    let state = state(&*store, "s").await;
    assert_eq!((state.connection, state.sequence()), (Connection::Lost, 1));
    assert_eq!(
        store.check(&id("s"), at(3660)).await,
        Ok(CheckOutcome::Gone)
    );
}

#[tokio::test]
async fn a_change_whose_response_was_lost_is_applied_once() {
    let store = sensors().await;
    let first = registered(&*store, "s").await;
    store.lose_response("PutItem");
    let there = sensor("s", ["a", "b", "c", "d"]);
    let moved = store.change(&first, &there, at(1)).await.unwrap();
    assert_eq!(moved.version, Version(2));
    assert_eq!(store.get(&id("s")).await, Ok(moved));
}

#[tokio::test]
async fn a_registration_whose_response_was_lost_is_applied_once() {
    let store = sensors().await;
    store.lose_response("TransactWriteItems");
    let given = store.register(&new(somewhere("s"))).await.unwrap();
    assert_eq!(store.get(&id("s")).await, Ok(given));
}

/// Of the reasons for a cancelled transaction only one means that the id is taken.
#[tokio::test]
async fn only_a_failed_condition_means_already_registered() {
    let store = sensors().await;
    for (code, meant) in [
        ("TransactionConflict", StoreError::Throttled),
        ("ThrottlingError", StoreError::Throttled),
    ] {
        let cancelled = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "message": "as scripted",
            "CancellationReasons": [{"Code": code, "Message": "x"}, {"Code": "None"}],
        });
        let replies = vec![Reply::Respond(400, cancelled); 3];
        store.endpoint.script_next("TransactWriteItems", replies);
        let failed = store.register(&new(somewhere("s"))).await;
        assert_eq!(failed, Err(SensorError::Store(meant)), "{code}");
    }
    assert_eq!(store.get(&id("s")).await, Err(SensorError::NotFound));
}

#[tokio::test]
async fn failures_are_returned_and_can_be_retried() {
    let store = sensors().await;
    let sensors = &*store;
    let sensor = registered(sensors, "s").await;
    let reading = Reading::new(Value::whole(1), None, at(0), None).unwrap();
    for (fault, retryable) in [
        (throttled(), StoreError::Throttled),
        (broken(), unavailable()),
    ] {
        let fault = fault.clone();
        store.endpoint.script(move |_| fault.clone());
        let same = |error: StoreError| match (&error, &retryable) {
            (StoreError::Unavailable(_), StoreError::Unavailable(_)) => true,
            (error, meant) => *error == *meant,
        };
        let of = |error: SensorError| match error {
            SensorError::Store(error) => error,
            other => panic!("{other}"),
        };
        assert!(same(
            sensors.record(&signal("s", 1, 1, 1)).await.unwrap_err()
        ));
        assert!(same(sensors.check(&id("s"), at(9999)).await.unwrap_err()));
        assert!(same(sensors.due(0, at(0), 1, None).await.unwrap_err()));
        assert!(same(of(sensors.get(&id("s")).await.unwrap_err())));
        assert!(same(of(sensors.latest(&id("s"), 1).await.unwrap_err())));
        let save = sensors.save(&sensor, std::slice::from_ref(&reading)).await;
        assert!(same(of(save.unwrap_err())));
    }
    store.endpoint.script(|_| Reply::Pass);
    assert_eq!(record(sensors, &signal("s", 1, 1, 1)).await, Outcome::First);
}

fn unavailable() -> StoreError {
    StoreError::Unavailable(String::new())
}

/// Unprocessed writes are sent again, and only those that stay unprocessed fail.
#[tokio::test]
async fn unprocessed_readings_fail_only_their_own_signals() {
    let store = sensors().await;
    registered(&*store, "s").await;
    let mut readings = Vec::new();
    for n in 0..4 {
        let signal = signal("s", 1, n, n);
        let recorded = store.record(&signal).await.unwrap().unwrap();
        readings.push(signal.reading(recorded.owner));
    }
    // The reading of the second signal stays unprocessed.
    let table = store.table.clone();
    let left = |call: &antumbra_testkit::dynamodb::Call, table: &str| {
        let wanted = call.body["RequestItems"][table].as_array().unwrap().iter();
        let left: Vec<_> = wanted
            .filter(|write| {
                let sort = write["PutRequest"]["Item"]["SK"]["S"].as_str().unwrap();
                sort.contains("12:00:01")
            })
            .cloned()
            .collect();
        json!({"UnprocessedItems": {table: left}})
    };
    store.endpoint.script(move |call| {
        if call.operation == "BatchWriteItem" {
            Reply::PassThenRespond(200, left(call, &table))
        } else {
            Reply::Pass
        }
    });
    let saved = store.save_readings(&readings).await;
    assert_eq!(saved, [Ok(()), Err(StoreError::Throttled), Ok(()), Ok(())]);
    let batches = store.operations();
    let batches = batches
        .iter()
        .filter(|call| *call == "BatchWriteItem")
        .count();
    assert_eq!(batches, 4, "tried four times, then given back to the queue");
}

/// Either the readings were saved and are no longer visible, or the save was rejected.
#[tokio::test]
async fn concurrent_saving_and_unregistering_leave_no_visible_readings() {
    let store = sensors().await;
    for n in 0..10 {
        let name = format!("s{n}");
        let sensor = registered(&*store, &name).await;
        let reading = Reading::new(Value::whole(1), None, at(0), None).unwrap();
        let (saved, gone) = tokio::join!(
            store.save(&sensor, std::slice::from_ref(&reading)),
            store.unregister(&sensor, at(1)),
        );
        if gone.is_ok() {
            let fits = matches!(
                saved,
                Ok(()) | Err(SensorError::NotFound | SensorError::Store(StoreError::Throttled))
            );
            assert!(fits, "{saved:?}");
            let latest = store.latest(&id(&name), 1).await;
            assert_eq!(latest, Err(SensorError::NotFound));
            let orphans = sort_keys(&store, &format!("SENSOR#{name}")).await;
            let readings = orphans
                .iter()
                .filter(|sort| sort.starts_with("READ#"))
                .count();
            assert_eq!(
                readings,
                usize::from(saved.is_ok()),
                "saved before, to be purged"
            );
        } else {
            assert_eq!(gone, Err(SensorError::Store(StoreError::Throttled)));
        }
    }
}
