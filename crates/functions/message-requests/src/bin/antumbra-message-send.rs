//! The function `message-send`.

use antumbra_message_requests::run_send;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    run_send().await
}
