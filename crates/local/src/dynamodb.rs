//! DynamoDB with its streams, served on loopback by the embedded engine.
//!
//! [`antumbra_dynamodb::TableDefinition`] creates the tables.
//!
//! A stream keeps its records for a day, as on AWS, except unread records of an earlier run: a stack that was off
//! for a week still sends them.

mod operations;
mod stream_records;

use std::net::SocketAddr;
use std::{path::PathBuf, time::Duration};

use dynoxide::{Database, storage::Storage as Engine};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::http::{AllowedHosts, serve};
use crate::listen::{StartError, bind};
use crate::private_file;
use crate::task::Running;

pub use stream_records::delete_read_records;

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
    database: Database,
    server: Running,
}

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
    let start_error = |reason: String| StartError::Service {
        service: SERVICE,
        reason,
    };
    let database = open(&storage).map_err(start_error)?;
    let (listener, address) = bind(SERVICE, port).await?;
    let router = operations::router(database.clone());
    let opened = database.clone();
    let server = Running::start(|stop| async move {
        let served = serve(listener, router, hosts, stop.clone());
        tokio::join!(served, expire(opened, every, stop));
    });
    Ok(DynamoDb {
        address,
        database,
        server,
    })
}

async fn expire(database: Database, every: Duration, stop: CancellationToken) {
    let mut ticks = tokio::time::interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = delete_expired(database.clone()).await {
            tracing::warn!(%error, "expired items were not deleted");
        }
    }
}

async fn delete_expired(database: Database) -> Result<usize, StartError> {
    let failed = |reason: String| StartError::Service {
        service: SERVICE,
        reason,
    };
    tokio::task::spawn_blocking(move || database.sweep_ttl())
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(error.to_string()))
}

fn open(storage: &Storage) -> Result<Database, String> {
    match storage {
        Storage::Memory => memory(),
        Storage::File(path) => {
            let text = path
                .to_str()
                .ok_or_else(|| format!("{} is not a readable path", path.display()))?;
            // The engine gives its other files the permissions of this one.
            let opened = private_file::open(path).map_err(|error| error.to_string());
            let opened = opened.and_then(|_| file(text));
            opened.map_err(|reason| format!("{}: {reason}", path.display()))
        }
    }
}

fn file(path: &str) -> Result<Database, String> {
    indexed(path)?;
    let database = Database::new(path).map_err(|error| error.to_string())?;
    // With the engine's mode "normal" the disk is synchronized at checkpoints only, which doubles the write rate. A
    // killed process loses nothing; a power cut may lose the last moments.
    let normal = database.disable_bulk_loading();
    normal.map_err(|error| error.to_string())?;
    Ok(database)
}

/// The engine's own in-memory database cannot be accessed, so it is filled from one that can.
fn memory() -> Result<Database, String> {
    let name = uuid::Uuid::new_v4().simple();
    let template = format!("file:{name}?mode=memory&cache=shared");
    let _kept = indexed(&template)?;
    let database = Database::memory().map_err(|error| error.to_string())?;
    database
        .restore_from(&template)
        .map_err(|error| error.to_string())?;
    Ok(database)
}

fn indexed(path: &str) -> Result<Engine, String> {
    let engine = Engine::new(path).map_err(|error| error.to_string())?;
    stream_records::prepare(&engine)?;
    Ok(engine)
}

impl DynamoDb {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Deletes expired items, as DynamoDB does by itself, and returns their number. The deletions appear in the
    /// stream with DynamoDB's own identity.
    pub async fn delete_expired(&self) -> Result<usize, StartError> {
        delete_expired(self.database.clone()).await
    }

    /// Stops accepting, lets running requests finish, and closes the storage.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tested with a file, which a test can inspect.
    #[test]
    fn stream_retention_is_the_same_in_memory_and_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy.db");
        let copy = copy.to_str().unwrap();
        memory().unwrap().vacuum_into(copy).unwrap();
        let made = "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'antumbra_stream_%'";
        let engine = Engine::new(copy).unwrap();
        let made: i64 = engine.conn().query_row(made, [], |row| row.get(0)).unwrap();
        assert_eq!(made, 3);
    }
}
