//! A function as Lambda runs it: a process that polls the runtime API and answers there.
//!
//! Everything is on loopback and blocks, so that a test of a process reads as what happens.

mod http;

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use http::{Request, serve};

/// How long a function may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A function that runs. Dropping it ends it.
pub struct Lambda {
    process: Child,
    events: Sender<String>,
    answers: Receiver<Answer>,
}

/// How an invocation ended: with the function's response, or with the error it reported.
pub type Answer = Result<String, String>;

impl Lambda {
    /// Starts the binary of a function with what Lambda gives every function, and this environment.
    pub fn start(binary: &str, environment: &[(&str, String)]) -> Lambda {
        let (events, waiting) = channel();
        let (answered, answers) = channel();
        let runtime = runtime(waiting, answered);
        let process = Command::new(binary)
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", runtime.to_string())
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
            answers,
        }
    }

    /// Hands it an event and waits for how it ends.
    pub fn invoke(&self, event: &str) -> Answer {
        self.events.send(event.to_owned()).unwrap();
        self.answers
            .recv_timeout(PATIENCE)
            .expect("the function answers")
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits until it ends by itself; whether it ended well.
    pub fn ends_well(mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The runtime API: hands out events, takes answers.
fn runtime(events: Receiver<String>, answers: Sender<Answer>) -> SocketAddr {
    let events = Arc::new(Mutex::new(events));
    let answers = Mutex::new(answers);
    serve(move |request| {
        let path = request.first_line.split(' ').nth(1).unwrap_or_default();
        let (_, path) = path.split_once("/runtime/").unwrap_or_default();
        match path.rsplit('/').next() {
            Some("next") => {
                // The process is ended when there are no more.
                let event = events.lock().unwrap().recv().unwrap_or_default();
                (headers(), event)
            }
            Some("response") => {
                let _ = answers.lock().unwrap().send(Ok(request.body.clone()));
                (String::new(), String::new())
            }
            _ => {
                let _ = answers.lock().unwrap().send(Err(request.body.clone()));
                (String::new(), String::new())
            }
        }
    })
}

fn headers() -> String {
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + PATIENCE;
    format!(
        "lambda-runtime-aws-request-id: 1\r\nlambda-runtime-deadline-ms: {}\r\n\
         lambda-runtime-invoked-function-arn: arn:aws:lambda:us-east-1:000000000000:function:f\r\n",
        deadline.as_millis()
    )
}

/// A port that nobody listens on.
pub fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
