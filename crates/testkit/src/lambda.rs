//! Runs the binary of a function as Lambda does: a process that polls the runtime API.
//!
//! All calls are on loopback and block, so that a test reads as a sequence of events.

mod aws;

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::http::{Endpoint, Response};
pub use aws::AwsServer;

/// Response of a batch function that processed every record.
pub const NO_FAILURES: &str = r#"{"batchItemFailures":[]}"#;

const INVOCATION_TIMEOUT: Duration = Duration::from_secs(30);

/// A running function. Dropping it kills the process.
pub struct Lambda {
    process: Child,
    events: Sender<String>,
    results: Receiver<InvocationResult>,
}

/// The function's response, or the error it reported.
pub type InvocationResult = Result<String, String>;

/// Names and values of environment variables.
pub type Environment = Vec<(&'static str, String)>;

impl Lambda {
    /// Starts a binary with the environment that Lambda sets for every function, and this one.
    pub fn start(binary: &str, environment: &[(&str, String)]) -> Lambda {
        let (events, waiting) = channel();
        let (finished, results) = channel();
        let runtime_api = runtime_api(waiting, finished);
        let process = Command::new(binary)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", runtime_api.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Lambda {
            process,
            events,
            results,
        }
    }

    /// Sends an event and waits for the result.
    pub fn invoke(&self, event: &str) -> InvocationResult {
        self.events.send(event.to_owned()).unwrap();
        let result = self.results.recv_timeout(INVOCATION_TIMEOUT);
        result.expect("the function responds")
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn exits_with_success(mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Asserts that a function exits with an error if one variable has this value, or is missing (`None`).
pub fn assert_rejects(
    binary: &str,
    environment: &Environment,
    changes: &[(&'static str, Option<&str>)],
) {
    for (name, value) in changes {
        let mut wrong = environment.clone();
        wrong.retain(|(other, _)| other != name);
        wrong.extend(value.map(|value| (*name, value.to_owned())));
        let function = Lambda::start(binary, &wrong);
        assert!(!function.exits_with_success(), "{name}={value:?}");
    }
}

/// Serves the runtime API: hands out events and collects results.
fn runtime_api(events: Receiver<String>, results: Sender<InvocationResult>) -> SocketAddr {
    let (events, results) = (Mutex::new(events), Mutex::new(results));
    let endpoint = Endpoint::start(move |request| {
        let result = match request.path().rsplit('/').next() {
            Some("next") => {
                // Without a sender the process is about to be killed.
                let event = events.lock().unwrap().recv().unwrap_or_default();
                return next(event);
            }
            Some("response") => Ok(request.body.clone()),
            _ => Err(request.body.clone()),
        };
        let _ = results.lock().unwrap().send(result);
        Response::ok("")
    });
    endpoint.address
}

fn next(event: String) -> Response {
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + INVOCATION_TIMEOUT;
    let function = "arn:aws:lambda:us-east-1:000000000000:function:f";
    Response::ok(event)
        .with_header("lambda-runtime-aws-request-id", "1")
        .with_header(
            "lambda-runtime-deadline-ms",
            &deadline.as_millis().to_string(),
        )
        .with_header("lambda-runtime-invoked-function-arn", function)
}

/// Returns the URL of a port without a listener.
pub fn unreachable_url() -> String {
    format!("http://{}", nowhere())
}

/// Returns the address of a port without a listener.
pub fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
