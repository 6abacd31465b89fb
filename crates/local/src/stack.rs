//! The whole stack: every service started, every table and queue made, every function fed.
//!
//! The functions are the ones that run on AWS; only who calls them is different. One file each for how
//! a function is wired: what it is given, and what feeds it.

mod api;
mod data_directory;
mod deliveries;
mod feed;
mod inbox;
mod listener;
mod requests;
mod sensors;
mod shadows;
mod targets;
mod token;

use std::net::SocketAddr;
use std::path::PathBuf;

use antumbra_dynamodb::{MAIN, MESSAGES, TableError};
use antumbra_liveness_sweep::Report;
use antumbra_notify::RouteError;
use antumbra_registration::Registrations;
use antumbra_sensor_ingest::AutoRegistration;
use antumbra_service::clock::ShiftedClock;
use antumbra_service::shadows::Layout;
use aws_config::SdkConfig;

use crate::clients::{HttpClients, sdk_config, sdk_config_with};
use crate::function::{Function, FunctionError, HandlerError};
use crate::listen::StartError;
use crate::queues::definitions::{QueueError, ensure_all};
use crate::rules::RuleError;
use crate::stream::{CheckpointError, Checkpoints};
use crate::{dynamodb, mqtt, queues, schedule};
use data_directory::DataDirectory;
use feed::RunningEventSource;

pub use deliveries::Webhooks;
pub use feed::{EventSource, EventSourceKind};
pub use token::HttpToken;

const UNDELIVERABLE: &str = "antumbra-undeliverable";

/// What to start, and where.
#[derive(Debug, Default)]
pub struct Options {
    /// Where data is kept; `None` for nowhere.
    pub data_dir: Option<PathBuf>,
    /// 0 is any free port, here and below.
    pub dynamodb_port: u16,
    /// SQS, SNS and AWS IoT's data plane.
    pub aws_port: u16,
    /// MQTT, versions 3.1.1 and 5.
    pub mqtt_port: u16,
    /// The HTTP API.
    pub http_port: u16,
    /// What opens the HTTP API; `None` for a token that is made up and kept with the data.
    pub http_token: Option<String>,
    /// Who is told of changes.
    pub registrations: Registrations,
    /// What the functions take for the time.
    pub clock: ShiftedClock,
    /// How the two documents of a shadow are kept.
    pub layout: Layout,
    /// How webhooks are sent.
    pub webhooks: Webhooks,
    /// What is said of a sensor that nobody registered; `None` puts its signals away.
    pub newcomer: Option<AutoRegistration>,
    /// What functions call AWS with.
    pub http_clients: HttpClients,
}

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Addresses {
    pub dynamodb: SocketAddr,
    pub aws: SocketAddr,
    pub mqtt: SocketAddr,
    pub http: SocketAddr,
}

/// Why the stack did not start.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A service did not start.
    #[error(transparent)]
    Service(#[from] StartError),
    /// A table could not be made.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A queue could not be made.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// What a registration names could not be made.
    #[error("registration target {target}: {reason}")]
    Target {
        /// The queue or topic.
        target: String,
        /// What the emulator said.
        reason: String,
    },
    /// The place in the stream could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A registration cannot be served.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A rule cannot be evaluated.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The data directory cannot be used.
    #[error("data directory {} cannot be used", path.display())]
    DataDirectory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has the data directory.
    #[error(
        "data directory {} is in use by another stack{}; stop that one or choose another directory",
        path.display(),
        process.map(|id| format!(" (process {id})")).unwrap_or_default()
    )]
    DataDirectoryInUse {
        /// Which.
        path: PathBuf,
        /// Who has it, where that is known.
        process: Option<u32>,
    },
}

/// The services, and what functions need to reach them.
struct LocalServices {
    dynamodb: dynamodb::DynamoDb,
    queues: queues::Queues,
    broker: mqtt::Broker,
    clock: ShiftedClock,
    layout: Layout,
    http_clients: HttpClients,
    wrap: Wrap,
}

/// How one function calls AWS.
struct Sdk {
    /// SQS, SNS and AWS IoT's data plane.
    aws: SdkConfig,
    database: SdkConfig,
}

/// What every function passes through before it is called.
type Wrap = Box<dyn Fn(Function) -> Function + Send + Sync>;

impl LocalServices {
    /// SQS, SNS and AWS IoT's data plane.
    fn aws(&self) -> SdkConfig {
        sdk_config(self.queues.address())
    }

    /// DynamoDB and its streams.
    fn database(&self) -> SdkConfig {
        sdk_config(self.dynamodb.address())
    }

    /// How the function of this name calls AWS.
    fn sdk_of(&self, function: &str) -> Sdk {
        let config = |endpoint| sdk_config_with(endpoint, self.http_clients.of(function));
        Sdk {
            aws: config(self.queues.address()),
            database: config(self.dynamodb.address()),
        }
    }
}

