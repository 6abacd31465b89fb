//! Records every AWS call of the functions as it leaves the SDK: function, operation, resource, line of code and
//! consumed capacity.

use std::backtrace::Backtrace;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antumbra_local::clients::HttpClients;
use antumbra_local::{ACCOUNT, REGION};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};

use super::grants::Permission;

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: String,
    /// Signing name: `dynamodb`, `sqs`, `sns`, `events`, `iotdata`.
    pub(crate) service: String,
    pub(crate) operation: String,
    /// Members of the request; for AWS IoT, `topic` and `retain` from path and query.
    pub(crate) body: Value,
    /// Consumed capacity of DynamoDB.
    pub(crate) units: Units,
}

/// Capacity units of DynamoDB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

/// Records the calls of all functions of a stack. Clones share the recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    calls: Vec<Call>,
    /// Source lines of the callers of each call.
    backtraces: Vec<Arc<Backtrace>>,
    /// Function and operation that fail at present.
    broken: Option<(&'static str, &'static str)>,
}

impl Recorder {
    /// HTTP client for a function, for the options of a stack.
    pub(crate) fn clients(&self) -> HttpClients {
        let recorder = self.clone();
        HttpClients::new(move |function| {
            SharedHttpClient::new(Recording {
                function: function.to_owned(),
                recorder: recorder.clone(),
                inner: aws_smithy_http_client::Builder::new().build_http(),
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a DynamoDB operation fail for a function, or succeed again.
    pub(crate) fn break_off(&self, broken: Option<(&'static str, &'static str)>) {
        self.lock().broken = broken;
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// Calls since the last time.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Lines of crates that made calls, by crate, as `src/file.rs:line`.
    pub(crate) fn lines_of(
        &self,
        crates: &[&'static str],
    ) -> BTreeMap<&'static str, BTreeSet<String>> {
        let backtraces = self.lock().backtraces.clone();
        let mut lines: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for backtrace in backtraces {
            let text = backtrace.to_string();
            let places = text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("at ")?.split_once("crates/"));
            for (_, place) in places {
                let Some((krate, place)) = place.split_once('/') else {
                    continue;
                };
                if let Some(krate) = crates.iter().find(|known| **known == krate) {
                    // Without the column.
                    let place = place.rsplit_once(':').unwrap().0;
                    lines.entry(krate).or_default().insert(place.to_owned());
                }
            }
        }
        lines
    }
}

/// The client of one function.
#[derive(Clone)]
struct Recording<Inner> {
    function: String,
    recorder: Recorder,
    inner: Inner,
}

impl<Inner> fmt::Debug for Recording<Inner> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recording")
    }
}

impl HttpClient for Recording<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Recording {
            function: self.function.clone(),
            recorder: self.recorder.clone(),
            inner: self.inner.http_connector(settings, components),
        })
    }
}

