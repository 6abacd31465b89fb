//! Clients, their secrets and their links to sensors.

use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

use super::Time;
use crate::clients::{self, ClientId, ClientState, Mode};
use crate::text::InvalidText;

/// A client to create.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct NewClient {
    /// Client id: letters, digits, `-`, `_` and `:`. Generated if absent.
    pub id: Option<String>,
    /// Display name.
    pub name: String,
    /// URL that deliveries are POSTed to: https, and a public address unless the deployment allows more.
    pub url: String,
    /// Delivery mode; `latest` by default.
    pub mode: Option<Mode>,
}

impl TryFrom<NewClient> for clients::NewClient {
    type Error = InvalidText;

    fn try_from(new: NewClient) -> Result<clients::NewClient, InvalidText> {
        Ok(clients::NewClient {
            id: new.id.as_deref().map(ClientId::new).transpose()?,
            name: new.name,
            url: new.url,
            mode: new.mode.unwrap_or_default(),
            requested: None,
        })
    }
}

/// A client, without its secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Client {
    /// Client id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// URL that deliveries are POSTed to; absent for callers without a grant `clients:admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Delivery mode.
    pub mode: Mode,
    /// Deliveries are sent while this is true, and held while it is false.
    pub enabled: bool,
    /// Reason why the client is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Time when the client was disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_since: Option<Time>,
    /// Failed attempts since the last successful one.
    pub failures: u32,
    /// Time until which the circuit breaker holds back attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Time>,
    /// Time of the first of these failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
    /// Number of writes. In quotes, it is the client's entity tag.
    pub version: i64,
    /// Time of creation.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
}

impl From<clients::Client> for Client {
    fn from(client: clients::Client) -> Client {
        let (reason, since) = match client.state {
            ClientState::Enabled => (None, None),
            ClientState::Disabled { reason, since } => (Some(reason), Some(since.into())),
        };
        Client {
            id: client.id.to_string(),
            name: client.name,
            url: Some(client.url),
            mode: client.mode,
            enabled: reason.is_none(),
            disabled_reason: reason,
            disabled_since: since,
            failures: client.circuit.failures,
            paused_until: client.circuit.open_until.map(Time::from),
            failing_since: client.circuit.failing_since.map(Time::from),
            version: client.version.0,
            created_at: client.created.into(),
            updated_at: client.updated.into(),
        }
    }
}

page! {
    /// A page of clients, ordered by id.
    ClientPage { clients: Client } from clients::Client
}

/// A new client with its signing secret.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct CreatedClient {
    /// Secret that deliveries are signed with (Standard Webhooks). It is shown only here.
    pub secret: String,
    /// The client.
    #[serde(flatten)]
    pub client: Client,
}

impl From<clients::Created> for CreatedClient {
    fn from(created: clients::Created) -> CreatedClient {
        CreatedClient {
            secret: created.secret.reveal().to_owned(),
            client: created.client.into(),
        }
    }
}

/// A new signing secret of a client.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RotatedSecret {
    /// Secret that deliveries are signed with from now on. It is shown only here.
    pub secret: String,
    /// Time until which deliveries are also signed with the previous secret.
    pub previous_until: Time,
}

impl From<clients::Rotated> for RotatedSecret {
    fn from(rotated: clients::Rotated) -> RotatedSecret {
        RotatedSecret {
            secret: rotated.secret.reveal().to_owned(),
            previous_until: rotated.previous_until.into(),
        }
    }
}

/// A link: the client receives the events of the sensor.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Link {
    /// Client id.
    pub client: String,
    /// Sensor id.
    pub sensor: String,
    /// Time when the link was created.
    pub since: Time,
}

impl From<clients::Link> for Link {
    fn from(link: clients::Link) -> Link {
        Link {
            client: link.client.to_string(),
            sensor: link.sensor.to_string(),
            since: link.since.into(),
        }
    }
}

page! {
    /// A page of links.
    LinkPage { links: Link } from clients::Link
}
