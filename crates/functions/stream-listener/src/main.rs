//! The stream listener as a Lambda function.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbSettings, TableSettings};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::clock::SystemClock;
use antumbra_stream_listener::{Config, NAME, build, load_registrations};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    let settings = TableSettings::new(config.layout, &config.model);
    let table = config.table.as_ref();
    let table = table.map(|table| DynamoDbSettings::connect(&sdk, table));
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
        build(config, registrations, &sdk, Arc::new(SystemClock)).map_err(|error| error.to_string())
    };
    let (checked, listener) = tokio::join!(check, build);
    checked.map_err(|error| error.to_string())?;
    antumbra_lambda_kit::run(NAME, listener?).await
}
