//! The stream listener as a Lambda function.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbSettings, TableSettings};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::clock::SystemClock;
use antumbra_stream_listener::{Config, NAME, build, load_registrations};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    let environment = Environment::process();
    let registrations = load_registrations(&config, &|name| environment.optional(name));
    let registrations = registrations.map_err(|error| error.to_string())?;
    if let Some(table) = &config.table {
        let settings = TableSettings::new(config.layout, &config.model);
        DynamoDbSettings::connect(&sdk, table)
            .ensure(&settings)
            .await
            .map_err(|error| error.to_string())?;
    }
    let listener = build(config, registrations, &sdk, Arc::new(SystemClock))?;
    antumbra_lambda_kit::run(NAME, listener).await
}
