//! `Idempotency-Key`: a write that is sent again gets the response of the first time.
//!
//! A key belongs to one caller and one request: method, path, query, conditions and body. Responses are stored
//! for a day, also error responses, except for server errors: after those the same key runs the request
//! again. The secret in a response is not stored with it; a replay reads it from the client's own item, if it
//! is still valid.

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clients::{ClientError, ClientId, RequestKey, Secret};
use antumbra_service::idempotency::{IdempotencyState, Request as KeyedRequest};
use antumbra_shadow::Timestamp;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::auth::Caller;
use crate::extract::read_body;
use crate::problem::{Code, Problem};
use crate::respond::HoldsSecretOf;
use crate::routes::Next;
use crate::services::Services;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const KEY_CHARS: usize = 255;
/// Time after which a request that never ended may run again: longer than API Gateway and the function wait.
const LEASE: Duration = Duration::from_secs(35);
/// Time for which a response is stored.
const RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Time for which a key is certainly known after its request.
const KEY_KNOWN_TIME: Duration = Duration::from_secs(23 * 3600);
const STORED_HEADERS: [HeaderName; 4] = [CONTENT_TYPE, ETAG, LOCATION, CACHE_CONTROL];
/// Member of a JSON body that holds a client's secret.
const SECRET: &str = "secret";

/// Identifies a request with a key. Handlers derive generated values from it, so that they stay the same if
/// the request has to run again.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(String);

impl RequestId {
    fn new(request: &KeyedRequest) -> RequestId {
        RequestId(digest([
            request.key.as_bytes(),
            request.fingerprint.as_bytes(),
        ]))
    }

    /// Returns the key under which a client's secret is requested.
    pub(crate) fn request_key(&self, now: Timestamp) -> RequestKey {
        RequestKey {
            by: self.0.clone(),
            until: now.after(KEY_KNOWN_TIME),
        }
    }

    /// Derives an id that no other request derives.
    pub(crate) fn derive_id(&self, prefix: &str) -> String {
        let (digits, _) = self.0.split_at(self.0.len().min(24));
        format!("{prefix}{digits}")
    }
}

/// Runs a write with a key once, and replays its response.
pub(crate) async fn run_once(api: Arc<Services>, request: Request, next: Next) -> Response {
    let writes = matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    );
    if !writes || !request.headers().contains_key(KEY) {
        return next(request).await;
    }
    match run_keyed(&api, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn run_keyed(api: &Services, request: Request, next: Next) -> Result<Response, Problem> {
    let key = key(request.headers())?;
    let caller = request.extensions().get::<Caller>();
    let caller = caller.map(|caller| Arc::clone(&caller.name));
    let caller = caller.ok_or_else(|| Problem::internal("the request has no caller"))?;
    let (head, body) = request.into_parts();
    let body = read_body(&head.headers, body).await?;
    let now = api.clock.now();
    let path = head.uri.path_and_query().map(|path| path.as_str());
    let header = |name: &HeaderName| -> Vec<u8> {
        let values = head.headers.get_all(name);
        values
            .iter()
            .flat_map(|value| value.as_bytes())
            .copied()
            .collect()
    };
    let keyed = KeyedRequest {
        key: digest([caller.as_bytes(), key.as_bytes()]),
        fingerprint: digest([
            head.method.as_str().as_bytes(),
            path.unwrap_or_default().as_bytes(),
            &header(&IF_MATCH),
            &header(&IF_NONE_MATCH),
            &header(&CONTENT_TYPE),
            &body,
        ]),
        owner: uuid::Uuid::new_v4().simple().to_string(),
        now,
        lease_ends: now.after(LEASE),
        forget_at: now.after(RETENTION),
    };
    match api.idempotency.begin(&keyed).await? {
        IdempotencyState::Run => {
            let mut request = Request::from_parts(head, Body::from(body));
            request.extensions_mut().insert(RequestId::new(&keyed));
            store(api, &keyed, next(request).await).await
        }
        IdempotencyState::Answered(stored) => {
            let stored: StoredResponse =
                serde_json::from_str(&stored).map_err(Problem::internal)?;
            stored.replay(api, &RequestId::new(&keyed)).await
        }
        IdempotencyState::Running => Err(Problem::new(
            Code::InFlight,
            "a request with this Idempotency-Key is in progress",
        )
        .with_retry()),
        IdempotencyState::OtherRequest => Err(Problem::new(
            Code::KeyReused,
            "this Idempotency-Key was used for another request within the last day",
        )),
    }
}

fn key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut keys = headers.get_all(KEY).iter();
    let key = keys.next().and_then(|key| key.to_str().ok());
    let valid = |key: &&str| {
        (1..=KEY_CHARS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match (key.filter(valid), keys.next()) {
        (Some(key), None) => Ok(key.to_owned()),
        _ => Err(Problem::new(
            Code::InvalidHeader,
            format!(
                "Idempotency-Key must be one text of 1 to {KEY_CHARS} visible ASCII characters"
            ),
        )),
    }
}

/// Hashes parts with their lengths, so that no two lists of parts look alike.
fn digest<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Serialize, Deserialize)]
struct StoredResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: StoredBody,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredBody {
    Text(String),
    /// A JSON object without its member `secret`, and the client that the secret belongs to.
    WithSecret {
        client: String,
        members: Map<String, Value>,
    },
}

