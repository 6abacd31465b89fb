//! Background tasks of the stack.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A running service or event source. Dropping it stops it; [`Running::stop`] also waits.
#[derive(Debug)]
pub struct Running {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts a task that ends after its token is cancelled.
    pub(crate) fn start<F>(task: impl FnOnce(CancellationToken) -> F) -> Running
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        Running {
            task: tokio::spawn(task(stop.clone())),
            stop: stop.drop_guard(),
        }
    }

    /// Lets running invocations and requests finish, then stops.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "a task of the stack panicked");
        }
    }
}
