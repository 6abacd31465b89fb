//! What a failure means: worth another try, or never. One table for all services.
//!
//! A failure of the service or of the way to it is worth another try, and so is
//! one of our own credentials, which says nothing about the message. What the
//! service refuses for its content, its address or its rights is not.

use antumbra_service::notifications::SendError;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

/// What became of a call, as far as its meaning goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure<'a> {
    /// The client could not make a request of what it was given.
    NotBuilt,
    /// No answer, or none that could be read: it may have been accepted.
    NoAnswer,
    /// The service refused the whole call.
    Refused { status: u16, code: &'a str },
    /// The service took the call and refused one entry, and says whose fault it was.
    Entry { code: &'a str, sender_fault: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retryability {
    Retry,
    Permanent,
}

impl Retryability {
    pub(crate) fn because(self, reason: String) -> SendError {
        match self {
            Retryability::Retry => SendError::Retry(reason),
            Retryability::Permanent => SendError::Permanent(reason),
        }
    }
}

pub(crate) fn meaning(failure: Failure<'_>) -> Retryability {
    match failure {
        Failure::NotBuilt => Retryability::Permanent,
        Failure::NoAnswer => Retryability::Retry,
        Failure::Refused { status, code } => {
            // An answer that is no refusal but could not be read has a status below 400.
            let refused = matches!(status, 400..500) && !matches!(status, 408 | 429);
            if !refused || is_passing(code) || is_of_credentials(code) {
                Retryability::Retry
            } else {
                Retryability::Permanent
            }
        }
        Failure::Entry { code, sender_fault } => {
            if !sender_fault || is_passing(code) {
                Retryability::Retry
            } else {
                Retryability::Permanent
            }
        }
    }
}

/// What an error of an SDK's call means, and says.
pub(crate) fn sdk_error<E>(called: &str, error: &SdkError<E>) -> SendError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let failure = match error {
        SdkError::ConstructionFailure(_) => Failure::NotBuilt,
        SdkError::ServiceError(refusal) => Failure::Refused {
            status: refusal.raw().status().as_u16(),
            code: refusal.err().code().unwrap_or_default(),
        },
        // Timeouts, connections, unreadable answers, and kinds yet to be invented.
        _ => Failure::NoAnswer,
    };
    let said = match error {
        SdkError::ServiceError(refusal) => {
            let status = refusal.raw().status().as_u16().to_string();
            let code = refusal.err().code().unwrap_or(&status);
            said(code, refusal.err().message())
        }
        _ => DisplayErrorContext(error).to_string(),
    };
    meaning(failure).because(format!("{called}: {said}"))
}

/// What a refused entry of a batch means, and says.
pub(crate) fn entry_error(
    called: &str,
    code: &str,
    message: Option<&str>,
    sender_fault: bool,
) -> SendError {
    meaning(Failure::Entry { code, sender_fault })
        .because(format!("{called}: {}", said(code, message)))
}

fn said(code: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{code}: {message}"),
        _ => code.to_owned(),
    }
}

/// Whether a code is about load or the service's own trouble.
pub(crate) fn is_passing(code: &str) -> bool {
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

/// Whether a code is about our credentials or clock. They are everybody's, so
/// nothing could be parked either; the next invocation has new ones.
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

/// A code without the namespaces and endings that differ by protocol:
/// `AWS.SimpleQueueService.NonExistentQueue`, `com.amazonaws.sqs#QueueDoesNotExist`,
/// `KMS.ThrottlingException`.
fn bare(code: &str) -> &str {
    let code = code.rsplit(['#', '.']).next().unwrap_or(code);
    code.strip_suffix("Exception").unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::Failure::{Entry, NoAnswer, NotBuilt, Refused};
    use super::Retryability::{Permanent, Retry};
    use super::*;

    #[test]
    fn every_failure_has_its_meaning() {
        let refused = |status, code| Refused { status, code };
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
            (NoAnswer, Retry),
            // SQS, in both of its protocols' codes.
            (refused(400, "QueueDoesNotExist"), Permanent),
            (
                refused(400, "AWS.SimpleQueueService.NonExistentQueue"),
                Permanent,
            ),
            (
                refused(400, "com.amazonaws.sqs#QueueDoesNotExist"),
                Permanent,
            ),
            (refused(400, "InvalidAddress"), Permanent),
            (refused(400, "InvalidMessageContents"), Permanent),
            (refused(400, "InvalidSecurity"), Permanent),
            (refused(400, "UnsupportedOperation"), Permanent),
            (
                refused(400, "AWS.SimpleQueueService.UnsupportedOperation"),
                Permanent,
            ),
            (refused(400, "BatchRequestTooLong"), Permanent),
            (refused(400, "TooManyEntriesInBatchRequest"), Permanent),
            (refused(403, "AccessDenied"), Permanent),
            (refused(400, "AccessDeniedException"), Permanent),
            (refused(400, "KmsAccessDenied"), Permanent),
            (refused(400, "KMS.AccessDeniedException"), Permanent),
            (refused(400, "KmsDisabled"), Permanent),
            (refused(400, "KmsNotFound"), Permanent),
            (refused(400, "KmsThrottled"), Retry),
            (refused(400, "KMS.ThrottlingException"), Retry),
            (refused(400, "RequestThrottled"), Retry),
            (
                refused(403, "AWS.SimpleQueueService.RequestThrottled"),
                Retry,
            ),
            // SNS.
            (refused(404, "NotFound"), Permanent),
            (refused(403, "AuthorizationError"), Permanent),
            (refused(400, "InvalidParameter"), Permanent),
            (refused(400, "Throttled"), Retry),
            (refused(429, "Throttling"), Retry),
            (refused(500, "InternalError"), Retry),
            // EventBridge and IoT.
            (refused(400, "ResourceNotFoundException"), Permanent),
            (refused(413, ""), Permanent),
            (refused(403, "ForbiddenException"), Permanent),
            (refused(401, "UnauthorizedException"), Permanent),
            (refused(400, "InvalidRequestException"), Permanent),
            (refused(400, "ThrottlingException"), Retry),
            (refused(500, "InternalFailureException"), Retry),
            // By status alone.
            (refused(503, ""), Retry),
            (refused(502, "Whatever"), Retry),
            (refused(429, ""), Retry),
            (refused(408, ""), Retry),
            (refused(200, ""), Retry),
            (refused(400, ""), Permanent),
            (refused(400, "Whatever"), Permanent),
            // Our credentials and clock.
            (refused(403, "ExpiredTokenException"), Retry),
            (refused(403, "ExpiredToken"), Retry),
            (refused(403, "InvalidClientTokenId"), Retry),
            (refused(400, "UnrecognizedClientException"), Retry),
            (refused(403, "SignatureDoesNotMatch"), Retry),
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
            assert_eq!(meaning(failure), expected, "{failure:?}");
        }
    }
}
