//! Webhook requests to real endpoints and the handling of their responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_lambda_kit::certificates;
use antumbra_publish::webhook::{Guard, WebhookSender};
use antumbra_service::clients::{ClientId, Secret};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{DeliveryId, HttpResponse, Post, PostError, Sender as _};
use antumbra_testkit::tls::certificate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A request that an endpoint received.
#[derive(Debug, Clone)]
struct Seen {
    head: String,
    body: String,
}

impl Seen {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        });
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// The behaviour of an endpoint.
#[derive(Debug, Clone)]
enum Does {
    Responds(String),
    /// Sends the head, then a byte now and then, forever.
    Drips(&'static str),
    /// Sends the head, then an endless body.
    Floods(&'static str),
    Hangs,
    HangsUp,
}

struct Endpoint {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
}

async fn start(does: Does, tls: Option<ServerConfig>) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint {
        address: listener.local_addr().unwrap(),
        seen: Arc::default(),
        connections: Arc::default(),
    };
    let (seen, connections) = (
        Arc::clone(&endpoint.seen),
        Arc::clone(&endpoint.connections),
    );
    let tls = tls.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            *connections.lock().unwrap() += 1;
            let (does, seen, tls) = (does.clone(), Arc::clone(&seen), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, does, seen).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, does, seen).await;
                        }
                    }
                }
            });
        }
    });
    endpoint
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    does: Does,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let mut read = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = read.windows(4).position(|part| part == b"\r\n\r\n") {
                let rest = read.split_off(end + 4);
                break String::from_utf8(std::mem::replace(&mut read, rest)).unwrap();
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let request = Seen {
            head: head.clone(),
            body: String::new(),
        };
        let length: usize = request.header("content-length").parse().unwrap();
        while read.len() < length {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let rest = read.split_off(length);
        let body = String::from_utf8(std::mem::replace(&mut read, rest)).unwrap();
        seen.lock().unwrap().push(Seen { head, body });
        match &does {
            Does::Responds(response) => {
                if stream.write_all(response.as_bytes()).await.is_err() {
                    return;
                }
            }
            Does::Drips(head) => {
                let _ = stream.write_all(head.as_bytes()).await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                return;
            }
            Does::Floods(head) => {
                let _ = stream.write_all(head.as_bytes()).await;
                let block = vec![b'x'; 65_536];
                while stream.write_all(&block).await.is_ok() {}
                return;
            }
            Does::Hangs => {
                let mut rest = [0; 1];
                let _ = stream.read(&mut rest).await;
                return;
            }
            Does::HangsUp => return,
        }
    }
}

fn responds(status: &str, headers: &str) -> Does {
    Does::Responds(format!(
        "HTTP/1.1 {status}\r\ncontent-length: 0\r\n{headers}\r\n"
    ))
}

pub(crate) fn trusting(roots: RootCertStore, guard: Guard) -> WebhookSender {
    WebhookSender::new(certificates::trusting(roots), guard)
}

fn sender() -> WebhookSender {
    let allow = "http://127.0.0.1, hooks.test, http://[::1]";
    trusting(RootCertStore::empty(), Guard::new(allow.parse().unwrap()))
}

async fn post(
    sender: &WebhookSender,
    url: &str,
    secrets: &[&Secret],
) -> Result<HttpResponse, PostError> {
    let now = SystemClock.now();
    let id = DeliveryId::new(&ClientId::new("watch").unwrap(), now, 17, "x");
    sender
        .post(Post {
            url,
            id: &id,
            now,
            secrets,
            body: r#"{"type":"state.changed"}"#,
        })
        .await
}

async fn outcome(does: Does) -> Result<HttpResponse, PostError> {
    let endpoint = start(does, None).await;
    let url = format!("http://{}/in?a=b", endpoint.address);
    let sender = sender().with_timeout(Duration::from_millis(400));
    post(&sender, &url, &[&Secret::random()]).await
}

fn status(status: u16) -> Result<HttpResponse, PostError> {
    Ok(HttpResponse {
        status,
        retry_after: None,
    })
}

/// HMAC with SHA-256 according to RFC 2104, implemented independently.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(message)
        .finalize();
    let outer = Sha256::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize();
    outer.to_vec()
}

