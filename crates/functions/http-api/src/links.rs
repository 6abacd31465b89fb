//! Links: which clients are told of which sensors, from both sides.

use antumbra_service::clients::{ClientId, Link};
use antumbra_service::paging::Page;
use antumbra_service::sensors::SensorId;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::api::Api;
use crate::clients::TheClient;
use crate::openapi::Missing;
use crate::problem::{Code, Problem};
use crate::request::{Paging, PathParts, Queried};
use crate::sensors::TheSensor;

/// A client and a sensor.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TheLink {
    /// The client's id.
    #[param(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_-]{1,64}$",
        example = "night-watch"
    )]
    id: String,
    /// The sensor's id.
    #[param(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_.:-]{1,64}$",
        example = "xa7v9Dfadr7H"
    )]
    sensor: String,
}

impl TheLink {
    fn ids(self) -> Result<(ClientId, SensorId), Problem> {
        let invalid = |fault: String| Problem::new(Code::InvalidPath, fault);
        Ok((
            ClientId::new(&self.id).map_err(|fault| invalid(fault.to_string()))?,
            SensorId::new(self.sensor).map_err(|fault| invalid(fault.to_string()))?,
        ))
    }
}

/// Has a client told of a sensor. Once more changes nothing.
#[utoipa::path(
    put, path = "/v1/clients/{id}/sensors/{sensor}", tag = "clients", operation_id = "link",
    params(TheLink),
    responses((status = 204, description = "It is."), Missing),
)]
pub(crate) async fn link(
    State(api): State<Api>,
    PathParts(link): PathParts<TheLink>,
) -> Result<Answer, Problem> {
    let (client, sensor) = link.ids()?;
    api.clients().link(&client, &sensor).await?;
    Ok(Answer::no_content())
}

/// Has a client told of a sensor no more. What is still under way is skipped.
#[utoipa::path(
    delete, path = "/v1/clients/{id}/sensors/{sensor}", tag = "clients", operation_id = "unlink",
    params(TheLink),
    responses((status = 204, description = "It is not any more."), Missing),
)]
pub(crate) async fn unlink(
    State(api): State<Api>,
    PathParts(link): PathParts<TheLink>,
) -> Result<Answer, Problem> {
    let (client, sensor) = link.ids()?;
    api.clients().unlink(&client, &sensor).await?;
    Ok(Answer::no_content())
}

/// Lists the sensors that a client is told of.
#[utoipa::path(
    get, path = "/v1/clients/{id}/sensors", tag = "clients", operation_id = "list_links_of_client",
    params(TheClient, Paging),
    responses((status = 200, description = "A page of links, by sensor.", body = LinkPage), Missing),
)]
pub(crate) async fn of_client(
    State(api): State<Api>,
    PathParts(client): PathParts<TheClient>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    let (id, limit, cursor) = (client.id()?, paging.limit()?, paging.cursor());
    let page = api.clients().links_of_client(&id, limit, cursor.as_ref());
    Answer::ok(&LinkPage::from(page.await?))
}

/// Lists the clients that are told of a sensor.
#[utoipa::path(
    get, path = "/v1/sensors/{id}/clients", tag = "clients", operation_id = "list_links_of_sensor",
    params(TheSensor, Paging),
    responses((status = 200, description = "A page of links, by client.", body = LinkPage), Missing),
)]
pub(crate) async fn of_sensor(
    State(api): State<Api>,
    PathParts(sensor): PathParts<TheSensor>,
    Queried(paging): Queried<Paging>,
) -> Result<Answer, Problem> {
    let (id, limit, cursor) = (sensor.id()?, paging.limit()?, paging.cursor());
    // Nothing is listed of a sensor that does not exist; that is told.
    if cursor.is_none() {
        api.sensors().get(&id).await?;
    }
    let page = api.clients().links_of_sensor(&id, limit, cursor.as_ref());
    Answer::ok(&LinkPage::from(page.await?))
}

/// A page of links.
#[derive(Serialize, ToSchema)]
#[schema(as = Links)]
pub(crate) struct LinkPage {
    /// The links.
    links: Vec<LinkAnswer>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

/// That a client is told of a sensor.
#[derive(Serialize, ToSchema)]
#[schema(as = Link)]
struct LinkAnswer {
    /// The client's id.
    #[schema(example = "night-watch")]
    client: String,
    /// The sensor's id.
    #[schema(example = "xa7v9Dfadr7H")]
    sensor: String,
    /// Since when.
    #[schema(format = DateTime)]
    since: String,
}

impl From<Page<Link>> for LinkPage {
    fn from(page: Page<Link>) -> LinkPage {
        let link = |link: &Link| LinkAnswer {
            client: link.client.to_string(),
            sensor: link.sensor.to_string(),
            since: link.since.to_string(),
        };
        LinkPage {
            links: page.rows.iter().map(link).collect(),
            next: page.next.map(|cursor| cursor.0),
        }
    }
}
