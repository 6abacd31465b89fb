//! The HTTP API as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::{
    Config, DynamoDbAnswers, DynamoDbClients, DynamoDbDeliveries, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, SensorConfig, client,
};
use antumbra_http_api::{Api, Door, Services, gateway, router};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{sdk, telemetry};
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::{Allow, Guard};
use antumbra_service::clients::Clients;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::deliveries::{Queues, Redeliveries};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_shadow::Model;
use lambda_http::Error;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let table = environment.required("TABLE");
    let messages_table = environment.required("MESSAGES_TABLE");
    let ordered = environment.required("DELIVERIES_FIFO_QUEUE_URL");
    let unordered = environment.required("DELIVERIES_QUEUE_URL");
    let door = environment.or("AUTH", Door::Gateway);
    let allow: Allow = environment.or("WEBHOOK_ALLOW", Allow::default());
    let mut config = SensorConfig::new(&table);
    config.shards = environment.or("SHARDS", config.shards);
    config.retention = environment.or("RETENTION", config.retention);
    let timestamp_field = environment.or("TIMESTAMP_FIELD", Model::default().timestamp_field);
    let id_field = environment.or("ID_FIELD", Model::default().id_field);
    let combined: bool = environment.or("COMBINED", false);
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let model = Model {
        timestamp_field,
        id_field,
        ..Model::default()
    };
    let layout = match combined {
        true => Layout::Combined,
        false => Layout::Separate,
    };
    let shadows = DynamoDbShadows::connect(&sdk, Config::new(&table).layout(layout));
    let clients = DynamoDbClients::connect(&sdk, &table);
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let queues = Queues {
        ordered: Arc::new(SqsChannel::new(&sqs, &ordered)),
        unordered: Arc::new(SqsChannel::new(&sqs, &unordered)),
    };
    let history = DynamoDbDeliveries::connect(&sdk, &table);
    let api = Api::new(Services {
        shadows: Box::new(Shadows::new(shadows).with_model(model)),
        messages: Box::new(DynamoDbInbox::connect(&sdk, messages_table)),
        sensors: Box::new(Sensors::new(DynamoDbSensors::connect(&sdk, config))),
        clients: Box::new(Clients::new(
            clients.clone(),
            Guard::new(allow),
            SystemClock,
        )),
        deliveries: Box::new(Redeliveries::new(clients, history, queues, SystemClock)),
        answers: Box::new(DynamoDbAnswers::new(client(&sdk), &table)),
        now: Box::new(|| SystemClock.now()),
    });
    lambda_http::run(router(api, door).map_request(gateway::as_sent)).await
}
