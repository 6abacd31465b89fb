//! A stand-in for the data plane of AWS IoT: its REST protocol for shadows, over HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A response: status, error type, body.
pub(crate) type Response = (u16, &'static str, String);

type Respond = dyn Fn(&str, usize) -> Response + Send + Sync;

pub(crate) struct StandIn {
    pub(crate) url: String,
    calls: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl StandIn {
    /// Answers requests by their path and how often the path was requested before.
    pub(crate) fn start(
        respond: impl Fn(&str, usize) -> Response + Send + Sync + 'static,
    ) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(BTreeMap::new()));
        let respond: Arc<Respond> = Arc::new(respond);
        let counted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (respond, counted) = (Arc::clone(&respond), Arc::clone(&counted));
                std::thread::spawn(move || serve(connection, &*respond, &counted));
            }
        });
        StandIn { url, calls }
    }

    /// A stand-in with these shadows: thing, name (empty for the unnamed one) and document.
    pub(crate) fn with_shadows(shadows: &[(&str, &str, &str)]) -> StandIn {
        let shadows: Vec<[String; 3]> = shadows
            .iter()
            .map(|(thing, name, document)| [thing, name, document].map(|text| text.to_string()))
            .collect();
        StandIn::start(move |path, _| {
            let found = shadows
                .iter()
                .find(|[thing, name, _]| path == get(thing, name));
            if let Some([_, _, document]) = found {
                return (200, "", document.clone());
            }
            let Some(rest) = path.strip_prefix(LIST) else {
                return not_found();
            };
            let thing = rest.split('?').next().unwrap();
            let names = shadows
                .iter()
                .filter(|[of, name, _]| of == thing && !name.is_empty());
            names_page(names.map(|[_, name, _]| name.as_str()), None)
        })
    }

    pub(crate) fn calls(&self, path: &str) -> usize {
        self.calls.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

const LIST: &str = "/api/things/shadow/ListNamedShadowsForThing/";

/// The path that reads a shadow.
pub(crate) fn get(thing: &str, name: &str) -> String {
    match name {
        "" => format!("/things/{thing}/shadow"),
        name => format!("/things/{thing}/shadow?name={name}"),
    }
}

/// The path that lists names of shadows, after a token.
pub(crate) fn list(thing: &str, token: &str) -> String {
    match token {
        "" => format!("{LIST}{thing}?pageSize=100"),
        token => format!("{LIST}{thing}?nextToken={token}&pageSize=100"),
    }
}

pub(crate) fn names_page<'a>(names: impl Iterator<Item = &'a str>, next: Option<&str>) -> Response {
    let names: Vec<&str> = names.collect();
    let page = serde_json::json!({ "results": names, "nextToken": next, "timestamp": 1769860800 });
    (200, "", page.to_string())
}

pub(crate) fn not_found() -> Response {
    let body = r#"{"message":"No shadow exists with name: 'lamp'"}"#;
    (404, "ResourceNotFoundException", body.to_owned())
}

fn serve(connection: TcpStream, respond: &Respond, calls: &Mutex<BTreeMap<String, usize>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        lines.push(line);
    }
    let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else {
        return;
    };
    let signed = lines.iter().any(|line| {
        line.to_lowercase()
            .starts_with("authorization: aws4-hmac-sha256")
    });
    let before = {
        let mut calls = calls.lock().unwrap();
        let count = calls.entry(path.to_owned()).or_default();
        *count += 1;
        *count - 1
    };
    let (status, error, body) = match signed {
        true => respond(path, before),
        false => (403, "MissingAuthenticationTokenException", "{}".to_owned()),
    };
    let mut connection = connection;
    let _ = write!(
        connection,
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nx-amzn-errortype: {error}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}
