//! The whole stack: all services, tables and queues, and all functions with their event sources.
//!
//! The functions are built as on AWS (`functions`); only their callers differ (`event_sources`, `api`).

mod api;
mod console;
mod data_directory;
mod event_sources;
mod functions;
mod replaceable;
mod settings;
mod shadow_topics;
mod targets;
mod token;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use antumbra_console::Console;
use antumbra_dynamodb::{
    DynamoDbSettings, HISTORY, MAIN, MESSAGES, SECRETS, TableError, TableSettings,
};
use antumbra_http_api::{Token, TokenGrants};
use antumbra_lambda_kit::config;
use antumbra_lambda_kit::environment::EnvironmentError;
use antumbra_lambda_kit::functions::queues as names;
use antumbra_liveness_sweep::Report;
use antumbra_notify::RouteError;
use antumbra_registration::Registrations;
use antumbra_service::access::Grants;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::Layout;
use antumbra_stream_listener::StreamListener;
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_types::SdkConfig;

use crate::clients::{HttpClients, plain_http, sdk_config_with};
use crate::function::{Function, FunctionError, HandlerError};
use crate::http::AllowedHosts;
use crate::listen::StartError;
use crate::queues::definitions::{QueueError, ensure_all};
use crate::rules::RuleError;
use crate::stream::{CheckpointError, Checkpoints};
use crate::task::Running;
use crate::unkind::Unkind;
use crate::{dynamodb, in_process, mqtt, queues, rabbitmq, schedule};
use data_directory::DataDirectory;
use replaceable::Replaceable;

pub use settings::{Settings, SettingsError, default, default_webhook_allow, is_own, variables};
pub use token::HttpToken;
pub use webhooks::Webhooks;

/// Options of the stack. Port 0 is any free port.
#[derive(Debug, Default)]
pub struct Options {
    /// Directory of the data; `None` to keep it in memory.
    pub data_dir: Option<PathBuf>,
    pub dynamodb_port: u16,
    /// Port of SQS, SNS and AWS IoT's data plane.
    pub aws_port: u16,
    /// Port of MQTT 3.1.1 and 5.
    pub mqtt_port: u16,
    pub http_port: u16,
    /// Bearer token of the HTTP API; `None` to generate one and keep it with the data.
    pub http_token: Option<String>,
    /// Grants of a second token, which is generated; none for no second token.
    pub http_grants: Grants,
    pub registrations: Registrations,
    /// Names and texts of their files, which the HTTP API shows.
    pub registration_files: Vec<(String, String)>,
    pub clock: ShiftedClock,
    /// Variables of the functions.
    pub settings: Settings,
    pub webhooks: Webhooks,
    pub http_clients: HttpClients,
    /// Host names that requests may have beside loopback ones.
    pub allowed_hosts: AllowedHosts,
    pub unkind: Unkind,
    /// Queue of a RabbitMQ broker that sends signals.
    pub rabbitmq: Option<rabbitmq::Source>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    pub dynamodb: SocketAddr,
    pub aws: SocketAddr,
    pub mqtt: SocketAddr,
    pub http: SocketAddr,
}

#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error(transparent)]
    Service(#[from] StartError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    TableSettings(#[from] antumbra_dynamodb::SettingsError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("registration target {target}: {reason}")]
    Target { target: String, reason: String },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Route(#[from] RouteError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("data directory {} cannot be used", path.display())]
    DataDirectory {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "data directory {} is in use by another stack{}; stop that one or choose another directory",
        path.display(),
        process.map(|id| format!(" (process {id})")).unwrap_or_default()
    )]
    DataDirectoryInUse {
        path: PathBuf,
        /// The process that holds the lock, if known.
        process: Option<u32>,
    },
}

/// The running services, and settings that all functions share.
struct LocalServices {
    dynamodb: dynamodb::DynamoDb,
    queues: queues::Queues,
    broker: mqtt::Broker,
    clock: ShiftedClock,
    settings: Settings,
    layout: Layout,
    topic_prefix: TopicPrefix,
    /// Client of the event sources and the stack itself.
    http_client: SharedHttpClient,
    http_clients: HttpClients,
    hosts: AllowedHosts,
    unkind: Unkind,
    wrap: Wrap,
}

/// Replaces a function by another, for tests.
type Wrap = Box<dyn Fn(Function) -> Function + Send + Sync>;

