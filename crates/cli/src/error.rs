//! Failures of a command: one line for the reader and one exit status for scripts.

use std::process::ExitCode;

use antumbra_service::clients::ClientError;
use antumbra_service::deliveries::RedeliverError;
use antumbra_service::redrive::QueueError;
use antumbra_service::sensors::{InvalidSensor, SensorError};
use antumbra_service::shadows::ShadowError;
use antumbra_service::store::{ErrorClass, StoreError};
use antumbra_service::text::InvalidText;

#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) status: ExitStatus,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// The command ran, and its result is negative.
    Failed = 1,
    /// Invalid arguments or input; also used by the argument parser.
    Invalid = 2,
    NotFound = 3,
    Conflict = 4,
    TooLarge = 5,
    Unavailable = 6,
}

impl CliError {
    pub(crate) fn new(status: ExitStatus, reason: impl ToString) -> CliError {
        CliError {
            status,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn failed(reason: impl ToString) -> CliError {
        CliError::new(ExitStatus::Failed, reason)
    }

    pub(crate) fn invalid(reason: impl ToString) -> CliError {
        CliError::new(ExitStatus::Invalid, reason)
    }

    pub(crate) fn unavailable(reason: impl ToString) -> CliError {
        CliError::new(ExitStatus::Unavailable, reason)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status as u8)
    }
}

/// Formats an error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    one_line(&causes.join(": "))
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("; ")
}

impl From<ErrorClass> for ExitStatus {
    fn from(class: ErrorClass) -> ExitStatus {
        match class {
            ErrorClass::Invalid => ExitStatus::Invalid,
            ErrorClass::TooLarge => ExitStatus::TooLarge,
            ErrorClass::NotFound => ExitStatus::NotFound,
            ErrorClass::Conflict => ExitStatus::Conflict,
            ErrorClass::Unavailable => ExitStatus::Unavailable,
        }
    }
}

macro_rules! from_errors_with_a_class {
    ($($error:ty),+) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> CliError {
                CliError::new(error.class().into(), error)
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

impl From<QueueError> for CliError {
    fn from(error: QueueError) -> CliError {
        let reason = match &error {
            QueueError::NotFound(_) => error.to_string(),
            QueueError::NoConnection => {
                format!("SQS: {error}; for the local stack, start `antumbra local`")
            }
            QueueError::Failed(reason) => format!("SQS: {}", one_line(reason)),
        };
        CliError::new(error.class().into(), reason)
    }
}

impl From<InvalidSensor> for CliError {
    fn from(error: InvalidSensor) -> CliError {
        CliError::invalid(error)
    }
}

impl From<InvalidText> for CliError {
    fn from(error: InvalidText) -> CliError {
        CliError::invalid(error)
    }
}
