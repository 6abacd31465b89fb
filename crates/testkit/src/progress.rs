//! Ingest progress in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use antumbra_service::liveness::IngestProgress;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

/// Ingest progress that fails on demand. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct MemoryProgress {
    reached: Arc<Mutex<BTreeMap<String, Timestamp>>>,
    fails: Arc<AtomicBool>,
}

impl MemoryProgress {
    /// Sets whether every call fails.
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
        let mut all = self.reached.lock().unwrap();
        let reached = all.entry(queue.to_owned()).or_insert(sent);
        *reached = sent.max(*reached);
        Ok(())
    }

    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        self.check()?;
        Ok(self.reached.lock().unwrap().get(queue).copied())
    }
}
