//! The scheduler: one thread, with a seeded choice of the next task.
//!
//! Everything that waits (a call, a pause, a message) is a task. A seeded choice runs one of those that are ready;
//! if none is, time advances to the next timer. So a seed determines the schedule.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Accepts new tasks from any task.
#[derive(Clone, Default)]
pub(crate) struct Spawner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    spawned: Mutex<Vec<Task>>,
    ready: Mutex<Vec<usize>>,
    root: Mutex<Option<Waker>>,
}

impl Shared {
    fn wake_root(&self) {
        let root = lock(&self.root).clone();
        if let Some(root) = root {
            root.wake();
        }
    }
}

struct TaskWaker {
    slot: usize,
    ready: AtomicBool,
    shared: Arc<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        if !self.ready.swap(true, Ordering::Relaxed) {
            lock(&self.shared.ready).push(self.slot);
            self.shared.wake_root();
        }
    }
}

struct Slot {
    task: Task,
    waker: Arc<TaskWaker>,
}

impl Spawner {
    /// Adds a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.0.spawned).push(Box::pin(task));
        self.0.wake_root();
    }

    /// Runs a future to its end, with all tasks beside it; unfinished tasks are dropped.
    pub(crate) fn run<T>(
        &self,
        seed: u64,
        main: impl Future<Output = T>,
    ) -> Result<T, std::io::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut slots: Vec<Option<Slot>> = Vec::new();
        let mut free: Vec<usize> = Vec::new();
        let mut main = std::pin::pin!(main);
        let shared = &self.0;
        let all = poll_fn(|context: &mut Context<'_>| {
            *lock(&shared.root) = Some(context.waker().clone());
            if let Poll::Ready(done) = main.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            loop {
                for task in std::mem::take(&mut *lock(&shared.spawned)) {
                    let slot = free.pop().unwrap_or(slots.len());
                    if slot == slots.len() {
                        slots.push(None);
                    }
                    let waker = Arc::new(TaskWaker {
                        slot,
                        ready: AtomicBool::new(true),
                        shared: Arc::clone(shared),
                    });
                    slots[slot] = Some(Slot { task, waker });
                    lock(&shared.ready).push(slot);
                }
                let next = {
                    let mut ready = lock(&shared.ready);
                    if ready.is_empty() {
                        return Poll::Pending;
                    }
                    let at = random.usize(..ready.len());
                    ready.swap_remove(at)
                };
                let Some(slot) = slots[next].as_mut() else {
                    continue;
                };
                slot.waker.ready.store(false, Ordering::Relaxed);
                let waker = Waker::from(Arc::clone(&slot.waker));
                let polled = slot.task.as_mut().poll(&mut Context::from_waker(&waker));
                if polled.is_ready() {
                    slots[next] = None;
                    // A late wake of the old task only polls the new one once more than needed.
                    free.push(next);
                }
            }
        });
        // One poll of the whole runs many tasks; they must not share one task's budget.
        let done = runtime.block_on(tokio::task::unconstrained(all));
        *lock(&shared.root) = None;
        lock(&shared.spawned).clear();
        Ok(done)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
