//! `list` as a Lambda function: wiring only.

use antumbra_message_requests::operations::ListMessages;
use antumbra_message_requests::run_on_inbox;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    run_on_inbox(ListMessages).await
}
