//! SQS and SNS behind one loopback endpoint, as the CLI and every SDK expect,
//! and with a broker to publish to also the data plane of AWS IoT.
//!
//! Queues, topics and messages live in memory: they are gone when the process
//! ends. That is safe for what comes from a table's stream, whose position
//! moves only once it was sent, but a message that was queued and not yet
//! handled is lost with the process. Also not emulated: access policies,
//! encryption, message retention, subscriptions other than SQS, delivery
//! retries of a topic, signatures of a notification.

mod data_plane;
mod front;
mod raw;
mod topics;

pub mod definitions;

use std::{net::SocketAddr, sync::Arc};

use rustack_sns_core::{config::SnsConfig, provider::RustackSns};
use rustack_sqs_core::{config::SqsConfig, provider::RustackSqs};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    ACCOUNT, REGION,
    listen::{StartError, bind},
    mqtt::Publisher,
};

/// A running SQS and SNS endpoint. Dropping it stops it; [`Queues::stop`] also waits.
#[derive(Debug)]
pub struct Queues {
    address: SocketAddr,
    sqs: Arc<RustackSqs>,
    sns: Arc<RustackSns>,
    stop: DropGuard,
    server: JoinHandle<()>,
}

/// Serves both on a loopback port; 0 is any free one.
pub async fn start(port: u16) -> Result<Queues, StartError> {
    serve(port, None).await
}

/// The same, with AWS IoT's `Publish` leading to a broker.
pub async fn start_with_mqtt(port: u16, mqtt: Publisher) -> Result<Queues, StartError> {
    serve(port, Some(mqtt)).await
}

async fn serve(port: u16, mqtt: Option<Publisher>) -> Result<Queues, StartError> {
    let (listener, address) = bind("SQS and SNS", port).await?;
    let sqs = Arc::new(RustackSqs::new(SqsConfig {
        skip_signature_validation: true,
        default_region: REGION.to_owned(),
        account_id: ACCOUNT.to_owned(),
        host: address.ip().to_string(),
        port: address.port(),
    }));
    let raw = raw::RawSubscriptions::default();
    let sns = Arc::new(RustackSns::new(
        SnsConfig {
            skip_signature_validation: true,
            default_region: REGION.to_owned(),
            account_id: ACCOUNT.to_owned(),
            host: address.ip().to_string(),
            port: address.port(),
        },
        Arc::new(topics::ToQueues::new(Arc::clone(&sqs), raw.clone())),
    ));
    let front = front::Front::new(Arc::clone(&sqs), Arc::clone(&sns), raw, mqtt);
    let stop = CancellationToken::new();
    let server = tokio::spawn(front.serve(listener, stop.clone()));
    Ok(Queues {
        address,
        sqs,
        sns,
        stop: stop.drop_guard(),
        server,
    })
}

impl Queues {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a queue of this endpoint, whether it exists or not.
    pub fn queue_url(&self, name: &str) -> String {
        format!("http://{}/{ACCOUNT}/{name}", self.address)
    }

    /// Ends all polls that wait, lets running requests finish, and stops.
    pub async fn stop(self) {
        self.sns.shutdown().await;
        self.sqs.shutdown_all().await;
        drop(self.stop);
        if let Err(error) = self.server.await {
            tracing::error!(%error, "the SQS and SNS endpoint broke");
        }
    }
}

/// The ARN of a local queue.
pub fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
}
