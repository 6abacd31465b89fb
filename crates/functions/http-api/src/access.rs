//! Authorization: one layer decides, before a handler runs and before an `Idempotency-Key` is looked up, whether the grants
//! of the caller cover a request. Each write leaves an audit line: caller, grant, operation, resource, ids and outcome.

use std::sync::Arc;

use antumbra_service::access::{Grant, Grants, IdRanges, Resource, Verb};
use antumbra_service::deliveries::DeliveryId;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use crate::auth::Caller;
use crate::extract::{PathParameters, check_content_type, read_body};
use crate::problem::{Code, Problem};
use crate::routes::Next;

/// Characters of ids that an audit line shows at most.
const AUDIT_CHARS: usize = 2048;

/// Access that a route needs.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// No credentials.
    Open,
    /// Any grant.
    AnyGrant,
    /// A grant for each of these.
    Requires(&'static [Requirement]),
}

/// Part of the requests of a route that grants cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    None,
    /// Those for some ids.
    Some,
    All,
}

impl Access {
    /// Returns the part of the requests that these grants cover.
    pub fn coverage(self, grants: &Grants) -> Coverage {
        let requirements = match self {
            Access::Open => return Coverage::All,
            Access::AnyGrant if grants.is_empty() => return Coverage::None,
            Access::AnyGrant => return Coverage::All,
            Access::Requires(requirements) => requirements,
        };
        let one = |Requirement {
                       resource,
                       verb,
                       ids,
                       ..
                   }: &Requirement| {
            match grants.covering(*resource, *verb, None) {
                Some(_) => Coverage::All,
                None if matches!(ids, Ids::All) => Coverage::None,
                None if grants.some(*resource, *verb).is_some() => Coverage::Some,
                None => Coverage::None,
            }
        };
        requirements.iter().map(one).min().unwrap_or(Coverage::All)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    pub resource: Resource,
    pub verb: Verb,
    pub ids: Ids,
    /// A query parameter that makes the request need another verb, unless it is `false`.
    pub raised_by: Option<(&'static str, Verb)>,
}

impl Requirement {
    /// The query parameter of a request that makes it need another verb, and that verb.
    fn raised(&self, query: &str) -> Option<(&'static str, Verb)> {
        self.raised_by.filter(|(parameter, _)| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.any(|(name, value)| name == *parameter && value != "false")
        })
    }
}

/// Reads the ids in a body. `None` is an id that the server chooses.
pub type ReadIds = fn(&[u8]) -> Result<Vec<Option<String>>, Problem>;

/// Place of the ids in a request that grants with a prefix must cover.
#[derive(Debug, Clone, Copy)]
pub enum Ids {
    /// The path parameter of this name.
    Path(&'static str),
    /// The client of the delivery that the path parameter `id` names.
    Delivery,
    /// The body, from which this function reads them.
    Body(ReadIds),
    /// A list: the handler reads what the grants cover, and nothing else.
    Listed,
    /// No single ids: only a grant without a prefix covers the request.
    All,
}

/// A route, as the layer needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) operation: &'static str,
    pub(crate) writes: bool,
    pub(crate) access: Access,
}

/// The decision on a request.
#[derive(Default)]
struct Decision {
    /// The grants that cover it.
    grants: Vec<String>,
    resource: &'static str,
    ids: Vec<String>,
    /// The query parameter that made the request need another verb.
    parameter: Option<&'static str>,
}

/// Rejects a request that the caller's grants do not cover.
pub(crate) async fn authorize(rule: Rule, mut request: Request, next: Next) -> Response {
    let requirements = match rule.access {
        Access::Open => return next(request).await,
        Access::AnyGrant => &[],
        Access::Requires(requirements) => requirements,
    };
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return Problem::internal("the request has no caller").into_response();
    };
    let mut decision = Decision::default();
    let decided = decide(requirements, &caller.grants, &mut request, &mut decision).await;
    let response = match decided {
        Ok(()) => next(request).await,
        Err(problem) => problem.into_response(),
    };
    if rule.writes {
        audit(&rule, &caller, &decision, &response);
    }
    response
}

