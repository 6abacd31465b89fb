//! SQS, SNS, EventBridge and, with a broker to publish to, the data plane of AWS IoT behind one loopback endpoint, as the
//! AWS CLI and every SDK expect them. [`antumbra_queues`] keeps the queues and topics.

mod data_plane;
mod front;

pub mod definitions;

use std::net::SocketAddr;
use std::path::PathBuf;

use antumbra_queues::QueuesConfig;
pub use antumbra_queues::Unkindness;
pub use antumbra_queues::eventbridge::bus_queue;

use axum::Router;

use crate::http::{AllowedHosts, serve};
use crate::listen::{StartError, bind};
use crate::mqtt::Publisher;
use crate::task::Running;
use crate::{ACCOUNT, REGION};

/// A running SQS and SNS endpoint. Dropping it stops it; [`Queues::stop`] also waits.
#[derive(Debug)]
pub struct Queues {
    address: SocketAddr,
    queues: antumbra_queues::Queues,
    router: Router,
    server: Running,
}

#[derive(Debug, Default)]
pub struct Options {
    /// The broker that AWS IoT's `Publish` leads to.
    pub mqtt: Option<Publisher>,
    /// Directory in which messages survive a restart.
    pub data_dir: Option<PathBuf>,
    /// Late, repeated and reordered deliveries.
    pub unkindness: Unkindness,
    pub hosts: AllowedHosts,
}

/// Serves queues and topics in memory on a loopback port; 0 is any free one.
pub async fn start(port: u16) -> Result<Queues, StartError> {
    start_with(port, Options::default()).await
}

pub async fn start_with_mqtt(port: u16, mqtt: Publisher) -> Result<Queues, StartError> {
    let options = Options {
        mqtt: Some(mqtt),
        ..Options::default()
    };
    start_with(port, options).await
}

pub async fn start_with(port: u16, options: Options) -> Result<Queues, StartError> {
    let (listener, address) = bind("SQS and SNS", port).await?;
    let queues = antumbra_queues::Queues::open(QueuesConfig {
        account: ACCOUNT.to_owned(),
        region: REGION.to_owned(),
        endpoint: format!("http://{address}"),
        data_dir: options.data_dir,
        unkindness: options.unkindness,
    });
    let queues = queues.map_err(|error| StartError::Service {
        service: "SQS and SNS",
        reason: format!("the journal of the queues cannot be read: {error}"),
    })?;
    let router = front::router(queues.clone(), options.mqtt);
    let service = router.clone();
    let server = Running::start(|stop| serve(listener, service, options.hosts, stop));
    Ok(Queues {
        address,
        queues,
        router,
        server,
    })
}

impl Queues {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The services behind the port.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// The URL of a queue of this endpoint, whether it exists or not.
    pub fn queue_url(&self, name: &str) -> String {
        self.queues.queue_url(name)
    }

    /// The queues without the network.
    pub fn queues(&self) -> &antumbra_queues::Queues {
        &self.queues
    }

    /// Ends all long polls, lets running requests finish, and stops.
    pub async fn stop(self) {
        self.queues.stop();
        self.server.stop().await;
    }
}

pub fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
}
