//! The function as Lambda runs it: a process that polls the runtime API and answers there.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const EVENT: &str = r#"{"Records":[{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{
    "SequenceNumber":"100","Keys":{"PK":{"S":"DS#lamp"},"SK":{"S":"DSR#main"}},
    "NewImage":{"version":{"N":"1"},"reported":{"M":{"led":{"S":"on"}}}}}}]}"#;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads one HTTP request: its first line and its body.
fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (first, String::from_utf8(body).unwrap())
}

fn answer(mut stream: &TcpStream, headers: &str, body: &str) {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
}

fn start(registrations: &str, runtime: &TcpListener, sqs: &TcpListener) -> Killed {
    let sqs = sqs.local_addr().unwrap();
    let process = Command::new(env!("CARGO_BIN_EXE_antumbra-stream-listener"))
        .env_clear()
        .env(
            "AWS_LAMBDA_RUNTIME_API",
            runtime.local_addr().unwrap().to_string(),
        )
        .env("AWS_LAMBDA_FUNCTION_NAME", "stream-listener")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_ENDPOINT_URL", format!("http://{sqs}"))
        .env(
            "UNDELIVERABLE_QUEUE_URL",
            format!("http://{sqs}/000000000000/undeliverable"),
        )
        .env("QUEUE", format!("http://{sqs}/000000000000/changes"))
        .env("REGISTRATIONS", registrations)
        .stdout(Stdio::null())
        .spawn();
    Killed(process.unwrap())
}

/// Hands out the event at the first poll and returns what the function answers.
fn serve(runtime: &TcpListener) -> String {
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(30);
    let headers = format!(
        "lambda-runtime-aws-request-id: 1\r\nlambda-runtime-deadline-ms: {}\r\n\
         lambda-runtime-invoked-function-arn: arn:aws:lambda:us-east-1:000000000000:function:f\r\n",
        deadline.as_millis()
    );
    loop {
        let (stream, _) = runtime.accept().unwrap();
        // The client keeps its connection; a poll and its answer may come on the same one.
        loop {
            let (first, body) = request(&stream);
            if first.is_empty() {
                break;
            }
            if first.contains("/invocation/1/response") {
                return body;
            }
            assert!(
                first.starts_with("GET /2018-06-01/runtime/invocation/next"),
                "{first} {body}"
            );
            answer(&stream, &headers, EVENT);
        }
    }
}

#[test]
fn an_event_goes_in_a_batch_goes_out_and_the_answer_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let rule = r#"{"name":"all","to":{"sqs":{"queue":"${env:QUEUE}"}}}"#;
    std::fs::write(directory.path().join("all.json"), rule).unwrap();
    let runtime = TcpListener::bind("127.0.0.1:0").unwrap();
    let sqs = TcpListener::bind("127.0.0.1:0").unwrap();
    let _function = start(directory.path().to_str().unwrap(), &runtime, &sqs);

    let queue = std::thread::spawn(move || {
        let (stream, _) = sqs.accept().unwrap();
        let (_, body) = request(&stream);
        let sent: serde_json::Value = serde_json::from_str(&body).unwrap();
        let entry = &sent["Entries"][0];
        let id = entry["Id"].as_str().unwrap();
        let answered = format!(
            r#"{{"Successful":[{{"Id":"{id}","MessageId":"m","MD5OfMessageBody":"x"}}],"Failed":[]}}"#
        );
        answer(
            &stream,
            "content-type: application/x-amz-json-1.0\r\n",
            &answered,
        );
        entry["MessageBody"].as_str().unwrap().to_owned()
    });
    assert_eq!(serve(&runtime), r#"{"batchItemFailures":[]}"#);
    let notification: serde_json::Value = serde_json::from_str(&queue.join().unwrap()).unwrap();
    assert_eq!(notification["diff"]["added"]["/led"], "on");
    assert_eq!(notification["version"], 1);
}

#[test]
fn a_wrong_registration_refuses_to_start() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.json"), r#"{"name":"bad"}"#).unwrap();
    let listeners = [
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    ];
    let mut function = start(
        directory.path().to_str().unwrap(),
        &listeners[0],
        &listeners[1],
    );
    assert!(!function.0.wait().unwrap().success());
}
