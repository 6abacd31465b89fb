//! The embedded engine (dynoxide) on one connection to SQLite.
//!
//! The engine's own `Database` does the same, but hides the connection: the cache of prepared statements holds 16 there,
//! fewer than one write of an item with all its indexes needs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use dynoxide::actions::vector_lifecycle::VectorIndexLifecycle;
use dynoxide::storage::Storage;
use dynoxide::{Database, DynoxideError, actions, ttl};
use futures_util::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, oneshot};

use crate::batch;
use crate::idempotency::Tokens;
use crate::records::{self, RecordPage};
use crate::stream_records::{self, Trimming};

const CACHED_STATEMENTS: usize = 200;
/// Waiting requests that are executed before a checkpoint gets its turn.
const JOBS_AT_ONCE: usize = 32;

const WRITES: [&str; 8] = [
    "BatchExecuteStatement",
    "BatchWriteItem",
    "DeleteItem",
    "ExecuteStatement",
    "ExecuteTransaction",
    "PutItem",
    "TransactWriteItems",
    "UpdateItem",
];

/// Returns whether a stream may have new records after the operation.
pub(crate) fn is_write(operation: &str) -> bool {
    WRITES.contains(&operation)
}

/// With "normal" the disk is synchronized at checkpoints only, which doubles the write rate. A killed process loses
/// nothing; a power cut may lose the last moments. A checkpoint of this connection stops all requests: [`crate::wal`]
/// executes them before the log has that many pages. A log that begins again gets small.
const SETTINGS: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 64000;
    PRAGMA journal_size_limit = 0;
    PRAGMA cache_size = -16000;";

/// The tables. Clones share them.
#[derive(Clone)]
pub struct Engine {
    /// `None` in memory.
    file: Option<PathBuf>,
    opened: Arc<Mutex<Opened>>,
    /// Requests that wait for their turn. They block no thread.
    waiting: Arc<std::sync::Mutex<Waiting>>,
}

/// Work on the storage that also delivers its result.
type Job = Box<dyn FnOnce(&mut Opened) + Send>;

#[derive(Default)]
struct Waiting {
    /// In the order of their turns; the flag is true for a batch of writes.
    jobs: VecDeque<(Job, bool)>,
    /// Batches behind the one in `jobs`. Only one waits there, so that a short request never waits for several batches.
    batches: VecDeque<Job>,
    has_batch: bool,
    executes_batch: bool,
    /// A thread executes them.
    is_executed: bool,
}

struct Opened {
    storage: Storage,
    vectors: VectorIndexLifecycle,
    tokens: Tokens,
    trimming: Trimming,
}

impl Engine {
    /// Opens tables that are lost when the process ends.
    pub fn memory() -> Result<Engine, String> {
        let storage = Storage::memory().map_err(|error| error.to_string())?;
        Engine::over(storage, None)
    }

