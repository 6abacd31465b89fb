//! The API on a port with fresh tables, and an HTTP client.

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbDeliveries, DynamoDbHistory, DynamoDbInbox, DynamoDbSensors, SensorConfig,
    secrets_table,
};
use antumbra_http_api::{AuthMode, QueueUrls, Token, TokenGrants, router};
use antumbra_service::access::Grants;
use antumbra_service::clock::ManualClock;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::Endpoint;
use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::services::TestServices;

pub(crate) const TOKEN: &str = "let-me-in";

/// The token of a list of grants.
pub(crate) fn token_of(grants: &str) -> String {
    format!("grants,{}", grants.replace(' ', ","))
}

/// The API and its stores.
pub(crate) struct TestApi {
    pub(crate) address: SocketAddr,
    /// Proxy of all calls to DynamoDB.
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) inbox: DynamoDbInbox,
    pub(crate) sensors: DynamoDbSensors,
    pub(crate) deliveries: DynamoDbDeliveries,
    pub(crate) history: DynamoDbHistory,
    pub(crate) database: aws_sdk_dynamodb::Client,
    pub(crate) table: String,
    pub(crate) router: Router,
    /// Queues of the modes `every` and `latest`, and the outbound queue.
    pub(crate) queues: [Arc<RecordingChannel>; 3],
}

impl TestApi {
    pub(crate) async fn start() -> TestApi {
        TestApi::start_with(&[]).await
    }

    /// Starts with a token for each list of grants, separated by spaces, beside [`TOKEN`]; see [`token_of`].
    pub(crate) async fn start_with(lists: &[&str]) -> TestApi {
        let granted = |list: &str| TokenGrants {
            token: Token::new(&token_of(list)),
            grants: list
                .split_whitespace()
                .map(|one| one.parse().unwrap())
                .collect(),
        };
        let all = TokenGrants {
            token: Token::new(TOKEN),
            grants: Grants::all(),
        };
        let tokens = lists.iter().map(|list| granted(list));
        let tokens = std::iter::once(all).chain(tokens).collect();
        // Routes of failed messages are tested with the queues of the local stack.
        let sqs = aws_sdk_sqs::Config::builder()
            .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
            .build();
        let sqs = aws_sdk_sqs::Client::from_conf(sqs);
        let none = (QueueUrls::default(), String::new(), Arc::from([]));
        let started = TestServices::start(sqs, none.0, none.1, none.2).await;
        let (client, table) = (started.database, started.table);
        let inbox = started.services.messages.clone();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(started.services, AuthMode::Tokens(tokens));
        let served = router.clone();
        tokio::spawn(async move { axum::serve(listener, served).await });
        TestApi {
            address,
            endpoint: Arc::new(started.endpoint),
            clock: started.clock,
            inbox,
            sensors: DynamoDbSensors::new(client.clone(), SensorConfig::new(&table)),
            deliveries: DynamoDbDeliveries::new(client.clone(), &table),
            history: started.history,
            database: client,
            table,
            router,
            queues: started.queues,
        }
    }

    /// Returns the sort keys of all items of the table of secrets that contain a text. The main table, which has a stream,
    /// has none.
    pub(crate) async fn items_with(&self, text: &str) -> Vec<String> {
        let scan = async |table: &str| -> Vec<String> {
            let found = self.database.scan().table_name(table).send().await;
            let found = found.unwrap();
            let items = found.items().iter();
            let items = items.filter(|item| format!("{item:?}").contains(text));
            items
                .map(|item| item["SK"].as_s().unwrap().clone())
                .collect()
        };
        assert_eq!(scan(&self.table).await, [""; 0]);
        scan(&secrets_table(&self.table)).await
    }

    /// Starts a request with the token.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let request = self.anonymous(method, path);
        request.header("authorization", &format!("Bearer {TOKEN}"))
    }

    /// Starts a request with the token of a list of grants.
    pub(crate) fn request_as(&self, grants: &str, method: &str, path: &str) -> RequestBuilder {
        let request = self.anonymous(method, path);
        request.header("authorization", &format!("Bearer {}", token_of(grants)))
    }

    /// Starts a request without credentials.
    pub(crate) fn anonymous(&self, method: &str, path: &str) -> RequestBuilder {
        RequestBuilder {
            address: self.address,
            request: Request::builder()
                .method(method)
                .uri(path)
                .header("host", "localhost"),
            body: Bytes::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path).send().await
    }

    pub(crate) async fn patch(&self, path: &str, json: &str) -> Response {
        self.request("PATCH", path).json(json).send().await
    }

    pub(crate) async fn post(&self, path: &str, json: &str) -> Response {
        self.request("POST", path).json(json).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path).send().await
    }
}

/// A request under construction.
pub(crate) struct RequestBuilder {
    address: SocketAddr,
    request: hyper::http::request::Builder,
    body: Bytes,
}

impl RequestBuilder {
    pub(crate) fn header(mut self, name: &str, value: &str) -> RequestBuilder {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn json(self, body: &str) -> RequestBuilder {
        self.header("content-type", "application/json").body(body)
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> RequestBuilder {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self
    }

    /// Sends the request on a new connection.
    pub(crate) async fn send(self) -> Response {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = self.request.body(Full::new(self.body)).unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response {
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Response {
    /// Returns the body of a successful response.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() {
            return Value::Null;
        }
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.text).unwrap()
    }

    /// Returns the body of a problem after checking its form.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let body: Value = serde_json::from_str(&self.text).unwrap();
        assert_eq!(body["code"], code, "{}", self.text);
        assert_eq!(body["status"], status);
        assert_eq!(body["type"], format!("urn:antumbra:problem:{code}"));
        assert!(body["title"].is_string() && body["detail"].is_string());
        let members = 5 + usize::from(code == "CursorExpired");
        assert_eq!(body.as_object().unwrap().len(), members);
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
