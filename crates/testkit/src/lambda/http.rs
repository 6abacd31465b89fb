//! As much of an HTTP server as an SDK needs to believe in it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, path and version.
    pub first_line: String,
    /// The value of `x-amz-target`, such as `AmazonSQS.SendMessageBatch`, or nothing.
    pub target: String,
    /// The body, which is text.
    pub body: String,
}

/// Answers every request with the headers (each ended by `\r\n`) and the body that this gives, and status
/// 200, on as many connections as there are, for as long as the process lives.
pub fn serve(answer: impl Fn(&Request) -> (String, String) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || connection(&stream, &*answer));
        }
    });
    address
}

/// Ends with the connection, however that ends.
fn connection(mut stream: &TcpStream, answer: &dyn Fn(&Request) -> (String, String)) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let (headers, body) = answer(&request);
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
