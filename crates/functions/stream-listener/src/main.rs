//! The stream listener as a Lambda function.

use std::sync::Arc;

use antumbra_lambda_kit::environment::Environment;
use antumbra_notify::files;
use antumbra_service::clock::SystemClock;
use antumbra_stream_listener::{Config, NAME, build};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (config, sdk) = antumbra_lambda_kit::start::<Config>().await?;
    let environment = Environment::process();
    let registrations = files::load(&config.registrations, &|name| environment.optional(name))?;
    let listener = build(config, registrations, &sdk, Arc::new(SystemClock))?;
    antumbra_lambda_kit::run(NAME, listener).await
}
