//! Authentication of callers. Every path except health requires it, whether a route exists or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::problem::Problem;
use crate::routes::health;
use crate::services::Services;

#[derive(Debug, Clone)]
pub enum AuthMode {
    /// An authorizer of API Gateway identifies the caller.
    Gateway,
    /// Callers send a bearer token.
    Token(Token),
    /// No authentication here: a private network or another gateway decides.
    Open,
}

/// A bearer token, kept as its digest, so that comparison takes constant time.
#[derive(Debug, Clone)]
pub struct Token([u8; 32]);

impl Token {
    pub fn new(text: &str) -> Token {
        Token(Sha256::digest(text).into())
    }

    fn matches(&self, text: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(text).into();
        given.ct_eq(&self.0).into()
    }
}

/// An authenticated caller: the same text for the same caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub(crate) String);

/// Middleware: authenticates the caller and adds it to the request's extensions.
pub(crate) async fn authenticate(
    State((auth, api)): State<(AuthMode, Arc<Services>)>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == health::PATH {
        return next.run(request).await;
    }
    let caller = match &auth {
        AuthMode::Gateway => by_gateway(request.extensions().get(), &api),
        AuthMode::Token(token) => by_token(request.headers(), token),
        AuthMode::Open => Ok(Caller("anyone".to_owned())),
    };
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn by_token(headers: &HeaderMap, token: &Token) -> Result<Caller, Problem> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        let detail = "the header authorization is missing";
        return Err(Problem::unauthorized(detail, "Bearer realm=\"antumbra\""));
    };
    let given = given
        .to_str()
        .ok()
        .and_then(|given| given.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match given {
        Some((_, given)) if token.matches(given.trim()) => Ok(Caller("token".to_owned())),
        _ => Err(Problem::unauthorized(
            "invalid bearer token",
            "Bearer realm=\"antumbra\", error=\"invalid_token\"",
        )),
    }
}

fn by_gateway(context: Option<&RequestContext>, api: &Services) -> Result<Caller, Problem> {
    let authorizer = context.and_then(RequestContext::authorizer);
    let unauthorized = |detail: &str| Problem::unauthorized(detail, "Bearer realm=\"antumbra\"");
    let Some(authorizer) = authorizer else {
        return Err(unauthorized("no authorizer has authenticated this request"));
    };
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(arn) = authorizer
        .iam
        .as_ref()
        .and_then(|iam| non_empty(&iam.user_arn))
    {
        return Ok(Caller(format!("iam {}", without_session(&arn))));
    }
    if let Some(jwt) = authorizer.jwt.as_ref().filter(|jwt| !jwt.claims.is_empty()) {
        let claim = |name: &str| jwt.claims.get(name).map(String::as_str);
        let seconds = api.clock.now().nanoseconds().div_euclid(1_000_000_000);
        let expiry = claim("exp").and_then(|expiry| expiry.parse::<i128>().ok());
        if expiry.is_some_and(|expiry| expiry <= seconds) {
            return Err(unauthorized("the token has expired"));
        }
        let subject = claim("sub").or(claim("client_id")).unwrap_or_default();
        let issuer = claim("iss").unwrap_or_default();
        return Ok(Caller(format!("jwt {issuer} {subject}")));
    }
    if !authorizer.fields.is_empty() {
        let principal = authorizer.fields.get("principalId");
        // Without a principal id, equal fields identify the caller.
        let principal = match principal.and_then(|principal| principal.as_str()) {
            Some(principal) => principal.to_owned(),
            None => serde_json::to_string(&BTreeMap::from_iter(&authorizer.fields))
                .map_err(Problem::internal)?,
        };
        return Ok(Caller(format!("lambda {principal}")));
    }
    Err(unauthorized("the authorizer does not identify the caller"))
}

/// Removes the session name: a request may be sent again from another session of the same role.
fn without_session(arn: &str) -> &str {
    let role = arn.contains(":assumed-role/");
    match arn.rsplit_once('/') {
        Some((role_arn, _)) if role => role_arn,
        _ => arn,
    }
}

/// An unknown value of the variable `AUTH`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("AUTH must be gateway or none")]
pub struct UnknownAuthMode;

impl std::str::FromStr for AuthMode {
    type Err = UnknownAuthMode;

    fn from_str(word: &str) -> Result<AuthMode, UnknownAuthMode> {
        match word {
            "gateway" => Ok(AuthMode::Gateway),
            "none" => Ok(AuthMode::Open),
            _ => Err(UnknownAuthMode),
        }
    }
}
