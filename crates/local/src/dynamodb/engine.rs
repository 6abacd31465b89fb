//! The embedded engine (dynoxide) on one connection to SQLite.
//!
//! The engine's own `Database` does the same, but hides the connection: the cache of prepared statements holds 16 there,
//! fewer than one write of an item with all its indexes needs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dynoxide::actions::vector_lifecycle::VectorIndexLifecycle;
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError, actions, ttl};
use futures_util::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::idempotency::Tokens;
use super::stream_records::{self, Trimming};

const CACHED_STATEMENTS: usize = 200;

/// With "normal" the disk is synchronized at checkpoints only, which doubles the write rate. A killed process loses
/// nothing; a power cut may lose the last moments. A checkpoint stops all requests: every 16 MB instead of every 4.
const SETTINGS: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA cache_size = -16000;";

/// The tables. Clones share them.
#[derive(Clone)]
pub(super) struct Engine {
    /// `None` in memory.
    file: Option<PathBuf>,
    opened: Arc<Mutex<Opened>>,
}

struct Opened {
    storage: Storage,
    vectors: VectorIndexLifecycle,
    tokens: Tokens,
    trimming: Trimming,
}

impl Engine {
    pub(super) fn memory() -> Result<Engine, String> {
        let storage = Storage::memory().map_err(|error| error.to_string())?;
        Engine::over(storage, None)
    }

    pub(super) fn file(path: PathBuf) -> Result<Engine, String> {
        let text = path.to_str().ok_or("it is not a readable path")?;
        let storage = Storage::new(text).map_err(|error| error.to_string())?;
        Engine::over(storage, Some(path))
    }

    fn over(storage: Storage, file: Option<PathBuf>) -> Result<Engine, String> {
        let connection = storage.conn();
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        let set = connection.execute_batch(SETTINGS);
        set.map_err(|error| error.to_string())?;
        stream_records::prepare(&storage)?;
        let opened = Opened {
            trimming: Trimming::of_this_run(&storage)?,
            storage,
            vectors: VectorIndexLifecycle::new(),
            tokens: Tokens::default(),
        };
        Ok(Engine {
            file,
            opened: Arc::new(Mutex::new(opened)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes expired items and returns their number.
    pub(super) fn delete_expired(&self) -> Result<usize, DynoxideError> {
        match self.file.as_ref().and_then(|path| path.to_str()) {
            // A connection of its own: other requests run between its pages.
            Some(path) => Database::new(path)?.sweep_ttl(),
            None => ready(ttl::sweep_expired_items(&self.lock().storage)),
        }
    }

    /// Executes an operation on the JSON of a request; `None` if it does not exist.
    pub(super) fn execute(
        &self,
        operation: &str,
        body: &[u8],
    ) -> Option<Result<String, DynoxideError>> {
        macro_rules! operations {
            ($($name:literal => $action:ident $($vectors:ident)?,)*) => {
                match operation {
                    $($name => run(body, |request| {
                        let opened = self.lock();
                        ready(actions::$action::execute(
                            &opened.storage,
                            request,
                            $(&opened.$vectors,)?
                        ))
                    }),)*
                    "TransactWriteItems" => self.once(body, "TransactItems", |storage, request| {
                        ready(actions::transact_write_items::execute(storage, request))
                    }),
                    "ExecuteTransaction" => {
                        self.once(body, "TransactStatements", |storage, request| {
                            ready(actions::execute_transaction::execute(storage, request))
                        })
                    }
                    _ => return None,
                }
            };
        }
        let executed = operations! {
            "BatchExecuteStatement" => batch_execute_statement,
            "BatchGetItem" => batch_get_item,
            "BatchWriteItem" => batch_write_item,
            "CreateTable" => create_table,
            "DeleteItem" => delete_item,
            "DeleteTable" => delete_table vectors,
            "DescribeStream" => describe_stream,
            "DescribeTable" => describe_table vectors,
            "DescribeTimeToLive" => describe_time_to_live,
            "ExecuteStatement" => execute_statement,
            "GetItem" => get_item,
            "GetRecords" => get_records,
            "GetShardIterator" => get_shard_iterator,
            "ListStreams" => list_streams,
            "ListTables" => list_tables,
            "ListTagsOfResource" => list_tags_of_resource,
            "PutItem" => put_item,
            "Query" => query,
            "Scan" => scan,
            "TagResource" => tag_resource,
            "TransactGetItems" => transact_get_items,
            "UntagResource" => untag_resource,
            "UpdateItem" => update_item,
            "UpdateTable" => update_table vectors,
            "UpdateTimeToLive" => update_time_to_live,
        };
        Some(executed)
    }

    /// Executes a transaction, unless one with the same token was.
    fn once<Q: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        content: &str,
        execute: impl FnOnce(&Storage, Q) -> dynoxide::Result<A>,
    ) -> dynoxide::Result<String> {
        let request = parse(body)?;
        // Locked until the response is known, so that two with one token cannot both execute.
        let mut opened = self.lock();
        let Opened {
            storage, tokens, ..
        } = &mut *opened;
        tokens.once(body, content, || print(&execute(storage, request)?))
    }

    /// Deletes old records of streams, after every so many writes.
    pub(super) fn after_write(&self) {
        let Opened {
            storage, trimming, ..
        } = &mut *self.lock();
        if let Err(error) = trimming.after_write(storage) {
            tracing::warn!(error, "old records of streams were not deleted");
        }
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    execute: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    print(&execute(parse(body)?)?)
}

/// Returns the result of a future of the engine, which never waits on this storage.
fn ready<T>(future: impl Future<Output = dynoxide::Result<T>>) -> dynoxide::Result<T> {
    let waits = || DynoxideError::InternalServerError("the engine waits".to_owned());
    future.now_or_never().unwrap_or_else(|| Err(waits()))
}

fn parse<Q: DeserializeOwned>(body: &[u8]) -> dynoxide::Result<Q> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

fn print(response: &impl Serialize) -> dynoxide::Result<String> {
    serde_json::to_string(response)
        .map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// DynamoDB's error for a request that cannot be read. The engine's types mark the class of an error that they found.
fn unreadable(error: &serde_json::Error) -> DynoxideError {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    if message.starts_with("empty AttributeValue") {
        let message =
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
        return DynoxideError::ValidationException(message.to_owned());
    }
    let (class, message) = match message.split_once(':') {
        Some((mark, rest)) if mark.starts_with("VALIDATION") => ("VALIDATION", rest),
        Some((mark, rest)) if mark.starts_with("SERIALIZATION") => ("SERIALIZATION", rest),
        _ => ("", message),
    };
    let is_invalid = [
        "missing field",
        "unknown variant",
        "invalid type: null",
        "AttributeValue",
    ]
    .iter()
    .any(|part| message.contains(part));
    match class {
        "SERIALIZATION" => DynoxideError::SerializationException(message.to_owned()),
        "" if !is_invalid => DynoxideError::SerializationException(message.to_owned()),
        _ => DynoxideError::ValidationException(message.to_owned()),
    }
}