impl LocalServices {
    fn sdk(&self) -> SdkConfig {
        self.sdk_with(self.http_client.clone())
    }

    fn sdk_of(&self, function: &str) -> SdkConfig {
        self.sdk_with(self.http_clients.of(function))
    }

    /// Compares the settings of the table with those of the stack, as each of these functions does when it starts.
    async fn ensure_settings(&self) -> Result<(), antumbra_dynamodb::SettingsError> {
        let model = config::shadow_model(&mut self.settings.environment("", ""));
        let settings = TableSettings::new(self.layout, &model);
        let functions = [
            antumbra_stream_listener::NAME,
            antumbra_shadow_requests::NAME,
            antumbra_http_api::NAME,
        ];
        for function in functions {
            let table = DynamoDbSettings::connect(&self.sdk_of(function), MAIN.name);
            table.ensure(&settings).await?;
        }
        Ok(())
    }

    fn sdk_with(&self, client: SharedHttpClient) -> SdkConfig {
        let (dynamodb, aws) = (self.dynamodb.address(), self.queues.address());
        sdk_config_with(dynamodb, aws, client)
    }
}

/// The running stack. Dropping it stops it; [`Stack::stop`] also waits.
pub struct Stack {
    addresses: Addresses,
    http_token: HttpToken,
    limited_token: Option<String>,
    http_api: Running,
    console: Arc<Console>,
    // Fields are dropped in order: event sources stop before the services.
    event_sources: Vec<Running>,
    sweep: Function,
    listener: Replaceable<StreamListener>,
    files: api::InForce,
    services: LocalServices,
    // Last: the directory stays locked until everything has stopped.
    _data_directory: Option<DataDirectory>,
}

impl Stack {
    pub async fn start(options: Options) -> Result<Stack, StackError> {
        Stack::start_wrapped(options, |function| function).await
    }

