//! Handlers of `/v1/clients`: webhook clients and their links to sensors. A client's entity tag is its version.

use std::time::Duration;

use antumbra_service::access::Resource;
use antumbra_service::api::{
    Client, ClientPage, ClientPatch, CreatedClient, LinkPage, NewClient, RotatedSecret,
};
use antumbra_service::clients::{ClientId, KEEP_PREVIOUS};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::Version;
use axum::Extension;
use axum::extract::State;
use axum::response::NoContent;
use serde::Deserialize;
use utoipa::IntoParams;

use super::sensors::parse_sensor_id;
use crate::access::CallerGrants;
use crate::conditions::IfMatch;
use crate::extract::{FromPath, Paging, Path, PathParameter, Query, parse_json};
use crate::idempotency::RequestId;
use crate::problem::{Code, Problem};
use crate::respond::{Created, ETag, HoldsSecretOf, Json, Location};
use crate::services::{Api, Services};

impl FromPath for ClientId {
    const PARAMETERS: &'static [PathParameter] = &[CLIENT_ID];

    fn from_path<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Result<ClientId, String> {
        ClientId::new(get("id").unwrap_or_default()).map_err(|fault| fault.to_string())
    }
}

impl FromPath for (ClientId, SensorId) {
    const PARAMETERS: &'static [PathParameter] = &[
        CLIENT_ID,
        PathParameter {
            name: "sensor",
            ..super::sensors::SENSOR_ID
        },
    ];

    fn from_path<'a>(
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(ClientId, SensorId), String> {
        Ok((ClientId::from_path(&get)?, parse_sensor_id(get("sensor"))?))
    }
}

const CLIENT_ID: PathParameter = PathParameter {
    name: "id",
    description: "Client id.",
    max_length: 64,
    pattern: Some("^[A-Za-z0-9_:-]{1,64}$"),
    example: Some("night-watch"),
};

/// A response with a secret, which no cache may keep. `HoldsSecretOf` is the outer part, so that its `no-store`
/// replaces the cache control of an `ETag` inside.
type SecretResponse<R> = (HoldsSecretOf, R);

/// The id in the body of [`create`]; `None` if the server chooses it.
pub(crate) fn created_id(body: &[u8]) -> Result<Vec<Option<String>>, Problem> {
    parse_json(body).map(|new: NewClient| vec![new.id])
}

pub(crate) async fn create(
    State(api): Api,
    request: Option<Extension<RequestId>>,
    Json(new): Json<NewClient>,
) -> Result<Created<SecretResponse<(ETag, Json<CreatedClient>)>>, Problem> {
    let new = antumbra_service::clients::NewClient::try_from(new);
    let mut new = new.map_err(|fault| Problem::new(Code::Invalid, fault.to_string()))?;
    if let Some(Extension(request)) = request {
        // An id derived from the request stays the same if the request has to run again.
        if new.id.is_none() {
            new.id = Some(ClientId::new(request.derive_id("cl")).map_err(Problem::internal)?);
        }
        new.requested = Some(request.request_key(api.clock.now()));
    }
    let created = api.clients.create(new).await?;
    let (id, version) = (created.client.id.clone(), created.client.version);
    let location = Location::new("/v1/clients", id.as_str());
    let tagged = (ETag::new(version), Json(created.into()));
    Ok(Created(location, (HoldsSecretOf(id), tagged)))
}

pub(crate) async fn list(
    State(api): Api,
    grants: CallerGrants,
    Query(paging): Query<Paging>,
) -> Result<Json<ClientPage>, Problem> {
    let cursor = paging.cursor();
    let within = grants.readable(Resource::Clients);
    let page = api.clients.list(&within, paging.limit()?, cursor.as_ref());
    let mut page = ClientPage::from(page.await?);
    for client in &mut page.clients {
        hide_url(&grants, client);
    }
    Ok(Json(page))
}

/// Leaves out the webhook URL if the caller may not see it.
fn hide_url(grants: &CallerGrants, client: &mut Client) {
    if !grants.show_url(&client.id) {
        client.url = None;
    }
}

fn tagged(
    grants: &CallerGrants,
    client: antumbra_service::clients::Client,
) -> (ETag, Json<Client>) {
    let tag = ETag::new(client.version);
    let mut client = Client::from(client);
    hide_url(grants, &mut client);
    (tag, Json(client))
}

