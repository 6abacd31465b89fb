//! The HTTP API as a Lambda function.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbSettings, TableSettings, client};
use antumbra_http_api::{Config, build, gateway};
use antumbra_lambda_kit::config::start;
use antumbra_service::clock::SystemClock;
use lambda_http::Error;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (config, sdk) = start::<Config>().await?;
    let settings = TableSettings::new(config.layout, &config.model);
    let database = client(&sdk);
    let table = DynamoDbSettings::new(database.clone(), &config.table);
    // The rest is built while the settings are read.
    let build = async { build(database, config, &sdk, Arc::new(SystemClock)) };
    let (checked, router) = tokio::join!(table.ensure(&settings), build);
    checked.map_err(|error| error.to_string())?;
    let router = router.map_request(gateway::restore_path);
    lambda_http::run(router.map_response(gateway::Reply)).await
}
