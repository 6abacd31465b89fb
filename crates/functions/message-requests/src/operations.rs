//! The operations, one file each. Each holds one port, which is its role's policy.

mod delete;
mod devices;
mod get;
mod list;
mod query;
mod send;
mod step;

pub use delete::DeleteMessage;
pub use devices::ListDevices;
pub use get::GetMessage;
pub use list::ListMessages;
pub use query::QueryMessages;
pub use send::SendMessage;
pub use step::{NextMessage, PreviousMessage};

use antumbra_wire::inbox_response::InboxErrorResponse;

/// The answer that there is nothing, in the words of the contract.
fn nothing(refusal: InboxErrorResponse<'_>) -> Result<String, crate::OperationError> {
    Ok(refusal.to_json())
}
