//! `Idempotency-Key`: a write that is sent again gets the answer of the first time.
//!
//! A key belongs to one caller and one request: method, path, query, conditions and body. What failed for
//! reasons of ours is forgotten, so that it can be tried again with the same key; everything else, also a
//! refusal, is the answer. A secret in an answer is not kept with it: whoever asks again is told it from
//! where it is kept anyway, if it is still the one.

use std::time::Duration;

use antumbra_service::clients::{ClientId, RequestKey};
use antumbra_service::idempotency::{IdempotencyState, Request as Keyed};
use antumbra_shadow::Timestamp;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::answer::Told;
use crate::api::Api;
use crate::auth::Caller;
use crate::problem::{Code, Problem};
use crate::request::read_body;

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Characters of a key.
const KEY_CHARS: usize = 255;
/// How long a request may take: longer than API Gateway and the function's own limit let it.
const LEASE: Duration = Duration::from_secs(35);
/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long after a request its key is surely remembered.
const REMEMBERED: Duration = Duration::from_secs(23 * 3600);
/// The headers that are part of an answer.
const ANSWERED: [HeaderName; 4] = [CONTENT_TYPE, ETAG, LOCATION, CACHE_CONTROL];

/// The name of the request that is being run, for handlers that make things up: made of it, they are the
/// same should it have to be run again.
#[derive(Debug, Clone)]
pub(crate) struct Key(String);

impl Key {
    fn of(asked: &Keyed) -> Key {
        Key(digest([asked.key.as_bytes(), asked.fingerprint.as_bytes()]))
    }

    /// Who asks for a secret.
    pub(crate) fn requested(&self, now: Timestamp) -> RequestKey {
        RequestKey {
            by: self.0.clone(),
            until: now.after(REMEMBERED),
        }
    }

    /// An id that no other key makes.
    pub(crate) fn id(&self, prefix: &str) -> String {
        let (digits, _) = self.0.split_at(self.0.len().min(24));
        format!("{prefix}{digits}")
    }
}

/// Runs a request once.
pub(crate) async fn once(State(api): State<Api>, request: Request, next: Next) -> Response {
    let writes = matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    );
    if !writes || !request.headers().contains_key(KEY) {
        return next.run(request).await;
    }
    match keyed(&api, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn keyed(api: &Api, request: Request, next: Next) -> Result<Response, Problem> {
    let key = key(request.headers())?;
    let caller = request.extensions().get::<Caller>().cloned();
    let caller = caller.map(|Caller(caller)| caller).unwrap_or_default();
    let (head, body) = request.into_parts();
    let body = read_body(head.headers.clone(), body).await?;
    let now = api.now();
    let path = head
        .uri
        .path_and_query()
        .map(|path| path.as_str())
        .unwrap_or_default();
    let header = |name: &HeaderName| {
        let values = head.headers.get_all(name);
        values.iter().flat_map(|value| value.as_bytes()).copied()
    };
    let asked = Keyed {
        key: digest([caller.as_bytes(), key.as_bytes()]),
        fingerprint: digest([
            head.method.as_str().as_bytes(),
            path.as_bytes(),
            &header(&IF_MATCH).collect::<Vec<_>>(),
            &header(&IF_NONE_MATCH).collect::<Vec<_>>(),
            &header(&CONTENT_TYPE).collect::<Vec<_>>(),
            &body,
        ]),
        owner: uuid::Uuid::new_v4().simple().to_string(),
        now,
        lease_ends: now.after(LEASE),
        forget_at: now.after(KEPT),
    };
    let begun = api.answers().begin(&asked).await;
    match begun? {
        IdempotencyState::Run => {
            let mut request = Request::from_parts(head, Body::from(body));
            request.extensions_mut().insert(Key::of(&asked));
            run(api, &asked, next.run(request).await).await
        }
        IdempotencyState::Answered(kept) => replay(api, &Key::of(&asked), &kept).await,
        IdempotencyState::Running => Err(Problem::new(
            Code::InFlight,
            "a request with this Idempotency-Key is under way",
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
    let fits = |key: &&str| {
        (1..=KEY_CHARS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match (key.filter(fits), keys.next()) {
        (Some(key), None) => Ok(key.to_owned()),
        _ => Err(Problem::new(
            Code::InvalidHeader,
            format!("Idempotency-Key is one text of 1 to {KEY_CHARS} visible ASCII characters"),
        )),
    }
}

/// Each part with its length before it, so that two parts do not run into each other.
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
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Cut>,
}

/// Where in the body a client's secret is missing.
#[derive(Serialize, Deserialize)]
struct Cut {
    client: String,
    at: usize,
}

impl Kept {
    /// Takes the secret out.
    fn without(mut self, told: Option<&Told>) -> Kept {
        if let Some(Told { client, secret }) = told
            && let Some(at) = self.body.find(secret.reveal())
        {
            self.body.replace_range(at..at + secret.reveal().len(), "");
            let client = client.to_string();
            self.secret = Some(Cut { client, at });
        }
        self
    }

    /// The body with its secret, if it had one and that is still the client's.
    async fn whole(self, api: &Api, key: &Key) -> Result<String, Problem> {
        let mut body = self.body;
        if let Some(Cut { client, at }) = self.secret {
            let client = ClientId::new(&client).map_err(Problem::internal)?;
            let secret = api.clients().secret_made_by(&client, &key.0).await?;
            let Some(secret) = secret else {
                return Err(Problem::new(
                    Code::SecretReplaced,
                    "this request was answered before; the secret that it made is not in force any more",
                ));
            };
            if !body.is_char_boundary(at) {
                return Err(Problem::internal(
                    "a kept answer has no place for its secret",
                ));
            }
            body.insert_str(at, secret.reveal());
        }
        Ok(body)
    }
}

/// Keeps what came of it. Should that fail, the caller has its answer all the same; one that asks again
/// finds the request under way until its lease is over.
async fn run(api: &Api, asked: &Keyed, response: Response) -> Result<Response, Problem> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(Problem::internal)?.to_bytes();
    let kept = if head.status.is_server_error() {
        api.answers().release(asked).await
    } else {
        let kept = Kept {
            status: head.status.as_u16(),
            headers: ANSWERED
                .iter()
                .filter_map(|name| Some((name, head.headers.get(name)?.to_str().ok()?)))
                .map(|(name, value)| (name.to_string(), value.to_owned()))
                .collect(),
            body: String::from_utf8_lossy(&body).into_owned(),
            secret: None,
        };
        let kept = kept.without(head.extensions.get());
        let kept = serde_json::to_string(&kept).map_err(Problem::internal)?;
        api.answers().finish(asked, &kept).await
    };
    if let Err(reason) = kept {
        tracing::warn!(%reason, "an answer was not kept");
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

async fn replay(api: &Api, key: &Key, kept: &str) -> Result<Response, Problem> {
    let kept: Kept = serde_json::from_str(kept).map_err(Problem::internal)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(kept.status).map_err(Problem::internal)?;
    let headers = response.headers_mut();
    for (name, value) in &kept.headers {
        let name = HeaderName::try_from(name).map_err(Problem::internal)?;
        let value = HeaderValue::try_from(value).map_err(Problem::internal)?;
        headers.insert(name, value);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    let body = kept.whole(api, key).await?;
    *response.body_mut() = Body::from(Bytes::from(body));
    Ok(response)
}
