//! The Lambda function `message-next`: serves the operations `next` and `prev` of the inbox.

use antumbra_message_requests::operations::NextFunction;
use antumbra_message_requests::run_on_inbox;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    run_on_inbox(NextFunction).await
}
