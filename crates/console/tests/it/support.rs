//! The console on a port with fresh tables, and a browser with a cookie.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antumbra_console::{
    ChangedItem, Changes, Console, DEVICE_CHANGES, Follow, FollowedChange, Options, Place,
    ShadowChange, console,
};
use antumbra_dynamodb::{DynamoDbHistory, FeedConfig};
use antumbra_http_api::Services;
use antumbra_service::clock::{Clock as _, ManualClock};
use antumbra_service::shadows::{DocumentSet, ShadowId, Update};
use antumbra_shadow::{Document, Model, Patch, Timestamp};
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::Endpoint;
use antumbra_wire::history::{Entry, EntryDocument, HistoryKey, Operation, SegmentEntry};
use antumbra_wire::items::ShadowItem;
use axum::Router;
use axum::body::Body;
use futures_util::StreamExt as _;
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::services::TestServices;

/// The console and its stores.
pub(crate) struct TestConsole {
    pub(crate) address: SocketAddr,
    pub(crate) console: Arc<Console>,
    pub(crate) services: Arc<Services>,
    pub(crate) clock: Arc<ManualClock>,
    /// Proxy of all calls to DynamoDB.
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) history: DynamoDbHistory,
    /// Changes that the console follows.
    pub(crate) changes: broadcast::Sender<ShadowChange>,
    pub(crate) items: broadcast::Sender<ChangedItem>,
    /// Queues of the modes `every` and `latest`, and the outbound queue.
    pub(crate) queues: [Arc<RecordingChannel>; 3],
    cookie: String,
    csrf: String,
}

pub(crate) struct TestOptions {
    pub(crate) write: bool,
    /// Names and texts of registration files.
    pub(crate) registrations: Vec<(String, String)>,
    /// Directory of the registrations, for a deployment on AWS.
    pub(crate) place_registrations: Option<String>,
    /// Recorded changes of a device that its page reads at most.
    pub(crate) device_changes: usize,
    /// Changes of items other than shadows are followed, as on the local stack.
    pub(crate) follows_items: bool,
}

impl Default for TestOptions {
    fn default() -> TestOptions {
        TestOptions {
            write: true,
            registrations: Vec::new(),
            place_registrations: None,
            device_changes: DEVICE_CHANGES,
            follows_items: true,
        }
    }
}

impl TestConsole {
    pub(crate) async fn start() -> TestConsole {
        TestConsole::start_with(TestOptions::default()).await
    }

    pub(crate) async fn start_with(options: TestOptions) -> TestConsole {
        let (sqs, urls, outbound) = crate::sqs::start().await;
        let files = Arc::from(options.registrations);
        let started = TestServices::start(sqs, urls, outbound, files).await;
        let services = Arc::new(started.services);
        // The tests of the console reach the tables through the use cases.
        drop(started.database);
        let changes = broadcast::Sender::new(1000);
        let items = broadcast::Sender::new(1000);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Console::new(Options {
            services: Arc::clone(&services),
            place: Place {
                name: "local".to_owned(),
                account: None,
                table: started.table,
                options: "--local".to_owned(),
                registrations: options.place_registrations,
            },
            write: options.write,
            port: address.port(),
            zone: jiff::tz::TimeZone::UTC,
            follow: Some(follow(&changes, &items, options.follows_items)),
            device_changes: options.device_changes,
        });
        let router: Router = console(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut started = TestConsole {
            address,
            console: state,
            services,
            clock: started.clock,
            endpoint: Arc::new(started.endpoint),
            history: started.history,
            changes,
            items,
            queues: started.queues,
            cookie: String::new(),
            csrf: String::new(),
        };
        started.log_in().await;
        started
    }

    async fn log_in(&mut self) {
        self.cookie = self.new_session().await;
    }

    /// Opens another session and returns its cookie.
    pub(crate) async fn new_session(&self) -> String {
        let url = self.console.login_url();
        let path = url
            .strip_prefix(&format!("http://{}", self.address))
            .unwrap();
        let response = self.anonymous("GET", path).send().await;
        assert_eq!(response.status, 303, "{}", response.text);
        let cookie = response.header("set-cookie").unwrap().to_owned();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Starts a request of a browser that is logged in.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.anonymous(method, path).header("cookie", &self.cookie)
    }

    /// Starts a request without a cookie.
    pub(crate) fn anonymous(&self, method: &str, path: &str) -> RequestBuilder {
        RequestBuilder {
            address: self.address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("host".to_owned(), self.address.to_string())],
            body: String::new(),
        }
    }

    /// Opens a page.
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path).send().await
    }

    /// Opens a page and returns its HTML.
    #[track_caller]
    pub(crate) fn html(&self, path: &str) -> impl Future<Output = String> {
        let request = self.request("GET", path);
        let path = path.to_owned();
        async move {
            let response = request.send().await;
            assert_eq!(response.status, 200, "{path}: {}", response.text);
            response.text
        }
    }

    /// Sends a form as a page of the console does: with its origin and its token.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        if self.csrf.is_empty() {
            self.csrf = self.csrf_token().await;
        }
        let csrf = [("csrf", self.csrf.as_str())];
        self.form(path, &[&csrf[..], fields].concat()).send().await
    }

    /// A form from a page of the console, without the token unless it is among the fields.
    pub(crate) fn form(&self, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        let request = self.request("POST", path);
        let request = request.header("origin", &format!("http://{}", self.address));
        request.form(fields)
    }

    /// The token in the forms of this session.
    pub(crate) async fn csrf_token(&self) -> String {
        csrf_of(&self.html("/device?id=new").await)
    }

    /// A time some seconds from now.
    pub(crate) fn clock_after(&self, seconds: u64) -> Timestamp {
        let now = self.services.clock.now();
        now.after(std::time::Duration::from_secs(seconds))
    }

    pub(crate) async fn report(&self, id: &str, json: &str) {
        let update = Update::report(ShadowId::new(id).unwrap(), Document::parse(json).unwrap());
        self.services.shadows.update(update).await.unwrap();
    }

    pub(crate) async fn desire(&self, id: &str, json: &str) {
        let update = Update::desire(ShadowId::new(id).unwrap(), Document::parse(json).unwrap());
        self.services.shadows.update(update).await.unwrap();
    }
}

