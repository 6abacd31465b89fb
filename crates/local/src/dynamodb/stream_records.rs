//! Retention of the engine's stream records: one day, as in DynamoDB.
//!
//! The engine itself keeps them forever. While it runs, a trigger in the database deletes the oldest records after
//! each insert, so that the cost of a write stays the same. Records of an earlier run are out of the trigger's
//! reach, because it does not know which were read; [`delete_read_records`] deletes those that were, before the next start.
//!
//! The newest record of a table always stays: the engine numbers the next one after it.

use std::path::Path;

use dynoxide::{storage::Storage as Engine, streams};

use super::{SERVICE, Storage};
use crate::listen::StartError;

/// Minimum retention of a record, as in DynamoDB.
const KEPT_SECONDS: u32 = 24 * 60 * 60;

/// Offset between stored sequence numbers and those that the engine shows.
const NUMBERS_BEGIN: u128 = 100_000_000_000_000_000_000;

/// The engine scans all stream records to number the next one, and again to read the latest; these indexes avoid
/// both scans. Without them each write costs more the more were made before.
const INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS antumbra_stream_numbers
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS antumbra_stream_order
        ON _stream_records (table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// Creates the indexes, and the trigger for this run's records.
pub(super) fn prepare(engine: &Engine) -> Result<(), String> {
    let database = engine.conn();
    database.execute_batch(INDEXES).map_err(text)?;
    let earlier: i64 = database
        .query_row(
            "SELECT COALESCE(MAX(id), 0) FROM _stream_records",
            [],
            |row| row.get(0),
        )
        .map_err(text)?;
    // It checks twice as many records as were added, so that it keeps up however old they are.
    let trigger = format!(
        "DROP TRIGGER IF EXISTS antumbra_stream_trim;
        CREATE TRIGGER antumbra_stream_trim AFTER INSERT ON _stream_records
        WHEN NEW.id % 100 = 0
        BEGIN
            DELETE FROM _stream_records
            WHERE id IN (SELECT id FROM _stream_records WHERE id > {earlier} ORDER BY id LIMIT 200)
            AND created_at < NEW.created_at - {KEPT_SECONDS}
            AND EXISTS (
                SELECT 1 FROM _stream_records AS later
                WHERE later.table_name = _stream_records.table_name
                AND CAST(later.sequence_number AS INTEGER)
                    > CAST(_stream_records.sequence_number AS INTEGER));
        END;"
    );
    database.execute_batch(&trigger).map_err(text)
}

/// Deletes records of earlier runs that are more than a day old and read by all functions: `read` returns that
/// position for a stream and a shard. Call it while the storage is not served.
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
    let mut forgotten = 0;
    for table in engine.list_stream_enabled_tables().map_err(text)? {
        let name = &table.table_name;
        let stream = streams::stream_arn(name, &table.stream_label.unwrap_or_default());
        let shard = streams::shard_id(name);
        let number = common_position(&stream, &shard).and_then(|number| stored(&number));
        let Some(number) = number else { continue };
        let delete = format!(
            "DELETE FROM _stream_records
            WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) < ?3
            AND created_at < unixepoch() - {KEPT_SECONDS}"
        );
        let deleted = engine.conn().execute(&delete, (name, &shard, number));
        forgotten += deleted.map_err(text)?;
    }
    Ok(forgotten)
}

/// The sequence number as the engine stores it.
fn stored(number: &str) -> Option<i64> {
    let number: u128 = number.parse().ok()?;
    i64::try_from(number.checked_sub(NUMBERS_BEGIN)?).ok()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
