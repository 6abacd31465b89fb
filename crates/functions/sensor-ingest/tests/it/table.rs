//! What a batch costs at the table.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbProgress, DynamoDbSensors, MAIN, SensorConfig, Table};
use antumbra_sensor_ingest::{Ingest, Rules, UnknownSensorPolicy};
use antumbra_service::clock::ManualClock;
use antumbra_service::quarantine::Quarantine;
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};
use antumbra_testkit::sensors::sample;
use antumbra_wire::signal::MARKER;

use crate::support::{Queue, TIME, says, sqs};

#[tokio::test]
async fn two_writes_a_signal_no_read_and_readings_by_twenty_five() {
    let endpoint = Endpoint::start(address()).await;
    let client = client(&endpoint);
    let table = table_name();
    let definition = Table {
        name: &table,
        ..MAIN
    };
    definition.ensure(&client).await.unwrap();
    let sensors = DynamoDbSensors::new(client.clone(), SensorConfig::new(&table));
    let ids: Vec<String> = (0..30).map(|n| format!("s{n}")).collect();
    for id in &ids {
        sample::registered(&sensors, id).await;
    }
    let ingest = Ingest::new(
        sensors.clone(),
        DynamoDbProgress::new(client, &table),
        UnknownSensorPolicy::<DynamoDbSensors>::Quarantine,
        Quarantine::new(Arc::new(Queue::default())),
        Rules::default(),
        Arc::new(ManualClock::new(sample::at(600))),
    );
    let handle = async |messages: &[(&str, i64, &str)]| {
        endpoint.take_calls();
        let event = sqs(messages).to_string();
        let deadline = sample::at(600).after(TIME);
        let handled = ingest.handle(event.as_bytes(), deadline).await.unwrap();
        assert!(handled.failed.is_empty());
        let mut calls = endpoint.take_operations();
        calls.sort_unstable();
        calls
    };
    assert_eq!(
        handle(&[("m", 60, &says("s0", 1))]).await,
        ["BatchWriteItem", "UpdateItem"]
    );
    assert_eq!(handle(&[("n", 70, MARKER)]).await, ["UpdateItem"]);

    let texts: Vec<String> = ids.iter().map(|id| says(id, 0)).collect();
    let messages: Vec<(&str, i64, &str)> = ids
        .iter()
        .zip(&texts)
        .map(|(id, text)| (id.as_str(), 80, text.as_str()))
        .collect();
    let calls = handle(&messages).await;
    assert_eq!(calls[..2], ["BatchWriteItem", "BatchWriteItem"]);
    assert_eq!(calls[2..], ["UpdateItem"; 30]);
}
