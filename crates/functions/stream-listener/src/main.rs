//! The stream listener as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbShadows, ShadowTableConfig};
use antumbra_lambda_kit::config::start;
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, metrics};
use antumbra_notify::{Listener, files};
use antumbra_publish::AwsChannelFactory;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_stream_listener::{self as function, Config};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let environment = Environment::process();
    let registrations = files::load(&settings.registrations, &|name| environment.optional(name))?;
    let iot_endpoint = settings.iot_endpoint.as_deref();
    let mut channels = AwsChannelFactory::new(&sdk, iot_endpoint, settings.undeliverable)
        .with_queue_bytes(settings.queue_bytes)
        .with_tenants(settings.tenants);
    let table = settings.table;
    if let (Some(table), Some(ordered), Some(unordered)) =
        (&table, settings.ordered, settings.unordered)
    {
        let links = DynamoDbClients::connect(&sdk, table);
        channels = channels.with_clients(Arc::new(links), ordered, unordered);
    }
    let listener = Listener::new(
        registrations,
        &channels,
        settings.model,
        Arc::new(SystemClock),
    )?;
    let listener = &match table {
        Some(table) => {
            let shadows = DynamoDbShadows::connect(&sdk, ShadowTableConfig::new(table));
            listener.with_documents(Arc::new(Arc::new(shadows)))
        }
        None => listener,
    };

    invocation::run_events(
        |event, deadline| async move { listener.handle(&event, deadline).await },
        |handled, took| {
            metrics::write(&function::metrics(&handled, SystemClock.now(), took));
            Ok(function::response(&handled))
        },
    )
    .await
}
