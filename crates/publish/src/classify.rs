//! Classification of failures as retryable or not: one table for all services.
//!
//! A failure of the service or of the connection is worth a retry, and so is one of our credentials, which has nothing
//! to do with the message. A rejection of the content, the address or the permissions is permanent.

use antumbra_service::notifications::SendError;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure<'a> {
    NotBuilt,
    /// No response, or an unreadable one: the call may have been accepted.
    NoResponse,
    Rejected {
        status: u16,
        code: &'a str,
    },
    Entry {
        code: &'a str,
        sender_fault: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retryability {
    Retry,
    Permanent,
}

impl Retryability {
    pub(crate) fn into_error(self, reason: String) -> SendError {
        match self {
            Retryability::Retry => SendError::Retry(reason),
            Retryability::Permanent => SendError::Permanent(reason),
        }
    }
}

pub(crate) fn retryability(failure: Failure<'_>) -> Retryability {
    match failure {
        Failure::NotBuilt => Retryability::Permanent,
        Failure::NoResponse => Retryability::Retry,
        Failure::Rejected { status, code } => {
            // An unreadable success has a status below 400.
            let rejected = matches!(status, 400..500) && !matches!(status, 408 | 429);
            if !rejected || is_temporary(code) || is_of_credentials(code) {
                Retryability::Retry
            } else {
                Retryability::Permanent
            }
        }
        Failure::Entry { code, sender_fault } => {
            if !sender_fault || is_temporary(code) {
                Retryability::Retry
            } else {
                Retryability::Permanent
            }
        }
    }
}

pub(crate) fn sdk_error<E>(label: &str, error: &SdkError<E>) -> SendError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let failure = match error {
        SdkError::ConstructionFailure(_) => Failure::NotBuilt,
        SdkError::ServiceError(rejection) => Failure::Rejected {
            status: rejection.raw().status().as_u16(),
            code: rejection.err().code().unwrap_or_default(),
        },
        // Timeouts, connections, unreadable responses, and future kinds.
        _ => Failure::NoResponse,
    };
    let reason = match error {
        SdkError::ServiceError(rejection) => {
            let status = rejection.raw().status().as_u16().to_string();
            let code = rejection.err().code().unwrap_or(&status);
            describe(code, rejection.err().message())
        }
        _ => with_causes(error),
    };
    retryability(failure).into_error(format!("{label}: {reason}"))
}

pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

pub(crate) fn entry_error(
    label: &str,
    code: &str,
    message: Option<&str>,
    sender_fault: bool,
) -> SendError {
    retryability(Failure::Entry { code, sender_fault })
        .into_error(format!("{label}: {}", describe(code, message)))
}

fn describe(code: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{code}: {message}"),
        _ => code.to_owned(),
    }
}

/// Returns `true` if the code reports load or a failure of the service.
pub(crate) fn is_temporary(code: &str) -> bool {
    let bare = bare(code);
    bare.contains("Throttl")
        || matches!(
            bare,
            "BandwidthLimitExceeded"
                | "InternalError"
                | "InternalFailure"
                | "InternalServerError"
                | "InternalServiceError"
                | "Internal"
                | "PriorRequestNotComplete"
                | "ProvisionedThroughputExceeded"
                | "RequestLimitExceeded"
                | "RequestTimeout"
                | "ServiceUnavailable"
                | "SlowDown"
                | "TooManyRequests"
                | "TransactionInProgress"
        )
}

/// Returns `true` if the code reports our credentials or clock. The undeliverable queue would reject them too, and the next
/// invocation has new ones.
fn is_of_credentials(code: &str) -> bool {
    matches!(
        bare(code),
        "ExpiredToken"
            | "IncompleteSignature"
            | "InvalidClientTokenId"
            | "InvalidSignature"
            | "RequestExpired"
            | "RequestTimeTooSkewed"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClient"
    )
}