/// Everything, running. Dropping it stops it; [`Stack::stop`] also waits.
pub struct Stack {
    addresses: Addresses,
    http_token: HttpToken,
    http_api: api::HttpApi,
    // Before the services: what is dropped first stops first.
    feeds: Vec<RunningEventSource>,
    sweep: Function,
    ground: LocalServices,
    // Last: nobody else may have it while anything here runs.
    _data_directory: Option<DataDirectory>,
}

impl Stack {
    /// Starts everything.
    pub async fn start(options: Options) -> Result<Stack, StackError> {
        Stack::start_wrapped(options, |function| function).await
    }

    /// Starts everything, with other functions in place of some: to watch them, or to see what is
    /// missing without them.
    pub async fn start_wrapped(
        options: Options,
        wrap: impl Fn(Function) -> Function + Send + Sync + 'static,
    ) -> Result<Stack, StackError> {
        let data_directory = options
            .data_dir
            .as_deref()
            .map(DataDirectory::take)
            .transpose()?;
        let (storage, checkpoints) = kept(data_directory.as_ref())?;
        dynamodb::forget(&storage, |stream, shard| {
            checkpoints.dealt_with(stream, shard)
        })?;
        let broker = mqtt::start(options.mqtt_port).await?;
        let ground = LocalServices {
            dynamodb: dynamodb::start(storage, options.dynamodb_port).await?,
            queues: queues::start_with_mqtt(options.aws_port, broker.publisher()).await?,
            broker,
            clock: options.clock,
            layout: options.layout,
            http_clients: options.http_clients,
            wrap: Box::new(wrap),
        };

        let database = antumbra_dynamodb::client(&ground.database());
        let main = MAIN.ensure(&database).await?;
        let messages = MESSAGES.ensure(&database).await?;
        let sqs = aws_sdk_sqs::Client::new(&ground.aws());
        ensure_all(&sqs).await?;
        let sns = aws_sdk_sns::Client::new(&ground.aws());
        targets::ensure(&options.registrations, &sqs, &sns).await?;

        let sweep = (ground.wrap)(sensors::sweep(&ground));
        let listener = listener::function(&ground, options.registrations)?;
        let mut feeds = vec![
            ground.feed_from_stream(main.stream_arn, listener.clone(), checkpoints.clone()),
            ground.feed_from_stream(messages.stream_arn, listener, checkpoints),
            inbox::feed(&ground),
            requests::feed(&ground)?,
            sensors::ingest(&ground, options.newcomer),
            sensors::sweeping(&ground, sweep.clone()),
            shadows::feed(&ground)?,
            shadows::repeat(&ground),
        ];
        feeds.extend(deliveries::feeds(&ground, &options.webhooks));
        let http_token = token::token(data_directory.as_ref(), options.http_token)?;
        let http_api = api::start(
            &ground,
            options.http_port,
            &http_token.text,
            options.webhooks.allow.clone(),
        )
        .await?;
        let addresses = Addresses {
            dynamodb: ground.dynamodb.address(),
            aws: ground.queues.address(),
            mqtt: ground.broker.address(),
            http: http_api.address(),
        };
        Ok(Stack {
            addresses,
            http_token,
            http_api,
            feeds,
            sweep,
            ground,
            _data_directory: data_directory,
        })
    }

    /// Where everything is.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// What opens the HTTP API.
    pub fn http_token(&self) -> &HttpToken {
        &self.http_token
    }

    /// The URL of one of the stack's queues.
    pub fn queue_url(&self, name: &str) -> String {
        self.ground.queues.queue_url(name)
    }

    /// What calls the functions, and how.
    pub fn event_sources(&self) -> impl Iterator<Item = &EventSource> {
        self.feeds.iter().flat_map(RunningEventSource::sources)
    }

    /// Looks for sensors that fell silent, now, as the schedule does every minute.
    pub async fn sweep(&self) -> Result<Report, FunctionError> {
        let answer = schedule::tick(&self.sweep, &self.ground.clock).await?;
        let unread = |error: serde_json::Error| HandlerError(error.to_string());
        serde_json::from_slice(&answer).map_err(|error| FunctionError::Failed(unread(error)))
    }

    /// Lets what is under way end, then stops everything, feeders first.
    pub async fn stop(self) {
        self.http_api.stop().await;
        for feed in self.feeds {
            feed.stop().await;
        }
        self.ground.broker.stop().await;
        self.ground.queues.stop().await;
        self.ground.dynamodb.stop().await;
    }
}

/// What is kept, and where.
fn kept(directory: Option<&DataDirectory>) -> Result<(dynamodb::Storage, Checkpoints), StackError> {
    let Some(directory) = directory else {
        return Ok((dynamodb::Storage::Memory, Checkpoints::in_memory()));
    };
    Ok((
        dynamodb::Storage::File(directory.file("dynamodb.sqlite")),
        Checkpoints::in_file(directory.file("stream-positions.json"))?,
    ))
}
