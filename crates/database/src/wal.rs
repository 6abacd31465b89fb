//! Checkpoints of SQLite's write-ahead log, beside the requests.
//!
//! A checkpoint copies the log into the database and synchronizes the disk twice, which can take a tenth of a second.
//! A connection of its own does it while requests continue. They wait only for the rest of a log that has become long,
//! so that it begins again.

use std::path::PathBuf;
use std::time::Duration;

use dynoxide::storage::Storage;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::stream_records::text;

/// Interval of looking at the log.
const EVERY: Duration = Duration::from_millis(200);
/// Size of the log at which a checkpoint begins.
const BYTES: u64 = 16 * 1024 * 1024;
/// Frames, of a page each, after which requests wait until the log begins again.
const LONG_FRAMES: i64 = 16_000;

/// A connection for checkpoints of a file.
pub struct Checkpointer {
    log: PathBuf,
    storage: Storage,
}

impl Checkpointer {
    /// A connection to the file of the engine; `None` if it is in memory.
    pub fn open(engine: &Engine) -> Result<Option<Checkpointer>, String> {
        let Some(file) = engine.path() else {
            return Ok(None);
        };
        let storage = Storage::new(file).map_err(text)?;
        Ok(Some(Checkpointer {
            log: format!("{file}-wal").into(),
            storage,
        }))
    }

    fn is_due(&self) -> bool {
        std::fs::metadata(&self.log).is_ok_and(|log| log.len() > BYTES)
    }

    /// Copies the log, and lets it begin again if it is longer than a number of frames. It blocks the thread.
    fn run(&self, engine: &Engine, long_frames: i64) -> Result<(), String> {
        let frames = checkpoint(&self.storage, "PASSIVE")?;
        if frames > long_frames {
            // Once more, so that little is left for which requests wait.
            checkpoint(&self.storage, "PASSIVE")?;
            engine.with_storage(|storage| checkpoint(storage, "RESTART"))?;
        }
        Ok(())
    }
}

/// Executes a checkpoint and returns the number of frames in the log.
fn checkpoint(storage: &Storage, mode: &str) -> Result<i64, String> {
    let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
    let frames = storage.conn().query_row(&checkpoint, [], |row| row.get(1));
    frames.map_err(text)
}

/// Executes checkpoints after writes, until the stop.
pub async fn checkpoints(
    mut checkpointer: Option<Checkpointer>,
    engine: Engine,
    mut written: watch::Receiver<()>,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(due) = checkpointer.take() {
        if stop.run_until_cancelled(ticks.tick()).await.is_none() {
            return;
        }
        let is_written = written.has_changed().unwrap_or_default();
        if !is_written || !due.is_due() {
            checkpointer = Some(due);
            continue;
        }
        written.mark_unchanged();
        let engine = engine.clone();
        let checkpoint = tokio::task::spawn_blocking(move || {
            let result = due.run(&engine, LONG_FRAMES);
            (due, result)
        });
        match checkpoint.await {
            Ok((done, result)) => {
                if let Err(error) = result {
                    tracing::warn!(error, "a checkpoint failed");
                }
                checkpointer = Some(done);
            }
            // The engine's own checkpoints follow later.
            Err(error) => tracing::error!(%error, "checkpoints ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_checkpoint_beside_requests_shortens_the_log_and_keeps_every_write() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::file(directory.path().join("tables.sqlite")).unwrap();
        let execute = |operation: &str, body: &str| {
            let body = Bytes::copy_from_slice(body.as_bytes());
            let executed = engine.execute(operation, &body);
            executed.now_or_never().flatten().unwrap().unwrap()
        };
        execute(
            "CreateTable",
            r#"{"TableName":"table","BillingMode":"PAY_PER_REQUEST",
                "AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"}],
                "KeySchema":[{"AttributeName":"PK","KeyType":"HASH"}]}"#,
        );
        let put = |key: usize| {
            let item = format!(r#"{{"TableName":"table","Item":{{"PK":{{"S":"{key}"}}}}}}"#);
            execute("PutItem", &item);
        };
        let checkpointer = Checkpointer::open(&engine).unwrap().unwrap();
        let log_bytes = || std::fs::metadata(&checkpointer.log).unwrap().len();
        (0..100).for_each(put);
        let before = log_bytes();
        checkpointer.run(&engine, 10).unwrap();
        put(100);
        assert!(
            log_bytes() < before / 4,
            "{before} bytes, then {}",
            log_bytes()
        );
        let found = execute("Scan", r#"{"TableName":"table","Select":"COUNT"}"#);
        assert!(found.contains(r#""Count":101"#), "{found}");
    }
}
