//! `/v1/clients`: who is told of sensors, and where. A client's entity tag is its version.

mod shape;

use std::time::Duration;

use antumbra_service::clients::{ClientError, ClientId, Created, KEEP_PREVIOUS};
use antumbra_service::store::Version;
use axum::Extension;
use axum::extract::State;

use crate::answer::Answer;
use crate::api::Api;
use crate::idempotency::Key;
use crate::openapi::{Changed, IfMatch, IfNoneMatch, Missing};
use crate::problem::{Code, Problem};
use crate::request::{Conditions, JsonBody, Paging, PathParts, Queried};
pub(crate) use shape::TheClient;
use shape::{
    ClientAnswer, ClientBody, ClientChange, ClientPage, CreatedAnswer, DeleteQuery, RotateQuery,
    SecretAnswer,
};

/// Makes a client. Its signing secret is in the answer, and in no other.
#[utoipa::path(
    post, path = "/v1/clients", tag = "clients", operation_id = "create_client", request_body = ClientBody,
    responses(
        (status = 201, description = "The client, and its secret.", body = CreatedAnswer, headers(("ETag" = String), ("Location" = String))),
        (status = 409, description = "Another client has this id, or the same request is under way or was made before and its secret replaced since.", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    key: Option<Extension<Key>>,
    JsonBody(body): JsonBody<ClientBody>,
) -> Result<Answer, Problem> {
    let mut new = body.client()?;
    if let Some(Extension(key)) = key {
        // Made of the key, the id is the same should the request have to be run again.
        if new.id.is_none() {
            new.id = Some(ClientId::new(&key.id("cl")).map_err(Problem::internal)?);
        }
        new.requested = Some(key.requested(api.now()));
    }
    let Created { client, secret } = api.clients().create(new).await?;
    let location = format!("/v1/clients/{}", client.id);
    let answer = Answer::created(&CreatedAnswer::new(&client, &secret), location)?;
    let answer = answer.tagged(&client.version.to_string());
    Ok(answer.telling(client.id, secret))
}

/// Lists all clients, by id. One that was made a moment ago may not be listed yet.
#[utoipa::path(
    get, path = "/v1/clients", tag = "clients", operation_id = "list_clients", params(Paging),
    responses((status = 200, description = "A page of clients.", body = ClientPage)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    let cursor = paging.cursor();
    let page = api.clients().list(paging.limit()?, cursor.as_ref()).await?;
    Answer::ok(&ClientPage::from(page))
}

/// Reads a client.
#[utoipa::path(
    get, path = "/v1/clients/{id}", tag = "clients", operation_id = "get_client",
    params(TheClient, IfNoneMatch),
    responses(
        (status = 200, description = "The client, without its secret.", body = ClientAnswer, headers(("ETag" = String))),
        (status = 304, description = "The caller has it already."),
        Missing,
    ),
)]
pub(crate) async fn get(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    let client = api.clients().get(&client.id()?).await?;
    let tag = client.version.to_string();
    if conditions.has(&tag) {
        return Ok(Answer::not_modified(&tag));
    }
    Ok(Answer::ok(&ClientAnswer::from(&client))?.tagged(&tag))
}

/// Changes a client. What is sent from now on goes to its new URL, also what waits for its next attempt.
#[utoipa::path(
    patch, path = "/v1/clients/{id}", tag = "clients", operation_id = "update_client",
    params(TheClient, IfMatch), request_body = ClientChange,
    responses(
        (status = 200, description = "The client as it is now.", body = ClientAnswer, headers(("ETag" = String))),
        Missing, Changed,
    ),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    conditions: Conditions,
    JsonBody(change): JsonBody<ClientChange>,
) -> Result<Answer, Problem> {
    let id = client.id()?;
    let expected = expected(&api, &id, &conditions).await?;
    let client = api.clients().update(&id, change.patch(), expected).await;
    let client = client.map_err(|error| on_condition(error, &conditions))?;
    let tag = client.version.to_string();
    Ok(Answer::ok(&ClientAnswer::from(&client))?.tagged(&tag))
}

/// Deletes a client. One that is linked to sensors is refused, unless its links are to go with it.
#[utoipa::path(
    delete, path = "/v1/clients/{id}", tag = "clients", operation_id = "delete_client",
    params(TheClient, DeleteQuery, IfMatch),
    responses((status = 204, description = "It is gone."), Missing, Changed),
)]
pub(crate) async fn delete(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    Queried(query): Queried<DeleteQuery>,
    conditions: Conditions,
) -> Result<Answer, Problem> {
    let id = client.id()?;
    let expected = expected(&api, &id, &conditions).await?;
    let gone = api.clients().delete(&id, expected, query.cascade).await;
    gone.map_err(|error| on_condition(error, &conditions))?;
    Ok(Answer::no_content())
}

/// Makes a new signing secret, which is in the answer and in no other. The one before stays in force for
/// a while beside it.
#[utoipa::path(
    post, path = "/v1/clients/{id}/rotate-secret", tag = "clients", operation_id = "rotate_secret",
    params(TheClient, RotateQuery),
    responses(
        (status = 200, description = "The new secret.", body = SecretAnswer),
        (status = 409, description = "The same request is under way, or was made before and its secret replaced since.", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
        Missing,
    ),
)]
pub(crate) async fn rotate_secret(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    key: Option<Extension<Key>>,
    Queried(query): Queried<RotateQuery>,
) -> Result<Answer, Problem> {
    let id = client.id()?;
    let keep = query.keep_previous_seconds.map(Duration::from_secs);
    let keep = keep.unwrap_or(KEEP_PREVIOUS);
    let requested = key.map(|Extension(key)| key.requested(api.now()));
    let rotated = api.clients().rotate_secret(&id, keep, requested).await?;
    let answer = Answer::ok(&SecretAnswer::from(&rotated))?;
    Ok(answer.telling(id, rotated.secret))
}

async fn expected(
    api: &Api,
    id: &ClientId,
    conditions: &Conditions,
) -> Result<Option<Version>, Problem> {
    let stored = async || Ok(api.clients().get(id).await?.version.0.unsigned_abs());
    let version = conditions.version(stored).await?;
    Ok(version.map(|version| Version(i64::try_from(version).unwrap_or(i64::MAX))))
}

/// A conflict with what the caller expects is another thing than one with other writers.
fn on_condition(error: ClientError, conditions: &Conditions) -> Problem {
    match error {
        ClientError::Conflict { .. } if conditions.if_match.is_some() => {
            Problem::new(Code::PreconditionFailed, error.to_string())
        }
        error => error.into(),
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Problem {
        let code = match error {
            ClientError::NotFound | ClientError::NoSensor | ClientError::NotLinked => {
                Code::NotFound
            }
            ClientError::AlreadyExists => Code::AlreadyExists,
            ClientError::Conflict { .. } => Code::Conflict,
            ClientError::HasLinks => Code::HasLinks,
            ClientError::Invalid(_) | ClientError::Url(_) => Code::Invalid,
            ClientError::Store(error) => return error.into(),
        };
        Problem::new(code, error.to_string())
    }
}
