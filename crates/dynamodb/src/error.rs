//! Store errors of failed calls.
//!
//! | DynamoDB | error |
//! |---|---|
//! | a condition failed | none: [`crate::table::Outcome::Refused`], which each noun interprets |
//! | throttling, or a conflict with another transaction | `Throttled`: nothing was changed |
//! | the item is too large, or its item collection | `TooLarge` |
//! | the request is invalid | `Invalid` |
//! | no response, or a failure | `Unavailable` |
//! | no such table, no permission, invalid credentials | `Unavailable`: the operator has to act, not the caller |

use antumbra_service::shadows::adapter::ITEM_BYTES;
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::RequestId;
use aws_sdk_dynamodb::types::CancellationReason;

/// Bytes of all items that share a partition key, in a table with a local index.
pub(crate) const COLLECTION_BYTES: usize = 10 * 1024 * 1024 * 1024;

/// The error of a failed call. `bytes` is the size of the item that it carried.
pub(crate) fn store_error<E: ProvideErrorMetadata>(
    operation: &'static str,
    error: &SdkError<E>,
    bytes: usize,
) -> StoreError {
    let unavailable = |what: &str| StoreError::Unavailable(format!("{operation}: {what}"));
    match error {
        SdkError::TimeoutError(_) => unavailable("no response in time"),
        SdkError::DispatchFailure(_) => unavailable("no connection"),
        SdkError::ResponseError(_) => unavailable("the response cannot be read"),
        SdkError::ServiceError(failed) if failed.err().code().is_none() => {
            let status = failed.raw().status().as_u16();
            unavailable(&format!(
                "the response, with HTTP status {status}, is not one of DynamoDB"
            ))
        }
        SdkError::ServiceError(failed) => {
            let failed = failed.err();
            let code = failed.code().unwrap_or("no code");
            let message = failed.message().unwrap_or_default();
            let request = failed.meta().request_id().unwrap_or_default();
            tracing::warn!(operation, code, request, "DynamoDB call failed");
            // A message may repeat the item.
            tracing::debug!(
                operation,
                code,
                request,
                text = message,
                "DynamoDB error message"
            );
            error_of_code(operation, code, message, bytes)
        }
        _ => unavailable("the call could not be made"),
    }
}

pub(crate) fn not_built(error: BuildError) -> StoreError {
    StoreError::Invalid(error.to_string())
}

fn error_of_code(operation: &str, code: &str, message: &str, bytes: usize) -> StoreError {
    match code {
        "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "ThrottlingException"
        | "ThrottlingError"
        | "Throttling"
        | "RequestLimitExceeded"
        | "TransactionConflictException"
        | "TransactionConflict"
        | "ReplicatedWriteConflictException" => StoreError::Throttled,
        "ValidationException" | "ValidationError" if message.starts_with(TOO_LARGE) => {
            StoreError::TooLarge {
                bytes,
                limit: ITEM_BYTES,
            }
        }
        "ItemCollectionSizeLimitExceededException" => StoreError::TooLarge {
            bytes,
            limit: COLLECTION_BYTES,
        },
        "ValidationException" | "ValidationError" | "DuplicateItem" => {
            StoreError::Invalid(format!("DynamoDB rejects {operation}: {code}"))
        }
        _ => StoreError::Unavailable(format!("{operation}: {code}")),
    }
}

/// Start of the message for an item that is too large; DynamoDB has no code for it.
const TOO_LARGE: &str = "Item size";

/// The deciding reason of a cancelled transaction: a failed condition before a permanent error before a
/// temporary one.
pub(crate) enum Cancelled<'a> {
    /// The condition of the write at this position failed.
    Condition(usize, &'a CancellationReason),
    Other(StoreError),
}

pub(crate) fn cancellation<'a>(
    operation: &'static str,
    reasons: &'a [CancellationReason],
    bytes: usize,
) -> Cancelled<'a> {
    let at_fault = || {
        reasons
            .iter()
            .enumerate()
            .filter(|(_, reason)| is_fault(reason))
    };
    let failed = |(_, reason): &(usize, &CancellationReason)| {
        reason.code() == Some("ConditionalCheckFailed")
    };
    if let Some((at, reason)) = at_fault().find(failed) {
        return Cancelled::Condition(at, reason);
    }
    let errors: Vec<StoreError> = at_fault()
        .map(|(_, reason)| {
            let message = reason.message().unwrap_or_default();
            error_of_code(operation, reason.code().unwrap_or_default(), message, bytes)
        })
        .collect();
    let last = StoreError::Unavailable(format!("{operation}: cancelled without a reason"));
    Cancelled::Other(
        errors
            .iter()
            .find(|error| !error.is_retryable())
            .or_else(|| errors.first())
            .cloned()
            .unwrap_or(last),
    )
}

/// Returns whether this item caused the cancellation; the others have the reason `None`.
pub(crate) fn is_fault(reason: &CancellationReason) -> bool {
    !matches!(reason.code(), None | Some("None"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str, message: &str) -> CancellationReason {
        CancellationReason::builder()
            .code(code)
            .message(message)
            .build()
    }

    fn decided(reasons: &[CancellationReason]) -> StoreError {
        match cancellation("TransactWriteItems", reasons, 7) {
            Cancelled::Condition(..) => StoreError::Unavailable("a condition".into()),
            Cancelled::Other(error) => error,
        }
    }

    #[test]
    fn each_cancellation_reason_has_its_error() {
        let none = reason("None", "");
        for code in [
            "TransactionConflict",
            "ThrottlingError",
            "ProvisionedThroughputExceeded",
        ] {
            assert_eq!(
                decided(&[none.clone(), reason(code, "")]),
                StoreError::Throttled,
                "{code}"
            );
        }
        assert_eq!(
            decided(&[reason("ValidationError", "x"), none.clone()]),
            StoreError::Invalid("DynamoDB rejects TransactWriteItems: ValidationError".into())
        );
        assert_eq!(
            decided(&[reason(
                "ValidationError",
                "Item size to update has exceeded the maximum allowed size"
            )]),
            StoreError::TooLarge {
                bytes: 7,
                limit: ITEM_BYTES
            }
        );
        assert!(matches!(
            decided(&[none.clone(), none]),
            StoreError::Unavailable(_)
        ));
    }

    #[test]
    fn a_failed_condition_decides_before_permanent_and_temporary_errors() {
        let [conflict, throttle, invalid] = [
            reason("ConditionalCheckFailed", ""),
            reason("ThrottlingError", ""),
            reason("ValidationError", ""),
        ];
        let all = [throttle.clone(), invalid.clone(), conflict];
        assert!(matches!(
            cancellation("TransactWriteItems", &all, 0),
            Cancelled::Condition(2, _)
        ));
        assert!(matches!(
            decided(&[throttle, invalid]),
            StoreError::Invalid(_)
        ));
    }
}