async fn decide(
    requirements: &[Requirement],
    grants: &Grants,
    request: &mut Request,
    decision: &mut Decision,
) -> Result<(), Problem> {
    if requirements.is_empty() && grants.is_empty() {
        return Err(Problem::new(Code::Forbidden, "the caller has no grant"));
    }
    for requirement in requirements {
        let Requirement { resource, ids, .. } = *requirement;
        let raised = requirement.raised(request.uri().query().unwrap_or_default());
        let verb = raised.map_or(requirement.verb, |(_, verb)| verb);
        decision.parameter = raised.map(|(parameter, _)| parameter);
        let first = decision.resource.is_empty();
        if first {
            decision.resource = resource.as_str();
        }
        let ids = match ids {
            Ids::All => {
                let covering = grants.covering(resource, verb, None);
                let covering = covering.ok_or_else(|| missing_for_all(resource, verb))?;
                decision.grants.push(covering.to_string());
                continue;
            }
            Ids::Listed => {
                let some = grants.some(resource, verb);
                let some = some.ok_or_else(|| missing(resource, verb, ""))?;
                decision.grants.push(some.to_string());
                continue;
            }
            Ids::Path(name) => vec![Some(path_parameter(request, name)?)],
            Ids::Delivery => {
                let id = path_parameter(request, "id")?.parse::<DeliveryId>();
                // An invalid delivery id names no client, so only a grant without a prefix covers it.
                vec![id.ok().map(|id| id.client().to_string())]
            }
            Ids::Body(read) => {
                // Read the body only if the caller has a grant for the resource and verb.
                let some = grants.some(resource, verb);
                some.ok_or_else(|| missing(resource, verb, ""))?;
                read(&body(request).await?)?
            }
        };
        if first {
            decision.ids.extend(ids.iter().flatten().cloned());
        }
        for id in &ids {
            let covering = grants.covering(resource, verb, id.as_deref());
            let covering = covering.ok_or_else(|| match id {
                Some(id) => missing(resource, verb, id),
                None => missing_for_all(resource, verb),
            })?;
            let covering = covering.to_string();
            if !decision.grants.contains(&covering) {
                decision.grants.push(covering);
            }
        }
    }
    Ok(())
}

fn path_parameter(request: &Request, name: &str) -> Result<String, Problem> {
    let found = PathParameters::of(request.extensions())?.get(name);
    let none = || Problem::internal(format!("the path has no parameter {name}"));
    found.map(str::to_owned).ok_or_else(none)
}

/// Reads the body and leaves it in the request.
async fn body(request: &mut Request) -> Result<bytes::Bytes, Problem> {
    check_content_type(request.headers())?;
    let body = std::mem::take(request.body_mut());
    let bytes = read_body(request.headers(), body).await?;
    *request.body_mut() = Body::from(bytes.clone());
    Ok(bytes)
}

/// The problem of a caller without a grant for an id, or without any for the resource if the id is empty.
fn missing(resource: Resource, verb: Verb, id: &str) -> Problem {
    let grant = Grant::new(resource, verb, Some(id));
    Problem::new(Code::Forbidden, format!("the grant {grant} is missing"))
}

fn missing_for_all(resource: Resource, verb: Verb) -> Problem {
    let grant = Grant::new(resource, verb, None);
    let detail = format!("the grant {grant}, without a prefix, is missing");
    Problem::new(Code::Forbidden, detail)
}

/// One line for each write, without its content.
fn audit(rule: &Rule, caller: &Caller, decision: &Decision, response: &Response) {
    let mut ids = decision.ids.join(" ");
    // The id that the server chose.
    let location = response.headers().get(LOCATION);
    if let (true, Some(location)) = (ids.is_empty(), location) {
        let location = location.to_str().unwrap_or_default();
        ids.push_str(location.rsplit('/').next().unwrap_or_default());
    }
    ids.truncate(ids.floor_char_boundary(AUDIT_CHARS));
    let operation = match decision.parameter {
        Some(parameter) => format!("{} with {parameter}", rule.operation),
        None => rule.operation.to_owned(),
    };
    tracing::info!(
        target: "audit",
        caller = &*caller.name,
        grant = decision.grants.join(" "),
        operation,
        resource = decision.resource,
        ids,
        status = response.status().as_u16(),
        "write"
    );
}

/// The grants of the caller, for handlers whose response depends on them.
pub(crate) struct CallerGrants(Arc<Grants>);

impl CallerGrants {
    /// Returns the ids of a resource that the caller may read.
    pub(crate) fn readable(&self, resource: Resource) -> IdRanges {
        self.0.ids(resource, Verb::Read)
    }

    /// Returns whether the caller may see the webhook URL of a client.
    pub(crate) fn show_url(&self, client: &str) -> bool {
        let admin = Verb::Admin;
        let covering = self.0.covering(Resource::Clients, admin, Some(client));
        covering.is_some()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CallerGrants {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<CallerGrants, Problem> {
        let caller = parts.extensions.get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal("the request has no caller"))?;
        Ok(CallerGrants(Arc::clone(&caller.grants)))
    }
}
