//! The state behind all pages.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antumbra_http_api::Services;
use antumbra_shadow::Timestamp;
use jiff::tz::TimeZone;

use crate::live::{Follow, Live};
use crate::matches::Matcher;
use crate::pages::deliveries::LastAttempts;
use crate::pages::queues::{CountsCache, OldestRead};
use crate::security::Logins;

/// Facts about the deployment, shown beside every page.
#[derive(Debug, Clone)]
pub struct Place {
    /// A word for it: `local`, or the region.
    pub name: String,
    /// Id of the AWS account, if there is one.
    pub account: Option<String>,
    /// The main table.
    pub table: String,
    /// Options that make the commands on the pages reach this deployment, such as `--local`.
    pub options: String,
    /// Directory of the registrations, if they are not known to be those in force.
    pub registrations: Option<String>,
}

pub struct Options {
    pub services: Arc<Services>,
    pub place: Place,
    /// Pages may change something.
    pub write: bool,
    /// Port that the console is served on.
    pub port: u16,
    /// Time zone of the times on the pages.
    pub zone: TimeZone,
    /// Opens a stream of changes, for live updates.
    pub follow: Option<Follow>,
    /// Recorded changes of a device that its page reads at most: [`DEVICE_CHANGES`] unless a test needs fewer.
    pub device_changes: usize,
}

/// Recorded changes of a device that its page reads at most. Histogram and chart are made from them.
pub const DEVICE_CHANGES: usize = 20_000;

/// The state behind all pages.
pub struct Console {
    pub(crate) services: Arc<Services>,
    pub(crate) place: Place,
    pub(crate) write: bool,
    pub(crate) port: u16,
    pub(crate) zone: TimeZone,
    pub(crate) logins: Logins,
    pub(crate) attention: Attention,
    pub(crate) live: Live,
    pub(crate) matcher: Matcher,
    pub(crate) device_changes: usize,
    pub(crate) last_attempts: LastAttempts,
    pub(crate) counts: CountsCache,
    pub(crate) oldest: OldestRead,
}

/// Numbers beside the names of pages, as of the last read of these pages.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    /// Clients with an open circuit.
    pub(crate) open_circuits: AtomicUsize,
    /// Messages in the queues of failed messages.
    pub(crate) failed_messages: AtomicUsize,
}

impl Console {
    pub fn new(options: Options) -> Arc<Console> {
        Arc::new(Console {
            services: options.services,
            place: options.place,
            write: options.write,
            port: options.port,
            zone: options.zone,
            logins: Logins::default(),
            attention: Attention::default(),
            live: Live::new(options.follow),
            matcher: Matcher::default(),
            device_changes: options.device_changes,
            last_attempts: LastAttempts::default(),
            counts: CountsCache::default(),
            oldest: OldestRead::default(),
        })
    }

    /// Returns a URL that opens the console once, within ten minutes.
    pub fn login_url(&self) -> String {
        let token = self.logins.new_token(self.now());
        format!("http://127.0.0.1:{}/login?token={token}", self.port)
    }

    /// Ends the event streams of all pages, so that a server can stop.
    pub fn stop(&self) {
        self.live.stop();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.services.clock.now()
    }
}

/// Locks a mutex, also after a page panicked that had locked it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time zone of this machine.
pub fn system_zone() -> TimeZone {
    TimeZone::system()
}
