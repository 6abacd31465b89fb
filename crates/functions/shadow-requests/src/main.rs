//! Shadows over MQTT as a Lambda function.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbSettings, TableSettings, client};
use antumbra_service::clock::SystemClock;
use antumbra_shadow_requests::{Config, NAME, build_with};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    let settings = TableSettings::new(config.layout, &config.model);
    let database = client(&sdk);
    let table = DynamoDbSettings::new(database.clone(), &config.table);
    // The rest is built while the settings are read.
    let build = async { build_with(database, config, &sdk, Arc::new(SystemClock)) };
    let (checked, requests) = tokio::join!(table.ensure(&settings), build);
    checked.map_err(|error| error.to_string())?;
    antumbra_lambda_kit::run(NAME, requests).await
}
