//! An in-memory implementation of the port `IngestProgress`: for each queue, the newest sent time that was ingested.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use antumbra_service::liveness::IngestProgress;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

/// Fails on demand. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct MemoryProgress {
    reached_by_queue: Arc<Mutex<BTreeMap<String, Timestamp>>>,
    fails: Arc<AtomicBool>,
}

impl MemoryProgress {
    /// Makes all calls fail as throttled, or succeed again.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), StoreError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(StoreError::Throttled),
            false => Ok(()),
        }
    }
}

impl IngestProgress for MemoryProgress {
    async fn note(&self, queue: &str, sent: Timestamp) -> Result<(), StoreError> {
        self.check()?;
        let mut by_queue = self.reached_by_queue.lock().unwrap();
        let reached = by_queue.entry(queue.to_owned()).or_insert(sent);
        *reached = sent.max(*reached);
        Ok(())
    }

    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        self.check()?;
        Ok(self.reached_by_queue.lock().unwrap().get(queue).copied())
    }
}
