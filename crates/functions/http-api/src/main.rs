//! The HTTP API as a Lambda function: wiring only.

use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, ShadowTableConfig, client,
};
use antumbra_http_api::{Api, Config, Services, gateway, router};
use antumbra_lambda_kit::config::start;
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::Clients;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::Shadows;
use lambda_http::Error;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (settings, sdk) = start::<Config>().await?;
    let table = &settings.table;
    let config = ShadowTableConfig::new(table).layout(settings.layout);
    let shadows = DynamoDbShadows::connect(&sdk, config);
    let clients = DynamoDbClients::connect(&sdk, table);
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let queues = Queues {
        ordered: Arc::new(SqsChannel::new(&sqs, &settings.ordered)),
        unordered: Arc::new(SqsChannel::new(&sqs, &settings.unordered)),
    };
    let history = DynamoDbDeliveries::connect(&sdk, table);
    let api = Api::new(Services {
        shadows: Box::new(Shadows::new(shadows).with_model(settings.model)),
        messages: Box::new(DynamoDbInbox::connect(&sdk, settings.messages_table)),
        sensors: Box::new(Sensors::new(DynamoDbSensors::connect(
            &sdk,
            settings.sensors,
        ))),
        clients: Box::new(Clients::new(
            clients.clone(),
            Guard::new(settings.allow),
            Arc::new(SystemClock),
        )),
        deliveries: Box::new(Deliveries::new(
            clients,
            history,
            queues,
            Arc::new(SystemClock),
        )),
        answers: Box::new(DynamoDbIdempotency::new(client(&sdk), table)),
        now: Box::new(|| SystemClock.now()),
    });
    lambda_http::run(router(api, settings.door).map_request(gateway::as_sent)).await
}
