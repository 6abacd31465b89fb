//! Who may come in. Everything but health is behind this door, whether there is such a route or not.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::api::Api;
use crate::health;
use crate::problem::Problem;

/// How callers are told from strangers.
#[derive(Debug, Clone)]
pub enum AuthMode {
    /// An authorizer of API Gateway has let them in, and says whom.
    Gateway,
    /// They know the token.
    Token(Token),
    /// Something before this function decides and does not say: a private network, another gateway.
    Open,
}

/// A bearer token, kept as its digest: what is compared has one length and no secret in it.
#[derive(Debug, Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// The token with this text.
    pub fn new(text: &str) -> Token {
        Token(Sha256::digest(text).into())
    }

    fn is(&self, text: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(text).into();
        given.ct_eq(&self.0).into()
    }
}

/// Whoever was let in: the same text for the same caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub(crate) String);

/// Lets callers in, and says who they are to what comes after.
pub(crate) async fn authenticate(
    State((door, api)): State<(AuthMode, Api)>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == health::PATH {
        return next.run(request).await;
    }
    let caller = match &door {
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
        Some((_, given)) if token.is(given.trim()) => Ok(Caller("token".to_owned())),
        _ => Err(Problem::unauthorized(
            "the bearer token is not the one",
            "Bearer realm=\"antumbra\", error=\"invalid_token\"",
        )),
    }
}

fn by_gateway(context: Option<&RequestContext>, api: &Api) -> Result<Caller, Problem> {
    let authorizer = context.and_then(RequestContext::authorizer);
    let stranger = |detail: &str| Problem::unauthorized(detail, "Bearer realm=\"antumbra\"");
    let Some(authorizer) = authorizer else {
        return Err(stranger("no authorizer has let this request in"));
    };
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(arn) = authorizer.iam.as_ref().and_then(|iam| said(&iam.user_arn)) {
        return Ok(Caller(format!("iam {}", without_session(&arn))));
    }
    if let Some(jwt) = authorizer.jwt.as_ref().filter(|jwt| !jwt.claims.is_empty()) {
        let claim = |name: &str| jwt.claims.get(name).map(String::as_str);
        let seconds = api.now().nanoseconds().div_euclid(1_000_000_000);
        let ends = claim("exp").and_then(|ends| ends.parse::<i128>().ok());
        if ends.is_some_and(|ends| ends <= seconds) {
            return Err(stranger("the token has expired"));
        }
        let subject = claim("sub").or(claim("client_id")).unwrap_or_default();
        let issuer = claim("iss").unwrap_or_default();
        return Ok(Caller(format!("jwt {issuer} {subject}")));
    }
    if !authorizer.fields.is_empty() {
        let principal = authorizer.fields.get("principalId");
        // Without a name, whoever it says the same things of is the same caller.
        let principal = match principal.and_then(|principal| principal.as_str()) {
            Some(principal) => principal.to_owned(),
            None => serde_json::to_string(&BTreeMap::from_iter(&authorizer.fields))
                .map_err(Problem::internal)?,
        };
        return Ok(Caller(format!("lambda {principal}")));
    }
    Err(stranger("the authorizer says nothing of the caller"))
}

/// Sessions of one role are one caller: a request is sent again from wherever the caller runs by then.
fn without_session(arn: &str) -> &str {
    let role = arn.contains(":assumed-role/");
    match arn.rsplit_once('/') {
        Some((role_arn, _)) if role => role_arn,
        _ => arn,
    }
}

/// A word that names no door.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a way to tell callers: gateway or none")]
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
