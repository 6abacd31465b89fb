//! Items of clients, secrets and links.

use antumbra_service::clients::{
    Circuit, Client, ClientId, ClientState, Link, Mode, RequestKey, Secret, Secrets,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::{StoreError, Version};
use antumbra_wire::items::{ItemKind, index_keys};
use serde::{Deserialize, Serialize};

use crate::table::{Item, Key};
use crate::value::{EpochMilliseconds, TextTime, corrupt, from_item};

pub(crate) const ENABLED: &str = "enabled";
pub(crate) const DISABLED: &str = "disabled";
/// Secret in force. A client that is being deleted has none.
pub(super) const CURRENT: &str = "current";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientItem {
    client_id: String,
    name: String,
    url: String,
    mode: Mode,
    state: String,
    reason: Option<String>,
    since: Option<TextTime>,
    #[serde(default)]
    failures: u32,
    open_until: Option<EpochMilliseconds>,
    probing_since: Option<EpochMilliseconds>,
    failing_since: Option<EpochMilliseconds>,
    version: i64,
    created: TextTime,
    updated: TextTime,
    list_key: String,
    list_sort: String,
}

impl ClientItem {
    pub(super) fn new(client: &Client) -> ClientItem {
        ClientItem {
            client_id: client.id.to_string(),
            name: client.name.clone(),
            url: client.url.clone(),
            mode: client.mode,
            state: ENABLED.to_owned(),
            reason: None,
            since: None,
            failures: 0,
            open_until: None,
            probing_since: None,
            failing_since: None,
            version: client.version.0,
            created: TextTime(client.created),
            updated: TextTime(client.updated),
            list_key: index_keys::clients(client.id.shard(index_keys::LIST_SHARDS)),
            list_sort: client.id.to_string(),
        }
    }
}

pub(crate) fn decode_client(item: Item) -> Result<Client, StoreError> {
    let item: ClientItem = from_item("client", item)?;
    let state = match (item.state.as_str(), item.reason, item.since) {
        (ENABLED, ..) => ClientState::Enabled,
        (_, Some(reason), Some(TextTime(since))) => ClientState::Disabled { reason, since },
        _ => return Err(corrupt("state", "without a reason")),
    };
    Ok(Client {
        id: client_id(&item.client_id)?,
        name: item.name,
        url: item.url,
        mode: item.mode,
        state,
        circuit: Circuit {
            failures: item.failures,
            open_until: item.open_until.map(|time| time.0),
            probing_since: item.probing_since.map(|time| time.0),
            failing_since: item.failing_since.map(|time| time.0),
        },
        version: Version(item.version),
        created: item.created.0,
        updated: item.updated.0,
    })
}

pub(super) fn client_id(text: &str) -> Result<ClientId, StoreError> {
    ClientId::new(text).map_err(|_| corrupt("clientId", "not a client's id"))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretsItem {
    current: String,
    previous: Option<String>,
    previous_until: Option<TextTime>,
    requested_by: Option<String>,
    requested_until: Option<EpochMilliseconds>,
}

impl SecretsItem {
    pub(super) fn new(secret: &Secret, requested: &RequestKey) -> SecretsItem {
        SecretsItem {
            current: secret.reveal().to_owned(),
            previous: None,
            previous_until: None,
            requested_by: Some(requested.by.clone()),
            requested_until: Some(EpochMilliseconds(requested.until)),
        }
    }
}

pub(crate) fn decode_secrets(item: Item) -> Result<Secrets, StoreError> {
    let item: SecretsItem = from_item("secrets item", item)?;
    let secret = |text: &str| Secret::new(text).map_err(|_| corrupt("secret", "invalid"));
    let previous = match (item.previous, item.previous_until) {
        (None, _) => None,
        (Some(previous), Some(TextTime(until))) => Some((secret(&previous)?, until)),
        (Some(_), None) => return Err(corrupt("previousUntil", "missing")),
    };
    let requested = item.requested_by.zip(item.requested_until);
    Ok(Secrets {
        current: secret(&item.current)?,
        previous,
        requested: requested.map(|(by, until)| RequestKey { by, until: until.0 }),
    })
}

/// Attributes of a link and of its mirror.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinkItem {
    client_id: String,
    sensor_id: String,
    mode: Mode,
    since: TextTime,
}

/// Decodes a link from either of its items.
pub(super) fn decode_link(item: Item) -> Result<Link, StoreError> {
    let item: LinkItem = from_item("link", item)?;
    let sensor = SensorId::new(item.sensor_id.as_str());
    Ok(Link {
        client: client_id(&item.client_id)?,
        sensor: sensor.map_err(|_| corrupt("sensorId", "not a sensor's id"))?,
        mode: item.mode,
        since: item.since.0,
    })
}

pub(crate) fn client_key(client: &ClientId) -> Key {
    Key::new(ItemKind::ClientInfo, client.as_str(), "")
}

pub(crate) fn secrets_key(client: &ClientId) -> Key {
    Key::new(ItemKind::ClientSecrets, client.as_str(), "")
}

pub(super) fn link_key(client: &ClientId, sensor: &SensorId) -> Key {
    Key::new(ItemKind::Link, sensor.as_str(), client.as_str())
}

pub(crate) fn mirror_key(client: &ClientId, sensor: &SensorId) -> Key {
    Key::new(ItemKind::LinkMirror, client.as_str(), sensor.as_str())
}
