//! What a failed call means for whoever asked.
//!
//! | DynamoDB says | the caller is told |
//! |---|---|
//! | a condition failed | `Conflict` or `NotFound`, where the call is made |
//! | too fast, or another transaction is at the same item | `Throttled`: nothing was changed |
//! | the item is too large | `TooLarge` |
//! | the request is invalid | `Invalid` |
//! | nothing, or that it failed | `Unavailable` |
//! | no such table, no permission, unknown credentials | `Unavailable`: the caller is not at fault, and who runs the service has to act |

use antumbra_service::shadows::adapter::ITEM_BYTES;
use antumbra_service::store::StoreError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::RequestId;
use aws_sdk_dynamodb::types::CancellationReason;

/// What a failed call means. `bytes` is the size of the item it carried, if it carried one.
pub(crate) fn of_call<E>(operation: &'static str, error: &SdkError<E>, bytes: usize) -> StoreError
where
    E: ProvideErrorMetadata,
{
    let unavailable = |what: &str| StoreError::Unavailable(format!("{operation}: {what}"));
    match error {
        SdkError::TimeoutError(_) => unavailable("no answer in time"),
        SdkError::DispatchFailure(_) => unavailable("no connection"),
        SdkError::ResponseError(_) => unavailable("the answer cannot be read"),
        SdkError::ServiceError(failed) => {
            let failed = failed.err();
            let code = failed.code().unwrap_or("no code");
            let message = failed.message().unwrap_or_default();
            let request = failed.meta().request_id().unwrap_or_default();
            tracing::warn!(operation, code, request, "DynamoDB refused or failed");
            // A message may repeat what was being stored.
            tracing::debug!(operation, code, request, message, "in DynamoDB's words");
            of_code(operation, code, message, bytes)
        }
        _ => unavailable("the call could not be made"),
    }
}

fn of_code(operation: &str, code: &str, message: &str, bytes: usize) -> StoreError {
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
        "ValidationException" | "ValidationError" if speaks_of_size(message) => {
            StoreError::TooLarge {
                bytes,
                limit: ITEM_BYTES,
            }
        }
        "ValidationException" | "ValidationError" | "DuplicateItem" => {
            StoreError::Invalid(format!("DynamoDB refuses {operation}: {code}"))
        }
        _ => StoreError::Unavailable(format!("{operation}: {code}")),
    }
}

/// DynamoDB has no code of its own for this.
fn speaks_of_size(message: &str) -> bool {
    message.starts_with("Item size")
}

/// The reason of a cancelled transaction that decides: a failed condition before all, as it stays
/// failed; then what can never succeed; then what may succeed a moment later.
pub(crate) enum Cancelled<'a> {
    /// The condition of the change at this place failed.
    Condition(usize, &'a CancellationReason),
    /// Something else, for all of it.
    Other(StoreError),
}

/// Reads the reasons of a cancelled transaction, one per item.
pub(crate) fn of_reasons<'a>(
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
            of_code(operation, reason.code().unwrap_or_default(), message, bytes)
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

/// Items that did nothing wrong have a reason too, and it says so.
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
        match of_reasons("TransactWriteItems", reasons, 7) {
            Cancelled::Condition(..) => StoreError::Unavailable("a condition".into()),
            Cancelled::Other(error) => error,
        }
    }

    #[test]
    fn each_reason_of_a_cancelled_transaction_is_itself() {
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
            StoreError::Invalid("DynamoDB refuses TransactWriteItems: ValidationError".into())
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
    fn a_failed_condition_decides_before_all_and_what_stays_before_what_passes() {
        let [conflict, throttle, invalid] = [
            reason("ConditionalCheckFailed", ""),
            reason("ThrottlingError", ""),
            reason("ValidationError", ""),
        ];
        let all = [throttle.clone(), invalid.clone(), conflict];
        assert!(matches!(
            of_reasons("TransactWriteItems", &all, 0),
            Cancelled::Condition(2, _)
        ));
        assert!(matches!(
            decided(&[throttle, invalid]),
            StoreError::Invalid(_)
        ));
    }
}
