//! The stack under load, with its sensors, its clients and their endpoint.

use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbSensors, DynamoDbShadows, MAIN, SensorConfig, ShadowTableConfig,
};
use antumbra_local::clients::sdk_config;
use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver::{self, Receiver};
use antumbra_local::stack::{Options, Settings, Stack, default_webhook_allow};
use antumbra_publish::webhook::Guard;
use antumbra_registration::Registrations;
use antumbra_service::clients::{ClientId, Clients, Mode, NewClient};
use antumbra_service::clock::SystemClock;
use antumbra_service::sensors::{Location, Sensor, SensorId, Sensors};
use antumbra_service::shadows::Shadows;

use crate::plan::Plan;

/// FIFO queue that receives the notifications.
pub(crate) const QUEUE: &str = "load.fifo";
const RULE: &str =
    r#"{"name":"load","on":{"key":"^DS#"},"send":["diff"],"to":{"sqs":{"queue":"load.fifo"}}}"#;
const SENSOR_CLIENTS: &str = include_str!("../../../../registrations/sensor-clients.json");
/// Client that receives the deliveries.
const CLIENTS: usize = 10;

/// The stack, its clients and its endpoint.
pub(crate) struct Home {
    pub(crate) stack: Stack,
    /// `None` once it has been taken.
    pub(crate) endpoint: Option<Receiver>,
    // Its files go with it.
    directory: tempfile::TempDir,
}

impl Home {
    pub(crate) async fn start(plan: &Plan) -> Home {
        let directory = tempfile::tempdir().unwrap();
        let home = Home {
            stack: stack(&directory, plan).await,
            endpoint: Some(
                receiver::start(0, Vec::new(), AllowedHosts::default(), |_| 204)
                    .await
                    .unwrap(),
            ),
            directory,
        };
        home.register(plan).await;
        home
    }

    /// Restarts the stack on the same data.
    pub(crate) async fn start_again(self, plan: &Plan) -> Home {
        self.stack.stop().await;
        Home {
            stack: stack(&self.directory, plan).await,
            ..self
        }
    }

    pub(crate) fn shadows(&self) -> Shadows<DynamoDbShadows> {
        let config = sdk_config(self.stack.addresses().dynamodb);
        Shadows::new(DynamoDbShadows::connect(
            &config,
            ShadowTableConfig::new(MAIN.name),
        ))
    }

    pub(crate) fn sensors(&self) -> Sensors<DynamoDbSensors> {
        let config = sdk_config(self.stack.addresses().dynamodb);
        Sensors::new(DynamoDbSensors::connect(
            &config,
            SensorConfig::new(MAIN.name),
        ))
    }

    pub(crate) fn sqs(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&sdk_config(self.stack.addresses().aws))
    }

    /// Size of the data directory.
    pub(crate) fn megabytes(&self) -> u64 {
        let files = std::fs::read_dir(self.directory.path()).unwrap();
        let bytes: u64 = files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        bytes / 1_000_000
    }

    /// Registers sensors and the clients that receive their changes; a saturated stack has no clients.
    async fn register(&self, plan: &Plan) {
        let sensors = plan.sensors();
        let endpoint = self.endpoint.as_ref().unwrap().address();
        let registry = self.sensors();
        let store =
            DynamoDbClients::connect(&sdk_config(self.stack.addresses().dynamodb), MAIN.name);
        let guard = Guard::new(default_webhook_allow());
        let clients = Clients::new(store, guard, Arc::new(SystemClock));
        let client =
            |at: usize| -> ClientId { format!("client-{}", at % CLIENTS).parse().unwrap() };
        for at in 0..CLIENTS.min(sensors) {
            let new = NewClient {
                id: Some(client(at)),
                name: format!("Client {at}"),
                url: format!("http://{endpoint}/{at}"),
                mode: Mode::Every,
                requested: None,
            };
            clients.create(new).await.unwrap();
        }
        for at in 0..sensors {
            let floor = (at / 10).to_string();
            let location = Location::new("Poznań", "A", &floor, "1").unwrap();
            registry
                .register(Sensor::new(sensor(at), location))
                .await
                .unwrap();
            if !plan.saturate {
                clients.link(&client(at), &sensor(at)).await.unwrap();
            }
        }
    }
}

/// Id of a sensor, by number.
pub(crate) fn sensor(at: usize) -> SensorId {
    SensorId::new(format!("sensor-{at}")).unwrap()
}

async fn stack(directory: &tempfile::TempDir, plan: &Plan) -> Stack {
    let rules = [("load.json", RULE), ("sensor-clients.json", SENSOR_CLIENTS)];
    let mut settings = Settings::default();
    if plan.no_history {
        settings = settings.with("HISTORY_DAYS", "0");
    }
    Stack::start(Options {
        settings,
        data_dir: (!plan.memory).then(|| directory.path().to_owned()),
        registrations: Registrations::load(rules, &|_| None).unwrap(),
        unkind: plan.unkind.clone(),
        ..Options::default()
    })
    .await
    .unwrap()
}
