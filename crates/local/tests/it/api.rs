//! The HTTP API on the whole stack: from a request to the table, the queue and a webhook.

use antumbra_local::stack::{Options, Stack};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{call_api, eventually, soon};

const TOKEN: &str = "let-me-in";

/// Accepts one delivery and returns the request.
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
async fn a_client_created_over_http_gets_a_delivery() {
    let options = Options {
        http_token: Some(TOKEN.to_owned()),
        ..Options::default()
    };
    let stack = Stack::start(options).await.unwrap();
    let api = stack.addresses().http;
    assert_eq!(call_api(api, "GET", "/health", "", "").await.0, 200);
    let (status, problem) = call_api(api, "GET", "/v1/clients", "wrong", "").await;
    assert_eq!((status, &problem["code"]), (401, &json!("Unauthorized")));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let client = json!({"id": "night-watch", "name": "Night watch", "url": url, "mode": "latest"});
    let (status, made) = call_api(api, "POST", "/v1/clients", TOKEN, &client.to_string()).await;
    assert_eq!(status, 201, "{made}");
    let (status, queued) = call_api(api, "POST", "/v1/clients/night-watch/test", TOKEN, "").await;
    assert_eq!(status, 202, "{queued}");
    let id = queued["delivery"].as_str().unwrap();
    let taken = soon("the delivery", take_one(listener)).await;
    assert!(taken.contains(&format!("webhook-id: {id}")), "{taken}");

    let delivered = eventually("the history", async || {
        let path = "/v1/clients/night-watch/deliveries?status=delivered";
        let (_, page) = call_api(api, "GET", path, TOKEN, "").await;
        page["deliveries"].get(0).cloned()
    });
    let delivered = delivered.await;
    assert_eq!(delivered["id"], id);
    assert_eq!(delivered["attempts"][0]["status"], 204);
    stack.stop().await;
}
