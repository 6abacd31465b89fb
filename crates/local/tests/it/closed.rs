//! The stack is closed to web pages, to foreign host names and to other users of the machine.

use std::net::SocketAddr;

use antumbra_local::http::AllowedHosts;
use antumbra_local::receiver;
use antumbra_local::stack::{Options, Stack};

use crate::support::exchange;

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
        let response = exchange(address, &request(method, &own)).await;
        assert!(response.starts_with("HTTP/1.1 20"), "{path}: {response}");
        for foreign in [
            "host: evil.example".to_owned(),
            format!("{own}\r\norigin: https://evil.example"),
            format!("{own}\r\norigin: null"),
        ] {
            for method in [method, "OPTIONS"] {
                let response = exchange(address, &request(method, &foreign)).await;
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

/// Runs in a process of its own, because other tests of this one have ports too.
#[cfg(target_os = "linux")]
#[test]
fn the_stack_has_no_port_but_its_guarded_ones() {
    const ALONE: &str = "ANTUMBRA_TEST_ALONE";
    let name = "closed::the_stack_has_no_port_but_its_guarded_ones";
    if std::env::var_os(ALONE).is_none() {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        let test = test.args(["--exact", name]).env(ALONE, "yes");
        let output = test.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let stack = Stack::start(Options::default()).await.unwrap();
        let addresses = stack.addresses();
        let mut known = [
            addresses.dynamodb,
            addresses.aws,
            addresses.mqtt,
            addresses.http,
        ];
        known.sort();
        let mut found = listening();
        found.sort();
        assert_eq!(found, known);
        for address in found {
            let request = "GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
            let response = exchange(address, request).await;
            let is_refused = response.starts_with("HTTP/1.1 403");
            let is_mqtt = address == addresses.mqtt && !response.starts_with("HTTP");
            assert!(is_refused || is_mqtt, "{address}: {response}");
        }
        stack.stop().await;
    });
}

/// Addresses on which this process accepts connections.
#[cfg(target_os = "linux")]
fn listening() -> Vec<SocketAddr> {
    let sockets: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?;
            Some(inode.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut addresses = Vec::new();
    for (file, bytes) in [("/proc/self/net/tcp", 4), ("/proc/self/net/tcp6", 16)] {
        // Without IPv6 the second file is missing.
        for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let &[_, local, _, "0A", _, _, _, _, _, inode, ..] = &fields[..] else {
                continue;
            };
            if sockets.iter().any(|socket| socket == inode) {
                addresses.push(address(local, bytes));
            }
        }
    }
    addresses
}

/// Reads an address such as `0100007F:1F90`: words in the byte order of the machine, then the port.
#[cfg(target_os = "linux")]
fn address(text: &str, bytes: usize) -> SocketAddr {
    use std::net::IpAddr;
    let (words, port) = text.split_once(':').unwrap();
    let octets: Vec<u8> = (0..bytes / 4)
        .flat_map(|word| {
            let word = u32::from_str_radix(&words[word * 8..][..8], 16).unwrap();
            word.to_ne_bytes()
        })
        .collect();
    let ip = match <[u8; 4]>::try_from(&octets[..]) {
        Ok(octets) => IpAddr::from(octets),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(&octets[..]).unwrap()),
    };
    SocketAddr::new(ip, u16::from_str_radix(port, 16).unwrap())
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
