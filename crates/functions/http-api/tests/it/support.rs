//! The API on a port with fresh tables, and an HTTP client.

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbHistory, DynamoDbIdempotency, DynamoDbInbox,
    DynamoDbSensors, DynamoDbShadows, HISTORY, HistoryConfig, MAIN, MESSAGES, SensorConfig,
    ShadowTableConfig, secrets_table,
};
use antumbra_http_api::{
    AuthMode, FailedMessageQueues, QueueUrls, RegistrationFiles, Services, Token, TokenGrants,
    router,
};
use antumbra_notify::redrive::Resender;
use antumbra_publish::webhook::Guard;
use antumbra_service::access::Grants;
use antumbra_service::clients::Clients;
use antumbra_service::clock::ManualClock;
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::inbox::Outbound;
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::Shadows;
use antumbra_shadow::{Model, Timestamp};
use antumbra_shadow_requests::ShadowRequests;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::{Endpoint, TestTable};
use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

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
    /// Queues of the modes `every` and `latest`.
    pub(crate) queues: [Arc<RecordingChannel>; 2],
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
        let main = TestTable::create(MAIN).await;
        let messages = main.another(MESSAGES).await;
        let history = HistoryConfig {
            table: main.another(HISTORY).await,
            days: 30,
        };
        let (client, table) = (main.client, main.name);
        let queues: [Arc<RecordingChannel>; 2] = Default::default();
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let clock = Arc::new(ManualClock::new(noon));
        let shadows = DynamoDbShadows::new(client.clone(), ShadowTableConfig::new(&table));
        let history = DynamoDbHistory::new(client.clone(), history);
        let inbox = DynamoDbInbox::new(client.clone(), &messages);
        let sensors = DynamoDbSensors::new(client.clone(), SensorConfig::new(&table));
        let clients = DynamoDbClients::new(client.clone(), &table);
        let deliveries = DynamoDbDeliveries::new(client.clone(), &table);
        let guard = Guard::new("http://127.0.0.0/8".parse().unwrap());
        let redeliveries = Deliveries::new(
            clients.clone(),
            deliveries.clone(),
            Queues {
                ordered: queues[0].clone(),
                unordered: queues[1].clone(),
            },
            clock.clone(),
        );
        let updates = ShadowRequests::new(
            shadows.clone(),
            Default::default(),
            Arc::new(RecordingChannel::default()),
            clock.clone(),
        );
        // Its routes are tested with the queues of the local stack.
        let failed_messages = FailedMessageQueues {
            sqs: aws_sdk_sqs::Client::from_conf(
                aws_sdk_sqs::Config::builder()
                    .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
                    .build(),
            ),
            urls: QueueUrls::default(),
            resender: Resender {
                notifications: None,
                updates: Box::new(updates),
                deliveries: Box::new(redeliveries.clone()),
                clock: clock.clone(),
            },
            clock: clock.clone(),
        };
        let reader = history.clone().reader(shadows.clone(), Model::default());
        let services = Services {
            feed: Some(reader.clone().feed(clock.clone())),
            history: Some(reader),
            streams: true,
            shadows: Shadows::with_clock(shadows, clock.clone()),
            messages: inbox.clone(),
            outbound: Outbound {
                queue: Arc::new(RecordingChannel::default()),
                clock: clock.clone(),
            },
            registrations: RegistrationFiles::new(|| Ok(Arc::from([]))),
            failed_messages,
            sensors: Sensors::with_clock(sensors.clone(), clock.clone()),
            clients: Clients::new(clients, guard, clock.clone()),
            deliveries: redeliveries,
            signal_values: Default::default(),
            idempotency: DynamoDbIdempotency::new(client.clone(), &table),
            clock: clock.clone(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(services, AuthMode::Tokens(tokens));
        let served = router.clone();
        tokio::spawn(async move { axum::serve(listener, served).await });
        TestApi {
            address,
            endpoint: Arc::new(main.endpoint),
            clock,
            inbox,
            sensors,
            deliveries,
            history,
            database: client,
            table,
            router,
            queues,
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
