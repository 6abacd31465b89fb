//! `--json` output equals the JSON of the HTTP API.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;

use crate::process::{Home, Running, text};

fn run(stack: &Running, line: &str) -> Value {
    let aws = stack.addresses["aws"].as_str().unwrap();
    let mut arguments = vec!["--json", "--aws-url", aws];
    arguments.extend(line.split(' '));
    let output = stack.run(&arguments);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn get(stack: &Running, token: &str, path: &str) -> Value {
    let (status, body) = call_api(stack, token, "GET", path, &Value::Null).await;
    assert_eq!(status, 200, "{path}");
    body
}

/// Calls the HTTP API, and returns the status and JSON of the response.
pub(crate) async fn call_api(
    stack: &Running,
    token: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let url = stack.addresses["http"].as_str().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let stream = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"));
    let body = match body.is_null() {
        true => Bytes::new(),
        false => body.to_string().into(),
    };
    let request = request.body(Full::new(body)).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[test]
fn json_output_equals_the_api() {
    let home = Home::new(&[]);
    let stack = home.start();
    let token = std::fs::read_to_string(home.path("data/http-token")).unwrap();
    let token = token.trim();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let allow = "--webhook-allow http://127.0.0.0/8";
    run(
        &stack,
        "sensors register lock-1 Torun A 2 13 --type lock --address left",
    );
    run(
        &stack,
        "sensors read lock-1 12345678901234567890.5 --unit V --sequence 7",
    );
    run(
        &stack,
        &format!("clients create Watch http://127.0.0.1:9/hook --id watch {allow}"),
    );
    run(&stack, "clients link watch lock-1");
    run(&stack, "clients disable watch --reason moving");
    run(
        &stack,
        r#"shadow report lamp {"led":"off"} --tz Europe/Stockholm --token t"#,
    );
    run(&stack, r#"shadow desire lamp {"led":"on"}"#);
    for (line, pointer, path) in [
        ("sensors show lock-1", "/sensor", "/v1/sensors/lock-1"),
        ("sensors state lock-1", "", "/v1/sensors/lock-1/state"),
        ("sensors list", "", "/v1/sensors"),
        ("sensors in Torun A", "", "/v1/locations/Torun/A/sensors"),
        ("sensors latest lock-1", "", "/v1/sensors/lock-1/readings"),
        ("clients show watch", "", "/v1/clients/watch"),
        ("clients list", "", "/v1/clients"),
        ("clients sensors watch", "", "/v1/clients/watch/sensors"),
        (
            "clients deliveries watch",
            "",
            "/v1/clients/watch/deliveries",
        ),
        ("shadow get lamp", "", "/v1/shadows/lamp"),
    ] {
        let printed = run(&stack, line);
        let served = runtime.block_on(get(&stack, token, path));
        assert_eq!(printed.pointer(pointer), Some(&served), "{line}");
    }
}
