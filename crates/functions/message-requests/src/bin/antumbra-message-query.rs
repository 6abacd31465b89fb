//! The function `message-query`.

use antumbra_message_requests::operations::QueryFunction;
use antumbra_message_requests::run_on_inbox;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    run_on_inbox(QueryFunction).await
}
