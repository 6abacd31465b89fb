use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antumbra_testkit::tls::certificate;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::certificates;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const TIMEOUT: Duration = Duration::from_millis(300);

/// A server that sends the same text for each request; if it is empty, it hangs up.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

async fn start(response: &'static [u8], tls: Option<ServerConfig>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        connections: Arc::default(),
        requests: Arc::default(),
    };
    let (connections, requests) = (server.connections.clone(), server.requests.clone());
    let tls = tls.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let (tls, requests) = (tls.clone(), requests.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, response, &requests).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, response, &requests).await;
                        }
                    }
                }
            });
        }
    });
    server
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    response: &[u8],
    requests: &AtomicUsize,
) {
    let mut read = Vec::new();
    while stream.read_buf(&mut read).await.unwrap_or(0) > 0 {
        if read.ends_with(b"\r\n\r\n") {
            read.clear();
            requests.fetch_add(1, Ordering::SeqCst);
            if response.is_empty() || stream.write_all(response).await.is_err() {
                return;
            }
        }
    }
}

fn client(roots: RootCertStore) -> SharedHttpConnector {
    Https::new(certificates::trusting(roots), TIMEOUT).connector
}

async fn get(client: &SharedHttpConnector, url: &str) -> Result<Vec<u8>, ConnectorError> {
    let response = client.call(HttpRequest::get(url).unwrap()).await?;
    assert_eq!(response.status().as_u16(), 200);
    let body = aws_smithy_types::byte_stream::ByteStream::new(response.into_body());
    Ok(body.collect().await.unwrap().to_vec())
}

fn text(error: ConnectorError) -> String {
    aws_smithy_types::error::display::DisplayErrorContext(error).to_string()
}

#[tokio::test]
async fn https_needs_a_certificate_that_is_trusted_and_for_this_host() {
    let (config, roots) = certificate("127.0.0.1");
    let server = start(RESPONSE, Some(config)).await;
    let url = format!("https://{}/", server.address);
    assert_eq!(get(&client(roots.clone()), &url).await.unwrap(), b"ok");
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);

    let (_, other_authority) = certificate("127.0.0.1");
    let compiled_in = certificates::compiled_in();
    // The other authority has the same name and another key.
    for (untrusting, reason) in [
        (other_authority, "BadSignature"),
        (compiled_in, "UnknownIssuer"),
        (RootCertStore::empty(), "UnknownIssuer"),
    ] {
        let error = get(&client(untrusting), &url).await.unwrap_err();
        assert!(error.is_io(), "{error:?}");
        let error = text(error);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);

    let by_name = format!("https://localhost:{}/", server.address.port());
    let error = text(get(&client(roots), &by_name).await.unwrap_err());
    assert!(error.contains("not valid for name"), "{error}");
    assert_eq!(server.requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tls_and_plain_http_are_not_mixed_up() {
    let (config, roots) = certificate("127.0.0.1");
    let (plain, secure) = (
        start(RESPONSE, None).await,
        start(RESPONSE, Some(config)).await,
    );
    let client = client(roots);
    let plain_url = format!("http://{}/", plain.address);
    assert_eq!(get(&client, &plain_url).await.unwrap(), b"ok");
    for url in [
        format!("https://{}/", plain.address),
        format!("http://{}/", secure.address),
    ] {
        assert!(get(&client, &url).await.is_err(), "{url}");
    }
}

#[tokio::test]
async fn a_connection_is_reused_until_the_sdk_gives_it_up() {
    let server = start(RESPONSE, None).await;
    let url = format!("http://{}/", server.address);
    let client = client(RootCertStore::empty());
    for _ in 0..3 {
        get(&client, &url).await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);

    let capture = CaptureSmithyConnection::new();
    let mut request = HttpRequest::get(&url).unwrap();
    request.add_extension(capture.clone());
    let response = client.call(request).await.unwrap();
    capture.get().unwrap().poison();
    drop(response);
    get(&client, &url).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn failures_are_those_that_the_sdk_tries_again() {
    let client = client(RootCertStore::empty());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();

    // Accepted by the system and never answered: the limit covers the handshake.
    let silent = get(&client, &format!("https://{address}/")).await;
    assert!(silent.as_ref().unwrap_err().is_timeout(), "{silent:?}");

    drop(listener);
    let refused = get(&client, &format!("http://{address}/")).await;
    assert!(refused.as_ref().unwrap_err().is_io(), "{refused:?}");

    let server = start(b"", None).await;
    let hung_up = get(&client, &format!("http://{}/", server.address)).await;
    let kind = hung_up.as_ref().unwrap_err().as_other();
    assert_eq!(kind, Some(ErrorKind::TransientError), "{hung_up:?}");

    let server = start(b"SSH-2.0-OpenSSH\r\n\r\n", None).await;
    let garbage = get(&client, &format!("http://{}/", server.address)).await;
    let error = garbage.as_ref().unwrap_err();
    assert!(
        error.is_other() && error.as_other().is_none(),
        "{garbage:?}"
    );
}
