//! The position of each function in each shard, kept over restarts.
//!
//! One small JSON file is replaced as a whole by a rename. If the process dies while writing, the previous positions
//! remain: some records are sent again, none is skipped.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::private_file;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Position {
    /// Everything up to and including this sequence number is processed.
    After(String),
    /// The shard is closed and read to its end.
    Finished,
}

#[derive(Debug, thiserror::Error)]
#[error("stream positions in {path}")]
pub struct CheckpointError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// Function, then stream, then shard.
type Positions = BTreeMap<String, BTreeMap<String, BTreeMap<String, Position>>>;

/// All positions; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    file: Option<Arc<Path>>,
    positions: Arc<Mutex<Positions>>,
}

impl Checkpoints {
    /// Positions that are lost when the process ends.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Positions in a file, created at the first write.
    pub fn in_file(path: impl Into<PathBuf>) -> Result<Self, CheckpointError> {
        let path = path.into();
        let read = std::fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        let positions = match read {
            Ok(positions) => positions,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Positions::new(),
            Err(source) => return Err(CheckpointError { path, source }),
        };
        Ok(Self {
            file: Some(path.into()),
            positions: Arc::new(Mutex::new(positions)),
        })
    }

    /// Position of the function in the shard; `None` before its first record.
    pub fn position(&self, function: &str, stream_arn: &str, shard_id: &str) -> Option<Position> {
        let positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        positions
            .get(function)?
            .get(stream_arn)?
            .get(shard_id)
            .cloned()
    }

    /// The position that all functions reading the shard have reached; `None` if none has begun, or one has no
    /// position yet.
    pub fn common_position(&self, stream_arn: &str, shard_id: &str) -> Option<String> {
        let positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let of_shard = positions
            .values()
            .filter_map(|streams| streams.get(stream_arn)?.get(shard_id));
        let numbers = of_shard.map(|position| match position {
            Position::After(number) => number.parse::<u128>().ok(),
            Position::Finished => Some(u128::MAX),
        });
        let lowest = numbers.min().flatten()?;
        (lowest < u128::MAX).then(|| lowest.to_string())
    }

    /// Forgets the positions of a function that does not run any more, so that they keep no records.
    pub fn forget(&self, function: &str) -> Result<(), CheckpointError> {
        let mut positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match (positions.remove(function), &self.file) {
            (Some(_), Some(path)) => replace(path, &positions),
            _ => Ok(()),
        }
    }

    /// Moves the function's position and stores it.
    pub fn advance(
        &self,
        function: &str,
        stream_arn: &str,
        shard_id: &str,
        position: Position,
    ) -> Result<(), CheckpointError> {
        let mut positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        positions
            .entry(function.to_owned())
            .or_default()
            .entry(stream_arn.to_owned())
            .or_default()
            .insert(shard_id.to_owned(), position);
        // Written under the lock, so that writes of two shards keep their order. The file is a few hundred bytes, so
        // this blocks for microseconds.
        match &self.file {
            Some(path) => replace(path, &positions),
            None => Ok(()),
        }
    }
}

fn replace(path: &Path, positions: &Positions) -> Result<(), CheckpointError> {
    let next = path.with_extension("next");
    serde_json::to_vec_pretty(positions)
        .map_err(std::io::Error::from)
        .and_then(|bytes| private_file::write(&next, &bytes))
        .and_then(|()| std::fs::rename(&next, path))
        .map_err(|source| CheckpointError {
            path: path.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("positions.json");
        let first = Checkpoints::in_file(&file).unwrap();
        assert_eq!(first.position("f", "stream", "s1"), None);
        let after = |number: &str| Position::After(number.into());
        first.advance("f", "stream", "s1", after("7")).unwrap();
        first
            .advance("f", "stream", "s2", Position::Finished)
            .unwrap();
        first.advance("g", "stream", "s1", after("3")).unwrap();

        let second = Checkpoints::in_file(&file).unwrap();
        assert_eq!(second.position("f", "stream", "s1"), Some(after("7")));
        assert_eq!(
            second.position("f", "stream", "s2"),
            Some(Position::Finished)
        );
        assert_eq!(second.position("g", "stream", "s1"), Some(after("3")));
        assert_eq!(second.position("g", "other", "s1"), None);
    }

    #[test]
    fn the_common_position_is_the_lowest() {
        let all = Checkpoints::in_memory();
        assert_eq!(all.common_position("stream", "s"), None);
        let after = |number: &str| Position::After(number.into());
        all.advance("f", "stream", "s", after("10")).unwrap();
        all.advance("g", "stream", "s", after("9")).unwrap();
        all.advance("g", "other", "s", after("1")).unwrap();
        assert_eq!(all.common_position("stream", "s").as_deref(), Some("9"));
        all.advance("h", "stream", "s", after("unreadable"))
            .unwrap();
        assert_eq!(all.common_position("stream", "s"), None);
    }

    #[test]
    fn a_damaged_file_is_an_error_not_a_fresh_start() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("positions.json");
        std::fs::write(&file, "{\"f\":").unwrap();
        let error = Checkpoints::in_file(&file).unwrap_err();
        assert!(error.to_string().contains("positions.json"));
    }
}