/// The code without the namespaces and endings that differ by protocol:
/// `AWS.SimpleQueueService.NonExistentQueue`, `com.amazonaws.sqs#QueueDoesNotExist`,
/// `KMS.ThrottlingException`.
fn bare(code: &str) -> &str {
    let code = code.rsplit(['#', '.']).next().unwrap_or(code);
    code.strip_suffix("Exception").unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::Failure::{Entry, NoResponse, NotBuilt, Rejected};
    use super::Retryability::{Permanent, Retry};
    use super::*;

    #[test]
    fn failures_are_retryable_or_permanent() {
        let rejected = |status, code| Rejected { status, code };
        let theirs = |code| Entry {
            code,
            sender_fault: false,
        };
        let ours = |code| Entry {
            code,
            sender_fault: true,
        };
        let table = [
            (NotBuilt, Permanent),
            (NoResponse, Retry),
            // SQS, in both of its protocols' codes.
            (rejected(400, "QueueDoesNotExist"), Permanent),
            (
                rejected(400, "AWS.SimpleQueueService.NonExistentQueue"),
                Permanent,
            ),
            (
                rejected(400, "com.amazonaws.sqs#QueueDoesNotExist"),
                Permanent,
            ),
            (rejected(400, "InvalidAddress"), Permanent),
            (rejected(400, "InvalidMessageContents"), Permanent),
            (rejected(400, "InvalidSecurity"), Permanent),
            (rejected(400, "UnsupportedOperation"), Permanent),
            (
                rejected(400, "AWS.SimpleQueueService.UnsupportedOperation"),
                Permanent,
            ),
            (rejected(400, "BatchRequestTooLong"), Permanent),
            (rejected(400, "TooManyEntriesInBatchRequest"), Permanent),
            (rejected(403, "AccessDenied"), Permanent),
            (rejected(400, "AccessDeniedException"), Permanent),
            (rejected(400, "KmsAccessDenied"), Permanent),
            (rejected(400, "KMS.AccessDeniedException"), Permanent),
            (rejected(400, "KmsDisabled"), Permanent),
            (rejected(400, "KmsNotFound"), Permanent),
            (rejected(400, "KmsThrottled"), Retry),
            (rejected(400, "KMS.ThrottlingException"), Retry),
            (rejected(400, "RequestThrottled"), Retry),
            (
                rejected(403, "AWS.SimpleQueueService.RequestThrottled"),
                Retry,
            ),
            // SNS.
            (rejected(404, "NotFound"), Permanent),
            (rejected(403, "AuthorizationError"), Permanent),
            (rejected(400, "InvalidParameter"), Permanent),
            (rejected(400, "Throttled"), Retry),
            (rejected(429, "Throttling"), Retry),
            (rejected(500, "InternalError"), Retry),
            // EventBridge and IoT.
            (rejected(400, "ResourceNotFoundException"), Permanent),
            (rejected(413, ""), Permanent),
            (rejected(403, "ForbiddenException"), Permanent),
            (rejected(401, "UnauthorizedException"), Permanent),
            (rejected(400, "InvalidRequestException"), Permanent),
            (rejected(400, "ThrottlingException"), Retry),
            (rejected(500, "InternalFailureException"), Retry),
            // By status alone.
            (rejected(503, ""), Retry),
            (rejected(502, "Whatever"), Retry),
            (rejected(429, ""), Retry),
            (rejected(408, ""), Retry),
            (rejected(200, ""), Retry),
            (rejected(400, ""), Permanent),
            (rejected(400, "Whatever"), Permanent),
            // Our credentials and clock.
            (rejected(403, "ExpiredTokenException"), Retry),
            (rejected(403, "ExpiredToken"), Retry),
            (rejected(403, "InvalidClientTokenId"), Retry),
            (rejected(400, "UnrecognizedClientException"), Retry),
            (rejected(403, "SignatureDoesNotMatch"), Retry),
            // Entries.
            (ours("InvalidMessageContents"), Permanent),
            (ours("InvalidParameterValue"), Permanent),
            (ours("AccessDenied"), Permanent),
            (ours("RequestThrottled"), Retry),
            (ours("ThrottlingException"), Retry),
            (ours(""), Permanent),
            (theirs("InternalError"), Retry),
            (theirs("Whatever"), Retry),
            (theirs(""), Retry),
        ];
        for (failure, expected) in table {
            assert_eq!(retryability(failure), expected, "{failure:?}");
        }
    }
}