fn follow(
    changes: &broadcast::Sender<ShadowChange>,
    items: &broadcast::Sender<ChangedItem>,
    has_items: bool,
) -> Follow {
    let (changes, items) = (changes.clone(), items.clone());
    let open = move || {
        let changes = received(&changes, FollowedChange::Shadow);
        let items = received(&items, FollowedChange::Item);
        stream::select(changes, items).boxed()
    };
    Follow {
        open: Arc::new(open),
        has_items,
    }
}

fn received<T: Clone + Send + 'static>(
    sender: &broadcast::Sender<T>,
    followed: fn(T) -> FollowedChange,
) -> Changes {
    let receiver = sender.subscribe();
    stream::unfold(receiver, move |mut receiver| async move {
        let change = match receiver.recv().await {
            Ok(change) => Ok(vec![followed(change)]),
            Err(RecvError::Lagged(count)) => Err(format!("{count} changes are lost")),
            Err(RecvError::Closed) => return None,
        };
        Some((change, receiver))
    })
    .boxed()
}

/// The token in the first form of a page or a part of one.
pub(crate) fn csrf_of(html: &str) -> String {
    let (_, rest) = html.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// A request under construction.
pub(crate) struct RequestBuilder {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl RequestBuilder {
    /// Sets a header; an empty value removes it.
    pub(crate) fn header(mut self, name: &str, value: &str) -> RequestBuilder {
        self.headers.retain(|(key, _)| key != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub(crate) fn form(mut self, fields: &[(&str, &str)]) -> RequestBuilder {
        let encode = |text: &str| {
            let bytes = text.bytes();
            bytes.map(|byte| format!("%{byte:02x}")).collect::<String>()
        };
        let pairs = fields.iter();
        let pairs = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        self.body = pairs.collect::<Vec<_>>().join("&");
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    /// Sends the request on a new connection and returns the head and the body as it arrives.
    pub(crate) async fn open(self) -> hyper::Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(&*self.method).uri(&*self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.body)).unwrap();
        sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn send(self) -> Response {
        let (head, body) = self.open().await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Response {
            status: head.status.as_u16(),
            headers: head.headers,
            bytes: bytes.len(),
            body: bytes.to_vec(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Size of the body as it was sent.
    pub(crate) bytes: usize,
    pub(crate) body: Vec<u8>,
    pub(crate) text: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// The text of a page as a reader sees it: without tags, with entities decoded and runs of spaces joined.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    let text = text.replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl TestConsole {
    /// Reports documents, a time apart, and records the writes as the history writer does.
    pub(crate) async fn recorded_reports(&self, id: &str, documents: &[String], apart: Duration) {
        let mut entries: Vec<Entry> = Vec::new();
        let mut before: Option<(Document, u64)> = None;
        let model = Model::default();
        for (number, json) in documents.iter().enumerate() {
            let version = number as u64 + 1;
            self.report(id, json).await;
            let shadow = ShadowId::new(id).unwrap();
            let stored = self
                .services
                .shadows
                .read(&shadow, DocumentSet::Reported)
                .await;
            let stored = stored.unwrap().reported.unwrap();
            let time = u64::try_from(stored.timestamp.nanoseconds()).unwrap();
            let diff = before.as_ref().map(|(before, _)| {
                Patch::between(before, &stored.document, &model, usize::MAX).unwrap()
            });
            entries.push(Entry {
                key: HistoryKey {
                    id: id.to_owned(),
                    name: "main".to_owned(),
                    item: ShadowItem::Reported,
                    time,
                    version,
                },
                operation: match version {
                    1 => Operation::Insert,
                    _ => Operation::Modify,
                },
                previous_time: before.as_ref().map(|(_, time)| *time),
                client_token: None,
                reported: Some(EntryDocument {
                    diff,
                    document: (version.is_multiple_of(32) || version == 1)
                        .then(|| stored.document.clone()),
                }),
                desired: None,
            });
            before = Some((stored.document, time));
            self.clock.advance(apart);
        }
        let deadline = self.clock.now().after(Duration::from_secs(600));
        let written = self.history.write(&entries, deadline, &*self.clock).await;
        assert!(written.written.iter().all(|written| *written));
        self.append_to_feed(&entries).await;
    }

    /// Appends entries to the change feed as the history writer does.
    async fn append_to_feed(&self, entries: &[Entry]) {
        let config = FeedConfig {
            days: 7,
            partitions: 4,
        };
        let settings = self.history.ensure_feed(config, self.clock.now()).await;
        let settings = settings.unwrap();
        let change = |entry: &Entry| SegmentEntry {
            change_id: format!("{}-{}", entry.key.id, entry.key.version),
            key: entry.key.clone(),
            operation: entry.operation,
        };
        let changes: Vec<SegmentEntry> = entries.iter().map(change).collect();
        let feed = (&settings, config.days);
        self.history
            .append(feed, &changes, &*self.clock)
            .await
            .unwrap();
    }
}
