//! The HTTP API as a Lambda function: wiring only.

use antumbra_dynamodb::{Config, DynamoDbAnswers, DynamoDbShadows, client};
use antumbra_http_api::{Api, Door, Services, gateway, router};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{sdk, telemetry};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::shadows::Shadows;
use antumbra_shadow::Model;
use lambda_http::Error;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let table = environment.required("TABLE");
    let door = environment.or("AUTH", Door::Gateway);
    let timestamp_field = environment.or("TIMESTAMP_FIELD", Model::default().timestamp_field);
    let id_field = environment.or("ID_FIELD", Model::default().id_field);
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let model = Model {
        timestamp_field,
        id_field,
        ..Model::default()
    };
    let shadows = DynamoDbShadows::connect(&sdk, Config::new(&table));
    let api = Api::new(Services {
        shadows: Box::new(Shadows::new(shadows).with_model(model)),
        answers: Box::new(DynamoDbAnswers::new(client(&sdk), &table)),
        now: Box::new(|| SystemClock.now()),
    });
    lambda_http::run(router(api, door).map_request(gateway::as_sent)).await
}
