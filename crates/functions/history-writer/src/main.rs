//! The history writer as a Lambda function.

use std::sync::Arc;

use antumbra_history_writer::{Config, NAME, build};
use antumbra_service::clock::SystemClock;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    antumbra_lambda_kit::run(NAME, build(config, &sdk, Arc::new(SystemClock))).await
}
