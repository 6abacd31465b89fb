//! Signals that end a long-running command: Ctrl-C and SIGTERM.

use std::io::{self, IsTerminal as _};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives SIGHUP, which asks for a reload. Only Unix has this signal.
#[derive(Debug)]
pub(crate) struct Hangup {
    #[cfg(unix)]
    signal: Signal,
}

impl Hangup {
    pub(crate) fn listen() -> io::Result<Hangup> {
        Ok(Hangup {
            #[cfg(unix)]
            signal: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Lines that are typed into the terminal of this process. Without a terminal there are none.
#[derive(Debug)]
pub(crate) struct Enter(Option<tokio::sync::mpsc::Receiver<()>>);

impl Enter {
    pub(crate) fn listen() -> Enter {
        if !io::stdin().is_terminal() {
            return Enter(None);
        }
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        // Reading a terminal cannot be cancelled, so the thread ends with the process.
        std::thread::spawn(move || {
            let mut line = String::new();
            while matches!(io::stdin().read_line(&mut line), Ok(1..)) {
                line.clear();
                if sender.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        Enter(Some(receiver))
    }

    /// Completes when Enter is pressed.
    pub(crate) async fn pressed(&mut self) {
        if let Some(receiver) = &mut self.0
            && receiver.recv().await.is_some()
        {
            return;
        }
        self.0 = None;
        std::future::pending::<()>().await;
    }
}

/// Receives the signals from its creation on, so that none is missed between two waits.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
