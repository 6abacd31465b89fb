//! DynamoDB with its streams, served on loopback by the embedded engine.
//!
//! Tables are not made here: see [`antumbra_dynamodb::Table`].
//!
//! Not emulated: a stream keeps its records for good, not for a day. So a stack
//! that was off for a week still sends what it had not sent, and a data
//! directory grows until it is deleted.

use std::{net::SocketAddr, path::PathBuf};

use dynoxide::{Database, storage::Storage as Engine};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::listen::{StartError, bind};

const SERVICE: &str = "DynamoDB";

/// Where the tables live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Gone when the process ends.
    Memory,
    /// One SQLite file, made when it is not there.
    File(PathBuf),
}

/// A running DynamoDB endpoint. Dropping it stops it; [`DynamoDb::stop`] also waits.
pub struct DynamoDb {
    address: SocketAddr,
    database: Database,
    stop: DropGuard,
    server: JoinHandle<Result<(), String>>,
}

/// Opens the storage and serves it on a loopback port; 0 is any free one.
pub async fn start(storage: Storage, port: u16) -> Result<DynamoDb, StartError> {
    let refused = |reason: String| StartError::Service {
        service: SERVICE,
        reason,
    };
    let database = open(&storage).map_err(refused)?;
    let (listener, address) = bind(SERVICE, port).await?;
    let stop = CancellationToken::new();
    let server = tokio::spawn(dynoxide::server::serve_with_shutdown(
        listener,
        database.clone(),
        stop.clone().cancelled_owned(),
    ));
    Ok(DynamoDb {
        address,
        database,
        stop: stop.drop_guard(),
        server,
    })
}

/// The engine looks through all stream records to number the next one, and again
/// to read the latest; these let it go straight there. Without them each write
/// costs more the more were made before.
const STREAM_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS antumbra_stream_numbers
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS antumbra_stream_order
        ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER));";

fn open(storage: &Storage) -> Result<Database, String> {
    match storage {
        Storage::Memory => memory(),
        Storage::File(path) => {
            let text = path
                .to_str()
                .ok_or_else(|| format!("{} is not a readable path", path.display()))?;
            file(text).map_err(|reason| format!("{}: {reason}", path.display()))
        }
    }
}

fn file(path: &str) -> Result<Database, String> {
    indexed(path)?;
    Database::new(path).map_err(|error| error.to_string())
}

/// The engine's own in-memory database cannot be reached, so that it is filled from one that can.
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
    engine
        .conn()
        .execute_batch(STREAM_INDEXES)
        .map_err(|error| error.to_string())?;
    Ok(engine)
}

impl DynamoDb {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Deletes what has expired, as DynamoDB does now and then on its own, and
    /// says how many items that were. The deletions show in the stream with
    /// DynamoDB's own identity.
    pub async fn delete_expired(&self) -> Result<usize, StartError> {
        let database = self.database.clone();
        let failed = |reason: String| StartError::Service {
            service: SERVICE,
            reason,
        };
        tokio::task::spawn_blocking(move || database.sweep_ttl())
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))
    }

    /// Stops accepting, lets running requests finish, and closes the storage.
    pub async fn stop(self) {
        drop(self.stop);
        // The server's only error is one of its socket, which is closed by now.
        let _ = self.server.await;
    }
}
