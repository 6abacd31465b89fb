//! The HTTP API on the whole stack: from a request to the table, the queue and a webhook.

use std::net::SocketAddr;

use antumbra_local::stack::{Options, Stack};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::soon;

const TOKEN: &str = "let-me-in";

/// A request, and the status and JSON that come back.
pub(crate) async fn ask(
    api: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, Value) {
    let mut stream = TcpStream::connect(api).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// An endpoint that takes one delivery, and what it took.
async fn take_one(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut taken = Vec::new();
    let mut buffer = [0; 4096];
    while !taken.ends_with(b"}") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the delivery ended early");
        taken.extend_from_slice(&buffer[..read]);
    }
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(taken).unwrap()
}

#[tokio::test]
async fn a_client_made_over_http_is_told_over_http() {
    let options = Options {
        http_token: Some(TOKEN.to_owned()),
        ..Options::default()
    };
    let stack = Stack::start(options).await.unwrap();
    let api = stack.addresses().http;
    assert_eq!(ask(api, "GET", "/health", "", "").await.0, 200);
    let (status, problem) = ask(api, "GET", "/v1/clients", "wrong", "").await;
    assert_eq!((status, &problem["code"]), (401, &json!("Unauthorized")));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let client = json!({"id": "night-watch", "name": "Night watch", "url": url, "mode": "latest"});
    let (status, made) = ask(api, "POST", "/v1/clients", TOKEN, &client.to_string()).await;
    assert_eq!(status, 201, "{made}");
    let (status, queued) = ask(api, "POST", "/v1/clients/night-watch/test", TOKEN, "").await;
    assert_eq!(status, 202, "{queued}");
    let id = queued["delivery"].as_str().unwrap();
    let taken = soon("the delivery", take_one(listener)).await;
    assert!(taken.contains(&format!("webhook-id: {id}")), "{taken}");

    let delivered = soon("the history", async {
        loop {
            let path = "/v1/clients/night-watch/deliveries?status=delivered";
            let (_, page) = ask(api, "GET", path, TOKEN, "").await;
            if let Some(delivery) = page["deliveries"].get(0) {
                return delivery.clone();
            }
            tokio::task::yield_now().await;
        }
    });
    let delivered = delivered.await;
    assert_eq!(delivered["id"], id);
    assert_eq!(delivered["attempts"][0]["status"], 204);
    stack.stop().await;
}
