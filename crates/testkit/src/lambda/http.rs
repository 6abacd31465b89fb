//! A minimal HTTP server, sufficient for the SDKs.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, path and version.
    pub first_line: String,
    /// The value of `x-amz-target`, such as `AmazonSQS.SendMessageBatch`, or empty.
    pub target: String,
    pub body: String,
}

impl Request {
    /// Returns the operation in `x-amz-target`, such as `SendMessageBatch`.
    pub fn operation(&self) -> &str {
        self.target.rsplit('.').next().unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Serves until the process ends. The handler returns the headers (each ended by `\r\n`) and the body of a
/// response with status 200.
pub fn serve(handler: impl Fn(&Request) -> (String, String) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let handler = Arc::new(handler);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handler = Arc::clone(&handler);
            std::thread::spawn(move || connection(&stream, &*handler));
        }
    });
    address
}

fn connection(mut stream: &TcpStream, handler: &dyn Fn(&Request) -> (String, String)) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let (headers, body) = handler(&request);
        let length = body.len();
        let sent = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        if sent.is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut first_line = String::new();
    if reader.read_line(&mut first_line).ok()? == 0 {
        return None;
    }
    let (mut length, mut target) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "x-amz-target" => target = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        first_line: first_line.trim_end().to_owned(),
        target,
        body: String::from_utf8(body).ok()?,
    })
}
