//! Authentication of callers, and their grants. Every path except health requires it, whether a route exists or not.

mod iam_grants;

use std::collections::BTreeMap;
use std::sync::Arc;

use antumbra_service::access::{Grants, scopes};
use antumbra_shadow::Timestamp;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lambda_http::request::RequestContext;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

pub use iam_grants::{IamGrants, InvalidIamGrants};

use crate::problem::Problem;
use crate::routes::health;
use crate::services::Services;

/// Standard claim with the scopes of a token.
pub(crate) const SCOPE: &str = "scope";

#[derive(Debug, Clone)]
pub enum AuthMode {
    /// An authorizer of API Gateway identifies the caller.
    Gateway(GatewayGrants),
    /// Callers send one of these bearer tokens.
    Tokens(Vec<TokenGrants>),
    /// No authentication here: a private network or another gateway decides. Callers may do everything.
    Open,
}

/// The grants of callers that API Gateway has authenticated.
#[derive(Debug, Clone)]
pub struct GatewayGrants {
    /// Claim with the grants of a token.
    pub claim: String,
    /// Grants of IAM callers; without it, those that API Gateway lets through may do everything.
    pub iam: Option<IamGrants>,
}

/// A bearer token, and the grants of those who have it.
#[derive(Debug, Clone)]
pub struct TokenGrants {
    pub token: Token,
    pub grants: Grants,
}

/// A bearer token, kept as its digest, so that comparison takes constant time.
#[derive(Debug, Clone)]
pub struct Token([u8; 32]);

impl Token {
    pub fn new(text: &str) -> Token {
        Token(Sha256::digest(text).into())
    }

    fn is(&self, other: &Token) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The same text for the same caller.
    pub(crate) name: Arc<str>,
    pub(crate) grants: Arc<Grants>,
}

impl Caller {
    fn new(name: impl Into<Arc<str>>, grants: Grants) -> Caller {
        Caller {
            name: name.into(),
            grants: Arc::new(grants),
        }
    }
}

/// Middleware: authenticates the caller and adds it to the request's extensions.
pub(crate) async fn authenticate(
    State((auth, api)): State<(Arc<AuthMode>, Arc<Services>)>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == health::PATH {
        return next.run(request).await;
    }
    let caller = match &*auth {
        AuthMode::Gateway(grants) => by_gateway(request.extensions().get(), grants, &api),
        AuthMode::Tokens(tokens) => by_token(request.headers(), tokens),
        AuthMode::Open => Ok(Caller::new("anyone", Grants::all())),
    };
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn by_token(headers: &HeaderMap, tokens: &[TokenGrants]) -> Result<Caller, Problem> {
    let Some(given) = headers.get(AUTHORIZATION) else {
        let detail = "the header authorization is missing";
        return Err(Problem::unauthorized(detail, "Bearer realm=\"antumbra\""));
    };
    let given = given
        .to_str()
        .ok()
        .and_then(|given| given.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let found = given.and_then(|(_, given)| {
        let given = Token::new(given.trim());
        let mut tokens = tokens.iter().enumerate();
        tokens.find(|(_, one)| one.token.is(&given))
    });
    match found {
        Some((at, one)) => Ok(Caller::new(format!("token {}", at + 1), one.grants.clone())),
        None => Err(Problem::unauthorized(
            "invalid bearer token",
            "Bearer realm=\"antumbra\", error=\"invalid_token\"",
        )),
    }
}

/// Returns whether a claim is a later time. It has seconds, perhaps with a fraction.
fn is_later(claim: &str, now: Timestamp) -> bool {
    let seconds = claim.parse::<f64>().ok().filter(|time| time.is_finite());
    seconds.is_some_and(|seconds| seconds * 1e9 > now.nanoseconds() as f64)
}

fn by_gateway(
    context: Option<&RequestContext>,
    grants: &GatewayGrants,
    api: &Services,
) -> Result<Caller, Problem> {
    let authorizer = context.and_then(RequestContext::authorizer);
    let unauthorized = |detail: &str| Problem::unauthorized(detail, "Bearer realm=\"antumbra\"");
    let Some(authorizer) = authorizer else {
        return Err(unauthorized("no authorizer has authenticated this request"));
    };
    let granted = |claim: Option<&str>| -> Grants {
        let scopes = scopes(claim.unwrap_or_default());
        scopes.filter_map(|(_, grant)| grant.ok()).collect()
    };
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(arn) = authorizer
        .iam
        .as_ref()
        .and_then(|iam| non_empty(&iam.user_arn))
    {
        let principal = iam_grants::principal(&arn);
        let grants = match &grants.iam {
            None => Grants::all(),
            Some(iam) => iam.of(&principal),
        };
        return Ok(Caller::new(format!("iam {principal}"), grants));
    }
    if let Some(jwt) = authorizer.jwt.as_ref().filter(|jwt| !jwt.claims.is_empty()) {
        let claim = |name: &str| jwt.claims.get(name).map(String::as_str);
        if claim("exp").is_some_and(|expiry| !is_later(expiry, api.clock.now())) {
            return Err(unauthorized("the token has expired"));
        }
        let subject = claim("sub").or(claim("client_id")).unwrap_or_default();
        let issuer = claim("iss").unwrap_or_default();
        let name = format!("jwt {issuer} {subject}");
        return Ok(Caller::new(name, granted(claim(&grants.claim))));
    }
    if !authorizer.fields.is_empty() {
        let text = |name: &str| authorizer.fields.get(name)?.as_str();
        // Without a principal id, equal fields identify the caller.
        let principal = match text("principalId") {
            Some(principal) => principal.to_owned(),
            None => serde_json::to_string(&BTreeMap::from_iter(&authorizer.fields))
                .map_err(Problem::internal)?,
        };
        let name = format!("lambda {principal}");
        return Ok(Caller::new(name, granted(text(&grants.claim))));
    }
    Err(unauthorized("the authorizer does not identify the caller"))
}
