//! DynamoDB calls of a batch.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, MAIN, SensorConfig};
use antumbra_sensor_ingest::{Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::ManualClock;
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::MARKER;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::TestTable;
use antumbra_testkit::sensors::sample;

use crate::support::{TIME, lock_signal, sqs};

#[tokio::test]
async fn two_writes_a_signal_no_read_and_readings_by_twenty_five() {
    let table = TestTable::create(MAIN).await;
    let sensors = DynamoDbSensors::new(table.client.clone(), SensorConfig::new(&table.name));
    let ids: Vec<String> = (0..30).map(|n| format!("s{n}")).collect();
    for id in &ids {
        sample::registered(&sensors, id).await;
    }
    let ingest = Ingest::new(
        sensors.clone(),
        DynamoDbProgress::new(table.client, &table.name),
        UnknownSensorPolicy::<DynamoDbSensors>::Quarantine,
        Quarantine::new(Arc::new(RecordingChannel::default())),
        Rules::default(),
        Arc::new(ManualClock::new(sample::at(600))),
    );
    let handle = async |messages: &[(&str, i64, &str)]| {
        table.endpoint.take_calls();
        let event = sqs(messages).to_string();
        let deadline = sample::at(600).after(TIME);
        let summary = ingest
            .process_batch(event.as_bytes(), deadline)
            .await
            .unwrap();
        assert!(summary.failed.is_empty());
        let mut calls = table.endpoint.take_operations();
        calls.sort_unstable();
        calls
    };
    assert_eq!(
        handle(&[("m", 60, &lock_signal("s0", 1))]).await,
        ["BatchWriteItem", "UpdateItem"]
    );
    assert_eq!(handle(&[("n", 70, MARKER)]).await, ["UpdateItem"]);

    let texts: Vec<String> = ids.iter().map(|id| lock_signal(id, 0)).collect();
    let messages: Vec<(&str, i64, &str)> = ids
        .iter()
        .zip(&texts)
        .map(|(id, text)| (id.as_str(), 80, text.as_str()))
        .collect();
    let calls = handle(&messages).await;
    assert_eq!(calls[..2], ["BatchWriteItem", "BatchWriteItem"]);
    assert_eq!(calls[2..], ["UpdateItem"; 30]);
}
