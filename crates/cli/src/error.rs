//! How a command fails: one line for the reader, one exit code for the script.

use std::process::ExitCode;

use antumbra_service::clients::ClientError;
use antumbra_service::deliveries::RedeliverError;
use antumbra_service::sensors::SensorError;
use antumbra_service::shadows::ShadowError;
use antumbra_service::store::{ErrorClass, StoreError};

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

/// Exit status of each error class.
impl From<ErrorClass> for Kind {
    fn from(class: ErrorClass) -> Kind {
        match class {
            ErrorClass::Invalid => Kind::Invalid,
            ErrorClass::TooLarge => Kind::TooLarge,
            ErrorClass::NotFound => Kind::NotFound,
            ErrorClass::Conflict => Kind::Conflict,
            ErrorClass::Unavailable => Kind::Unavailable,
        }
    }
}

macro_rules! from_errors_with_a_class {
    ($($error:ty),+) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> CliError {
                CliError {
                    kind: error.class().into(),
                    reason: error.to_string(),
                }
            }
        }
    )+};
}

from_errors_with_a_class!(
    StoreError,
    ShadowError,
    SensorError,
    ClientError,
    RedeliverError
);
