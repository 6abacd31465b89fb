//! A minimal function, as the baseline for measuring cold starts.

use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let greet = |_: LambdaEvent<serde_json::Value>| async { Ok::<_, Error>("hello") };
    lambda_runtime::run(service_fn(greet)).await
}
