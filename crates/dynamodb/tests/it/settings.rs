//! The settings item of the main table.

use antumbra_dynamodb::{DynamoDbSettings, MAIN, SettingsError, TableSettings};
use antumbra_service::shadows::Layout;
use antumbra_service::store::StoreError;
use antumbra_shadow::Model;
use antumbra_testkit::dynamodb::{Reply, TestTable};

async fn table() -> (TestTable, DynamoDbSettings) {
    let table = TestTable::create(MAIN).await;
    let settings = DynamoDbSettings::new(table.client.clone(), &table.name);
    (table, settings)
}

fn combined() -> TableSettings {
    TableSettings {
        layout: Layout::Combined,
        ..TableSettings::default()
    }
}

#[tokio::test]
async fn the_first_start_records_its_settings_and_others_are_compared_with_them() {
    let (_table, settings) = table().await;
    assert_eq!(settings.read().await, Ok(None));
    settings.ensure(&combined()).await.unwrap();
    settings.ensure(&combined()).await.unwrap();
    assert_eq!(settings.read().await, Ok(Some(combined())));

    let other = TableSettings {
        timestamp_fields: "timestamp,ts".to_owned(),
        ..TableSettings::default()
    };
    let error = settings.ensure(&other).await.unwrap_err().to_string();
    let (_, reason) = error.split_once(" has ").unwrap();
    assert_eq!(
        reason,
        "the layout combined and the timestamp fields timestamp, but the layout separate and the timestamp fields \
         timestamp,ts is configured; configure what the table has, or use another table"
    );
    assert_eq!(settings.read().await, Ok(Some(combined())));
    let model = Model {
        timestamp_fields: vec!["timestamp".to_owned(), "ts".to_owned()],
        ..Model::default()
    };
    assert_eq!(TableSettings::new(Layout::Separate, &model), other);
    assert_eq!(other.model(Model::default()), model);
}

#[tokio::test]
async fn of_programs_that_start_together_with_different_settings_one_wins() {
    let (_table, settings) = table().await;
    let both = [TableSettings::default(), combined()];
    let starts = (0..10).map(|number| settings.ensure(&both[number % 2]));
    let started = futures_util::future::join_all(starts).await;
    let recorded = settings.read().await.unwrap().unwrap();
    for (number, started) in started.into_iter().enumerate() {
        let is_mismatch = matches!(started, Err(SettingsError::Mismatch { .. }));
        assert_eq!(is_mismatch, both[number % 2] != recorded, "{started:?}");
    }
}

#[tokio::test]
async fn a_start_fails_if_the_settings_cannot_be_read() {
    let (table, settings) = table().await;
    let throttled = vec![Reply::fail(400, "ThrottlingException"); 3];
    table.endpoint.script_next("GetItem", throttled);
    let error = settings.ensure(&combined()).await.unwrap_err();
    let SettingsError::Store { source, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(source, StoreError::Throttled);
}
