//! The console on the port of the HTTP API.

use std::net::SocketAddr;
use std::time::Duration;

use antumbra_local::stack::{Options, Stack};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{exchange, soon};

async fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{headers}connection: close\r\n\r\n");
    exchange(address, &request).await
}

/// Opens the printed URL and returns the cookie as a header.
async fn log_in(stack: &Stack) -> String {
    let address = stack.addresses().http;
    let url = stack.console_url();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    let response = get(address, path, "").await;
    assert!(response.starts_with("HTTP/1.1 303"), "{response}");
    let (_, cookie) = response.split_once("set-cookie: ").unwrap();
    format!("cookie: {}\r\n", cookie.split(';').next().unwrap())
}

async fn report(stack: &Stack, id: &str, json: &str) {
    let (address, token) = (stack.addresses().http, &stack.http_token().text);
    let request = format!(
        "PATCH /v1/shadows/{id}/reported HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{json}",
        json.len()
    );
    let response = exchange(address, &request).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[tokio::test]
async fn a_login_opens_pages_and_never_the_api() {
    let stack = Stack::start(Options::default()).await.unwrap();
    let address = stack.addresses().http;
    let cookie = log_in(&stack).await;
    let bearer = format!("authorization: Bearer {}\r\n", stack.http_token().text);
    for (path, headers, status, kind) in [
        ("/", "", 401, "text/html"),
        ("/", &*cookie, 200, "text/html"),
        ("/", &*bearer, 401, "text/html"),
        ("/live", &*cookie, 200, "text/html"),
        ("/v1/shadows", &*cookie, 401, "application/problem+json"),
        (
            "/v1/openapi.json",
            &*cookie,
            401,
            "application/problem+json",
        ),
        ("/v1/shadows", &*bearer, 200, "application/json"),
        ("/health", "", 200, "application/json"),
        ("/nothing", &*bearer, 404, "application/problem+json"),
    ] {
        let response = get(address, path, headers).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(
            response.starts_with(&expected),
            "{path} {headers}: {response}"
        );
        assert!(
            response.contains(&format!("content-type: {kind}")),
            "{path}: {response}"
        );
    }
    stack.stop().await;
}

#[tokio::test]
async fn allowed_host_names_open_the_api_only() {
    let options = Options {
        allowed_hosts: ["stack.internal".to_owned()].into_iter().collect(),
        ..Options::default()
    };
    let stack = Stack::start(options).await.unwrap();
    let address = stack.addresses().http;
    let cookie = log_in(&stack).await;
    let ask = async |path: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: stack.internal\r\n{cookie}connection: close\r\n\r\n"
        );
        exchange(address, &request).await
    };
    assert!(ask("/health").await.starts_with("HTTP/1.1 200"));
    assert!(ask("/").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn a_change_appears_on_open_pages() {
    let stack = Stack::start(Options::default()).await.unwrap();
    let address = stack.addresses().http;
    let cookie = log_in(&stack).await;
    report(&stack, "lamp", r#"{"led":"off"}"#).await;
    let mut streams = Vec::new();
    for path in [
        "/events?page=fleet",
        "/events?page=device&id=lamp",
        "/events?page=live",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\n{cookie}sec-fetch-site: same-origin\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push((path, stream));
    }
    // The reader of changes starts with the first page; what was written before it is on the page already.
    let mut values = (1..).map(|n| format!("{{\"led\":\"value-{n}\"}}"));
    for (path, stream) in &mut streams {
        let seen = async {
            let mut text = String::new();
            while !text.contains("value-") {
                report(&stack, "lamp", &values.next().unwrap()).await;
                let mut bytes = [0; 65536];
                let read =
                    tokio::time::timeout(Duration::from_millis(300), stream.read(&mut bytes));
                if let Ok(read) = read.await {
                    text.push_str(&String::from_utf8_lossy(&bytes[..read.unwrap()]));
                }
            }
        };
        soon(path, seen).await;
    }
    // Open pages do not keep the stack from stopping.
    soon("the stop", stack.stop()).await;
}
