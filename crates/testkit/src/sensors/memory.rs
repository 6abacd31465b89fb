//! Sensors in memory.

mod registry;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::{
    DEFAULT_SHARDS, Reading, ReadingTime, RegisteredSensor, SensorId, State,
};

/// Receives every write of a state, as a stream does.
type Watcher = Box<dyn FnMut(Option<&State>, &State) + Send>;

/// Number of writes since the store was created, as a table would count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    pub state_writes: u64,
    /// Writes of the index of due sensors: one if a state enters or leaves it, two if it moves.
    pub index_writes: u64,
    /// Conditional writes that failed.
    pub rejected: u64,
    pub readings: u64,
}

struct Kept {
    registered: RegisteredSensor,
    state: State,
    readings: BTreeMap<ReadingTime, Reading>,
}

#[derive(Default)]
struct Inner {
    sensors: BTreeMap<SensorId, Kept>,
    /// By shard: time of the next check in milliseconds, and sensor.
    due: Vec<BTreeSet<(i64, SensorId)>>,
    figures: Figures,
    watcher: Option<Watcher>,
    keeps_readings: bool,
}

/// Sensors in memory. Clones share their content.
#[derive(Clone)]
pub struct MemorySensors {
    shards: u32,
    inner: Arc<Mutex<Inner>>,
}

impl Default for MemorySensors {
    fn default() -> MemorySensors {
        MemorySensors::new(DEFAULT_SHARDS)
    }
}

impl MemorySensors {
    pub fn new(shards: u32) -> MemorySensors {
        let inner = Inner {
            due: vec![BTreeSet::new(); shards.max(1) as usize],
            keeps_readings: true,
            ..Inner::default()
        };
        MemorySensors {
            shards: shards.max(1),
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Counts readings instead of storing them, to save memory.
    pub fn without_readings(self) -> MemorySensors {
        self.lock().keeps_readings = false;
        self
    }

    /// Calls the watcher with old and new state of every write.
    pub fn watch(&self, watcher: impl FnMut(Option<&State>, &State) + Send + 'static) {
        self.lock().watcher = Some(Box::new(watcher));
    }

    pub fn figures(&self) -> Figures {
        self.lock().figures
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Replaces a state, updates the index and calls the watcher.
    fn write(&mut self, id: &SensorId, new: State) {
        let Some(kept) = self.sensors.get_mut(id) else {
            return;
        };
        let old = std::mem::replace(&mut kept.state, new);
        let new = &kept.state;
        self.figures.state_writes += 1;
        if old.check_at != new.check_at {
            let shard = id.shard(self.due.len() as u32) as usize;
            if let Some(old) = old.check_at {
                self.due[shard].remove(&(milliseconds(old), id.clone()));
                self.figures.index_writes += 1;
            }
            if let Some(new) = new.check_at {
                self.due[shard].insert((milliseconds(new), id.clone()));
                self.figures.index_writes += 1;
            }
        }
        if let Some(watcher) = &mut self.watcher {
            watcher(Some(&old), new);
        }
    }

    fn insert(&mut self, kept: Kept) {
        let id = kept.registered.sensor.id.clone();
        if let Some(check_at) = kept.state.check_at {
            let shard = id.shard(self.due.len() as u32) as usize;
            self.due[shard].insert((milliseconds(check_at), id.clone()));
            self.figures.index_writes += 1;
        }
        self.figures.state_writes += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher(None, &kept.state);
        }
        self.sensors.insert(id, kept);
    }

    fn remove(&mut self, id: &SensorId) {
        let removed = self.sensors.remove(id);
        if let Some(check_at) = removed.and_then(|kept| kept.state.check_at) {
            let shard = id.shard(self.due.len() as u32) as usize;
            self.due[shard].remove(&(milliseconds(check_at), id.clone()));
            self.figures.index_writes += 1;
        }
    }
}