fn with_secret(mut members: Map<String, Value>, secret: &str) -> String {
    members.insert(SECRET.to_owned(), secret.into());
    Value::Object(members).to_string()
}

/// Stores the response. If that fails, the caller still gets it; a repeated request is in progress until
/// the lease ends.
async fn store(
    api: &Services,
    request: &KeyedRequest,
    response: Response,
) -> Result<Response, Problem> {
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.map_err(Problem::internal)?.to_bytes();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let stored = if head.status.is_server_error() {
        api.idempotency.release(request).await
    } else {
        let body = match head.extensions.get::<HoldsSecretOf>() {
            None => StoredBody::Text(text.clone()),
            Some(HoldsSecretOf(client)) => {
                let mut members: Map<String, Value> =
                    serde_json::from_str(&text).map_err(Problem::internal)?;
                let secret = members.remove(SECRET);
                let secret = secret.as_ref().and_then(Value::as_str).unwrap_or_default();
                // The first response has the same order of members as its replay.
                text = with_secret(members.clone(), secret);
                let client = client.to_string();
                StoredBody::WithSecret { client, members }
            }
        };
        let header = |name: &HeaderName| {
            let value = head.headers.get(name)?.to_str().ok()?;
            Some((name.to_string(), value.to_owned()))
        };
        let response = StoredResponse {
            status: head.status.as_u16(),
            headers: STORED_HEADERS.iter().filter_map(header).collect(),
            body,
        };
        let response = serde_json::to_string(&response).map_err(Problem::internal)?;
        api.idempotency.finish(request, &response).await
    };
    if let Err(reason) = stored {
        tracing::warn!(%reason, "response was not stored");
    }
    Ok(Response::from_parts(head, Body::from(text)))
}

impl StoredResponse {
    async fn replay(self, api: &Services, request: &RequestId) -> Result<Response, Problem> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(self.status).map_err(Problem::internal)?;
        let headers = response.headers_mut();
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name).map_err(Problem::internal)?;
            let value = HeaderValue::try_from(value).map_err(Problem::internal)?;
            headers.insert(name, value);
        }
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        let body = match self.body {
            StoredBody::Text(text) => text,
            StoredBody::WithSecret { client, members } => {
                with_secret(members, secret_of(api, &client, request).await?.reveal())
            }
        };
        *response.body_mut() = Body::from(body);
        Ok(response)
    }
}

/// Reads the secret that a request created, unless it has been replaced since.
async fn secret_of(api: &Services, client: &str, request: &RequestId) -> Result<Secret, Problem> {
    let client = ClientId::new(client).map_err(Problem::internal)?;
    let secret = api.clients.secret_made_by(&client, &request.0).await?;
    secret.ok_or_else(|| ClientError::SecretReplaced.into())
}
