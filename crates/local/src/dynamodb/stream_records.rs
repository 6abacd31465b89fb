//! Deletes stream records of the embedded DynamoDB engine (dynoxide) after one day, as DynamoDB does. The engine itself
//! keeps them forever.
//!
//! - Records of the current run: a database trigger deletes the oldest ones with every 100th insert, so that the cost
//!   of a write does not grow.
//! - Records of earlier runs: some may not have been read, because the stack was stopped, and the trigger does not know
//!   which. [`delete_read_records`] deletes the others before the stack starts.
//!
//! The newest record of a table is never deleted, because the engine numbers the next one after it.

use std::path::Path;

use dynoxide::{storage::Storage as Engine, streams};

use super::{SERVICE, Storage};
use crate::listen::StartError;

/// Minimum time for which a record is kept.
const RETENTION_SECONDS: u32 = 24 * 60 * 60;

/// The engine adds this number to a stored sequence number before it returns it.
const SEQUENCE_OFFSET: u128 = 100_000_000_000_000_000_000;

/// Without these indexes, the engine scans all stream records to number the next one, and again to read the latest: the
/// cost of a write would grow with the number of records.
const INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS antumbra_stream_numbers
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS antumbra_stream_order
        ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// Creates the indexes, and the trigger for the records of this run.
pub(super) fn prepare(engine: &Engine) -> Result<(), String> {
    let database = engine.conn();
    database.execute_batch(INDEXES).map_err(text)?;
    let last_earlier_id: i64 = database
        .query_row(
            "SELECT COALESCE(MAX(id), 0) FROM _stream_records",
            [],
            |row| row.get(0),
        )
        .map_err(text)?;
    // Each time it checks 200 records, twice as many as were added, so that it catches up with any backlog.
    let trigger = format!(
        "DROP TRIGGER IF EXISTS antumbra_stream_trim;
        CREATE TRIGGER antumbra_stream_trim AFTER INSERT ON _stream_records
        WHEN NEW.id % 100 = 0
        BEGIN
            DELETE FROM _stream_records
            WHERE id IN (
                SELECT id FROM _stream_records WHERE id > {last_earlier_id} ORDER BY id LIMIT 200)
            AND created_at < NEW.created_at - {RETENTION_SECONDS}
            AND EXISTS (
                SELECT 1 FROM _stream_records AS later
                WHERE later.table_name = _stream_records.table_name
                AND CAST(later.sequence_number AS INTEGER)
                    > CAST(_stream_records.sequence_number AS INTEGER));
        END;"
    );
    database.execute_batch(&trigger).map_err(text)
}

/// Deletes records of earlier runs that are more than a day old and were read by all functions, and returns their
/// number. `common_position` returns the sequence number up to which all functions read a shard of a stream.
///
/// Call it before the storage is served.
pub fn delete_read_records(
    storage: &Storage,
    common_position: impl Fn(&str, &str) -> Option<String>,
) -> Result<usize, StartError> {
    match storage {
        Storage::File(path) if path.exists() => {
            delete_from(path, common_position).map_err(|reason| StartError::Service {
                service: SERVICE,
                reason: format!("{}: {reason}", path.display()),
            })
        }
        _ => Ok(0),
    }
}

fn delete_from(
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

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
