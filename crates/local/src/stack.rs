//! The whole stack: every service started, every table and queue made, every function fed.
//!
//! The functions are the ones that run on AWS; only who calls them is different.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{MAIN, MESSAGES, TableError};
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_publish::{Broker as BrokerAddress, MqttChannel};
use antumbra_registration::{Registrations, Target};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow::Model;
use antumbra_stream_listener::{AwsChannels, Listener, RouteError};
use bytes::Bytes;

use crate::clients::sdk_config;
use crate::function::{Function, HandlerError};
use crate::listen::StartError;
use crate::queues::definitions::{QueueError, ensure_all};
use crate::stream::{CheckpointError, Checkpoints, StreamPump};
use crate::{ACCOUNT, REGION, dynamodb, mqtt, queues, stream};

/// How long a function may run, as the template says.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(30);
const UNDELIVERABLE: &str = "antumbra-undeliverable";

/// What to start, and where.
#[derive(Debug)]
pub struct Options {
    /// Where data is kept; `None` for nowhere.
    pub data_dir: Option<PathBuf>,
    /// 0 is any free port, here and below.
    pub dynamodb_port: u16,
    /// SQS and SNS.
    pub aws_port: u16,
    /// MQTT, versions 3.1.1 and 5.
    pub mqtt_port: u16,
    /// Who is told of changes.
    pub registrations: Registrations,
}

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Addresses {
    pub dynamodb: SocketAddr,
    pub aws: SocketAddr,
    pub mqtt: SocketAddr,
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
    /// The data directory cannot be used.
    #[error("data directory {}: {source}", path.display())]
    DataDirectory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Everything, running. Dropping it stops it; [`Stack::stop`] also waits.
pub struct Stack {
    addresses: Addresses,
    pump: StreamPump,
    broker: mqtt::Broker,
    queues: queues::Queues,
    dynamodb: dynamodb::DynamoDb,
}

impl Stack {
    /// Starts everything.
    pub async fn start(options: Options) -> Result<Stack, StackError> {
        let (storage, checkpoints) = data(options.data_dir.as_deref())?;
        let dynamodb = dynamodb::start(storage, options.dynamodb_port).await?;
        let queues = queues::start(options.aws_port).await?;
        let broker = mqtt::start(options.mqtt_port).await?;

        let database = antumbra_dynamodb::client(&sdk_config(dynamodb.address()));
        let main = MAIN.ensure(&database).await?;
        MESSAGES.ensure(&database).await?;
        let aws = sdk_config(queues.address());
        let sqs = aws_sdk_sqs::Client::new(&aws);
        ensure_all(&sqs).await?;
        ensure_targets(
            &options.registrations,
            &sqs,
            &aws_sdk_sns::Client::new(&aws),
        )
        .await?;

        let channel = MqttChannel::new(BrokerAddress {
            host: broker.address().ip().to_string(),
            port: broker.address().port(),
            client_id: antumbra_stream_listener::NAME.to_owned(),
        });
        let channels =
            AwsChannels::with_mqtt(&aws, Arc::new(channel), queues.queue_url(UNDELIVERABLE))
                // What the emulator's queues take.
                .with_queue_bytes(SMALL_BYTES);
        let listener = Listener::new(
            options.registrations,
            &channels,
            Model::default(),
            SystemClock,
        )?;
        // A table just made has a stream, which its definition asks for.
        let source = stream::Source {
            on_failure: Some(queues.queue_url(UNDELIVERABLE)),
            ..stream::Source::new(main.stream_arn.unwrap_or_default())
        };
        let streams = aws_sdk_dynamodbstreams::Client::new(&sdk_config(dynamodb.address()));
        let pump = stream::start(streams, sqs, source, listening(listener), checkpoints);
        let addresses = Addresses {
            dynamodb: dynamodb.address(),
            aws: queues.address(),
            mqtt: broker.address(),
        };
        Ok(Stack {
            addresses,
            pump,
            broker,
            queues,
            dynamodb,
        })
    }

    /// Where everything is.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// The URL of one of the stack's queues.
    pub fn queue_url(&self, name: &str) -> String {
        self.queues.queue_url(name)
    }

    /// Lets what is under way end, then stops everything, feeders first.
    pub async fn stop(self) {
        self.pump.stop().await;
        self.broker.stop().await;
        self.queues.stop().await;
        self.dynamodb.stop().await;
    }
}

fn data(directory: Option<&Path>) -> Result<(dynamodb::Storage, Checkpoints), StackError> {
    let Some(directory) = directory else {
        return Ok((dynamodb::Storage::Memory, Checkpoints::in_memory()));
    };
    std::fs::create_dir_all(directory).map_err(|source| StackError::DataDirectory {
        path: directory.to_owned(),
        source,
    })?;
    let checkpoints = Checkpoints::in_file(directory.join("stream-positions.json"))?;
    Ok((
        dynamodb::Storage::File(directory.join("dynamodb.sqlite")),
        checkpoints,
    ))
}

fn listening(listener: Listener<SystemClock>) -> Function {
    let listener = Arc::new(listener);
    Function::new(
        antumbra_stream_listener::NAME,
        FUNCTION_TIMEOUT,
        move |event: Bytes| {
            let listener = Arc::clone(&listener);
            async move {
                let deadline = SystemClock.now().after(FUNCTION_TIMEOUT);
                let handled = listener
                    .handle(&event, deadline)
                    .await
                    .map_err(|error| HandlerError(error.to_string()))?;
                tracing::debug!(?handled, "changes were sent");
                let response = serde_json::to_vec(&handled.response())
                    .map_err(|error| HandlerError(error.to_string()))?;
                Ok(response.into())
            }
        },
    )
}

/// Makes the queues and topics that registrations name and that would be there on AWS.
async fn ensure_targets(
    registrations: &Registrations,
    sqs: &aws_sdk_sqs::Client,
    sns: &aws_sdk_sns::Client,
) -> Result<(), StackError> {
    let mut made = BTreeSet::new();
    let in_force = registrations
        .iter()
        .map(|(_, registration)| registration)
        .filter(|registration| registration.enabled);
    for target in in_force.map(|registration| &registration.to) {
        let (address, prefix) = match target {
            Target::Sqs(sqs) => (
                sqs.queue.as_str(),
                format!("arn:aws:sqs:{REGION}:{ACCOUNT}:"),
            ),
            Target::Sns(sns) => (
                sns.topic.as_str(),
                format!("arn:aws:sns:{REGION}:{ACCOUNT}:"),
            ),
            _ => continue,
        };
        let name = address.strip_prefix(&prefix).unwrap_or(address);
        // A full address elsewhere is somebody else's to make.
        if name.contains([':', '/']) || !made.insert((target.kind(), name.to_owned())) {
            continue;
        }
        let fifo = name.ends_with(".fifo").then_some("true");
        let outcome = match target {
            Target::Sqs(_) => {
                let attribute = fifo.map(|yes| {
                    (
                        aws_sdk_sqs::types::QueueAttributeName::FifoQueue,
                        yes.to_owned(),
                    )
                });
                let request = sqs
                    .create_queue()
                    .queue_name(name)
                    .set_attributes(attribute.map(|pair| [pair].into()));
                request
                    .send()
                    .await
                    .map(drop)
                    .map_err(|error| error.into_service_error().to_string())
            }
            _ => {
                let attribute = fifo.map(|yes| ("FifoTopic".to_owned(), yes.to_owned()));
                let request = sns
                    .create_topic()
                    .name(name)
                    .set_attributes(attribute.map(|pair| [pair].into()));
                request
                    .send()
                    .await
                    .map(drop)
                    .map_err(|error| error.into_service_error().to_string())
            }
        };
        outcome.map_err(|reason| StackError::Target {
            target: name.to_owned(),
            reason,
        })?;
    }
    Ok(())
}
