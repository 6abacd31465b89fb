//! The stream listener as a Lambda function.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbSettings, TableSettings, client};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::clock::SystemClock;
use antumbra_stream_listener::{Config, NAME, build_with, load_registrations};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    let settings = TableSettings::new(config.layout, &config.model);
    let database = client(&sdk);
    let table = config.table.as_ref();
    let table = table.map(|table| DynamoDbSettings::new(database.clone(), table));
    let check = async {
        match &table {
            Some(table) => table.ensure(&settings).await,
            None => Ok(()),
        }
    };
    // Registrations are loaded while the settings are read.
    let build = async {
        let environment = Environment::process();
        let registrations = load_registrations(&config, &|name| environment.optional(name));
        let registrations = registrations.map_err(|error| error.to_string())?;
        let listener = build_with(database, config, registrations, &sdk, Arc::new(SystemClock));
        listener.map_err(|error| error.to_string())
    };
    let (checked, listener) = tokio::join!(check, build);
    checked.map_err(|error| error.to_string())?;
    antumbra_lambda_kit::run(NAME, listener?).await
}
