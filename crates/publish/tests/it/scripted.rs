//! An HTTP endpoint with scripted responses that records requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_types::SdkConfig;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const REGION: &str = "us-east-1";

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map_or("", |(_, value)| value)
    }

    /// The operation of a JSON protocol.
    pub(crate) fn operation(&self) -> &str {
        let target = self.header("x-amz-target");
        target.rsplit('.').next().unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// A field of the query protocol.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = form_urlencoded::parse(self.body.as_bytes());
        fields
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.into_owned())
    }
}

/// A scripted response.
#[derive(Debug, Clone)]
pub(crate) enum Response {
    Reply {
        status: u16,
        header: Option<(&'static str, String)>,
        body: String,
    },
    /// Reads the request and closes the connection.
    HangUp,
}

impl Response {
    pub(crate) fn ok(body: impl ToString) -> Response {
        Response::Reply {
            status: 200,
            header: None,
            body: body.to_string(),
        }
    }
}

/// A running endpoint.
pub(crate) struct Endpoint {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Endpoint {
    pub(crate) async fn start(
        script: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, heard) = (Arc::new(script), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, heard) = (Arc::clone(&script), Arc::clone(&heard));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = read(&mut stream).await {
                        let answer = script(&request);
                        heard.lock().unwrap().push(request);
                        match answer {
                            Response::HangUp => return,
                            reply => write(&mut stream, reply).await,
                        }
                    }
                });
            }
        });
        Endpoint { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn config(&self) -> SdkConfig {
        config(&format!("http://{}", self.address))
    }
}

/// A client configuration without retries.
pub(crate) fn config(endpoint: &str) -> SdkConfig {
    let anyone = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled())
        .credentials_provider(SharedCredentialsProvider::new(anyone))
        .build()
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request {
        path,
        headers,
        body: String::new(),
    };
    let mut body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}

async fn write(stream: &mut BufReader<TcpStream>, answer: Response) {
    let Response::Reply {
        status,
        header,
        body,
    } = answer
    else {
        return;
    };
    let header = header.map(|(name, value)| format!("{name}: {value}\r\n"));
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{}\r\n",
        body.len(),
        header.unwrap_or_default()
    );
    // The client may have disconnected.
    let _ = stream.write_all((head + &body).as_bytes()).await;
}
