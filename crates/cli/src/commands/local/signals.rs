//! Being told to end: Ctrl-C from a terminal, SIGTERM from whatever else started the process.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the stack, heard from the moment this is made.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
