//! Deletes stream records of the embedded DynamoDB engine (dynoxide) after one day, as DynamoDB does. The engine itself
//! keeps them forever.
//!
//! - Records of the current run: [`Trimming`] deletes the oldest ones after every 100th write, so that the cost of a
//!   write does not grow.
//! - Records of earlier runs: some may not have been read, because the stack was stopped, and it is not known which. [`delete_read_records`] deletes the others before the stack starts.
//!
//! The newest record of a table is never deleted, because the engine numbers the next one after it.

use std::path::Path;

use dynoxide::{storage::Storage as Engine, streams};

/// Minimum time for which a record is kept.
const RETENTION_SECONDS: u32 = 24 * 60 * 60;

/// The engine adds this number to a stored sequence number before it returns it.
const SEQUENCE_OFFSET: u128 = 100_000_000_000_000_000_000;

/// Without an index, the engine scans all stream records to number the next one, and again to read the latest: the
/// cost of a write would grow with the number of records. Earlier versions had a second index and a trigger, which the
/// engine compiled again for every record.
const INDEX: &str = "
    DROP TRIGGER IF EXISTS antumbra_stream_trim;
    DROP INDEX IF EXISTS antumbra_stream_numbers;
    DROP INDEX IF EXISTS antumbra_stream_order;
    CREATE INDEX IF NOT EXISTS antumbra_stream_shards
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER), shard_id);";

/// Creates the index.
pub(crate) fn prepare(engine: &Engine) -> Result<(), String> {
    engine.conn().execute_batch(INDEX).map_err(text)
}

/// Deletes the records of this run.
pub(crate) struct Trimming {
    last_earlier_id: i64,
    writes: u32,
}

impl Trimming {
    /// Writes after which records are deleted.
    const WRITES: u32 = 100;
    /// Records of one deletion, and deletions at a time: a write of 100 items adds 100 records.
    const RECORDS: usize = 400;
    const ROUNDS: usize = 25;

    pub(crate) fn of_this_run(engine: &Engine) -> Result<Trimming, String> {
        let last = "SELECT COALESCE(MAX(id), 0) FROM _stream_records";
        let last = engine.conn().query_row(last, [], |row| row.get(0));
        Ok(Trimming {
            last_earlier_id: last.map_err(text)?,
            writes: 0,
        })
    }

    /// Deletes the oldest records after every 100th write.
    pub(crate) fn after_write(&mut self, engine: &Engine) -> Result<(), String> {
        self.writes += 1;
        if self.writes < Trimming::WRITES {
            return Ok(());
        }
        self.writes = 0;
        let records = Trimming::RECORDS;
        let delete = format!(
            "DELETE FROM _stream_records
            WHERE id IN (
                SELECT id FROM _stream_records WHERE id > ?1 ORDER BY id LIMIT {records})
            AND created_at < unixepoch() - {RETENTION_SECONDS}
            AND EXISTS (
                SELECT 1 FROM _stream_records AS later
                WHERE later.table_name = _stream_records.table_name
                AND CAST(later.sequence_number AS INTEGER)
                    > CAST(_stream_records.sequence_number AS INTEGER))"
        );
        let mut delete = engine.conn().prepare_cached(&delete).map_err(text)?;
        for _ in 0..Trimming::ROUNDS {
            let deleted = delete.execute([self.last_earlier_id]).map_err(text)?;
            // Fewer where the newest record of a table is among them.
            if deleted < records / 2 {
                break;
            }
        }
        Ok(())
    }
}

/// Deletes records of earlier runs that are more than a day old and were read by all functions, and returns their
/// number. `common_position` returns the sequence number up to which all functions read a shard of a stream.
///
/// Call it before the tables are opened.
pub fn delete_read_records(
    path: &Path,
    common_position: impl Fn(&str, &str) -> Option<String>,
) -> Result<usize, String> {
    let path = path.to_str().ok_or("it is not a readable path")?;
    let engine = Engine::new(path).map_err(|error| error.to_string())?;
    prepare(&engine)?;
    let mut deleted_records = 0;
    for table in engine.list_stream_enabled_tables().map_err(text)? {
        let name = &table.table_name;
        let stream = streams::stream_arn(name, &table.stream_label.unwrap_or_default());
        let shard = streams::shard_id(name);
        let number = common_position(&stream, &shard).and_then(|number| stored_number(&number));
        let Some(number) = number else { continue };
        let delete = format!(
            "DELETE FROM _stream_records
            WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) < ?3
            AND created_at < unixepoch() - {RETENTION_SECONDS}"
        );
        let deleted = engine.conn().execute(&delete, (name, &shard, number));
        deleted_records += deleted.map_err(text)?;
    }
    Ok(deleted_records)
}

/// Converts a sequence number to the form in which the engine stores it.
fn stored_number(number: &str) -> Option<i64> {
    let number: u128 = number.parse().ok()?;
    i64::try_from(number.checked_sub(SEQUENCE_OFFSET)?).ok()
}

/// Converts a stored sequence number to the form in which the engine returns it.
pub(crate) fn public_number(stored: i64) -> String {
    (SEQUENCE_OFFSET + u128::try_from(stored).unwrap_or_default()).to_string()
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
