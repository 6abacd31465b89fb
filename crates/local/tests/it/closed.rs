//! The stack is closed to web pages, to foreign host names and to other users of the machine.

use std::net::SocketAddr;

use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver;
use antumbra_local::stack::{Options, Stack};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::soon;

async fn send(address: SocketAddr, request: String) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    soon("a response", stream.read_to_string(&mut response))
        .await
        .unwrap();
    response
}

#[tokio::test]
async fn every_http_port_refuses_foreign_hosts_and_pages() {
    let stack = Stack::start(Options::default()).await.unwrap();
    let hook = receiver::start(0, Vec::new(), AllowedHosts::default(), |_| 204);
    let hook = hook.await.unwrap();
    let addresses = stack.addresses();
    for (address, path, header) in [
        (
            addresses.dynamodb,
            "/",
            "content-type: application/json\r\nx-amz-target: DynamoDB_20120810.ListTables\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=b\r\nx-amz-date: 20260101T000000Z\r\n",
        ),
        (addresses.aws, "/", "x-amz-target: AmazonSQS.ListQueues\r\n"),
        (addresses.aws, "/topics/t", "content-type: text/plain\r\n"),
        (addresses.http, "/health", ""),
        (hook.address(), "/", ""),
    ] {
        let method = if path == "/health" { "GET" } else { "POST" };
        let request = |method: &str, headers: &str| {
            format!(
                "{method} {path} HTTP/1.1\r\n{headers}\r\n{header}connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
            )
        };
        let own = format!("host: {address}");
        let response = send(address, request(method, &own)).await;
        assert!(response.starts_with("HTTP/1.1 20"), "{path}: {response}");
        for foreign in [
            "host: evil.example".to_owned(),
            format!("{own}\r\norigin: https://evil.example"),
            format!("{own}\r\norigin: null"),
        ] {
            for method in [method, "OPTIONS"] {
                let response = send(address, request(method, &foreign)).await;
                assert!(
                    response.starts_with("HTTP/1.1 403"),
                    "{foreign}: {response}"
                );
                assert!(!response.contains("access-control"), "{response}");
            }
        }
    }
    stack.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn all_files_of_the_data_directory_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let options = Options {
        data_dir: Some(data.clone()),
        ..Options::default()
    };
    let stack = Stack::start(options).await.unwrap();
    let mut directories = vec![data];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        let mode = directory.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                directories.push(entry.path());
                continue;
            }
            files += 1;
            let mode = metadata.permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        }
    }
    assert!(files >= 5, "{files}");
    stack.stop().await;
}
