//! The API on a port, a fresh table behind it, and a client.

use std::net::SocketAddr;
use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbIdempotency, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, MAIN, MESSAGES, SensorConfig, ShadowTableConfig,
};
use antumbra_http_api::{Api, AuthMode, Services, Token, router};
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::Clients;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::Shadows;
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::{Endpoint, TestTable};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) const TOKEN: &str = "let-me-in";

/// The API, and what stands behind it.
pub(crate) struct Ground {
    pub(crate) address: SocketAddr,
    /// What the table's calls pass.
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) inbox: DynamoDbInbox,
    pub(crate) sensors: DynamoDbSensors,
    pub(crate) deliveries: DynamoDbDeliveries,
    database: aws_sdk_dynamodb::Client,
    table: String,
    /// The queue of mode `every`, and that of mode `latest`.
    pub(crate) queues: [Arc<RecordingChannel>; 2],
}

impl Ground {
    pub(crate) async fn start() -> Ground {
        let main = TestTable::create(MAIN).await;
        let messages = main.another(MESSAGES).await;
        let (client, table) = (main.client, main.name);
        let queues: [Arc<RecordingChannel>; 2] = Default::default();
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let clock = Arc::new(ManualClock::new(noon));
        let shadows = DynamoDbShadows::new(client.clone(), ShadowTableConfig::new(&table));
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
        let now = Arc::clone(&clock);
        let api = Api::new(Services {
            shadows: Box::new(Shadows::with_clock(shadows, clock.clone())),
            messages: Box::new(inbox.clone()),
            sensors: Box::new(Sensors::with_clock(sensors.clone(), clock.clone())),
            clients: Box::new(Clients::new(clients, guard, clock.clone())),
            deliveries: Box::new(redeliveries),
            answers: Box::new(DynamoDbIdempotency::new(client.clone(), &table)),
            now: Box::new(move || now.now()),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(api, AuthMode::Token(Token::new(TOKEN)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ground {
            address,
            endpoint: Arc::new(main.endpoint),
            clock,
            inbox,
            sensors,
            deliveries,
            database: client,
            table,
            queues,
        }
    }

    /// The sort keys of all items that hold a text somewhere.
    pub(crate) async fn items_with(&self, text: &str) -> Vec<String> {
        let found = self.database.scan().table_name(&self.table).send().await;
        let found = found.unwrap();
        let items = found.items().iter();
        items
            .filter(|item| format!("{item:?}").contains(text))
            .map(|item| item["SK"].as_s().unwrap().clone())
            .collect()
    }

    /// A request with the token.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask {
        let ask = self.stranger(method, path);
        ask.header("authorization", &format!("Bearer {TOKEN}"))
    }

    /// A request without.
    pub(crate) fn stranger(&self, method: &str, path: &str) -> Ask {
        Ask {
            address: self.address,
            request: Request::builder()
                .method(method)
                .uri(path)
                .header("host", "localhost"),
            body: Bytes::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask("GET", path).send().await
    }

    pub(crate) async fn patch(&self, path: &str, json: &str) -> Got {
        self.ask("PATCH", path).json(json).send().await
    }

    pub(crate) async fn post(&self, path: &str, json: &str) -> Got {
        self.ask("POST", path).json(json).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Got {
        self.ask("DELETE", path).send().await
    }
}

/// A request that is being made.
pub(crate) struct Ask {
    address: SocketAddr,
    request: hyper::http::request::Builder,
    body: Bytes,
}

impl Ask {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Ask {
        self.request = self.request.header(name, value);
        self
    }

    pub(crate) fn json(self, body: &str) -> Ask {
        self.header("content-type", "application/json").body(body)
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Ask {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self
    }

    /// On a connection of its own.
    pub(crate) async fn send(self) -> Got {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = self.request.body(Full::new(self.body)).unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Got {
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() {
            return Value::Null;
        }
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.text).unwrap()
    }

    /// The body of a problem, whose form is checked.
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
        assert_eq!(body.as_object().unwrap().len(), 5);
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