impl HttpConnector for Recording<SharedHttpConnector> {
    fn call(&self, mut request: HttpRequest) -> HttpConnectorFuture {
        let call = call(&self.function, &request);
        let backtrace = Arc::new(Backtrace::force_capture());
        let (recorder, inner) = (self.recorder.clone(), self.inner.clone());
        let (index, broken) = {
            let mut recorded = recorder.lock();
            recorded.backtraces.push(backtrace);
            recorded.calls.push(call.clone());
            let broken = recorded.broken == Some((&call.function, &call.operation));
            (recorded.calls.len() - 1, broken)
        };
        if broken {
            let failure = json!({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"});
            return answer(500, &failure);
        }
        let of_stream = ["GetShardIterator", "GetRecords"].contains(&&*call.operation);
        if call.service == "dynamodb" && !of_stream {
            ask_for_units(&mut request, call.body);
        }
        HttpConnectorFuture::new(async move {
            let mut response = inner.call(request).await?;
            let body = ByteStream::new(response.take_body()).collect().await;
            let body = body.map_err(|error| ConnectorError::io(error.into()))?;
            let body = body.into_bytes();
            let units = units(&call.operation, &body);
            *response.body_mut() = SdkBody::from(body);
            if let Some(call) = recorder.lock().calls.get_mut(index) {
                call.units = units;
            }
            Ok(response)
        })
    }
}

fn answer(status: u16, body: &Value) -> HttpConnectorFuture {
    let body = SdkBody::from(body.to_string());
    let status = StatusCode::try_from(status).unwrap();
    HttpConnectorFuture::ready(Ok(HttpResponse::new(status, body)))
}

fn call(function: &str, request: &HttpRequest) -> Call {
    let header = |name: &str| request.headers().get(name).unwrap_or_default();
    // `AWS4-HMAC-SHA256 Credential=key/date/region/service/aws4_request, ...`
    let credential = header("authorization").split("Credential=").nth(1);
    let service = credential.unwrap().split('/').nth(3).unwrap();
    let bytes = request.body().bytes().expect("a body in memory");
    let (operation, body) = match service {
        "sns" => {
            let members = form_urlencoded::parse(bytes).into_owned();
            let body: Value = members.map(|(name, of)| (name, json!(of))).collect();
            (body["Action"].as_str().unwrap().to_owned(), body)
        }
        "iotdata" => {
            let (_, path) = request.uri().split_once("/topics/").unwrap();
            let (topic, query) = path.split_once('?').unwrap_or((path, ""));
            let topic = percent_encoding::percent_decode_str(topic).decode_utf8();
            let retain = query.contains("retain=true");
            let body = json!({"topic": topic.unwrap(), "retain": retain, "bytes": bytes.len()});
            ("Publish".to_owned(), body)
        }
        _ => {
            let operation = header("x-amz-target").rsplit('.').next().unwrap();
            (operation.to_owned(), serde_json::from_slice(bytes).unwrap())
        }
    };
    Call {
        function: function.to_owned(),
        service: service.to_owned(),
        operation,
        body,
        units: Units::default(),
    }
}

/// Makes DynamoDB return the consumed capacity.
fn ask_for_units(request: &mut HttpRequest, mut body: Value) {
    body["ReturnConsumedCapacity"] = json!("TOTAL");
    let body = body.to_string();
    let length = body.len().to_string();
    *request.body_mut() = SdkBody::from(body);
    request.headers_mut().insert("content-length", length);
}

fn units(operation: &str, answer: &[u8]) -> Units {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let taken = match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().collect(),
        Value::Null => Vec::new(),
        table => vec![table],
    };
    let sum: f64 = taken
        .iter()
        .filter_map(|of| of["CapacityUnits"].as_f64())
        .sum();
    match operation {
        "GetItem" | "BatchGetItem" | "Query" | "Scan" | "TransactGetItems" => Units {
            read: sum,
            write: 0.0,
        },
        _ => Units {
            read: 0.0,
            write: sum,
        },
    }
}

impl Call {
    /// Permissions that a role needs for it.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let arn =
            |rest: String| format!("arn:aws:{}:{REGION}:{ACCOUNT}:{rest}", self.arn_service());
        let one = |action: &str, resource: String| vec![Permission::new(action, arn(resource))];
        let member = |name: &str| self.body[name].as_str().unwrap_or_default();
        match (&self.service[..], &self.operation[..]) {
            ("dynamodb", "GetShardIterator" | "GetRecords") => {
                // The name of a stream is the time of its creation.
                let action = format!("dynamodb:{}", self.operation);
                one(&action, "table/antumbra/stream/*".to_owned())
            }
            ("dynamodb", _) => self.tables().into_iter().collect(),
            ("sqs", "SendMessage" | "SendMessageBatch") => {
                one("sqs:SendMessage", queue(member("QueueUrl")))
            }
            ("sqs", "ChangeMessageVisibility" | "ChangeMessageVisibilityBatch") => {
                one("sqs:ChangeMessageVisibility", queue(member("QueueUrl")))
            }
            ("sqs", "ReceiveMessage" | "DeleteMessage" | "GetQueueAttributes") => one(
                &format!("sqs:{}", self.operation),
                queue(member("QueueUrl")),
            ),
            ("sqs", "GetQueueUrl") => one("sqs:GetQueueUrl", member("QueueName").to_owned()),
            ("sns", "Publish" | "PublishBatch") => {
                vec![Permission::new("sns:Publish", member("TopicArn"))]
            }
            ("events", "PutEvents") => {
                let entries = self.body["Entries"].as_array().unwrap().iter();
                let buses = entries.map(|entry| entry["EventBusName"].as_str().unwrap());
                buses
                    .map(|bus| match bus.starts_with("arn:") {
                        true => bus.to_owned(),
                        false => arn(format!("event-bus/{bus}")),
                    })
                    .map(|bus| Permission::new("events:PutEvents", bus))
                    .collect()
            }
            ("iotdata", "Publish") => {
                // Roles allow responses and notifications, never the topics of requests.
                let topic = member("topic");
                let (first, last) = (topic.split('/').next(), topic.rsplit('/').next());
                let topics = match (first.unwrap(), last.unwrap()) {
                    ("shadow", last @ ("delta" | "documents")) => {
                        format!("topic/shadow/*/update/{last}")
                    }
                    ("shadow", last) => format!("topic/shadow/*/{last}"),
                    (first, _) => format!("topic/{first}/*"),
                };
                let mut needed = one("iot:Publish", topics.clone());
                if self.body["retain"] == true {
                    needed.extend(one("iot:RetainPublish", topics));
                }
                needed
            }
            (service, operation) => panic!("{} calls {service} {operation}", self.function),
        }
    }

    fn arn_service(&self) -> &str {
        match &self.service[..] {
            "iotdata" => "iot",
            other => other,
        }
    }

    /// A transaction needs the permissions of its items; a batch has actions of its own; a query of an index needs
    /// only the index.
    fn tables(&self) -> Vec<Permission> {
        let arn = |table: &Value| {
            let table = table.as_str().unwrap();
            format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table}")
        };
        let body = &self.body;
        match &self.operation[..] {
            "BatchGetItem" | "BatchWriteItem" => {
                let action = format!("dynamodb:{}", self.operation);
                let tables = body["RequestItems"].as_object().unwrap().keys();
                tables
                    .map(|table| Permission::new(&action, arn(&json!(table))))
                    .collect()
            }
            "TransactWriteItems" | "TransactGetItems" => {
                let items = body["TransactItems"].as_array().unwrap().iter();
                let items = items.flat_map(|item| item.as_object().unwrap());
                items
                    .map(|(kind, of)| {
                        let action = match &kind[..] {
                            "ConditionCheck" => "dynamodb:ConditionCheckItem".to_owned(),
                            kind => format!("dynamodb:{kind}Item"),
                        };
                        Permission::new(&action, arn(&of["TableName"]))
                    })
                    .collect()
            }
            operation => {
                let mut resource = arn(&body["TableName"]);
                if let Some(index) = body["IndexName"].as_str() {
                    resource += &format!("/index/{index}");
                }
                vec![Permission::new(&format!("dynamodb:{operation}"), resource)]
            }
        }
    }
}

fn queue(url: &str) -> String {
    url.rsplit('/').next().unwrap_or_default().to_owned()
}
