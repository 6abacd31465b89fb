//! The stream listener as a Lambda function: wiring only.

use std::path::Path;
use std::sync::Arc;

use antumbra_dynamodb::{Config, DynamoDbClients, DynamoDbShadows};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_publish::sqs;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow::Model;
use antumbra_stream_listener::{AwsChannels, Listener, files};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let directory = environment.or("REGISTRATIONS", "registrations".to_owned());
    let undeliverable = environment.required("UNDELIVERABLE_QUEUE_URL");
    let timestamp_field = environment.or("TIMESTAMP_FIELD", Model::default().timestamp_field);
    let id_field = environment.or("ID_FIELD", Model::default().id_field);
    let iot_endpoint = environment.optional("IOT_ENDPOINT");
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    let table = environment.optional("TABLE");
    // Only where a registration tells clients.
    let ordered = environment.optional("DELIVERIES_FIFO_QUEUE_URL");
    let unordered = environment.optional("DELIVERIES_QUEUE_URL");
    let queue_bytes = environment.or("QUEUE_BYTES", sqs::BYTES);
    let registrations = files::load(Path::new(&directory), &|name| environment.optional(name))?;
    environment.finish()?;

    let real = endpoint.is_none();
    let sdk = sdk::config(endpoint).await;
    let mut channels = AwsChannels::new(&sdk, iot_endpoint.as_deref(), undeliverable)
        .with_queue_bytes(queue_bytes)
        .with_tenants(real);
    if let (Some(table), Some(ordered), Some(unordered)) = (&table, ordered, unordered) {
        let links = DynamoDbClients::connect(&sdk, table);
        channels = channels.with_clients(Arc::new(links), ordered, unordered);
    }
    let model = Model {
        timestamp_field,
        id_field,
        ..Model::default()
    };
    let listener = Listener::new(registrations, &channels, model, SystemClock)?;
    // Without the table, only shadows that are kept as one item can be told of as a whole.
    let listener = &match table {
        Some(table) => {
            let shadows = DynamoDbShadows::connect(&sdk, Config::new(table));
            listener.with_documents(Arc::new(Arc::new(shadows)))
        }
        None => listener,
    };

    invocation::run_events(
        |event, deadline| async move { listener.handle(&event, deadline).await },
        |handled, took| {
            handled.emit(SystemClock.now(), took);
            Ok(handled.response())
        },
    )
    .await
}
