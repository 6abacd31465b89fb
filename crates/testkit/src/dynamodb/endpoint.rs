//! An HTTP endpoint in front of DynamoDB that records calls, and forwards them or responds itself.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::server::{HttpResponse, Server, send, server};

type Script = Box<dyn FnMut(&Call) -> Reply + Send>;

/// One request that reached the endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Such as `PutItem`.
    pub operation: String,
    /// The request's JSON.
    pub body: Value,
}

/// Treatment of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Forwards the call to DynamoDB and returns its response.
    Pass,
    /// Responds with this status and JSON without a call to DynamoDB.
    Respond(u16, Value),
    /// Forwards the call, but responds with this status and JSON.
    PassThenRespond(u16, Value),
    /// Forwards the call, but closes the connection without a response.
    PassThenDisconnect,
    /// Neither forwards the call nor responds.
    Hang,
}

impl Reply {
    /// Responds with an error of DynamoDB, such as `ThrottlingException`.
    pub fn fail(status: u16, code: &str) -> Reply {
        Reply::Respond(status, failure(status, code).1)
    }

    /// Forwards the call, but responds with an error of DynamoDB.
    pub fn pass_then_fail(status: u16, code: &str) -> Reply {
        Reply::PassThenRespond(status, failure(status, code).1)
    }
}

/// Status and body of an error response of DynamoDB.
pub fn failure(status: u16, code: &str) -> (u16, Value) {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    (status, json!({"__type": kind, "message": "as scripted"}))
}

/// A loopback HTTP endpoint that lives as long as the runtime it was started on.
pub struct Endpoint {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    calls: Mutex<Vec<Call>>,
    /// Number of calls that arrived, and number that must have arrived before the first response.
    arrived: watch::Sender<usize>,
    held_until: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    script: Mutex<Script>,
}

impl Endpoint {
    /// Starts an endpoint in front of DynamoDB. All calls pass.
    pub async fn start() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            calls: Mutex::default(),
            arrived: watch::Sender::new(0),
            held_until: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            script: Mutex::new(Box::new(|_| Reply::Pass)),
        });
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Endpoint { address, state }
    }

    /// Returns the endpoint URL for SDK clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a call without the SDK, which would not make an invalid one. Returns the status and the response.
    pub async fn call(&self, operation: &str, body: &Value) -> (u16, Value) {
        let credential = "Credential=test/20260101/eu-north-1/dynamodb/aws4_request";
        let signature = format!("AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0");
        let request = Request::post("/")
            .header("host", self.address.to_string())
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("x-amz-date", "20260101T000000Z")
            .header("authorization", signature)
            .body(Full::from(body.to_string()))
            .unwrap();
        let response = send(self.address, request).await;
        let body = response.body().clone().collect().await.unwrap().to_bytes();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Treats every call as the script says, from now on.
    pub fn script(&self, script: impl FnMut(&Call) -> Reply + Send + 'static) {
        *lock(&self.state.script) = Box::new(script);
    }

    /// Gives the next calls of an operation one of these replies each; all other calls pass.
    pub fn script_next(&self, operation: &'static str, replies: impl Into<Vec<Reply>>) {
        let mut replies = replies.into().into_iter();
        self.script(move |call| {
            if call.operation == operation {
                replies.next().unwrap_or(Reply::Pass)
            } else {
                Reply::Pass
            }
        });
    }

    /// Withholds responses until this many more calls have arrived, and restarts the count of concurrent calls.
    pub fn hold_until(&self, calls: usize) {
        let arrived = *self.state.arrived.borrow();
        self.state
            .held_until
            .store(arrived + calls, Ordering::SeqCst);
        self.state.most_at_once.store(0, Ordering::SeqCst);
    }

    /// Returns the maximum number of concurrent calls.
    pub fn most_at_once(&self) -> usize {
        self.state.most_at_once.load(Ordering::SeqCst)
    }

    /// Returns the calls since the last query. Every attempt of the SDK counts.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.state.calls))
    }

    /// Returns the operations of the calls since the last query.
    pub fn take_operations(&self) -> Vec<String> {
        let calls = self.take_calls().into_iter();
        calls.map(|call| call.operation).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| handle(request, &state));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// A call without a response so far.
struct Present<'a>(&'a State);

impl Present<'_> {
    fn arrive(state: &State) -> Present<'_> {
        let at_once = state.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        state.arrived.send_modify(|arrived| *arrived += 1);
        Present(state)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes hyper close a connection without a response.
#[derive(Debug)]
struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up")
    }
}

impl std::error::Error for HungUp {}

async fn handle(request: Request<Incoming>, state: &State) -> Result<HttpResponse, HungUp> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| HungUp)?.to_bytes();
    let target = head.headers.get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok()).unwrap_or("");
    let call = Call {
        operation: target.rsplit('.').next().unwrap_or("").to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let is_of_stream = call.operation == "GetRecords";
    let _present = Present::arrive(state);
    let held_until = state.held_until.load(Ordering::SeqCst);
    let mut arrived = state.arrived.subscribe();
    // The sender is part of the state and outlives the wait.
    let _ = arrived.wait_for(|arrived| *arrived >= held_until).await;
    let reply = (lock(&state.script))(&call);
    lock(&state.calls).push(call);
    let pass = async {
        let request = Request::from_parts(head, Full::new(body));
        let response = server().respond(request).await;
        match server() {
            Server::External(_) if is_of_stream => with_typed_maps(response).await,
            _ => response,
        }
    };
    match reply {
        Reply::Pass => Ok(pass.await),
        Reply::Respond(status, json) => Ok(respond(status, &json)),
        Reply::PassThenRespond(status, json) => {
            pass.await;
            Ok(respond(status, &json))
        }
        Reply::PassThenDisconnect => {
            pass.await;
            Err(HungUp)
        }
        Reply::Hang => std::future::pending().await,
    }
}

fn respond(status: u16, json: &Value) -> HttpResponse {
    let mut response = Response::new(Full::from(json.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let kind = hyper::header::HeaderValue::from_static("application/x-amz-json-1.0");
    let headers = response.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, kind);
    response
}

/// DynamoDB Local leaves out the type of an empty map in the records of a stream, which no SDK can read.
async fn with_typed_maps(response: HttpResponse) -> HttpResponse {
    fn add_types(value: &mut Value) {
        match value {
            Value::Object(members) if members.is_empty() => *value = json!({"M": {}}),
            Value::Object(members) => {
                let untyped = members.iter_mut().filter(|(name, _)| *name != "M");
                untyped.for_each(|(_, value)| add_types(value));
                if let Some(Value::Object(map)) = members.get_mut("M") {
                    map.values_mut().for_each(add_types);
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(add_types),
            _ => {}
        }
    }
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let mut json = serde_json::from_slice(&body).unwrap_or_default();
    add_types(&mut json);
    respond(status, &json)
}