    /// Opens the tables of a file; creates it if it is missing.
    pub fn file(path: PathBuf) -> Result<Engine, String> {
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
            waiting: Arc::default(),
        })
    }

    /// Path of the file; `None` in memory.
    pub(crate) fn path(&self) -> Option<&str> {
        self.file.as_ref()?.to_str()
    }

    /// Uses the storage between two requests. It blocks the thread.
    pub(crate) fn with_storage<T>(&self, use_it: impl FnOnce(&Storage) -> T) -> T {
        use_it(&self.opened.blocking_lock().storage)
    }

    /// Deletes expired items and returns their number. It blocks the thread.
    pub fn delete_expired(&self) -> Result<usize, String> {
        let deleted = match self.path() {
            // A connection of its own: other requests run between its pages.
            Some(path) => Database::new(path).and_then(|tables| tables.sweep_ttl()),
            None => self.with_storage(|storage| ready(ttl::sweep_expired_items(storage))),
        };
        deleted.map_err(|error| error.to_string())
    }

    /// Runs work on the storage when it is its turn. The work ends even if the caller is not polled again, and stops no
    /// other.
    async fn turn<T: Send + 'static>(
        &self,
        is_batch: bool,
        work: impl FnOnce(&mut Opened) -> T + Send + 'static,
    ) -> T {
        if let Ok(mut opened) = self.opened.try_lock() {
            return work(&mut opened);
        }
        let (send, result) = oneshot::channel();
        let job = move |opened: &mut Opened| {
            let result = catch_unwind(AssertUnwindSafe(|| work(opened)));
            // The caller may be gone.
            let _ = send.send(result);
        };
        if lock(&self.waiting).add(is_batch, Box::new(job)) {
            let engine = self.clone();
            tokio::task::spawn_blocking(move || engine.execute_waiting());
        }
        match result.await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            // The runtime stops, and the caller with it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Executes all waiting work. One thread does, beside those of the other tasks: the storage is not idle while a task
    /// waits for a thread, and no task waits for a long request.
    fn execute_waiting(&self) {
        loop {
            let mut opened = self.opened.blocking_lock();
            for _ in 0..JOBS_AT_ONCE {
                // A statement of its own: the list is free while the work runs.
                let next = lock(&self.waiting).take();
                match next {
                    Some(job) => job(&mut opened),
                    None => return,
                }
            }
        }
    }

    /// Executes an operation on the JSON of a request; `None` if it does not exist.
    pub(crate) async fn execute(
        &self,
        operation: &str,
        body: &Bytes,
    ) -> Option<Result<String, DynoxideError>> {
        macro_rules! operations {
            ($($name:literal => $action:ident $($vectors:ident)?,)*) => {
                match operation {
                    $($name => self.run(operation, body, |opened, request| {
                        ready(actions::$action::execute(
                            &opened.storage,
                            request,
                            $(&opened.$vectors,)?
                        ))
                    }).await,)*
                    "BatchWriteItem" => self.run(operation, body, |opened, request| {
                        batch::execute(&opened.storage, request)
                    }).await,
                    "TransactWriteItems" => self.once(body, "TransactItems", |storage, request| {
                        ready(actions::transact_write_items::execute(storage, request))
                    }).await,
                    "ExecuteTransaction" => self.once(body, "TransactStatements", |storage, request| {
                        ready(actions::execute_transaction::execute(storage, request))
                    }).await,
                    _ => return None,
                }
            };
        }
        let executed = operations! {
            "BatchExecuteStatement" => batch_execute_statement,
            "BatchGetItem" => batch_get_item,
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

    async fn run<Q: DeserializeOwned + Send + 'static, A: Serialize + Send + 'static>(
        &self,
        operation: &str,
        body: &Bytes,
        execute: impl FnOnce(&Opened, Q) -> dynoxide::Result<A> + Send + 'static,
    ) -> dynoxide::Result<String> {
        let request = parse(body)?;
        let (writes, is_batch) = (is_write(operation), operation == "BatchWriteItem");
        let response = self.turn(is_batch, move |opened| {
            let response = execute(opened, request);
            if writes {
                opened.after_write();
            }
            response
        });
        // Others have their turn while the response is printed.
        print(&response.await?)
    }

    /// Executes a transaction, unless one with the same token was.
    async fn once<Q: DeserializeOwned + Send + 'static, A: Serialize>(
        &self,
        body: &Bytes,
        content: &'static str,
        execute: impl FnOnce(&Storage, Q) -> dynoxide::Result<A> + Send + 'static,
    ) -> dynoxide::Result<String> {
        let (request, body) = (parse(body)?, body.clone());
        // One turn until the response is known, so that two with one token cannot both execute.
        self.turn(false, move |opened| {
            let Opened {
                storage, tokens, ..
            } = opened;
            let response = tokens.once(&body, content, || print(&execute(storage, request)?));
            opened.after_write();
            response
        })
        .await
    }

    /// Reads up to `limit` records at an iterator of a shard.
    pub(crate) async fn records(&self, iterator: &str, limit: usize) -> Result<RecordPage, String> {
        let iterator = iterator.to_owned();
        let read = move |opened: &mut Opened| records::page(&opened.storage, &iterator, limit);
        self.turn(false, read).await
    }
}

impl Waiting {
    /// Adds work; returns whether a thread has to be started for it.
    fn add(&mut self, is_batch: bool, job: Job) -> bool {
        match is_batch && self.has_batch {
            true => self.batches.push_back(job),
            false => self.jobs.push_back((job, is_batch)),
        }
        self.has_batch |= is_batch;
        !std::mem::replace(&mut self.is_executed, true)
    }

    /// Removes the next work after the previous one has ended. The thread ends when nothing is left.
    fn take(&mut self) -> Option<Job> {
        if std::mem::take(&mut self.executes_batch) {
            let next = self.batches.pop_front();
            self.has_batch = next.is_some();
            self.jobs.extend(next.map(|job| (job, true)));
        }
        let next = self.jobs.pop_front();
        self.is_executed = next.is_some();
        let (job, is_batch) = next?;
        self.executes_batch = is_batch;
        Some(job)
    }
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Opened {
    /// Deletes old records of streams, after every so many writes.
    fn after_write(&mut self) {
        if let Err(error) = self.trimming.after_write(&self.storage) {
            tracing::warn!(error, "old records of streams were not deleted");
        }
    }
}

/// Returns the result of a future of the engine, which never waits on this storage.
pub(crate) fn ready<T>(future: impl Future<Output = dynoxide::Result<T>>) -> dynoxide::Result<T> {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Log;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn short_requests_wait_for_one_batch_only() {
        let engine = Engine::memory().unwrap();
        let order = Arc::<Log<Vec<&str>>>::default();
        let held = engine.opened.lock().await;
        let note = |what: &'static str| {
            let (engine, order) = (engine.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let note = move |_: &mut Opened| order.lock().unwrap().push(what);
                engine.turn(what == "batch", note).await;
            })
        };
        let mut all = Vec::new();
        for what in ["batch", "batch", "batch", "short"] {
            all.push(note(what));
            // It waits for the lock before the next one comes.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        }
        drop(held);
        for one in all {
            one.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["batch", "short", "batch", "batch"]);
    }

    #[tokio::test]
    async fn a_request_that_panics_stops_nobody() {
        let engine = Engine::memory().unwrap();
        let held = engine.opened.lock().await;
        let panicking = tokio::spawn({
            let engine = engine.clone();
            async move { engine.turn::<()>(false, |_| panic!("on purpose")).await }
        });
        tokio::task::yield_now().await;
        drop(held);
        assert!(panicking.await.unwrap_err().is_panic());
        let body = Bytes::from_static(b"{}");
        assert!(engine.execute("ListTables", &body).await.unwrap().is_ok());
    }

    /// A response that its client does not read is not polled, nor what it waits for.
    #[tokio::test]
    async fn requests_that_are_not_polled_stop_nobody() {
        let engine = Engine::memory().unwrap();
        let body = Bytes::from_static(b"{}");
        let held = engine.opened.lock().await;
        let mut request = std::pin::pin!(engine.execute("ListTables", &body));
        let mut read = std::pin::pin!(engine.records("none", 1));
        assert!(futures_util::poll!(&mut request).is_pending());
        assert!(futures_util::poll!(&mut read).is_pending());
        // What the requests started waits for the lock too.
        tokio::task::yield_now().await;
        drop(held);
        let other = engine.execute("ListTables", &body);
        let other = tokio::time::timeout(Duration::from_secs(10), other).await;
        assert!(other.expect("the engine hangs").unwrap().is_ok());
        assert!(request.await.unwrap().is_ok());
        assert!(read.await.is_err());
    }
}
