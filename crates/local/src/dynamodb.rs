//! DynamoDB with its streams ([`antumbra_database`]), served on loopback.
//!
//! [`antumbra_dynamodb::TableDefinition`] creates the tables.
//!
//! A stream keeps its records for a day, as on AWS, except unread records of an earlier run: a stack that was off
//! for a week still sends them.

use std::net::SocketAddr;
use std::{path::PathBuf, time::Duration};

use antumbra_database::{Checkpointer, Engine, StreamReader, checkpoints, router};
use axum::Router;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::http::{AllowedHosts, serve};
use crate::listen::{StartError, bind};
use crate::private_file;
use crate::task::Running;

const SERVICE: &str = "DynamoDB";

/// Interval of deleting expired items. DynamoDB does it within some days.
const EXPIRY: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Lost when the process ends.
    Memory,
    /// One SQLite file, created if it is missing.
    File(PathBuf),
}

/// A running DynamoDB endpoint. Dropping it stops it; [`DynamoDb::stop`] also waits.
pub struct DynamoDb {
    address: SocketAddr,
    engine: Engine,
    router: Router,
    written: Written,
    server: Running,
}

/// Signal that items may have been written: readers of streams need not poll for it.
pub type Written = tokio::sync::watch::Receiver<()>;

/// Opens the storage and serves it on a loopback port; 0 is any free one.
pub async fn start(storage: Storage, port: u16) -> Result<DynamoDb, StartError> {
    start_with(storage, port, EXPIRY, AllowedHosts::default()).await
}

/// Starts with another interval of deleting expired items.
pub async fn start_expiring(
    storage: Storage,
    port: u16,
    every: Duration,
) -> Result<DynamoDb, StartError> {
    start_with(storage, port, every, AllowedHosts::default()).await
}

pub(crate) async fn start_for(
    storage: Storage,
    port: u16,
    hosts: AllowedHosts,
) -> Result<DynamoDb, StartError> {
    start_with(storage, port, EXPIRY, hosts).await
}

async fn start_with(
    storage: Storage,
    port: u16,
    every: Duration,
    hosts: AllowedHosts,
) -> Result<DynamoDb, StartError> {
    let engine = open(&storage).map_err(start_error)?;
    let checkpointer = Checkpointer::open(&engine).map_err(start_error)?;
    let (listener, address) = bind(SERVICE, port).await?;
    let (write, written) = tokio::sync::watch::channel(());
    let router = router(engine.clone(), write);
    let (opened, service) = (engine.clone(), router.clone());
    let checkpointed = written.clone();
    let server = Running::start(|stop| async move {
        let served = serve(listener, service, hosts, stop.clone());
        let checkpoints = checkpoints(checkpointer, opened.clone(), checkpointed, stop.clone());
        tokio::join!(served, checkpoints, expire(opened, every, stop));
    });
    Ok(DynamoDb {
        address,
        engine,
        router,
        written,
        server,
    })
}

async fn expire(engine: Engine, every: Duration, stop: CancellationToken) {
    let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = delete_expired(engine.clone()).await {
            tracing::warn!(%error, "expired items were not deleted");
        }
    }
}

async fn delete_expired(engine: Engine) -> Result<usize, StartError> {
    let deleted = tokio::task::spawn_blocking(move || engine.delete_expired()).await;
    let deleted = deleted.unwrap_or_else(|error| Err(error.to_string()));
    deleted.map_err(start_error)
}

fn start_error(reason: String) -> StartError {
    StartError::Service {
        service: SERVICE,
        reason,
    }
}

/// Deletes stream records of earlier runs; see [`antumbra_database::delete_read_records`].
pub fn delete_read_records(
    storage: &Storage,
    common_position: impl Fn(&str, &str) -> Option<String>,
) -> Result<usize, StartError> {
    match storage {
        Storage::File(path) if path.exists() => {
            let deleted = antumbra_database::delete_read_records(path, common_position);
            deleted.map_err(|reason| start_error(format!("{}: {reason}", path.display())))
        }
        _ => Ok(0),
    }
}

fn open(storage: &Storage) -> Result<Engine, String> {
    match storage {
        Storage::Memory => Engine::memory(),
        Storage::File(path) => {
            // The engine gives its other files the permissions of this one.
            let opened = private_file::open(path).map_err(|error| error.to_string());
            let opened = opened.and_then(|_| Engine::file(path.clone()));
            opened.map_err(|reason| format!("{}: {reason}", path.display()))
        }
    }
}

impl DynamoDb {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The service behind the port.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// The signal of writes.
    pub fn written(&self) -> Written {
        self.written.clone()
    }

    /// A reader of the streams for event sources.
    pub fn stream_reader(&self) -> StreamReader {
        StreamReader::new(self.engine.clone())
    }

    /// Deletes expired items, as DynamoDB does by itself, and returns their number. The deletions appear in the
    /// stream with DynamoDB's own identity.
    pub async fn delete_expired(&self) -> Result<usize, StartError> {
        delete_expired(self.engine.clone()).await
    }

    /// Stops accepting, lets running requests finish, and closes the storage.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}