#[tokio::test]
async fn a_request_is_signed_with_every_secret_and_reuses_its_connection() {
    let endpoint = start(responds("204 No Content", ""), None).await;
    let url = format!("http://{}/in?a=b", endpoint.address);
    let (new, old) = (Secret::random(), Secret::random());
    let sender = sender();
    for _ in 0..3 {
        assert_eq!(post(&sender, &url, &[&new, &old]).await, status(204));
    }
    assert_eq!(*endpoint.connections.lock().unwrap(), 1);
    let seen = endpoint.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3);
    for request in &seen {
        assert!(
            request.head.starts_with("POST /in?a=b HTTP/1.1\r\n"),
            "{}",
            request.head
        );
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("antumbra/"));
        let (id, time) = (
            request.header("webhook-id"),
            request.header("webhook-timestamp"),
        );
        let signed = format!("{id}.{time}.{}", request.body);
        let signatures: Vec<&str> = request.header("webhook-signature").split(' ').collect();
        let expected = [&new, &old].map(|secret| {
            let key = STANDARD.decode(&secret.reveal()["whsec_".len()..]).unwrap();
            format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes())))
        });
        assert_eq!(signatures, expected);
        for secret in [&new, &old] {
            assert!(!request.head.contains(secret.reveal()));
        }
    }
}

#[tokio::test]
async fn the_status_is_returned_and_redirects_are_not_followed() {
    for (does, expected) in [
        (responds("200 OK", ""), status(200)),
        (responds("500 Oops", ""), status(500)),
        (responds("410 Gone", ""), status(410)),
        (
            responds("301 Moved", "location: http://127.0.0.1:1/\r\n"),
            status(301),
        ),
        (
            responds("307 Moved", "location: http://169.254.169.254/\r\n"),
            status(307),
        ),
    ] {
        let endpoint = start(does, None).await;
        let url = format!("http://{}/", endpoint.address);
        assert_eq!(post(&sender(), &url, &[&Secret::random()]).await, expected);
        assert_eq!(endpoint.seen.lock().unwrap().len(), 1);
    }
    let retry_later = HttpResponse {
        status: 429,
        retry_after: Some(Duration::from_secs(120)),
    };
    let busy = responds("429 Busy", "retry-after: 120\r\n");
    assert_eq!(outcome(busy).await, Ok(retry_later));
    let odd = responds("503 Busy", "retry-after: tomorrow\r\n");
    assert_eq!(outcome(odd).await, status(503));
}

#[tokio::test]
async fn endpoints_that_hang_or_never_end_time_out() {
    let timeout = Err(PostError::Timeout(Duration::from_millis(400)));
    assert_eq!(outcome(Does::Hangs).await, timeout);
    assert!(matches!(
        outcome(Does::HangsUp).await,
        Err(PostError::Failed(_))
    ));
    let garbage = Does::Responds("SSH-2.0-OpenSSH\r\n\r\n".to_owned());
    assert!(matches!(outcome(garbage).await, Err(PostError::Failed(_))));
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    assert!(matches!(
        outcome(Does::Responds(long)).await,
        Err(PostError::Failed(_))
    ));
    // Only the status counts.
    let began = Instant::now();
    let slow = Does::Drips("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
    assert_eq!(outcome(slow).await, status(200));
    let huge = Does::Floods("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n");
    assert_eq!(outcome(huge).await, status(200));
    let endless = Does::Floods("HTTP/1.1 500 Oops\r\n\r\n");
    assert_eq!(outcome(endless).await, status(500));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_refused_connection_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let refused = post(&sender(), &url, &[&Secret::random()]).await;
    let Err(PostError::Failed(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
}

#[tokio::test]
async fn https_needs_a_certificate_that_is_trusted_and_for_this_host() {
    let guard = || Guard::new("127.0.0.1".parse().unwrap());
    for (name, trusted, fine) in [
        ("127.0.0.1", true, true),
        ("127.0.0.1", false, false),
        ("hooks.example.com", true, false),
    ] {
        let (config, roots) = certificate(name);
        let endpoint = start(responds("204 No Content", ""), Some(config)).await;
        let url = format!("https://{}/", endpoint.address);
        let roots = if trusted {
            roots
        } else {
            RootCertStore::empty()
        };
        let sender = trusting(roots, guard());
        let sent = post(&sender, &url, &[&Secret::random()]).await;
        assert_eq!(sent.is_ok(), fine, "{name} {trusted} {sent:?}");
        if let Err(error) = sent {
            assert!(error.to_string().contains("certificate"), "{error}");
        }
        assert_eq!(endpoint.seen.lock().unwrap().len(), usize::from(fine));
    }
    // Plain HTTP where TLS is expected, and vice versa.
    let plain = start(responds("204 No Content", ""), None).await;
    let sender = trusting(RootCertStore::empty(), guard());
    let url = format!("https://{}/", plain.address);
    assert!(post(&sender, &url, &[&Secret::random()]).await.is_err());
    assert!(plain.seen.lock().unwrap().is_empty());
}
