//! A minimal HTTP server, sufficient for the SDKs, that records requests and responds as a script says.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, path and version.
    pub first_line: String,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn path(&self) -> &str {
        self.first_line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of a header, or the empty text. The name is in lower case.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the operation in `x-amz-target`, such as `SendMessageBatch`.
    pub fn operation(&self) -> &str {
        let target = self.header("x-amz-target");
        target.rsplit('.').next().unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Debug, Clone)]
pub enum Response {
    Reply {
        status: u16,
        /// Each ended by `\r\n`.
        headers: String,
        body: String,
    },
    /// Closes the connection.
    HangUp,
}

impl Response {
    pub fn new(status: u16, body: impl ToString) -> Response {
        Response::Reply {
            status,
            headers: String::new(),
            body: body.to_string(),
        }
    }

    pub fn ok(body: impl ToString) -> Response {
        Response::new(200, body)
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Response {
        if let Response::Reply { headers, .. } = &mut self {
            headers.push_str(&format!("{name}: {value}\r\n"));
        }
        self
    }
}

/// Serves until the process ends.
pub struct Endpoint {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Endpoint {
    pub fn start(script: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (script, recorded) = (Arc::new(script), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, recorded) = (Arc::clone(&script), Arc::clone(&recorded));
                std::thread::spawn(move || {
                    connection(&stream, &|request: Request| {
                        recorded.lock().unwrap().push(request.clone());
                        script(&request)
                    });
                });
            }
        });
        Endpoint { address, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn connection(mut stream: &TcpStream, respond: &dyn Fn(Request) -> Response) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let Response::Reply {
            status,
            headers,
            body,
        } = respond(request)
        else {
            return;
        };
        let length = body.len();
        let sent = write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        if sent.is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let first_line = line().filter(|line| !line.is_empty())?;
    let mut headers = Vec::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        first_line,
        headers,
        body: String::new(),
    };
    let mut body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}
