//! Clients and links, without secrets.

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};

use super::id::ClientId;
use super::secret::{RequestKey, Secret};
use crate::sensors::SensorId;
use crate::store::Version;
use antumbra_shadow::word_enum;

pub const NAME_CHARACTERS: usize = 256;
pub const URL_BYTES: usize = 2048;
pub const REASON_CHARACTERS: usize = 256;

word_enum! {
    /// Mode of delivery.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ClientMode))]
    pub enum Mode as "mode" {
        /// The latest state: an event is dropped if there is a newer one of its sensor and kind.
        #[default]
        Latest = "latest",
        /// All events, in order per sensor: a later one waits until the earlier one is delivered or dead.
        Every = "every",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientState {
    /// Deliveries are sent.
    Enabled,
    /// Deliveries are held until the client is enabled again.
    Disabled { reason: String, since: Timestamp },
}

/// Circuit breaker of a client's endpoint; see [`crate::deliveries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Attempts that failed since the last one that succeeded.
    pub failures: u32,
    /// Time until which nothing is sent, except the probe.
    pub open_until: Option<Timestamp>,
    /// Start of the probe, while it has no result.
    pub probing_since: Option<Timestamp>,
    /// Time of the first of these failures.
    pub failing_since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub id: ClientId,
    pub name: String,
    pub url: String,
    pub mode: Mode,
    pub state: ClientState,
    pub circuit: Circuit,
    /// Version, from 1. Changes of the circuit do not count.
    pub version: Version,
    pub created: Timestamp,
    pub updated: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClient {
    /// Generated if `None`.
    pub id: Option<ClientId>,
    pub name: String,
    pub url: String,
    pub mode: Mode,
    /// Request key, if the same request may be sent again.
    pub requested: Option<RequestKey>,
}

/// A created client. Only this response contains its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub client: Client,
    pub secret: Secret,
}

/// A new secret. Only this response contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    pub secret: Secret,
    /// Time until which the previous secret is valid as well.
    pub previous_until: Timestamp,
}

/// Changes to a client. Absent members stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientPatch {
    /// Display name.
    pub name: Option<String>,
    /// URL that deliveries are POSTed to.
    pub url: Option<String>,
    /// Delivery mode.
    pub mode: Option<Mode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub client: ClientId,
    pub sensor: SensorId,
    /// The client's mode, kept with the link so that one read of a sensor's links is enough to send.
    pub mode: Mode,
    pub since: Timestamp,
}

/// A client that a sensor's events are delivered to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedClient {
    pub client: ClientId,
    pub mode: Mode,
    /// Time at which the link was removed, if it was.
    pub removed: Option<Timestamp>,
}
