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

impl ExitStatus {
    /// The word in errors as JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ExitStatus::Failed => "failed",
            ExitStatus::Invalid => "invalid",
            ExitStatus::NotFound => "notFound",
            ExitStatus::Conflict => "conflict",
            ExitStatus::TooLarge => "tooLarge",
            ExitStatus::Unavailable => "unavailable",
        }
    }
}

/// An error of the argument parser, in one line: what is wrong, and where to read more.
impl From<&clap::Error> for CliError {
    fn from(error: &clap::Error) -> CliError {
        let text = error.render().to_string();
        let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let useful = |paragraph: &&str| {
            let start = paragraph.trim_start();
            !start.is_empty() && !start.starts_with("Usage:") && !start.starts_with("For more")
        };
        let paragraphs: Vec<String> = text.split("\n\n").filter(useful).map(words).collect();
        let reason = paragraphs.join("; ");
        let reason = reason.strip_prefix("error: ").unwrap_or(&reason);
        CliError::invalid(format!("{reason}; see --help"))
    }
}

/// Advice for errors of the library, which does not know the command line: a part of the error's text and the advice.
const ADVICE: &[(&str, &str)] = &[
    (
        "not JSON at byte",
        "give a JSON object, @FILE, or - for standard input",
    ),
    (
        "a document is a JSON object",
        "give one, @FILE, or - for standard input",
    ),
    (
        " does not exist",
        "check its name, and where it is: --region, --aws-url or --local",
    ),
    ("the shadow id is empty", "name the device"),
    ("the sensor id may not hold", "leave it out"),
    ("the uuid may not hold", "leave it out"),
    (
        "no such client",
        "`antumbra clients list` shows those that exist",
    ),
    (
        "not the id of a delivery",
        "`antumbra clients deliveries CLIENT` shows them",
    ),
    ("its scheme is not https", "use an https:// URL"),
    ("its address is", "allow it with --webhook-allow"),
    (" expected, ", "read it again, or leave out --expected"),
    (
        "the cursor is malformed",
        "use the one that the page before ended with",
    ),
    ("a name in a document is empty", "give every member a name"),
    (
        "the event has no Records",
        "give a DynamoDB stream event, as Lambda receives it",
    ),
    ("the port is not a number", "write mqtt://host:port"),
    ("data directory ", "choose another with --data-dir"),
    (
        "cannot write the ready file",
        "choose a file in a directory that exists",
    ),
    ("No such file or directory", "check the path"),
    (
        "is not an IANA time zone name",
        "give one such as Europe/Stockholm",
    ),
];

impl CliError {
    /// Adds what to do, unless the error says it.
    pub(crate) fn with_advice(self) -> CliError {
        let known = ADVICE.iter().find(|(part, _)| self.reason.contains(part));
        match known {
            Some((_, advice)) if !self.reason.contains("; ") => {
                CliError::new(self.status, format!("{}; {advice}", self.reason))
            }
            _ => self,
        }
    }

    /// Replaces an error that only says that something was not found.
    pub(crate) fn or_missing(self, reason: Option<String>) -> CliError {
        match reason {
            Some(reason) if self.status == ExitStatus::NotFound => {
                CliError::new(ExitStatus::NotFound, reason)
            }
            _ => self,
        }
    }

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
            QueueError::Failed(reason) if reason.contains("is not one of SQS") => {
                format!("SQS: {reason}; correct --aws-url")
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
