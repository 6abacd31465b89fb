//! Shadows over MQTT as a Lambda function: wiring only.

use std::time::Instant;

use antumbra_dynamodb::{Config, DynamoDbShadows};
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::{invocation, sdk, telemetry};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;
use antumbra_shadow_requests::{ShadowRequests, connect};
use lambda_runtime::{Diagnostic, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut environment = Environment::process();
    telemetry::start(&environment.or("LOG_LEVEL", "info".to_owned()));
    let table = environment.required("TABLE");
    let combined = environment.or("COMBINED", false);
    let own_only = environment.or("OWN_SHADOWS_ONLY", false);
    let timestamp_field = environment.or("TIMESTAMP_FIELD", Model::default().timestamp_field);
    let id_field = environment.or("ID_FIELD", Model::default().id_field);
    let iot_endpoint = environment.optional("IOT_ENDPOINT");
    let endpoint = environment.optional("AWS_ENDPOINT_URL");
    environment.finish()?;

    let sdk = sdk::config(endpoint).await;
    let layout = if combined {
        Layout::Combined
    } else {
        Layout::Separate
    };
    let shadows = DynamoDbShadows::connect(&sdk, Config::new(table).layout(layout));
    let model = Model {
        timestamp_field,
        id_field,
        ..Model::default()
    };
    let answers = connect::answers(&sdk, iot_endpoint.as_deref());
    let requests = &ShadowRequests::new(shadows, model, answers, SystemClock).own_only(own_only);

    invocation::run(|call: invocation::Invocation| async move {
        let started = Instant::now();
        let handled = requests
            .handle(&call.event, call.deadline)
            .await
            .map_err(|error| Diagnostic {
                error_type: error.kind().to_owned(),
                error_message: error.to_string(),
            })?;
        handled.emit(SystemClock.now(), started.elapsed());
        Ok::<_, Diagnostic>(())
    })
    .await
}
