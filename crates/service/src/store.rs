//! Errors that every store shares, the classes that all errors of this crate fall into, and futures of ports.

use std::fmt;

/// The future of a port's asynchronous method, which a runtime may move between threads.
pub trait SendFuture<T>: Future<Output = T> + Send {}

impl<T, F: Future<Output = T> + Send> SendFuture<T> for F {}

/// The number of times an item has been written: 1 after the first write, 0 if it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version(pub i64);

impl Version {
    /// The version of an item that does not exist.
    pub const NONE: Version = Version(0);

    /// Returns the version after this one.
    pub fn next(self) -> Version {
        Version(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Class of an error. Each edge (HTTP, MQTT, command line) maps classes to its own codes in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The request is invalid; repeating it does not help.
    Invalid,
    /// The request, or the item it would write, is too large.
    TooLarge,
    /// The item does not exist.
    NotFound,
    /// The item exists, or has another version than expected.
    Conflict,
    /// A service is unavailable or throttles; the same request may succeed later.
    Unavailable,
}

/// Error of a call to a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("not found")]
    NotFound,
    #[error("version {expected} expected, {} stored", actual.map_or("none".to_owned(), |v| v.to_string()))]
    Conflict {
        expected: Version,
        /// Stored version; `None` if nothing is stored or the store did not return it.
        actual: Option<Version>,
    },
    /// The operation is invalid; a retry fails again.
    #[error("invalid: {0}")]
    Invalid(String),
    /// An item would exceed the size limit of the store; a retry fails again.
    #[error("the item has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Size of the item.
        bytes: usize,
        limit: usize,
    },
    /// Too many requests; can be retried. Nothing was written.
    #[error("throttled")]
    Throttled,
    /// The store failed or did not respond; can be retried. A write may have been applied.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

impl StoreError {
    /// Returns whether the same operation may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.class() == ErrorClass::Unavailable
    }

    pub fn class(&self) -> ErrorClass {
        match self {
            StoreError::NotFound => ErrorClass::NotFound,
            StoreError::Conflict { .. } => ErrorClass::Conflict,
            StoreError::Invalid(_) => ErrorClass::Invalid,
            StoreError::TooLarge { .. } => ErrorClass::TooLarge,
            StoreError::Throttled | StoreError::Unavailable(_) => ErrorClass::Unavailable,
        }
    }
}
