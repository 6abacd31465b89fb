//! How a command fails: one line for the reader, one exit code for the script.

use std::process::ExitCode;

use antumbra_service::clients::ClientError;
use antumbra_service::deliveries::RedeliverError;
use antumbra_service::shadows::{PersistenceError, ShadowError};
use antumbra_service::store::StoreError;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) kind: Kind,
    pub(crate) reason: String,
}

/// The kinds of failure, by exit code. 2 is the argument parser's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It was done, and what came of it is a no, or not what should have.
    Refused = 1,
    Invalid = 2,
    NotFound = 3,
    Conflict = 4,
    TooLarge = 5,
    Unavailable = 6,
}

impl CliError {
    pub(crate) fn failed(reason: impl ToString) -> CliError {
        CliError {
            kind: Kind::Refused,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn invalid(reason: impl ToString) -> CliError {
        CliError {
            kind: Kind::Invalid,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn unavailable(reason: impl ToString) -> CliError {
        CliError {
            kind: Kind::Unavailable,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        let kind = match &error {
            StoreError::Invalid(_) => Kind::Invalid,
            StoreError::TooLarge { .. } => Kind::TooLarge,
            StoreError::Throttled | StoreError::Unavailable(_) => Kind::Unavailable,
        };
        CliError {
            kind,
            reason: error.to_string(),
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> CliError {
        let kind = match error {
            ClientError::Store(error) => return error.into(),
            ClientError::NotFound | ClientError::NoSensor | ClientError::NotLinked => {
                Kind::NotFound
            }
            ClientError::AlreadyExists | ClientError::Conflict { .. } | ClientError::HasLinks => {
                Kind::Conflict
            }
            ClientError::Invalid(_) | ClientError::Url(_) => Kind::Invalid,
        };
        CliError {
            kind,
            reason: error.to_string(),
        }
    }
}

impl From<RedeliverError> for CliError {
    fn from(error: RedeliverError) -> CliError {
        match error {
            RedeliverError::Client(error) => error.into(),
            RedeliverError::Store(error) => error.into(),
            RedeliverError::NotFound => CliError {
                kind: Kind::NotFound,
                reason: error.to_string(),
            },
            RedeliverError::Queue(_) => CliError::unavailable(error),
        }
    }
}

impl From<ShadowError> for CliError {
    fn from(error: ShadowError) -> CliError {
        let kind = match &error {
            ShadowError::Document(_) | ShadowError::Id(_) => Kind::Invalid,
            ShadowError::Store { error, .. } => match error {
                PersistenceError::NotFound => Kind::NotFound,
                PersistenceError::Conflict { .. } => Kind::Conflict,
                PersistenceError::Invalid(_) => Kind::Invalid,
                PersistenceError::TooLarge { .. } => Kind::TooLarge,
                PersistenceError::Throttled | PersistenceError::Unavailable(_) => Kind::Unavailable,
            },
        };
        CliError {
            kind,
            reason: error.to_string(),
        }
    }
}