    /// Starts everything, with functions replaced by `wrap`: to observe them or to make them fail.
    pub async fn start_wrapped(
        options: Options,
        wrap: impl Fn(Function) -> Function + Send + Sync + 'static,
    ) -> Result<Stack, StackError> {
        options.settings.check()?;
        let mut shared = options.settings.environment("", "");
        let layout = config::layout(&mut shared);
        let topic_prefix = shared.or("TOPIC_PREFIX", TopicPrefix::default());
        let data_directory = options
            .data_dir
            .as_deref()
            .map(DataDirectory::take)
            .transpose()?;
        let (storage, checkpoints) = storage(data_directory.as_ref())?;
        dynamodb::delete_read_records(&storage, |stream, shard| {
            checkpoints.common_position(stream, shard)
        })?;
        let hosts = options.allowed_hosts;
        let broker = mqtt::start(options.mqtt_port).await?;
        let queue_options = queues::Options {
            mqtt: Some(broker.publisher()),
            data_dir: data_directory
                .as_ref()
                .map(|directory| directory.file("queues")),
            unkindness: options.unkind.queues(),
            hosts: hosts.clone(),
        };
        let dynamodb = dynamodb::start_for(storage, options.dynamodb_port, hosts.clone()).await?;
        let queues = queues::start_with(options.aws_port, queue_options).await?;
        let routers = [
            (dynamodb.address(), dynamodb.router()),
            (queues.address(), queues.router()),
        ];
        let http_client = in_process::client(routers, plain_http());
        let http_clients = options.http_clients.or(&http_client);
        let services = LocalServices {
            dynamodb,
            queues,
            broker,
            clock: options.clock,
            settings: options.settings,
            layout,
            topic_prefix,
            http_client,
            http_clients: options.unkind.http_clients(http_clients),
            hosts,
            unkind: options.unkind,
            wrap: Box::new(wrap),
        };

        let sdk = services.sdk();
        let database = antumbra_dynamodb::client(&sdk);
        let tables = [
            MAIN.ensure(&database).await?,
            MESSAGES.ensure(&database).await?,
        ];
        if services.keeps_history() {
            HISTORY.ensure(&database).await?;
        } else {
            checkpoints.forget(antumbra_history_writer::NAME)?;
        }
        SECRETS.ensure(&database).await?;
        // Both table definitions ask for a stream.
        let streams = tables.map(|table| table.stream_arn.unwrap_or_default());
        services.ensure_settings().await?;
        let sqs = aws_sdk_sqs::Client::new(&sdk);
        ensure_all(&sqs).await?;
        for queue in [names::INBOUND, names::SIGNALS] {
            // Invocations of a killed process have ended. Deliveries may wait for their next attempt.
            let released = services.queues.queues().release(queue);
            released.map_err(RuleError::Queue)?;
        }
        services.ensure_targets(&options.registrations).await?;

        let sweep = services.liveness_sweep()?;
        let (stream_listener, listener) = services.stream_listener(options.registrations)?;
        let mut functions = services.functions(&options.webhooks)?;
        functions.extend([stream_listener, sweep.clone()]);
        let concurrency = |function: &str| {
            let webhooks = function == antumbra_webhook_deliver::NAME;
            webhooks.then_some(options.webhooks.concurrency)
        };
        let mut event_sources =
            services.start_event_sources(&functions, &streams, &checkpoints, concurrency)?;
        event_sources.push(shadow_topics::repeat(
            &services.broker,
            &services.topic_prefix,
        ));
        if let Some(source) = options.rabbitmq {
            let is_ingest = |one: &&Function| one.name() == antumbra_sensor_ingest::NAME;
            for ingest in functions.iter().filter(is_ingest) {
                event_sources.push(rabbitmq::start(source.clone(), ingest.clone()).await?);
            }
        }
        let http_token = token::token(data_directory.as_ref(), options.http_token)?;
        let mut tokens = vec![TokenGrants {
            token: Token::new(&http_token.text),
            grants: Grants::all(),
        }];
        let limited_token = (!options.http_grants.is_empty()).then(token::generate);
        tokens.extend(limited_token.as_ref().map(|text| TokenGrants {
            token: Token::new(text),
            grants: options.http_grants,
        }));
        let files = Arc::new(RwLock::new(Arc::from(options.registration_files)));
        let (http_address, http_api, console) = api::start(
            &services,
            options.http_port,
            tokens,
            Arc::clone(&files),
            &streams,
        )
        .await?;
        let addresses = Addresses {
            dynamodb: services.dynamodb.address(),
            aws: services.queues.address(),
            mqtt: services.broker.address(),
            http: http_address,
        };
        Ok(Stack {
            addresses,
            http_token,
            limited_token,
            http_api,
            console,
            event_sources,
            sweep,
            listener,
            files,
            services,
            _data_directory: data_directory,
        })
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    pub fn http_token(&self) -> &HttpToken {
        &self.http_token
    }

    /// Returns a URL that opens the console once, within ten minutes.
    pub fn console_url(&self) -> String {
        self.console.login_url()
    }

    /// The token with the grants of the options.
    pub fn limited_token(&self) -> Option<&str> {
        self.limited_token.as_deref()
    }

    /// Replaces all registrations, or none if one of them cannot be used. Changes that are being processed are
    /// processed with the registrations before. `files` are names and texts of their files.
    pub async fn reload(
        &self,
        registrations: Registrations,
        files: Vec<(String, String)>,
    ) -> Result<(), StackError> {
        self.services.ensure_targets(&registrations).await?;
        self.listener
            .replace(self.services.listener(registrations)?);
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = Arc::from(files);
        Ok(())
    }

    pub fn queue_url(&self, name: &str) -> String {
        self.services.queues.queue_url(name)
    }

    /// Runs the liveness sweep now, as the schedule does every minute.
    pub async fn sweep(&self) -> Result<Report, FunctionError> {
        let response = schedule::tick(&self.sweep, &self.services.clock).await?;
        serde_json::from_slice(&response)
            .map_err(|error| FunctionError::Failed(HandlerError(error.to_string())))
    }

    /// Waits for running invocations and stops everything, event sources first.
    pub async fn stop(self) {
        // Open pages would keep the server waiting.
        self.console.stop();
        self.http_api.stop().await;
        for source in self.event_sources {
            source.stop().await;
        }
        self.services.broker.stop().await;
        self.services.queues.stop().await;
        self.services.dynamodb.stop().await;
    }
}

/// Storage of tables and stream positions.
fn storage(
    directory: Option<&DataDirectory>,
) -> Result<(dynamodb::Storage, Checkpoints), StackError> {
    let Some(directory) = directory else {
        return Ok((dynamodb::Storage::Memory, Checkpoints::in_memory()));
    };
    Ok((
        dynamodb::Storage::File(directory.file("dynamodb.sqlite")),
        Checkpoints::in_file(directory.file("stream-positions.json"))?,
    ))
}