pub(crate) async fn get(
    State(api): Api,
    grants: CallerGrants,
    Path(id): Path<ClientId>,
) -> Result<(ETag, Json<Client>), Problem> {
    Ok(tagged(&grants, api.clients.get(&id).await?))
}

pub(crate) async fn update(
    State(api): Api,
    Path(id): Path<ClientId>,
    condition: IfMatch,
    Json(patch): Json<ClientPatch>,
) -> Result<(ETag, Json<Client>), Problem> {
    let expected = expected_version(&api, &id, &condition).await?;
    let updated = api.clients.update(&id, patch, expected).await;
    let client = updated.map_err(|error| condition.problem(error))?;
    Ok((ETag::new(client.version), Json(client.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DisableQuery {
    /// Reason that the client shows.
    #[param(max_length = 256, example = "moving house")]
    reason: Option<String>,
}

pub(crate) async fn disable(
    State(api): Api,
    grants: CallerGrants,
    Path(id): Path<ClientId>,
    Query(query): Query<DisableQuery>,
) -> Result<(ETag, Json<Client>), Problem> {
    let reason = query.reason.as_deref().unwrap_or("disabled by an operator");
    Ok(tagged(&grants, api.clients.disable(&id, reason).await?))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Delete the client's links too.
    #[serde(default)]
    cascade: bool,
}

pub(crate) async fn delete(
    State(api): Api,
    Path(id): Path<ClientId>,
    Query(query): Query<DeleteQuery>,
    condition: IfMatch,
) -> Result<NoContent, Problem> {
    let expected = expected_version(&api, &id, &condition).await?;
    let deleted = api.clients.delete(&id, expected, query.cascade).await;
    deleted.map_err(|error| condition.problem(error))?;
    Ok(NoContent)
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct RotateQuery {
    /// Seconds for which the previous secret stays valid.
    #[param(minimum = 0, maximum = 2592000, default = 86400)]
    keep_previous_seconds: Option<u64>,
}

pub(crate) async fn rotate_secret(
    State(api): Api,
    Path(id): Path<ClientId>,
    request: Option<Extension<RequestId>>,
    Query(query): Query<RotateQuery>,
) -> Result<SecretResponse<Json<RotatedSecret>>, Problem> {
    let keep_previous = query
        .keep_previous_seconds
        .map_or(KEEP_PREVIOUS, Duration::from_secs);
    let key = request.map(|Extension(request)| request.request_key(api.clock.now()));
    let rotated = api.clients.rotate_secret(&id, keep_previous, key).await?;
    Ok((HoldsSecretOf(id), Json(rotated.into())))
}

pub(crate) async fn link(
    State(api): Api,
    Path((client, sensor)): Path<(ClientId, SensorId)>,
) -> Result<NoContent, Problem> {
    api.clients.link(&client, &sensor).await?;
    Ok(NoContent)
}

pub(crate) async fn unlink(
    State(api): Api,
    Path((client, sensor)): Path<(ClientId, SensorId)>,
) -> Result<NoContent, Problem> {
    api.clients.unlink(&client, &sensor).await?;
    Ok(NoContent)
}

pub(crate) async fn links_of_client(
    State(api): Api,
    Path(id): Path<ClientId>,
    Query(paging): Query<Paging>,
) -> Result<Json<LinkPage>, Problem> {
    let (limit, cursor) = (paging.limit()?, paging.cursor());
    let page = api
        .clients
        .links_of_client(&id, limit, cursor.as_ref())
        .await?;
    Ok(Json(page.into()))
}

pub(crate) async fn links_of_sensor(
    State(api): Api,
    Path(id): Path<SensorId>,
    Query(paging): Query<Paging>,
) -> Result<Json<LinkPage>, Problem> {
    let (limit, cursor) = (paging.limit()?, paging.cursor());
    // An unknown sensor is a 404 and not an empty list. Later pages need no check.
    if cursor.is_none() {
        api.sensors.get(&id).await?;
    }
    let page = api
        .clients
        .links_of_sensor(&id, limit, cursor.as_ref())
        .await?;
    Ok(Json(page.into()))
}

async fn expected_version(
    api: &Services,
    id: &ClientId,
    condition: &IfMatch,
) -> Result<Option<Version>, Problem> {
    condition
        .version(async || Ok(api.clients.get(id).await?.version))
        .await
}
