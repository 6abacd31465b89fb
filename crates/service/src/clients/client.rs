//! What there is to know of a client, without its secrets.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::Timestamp;
use serde::{Deserialize, Serialize};

use super::id::ClientId;
use super::secret::{RequestKey, Secret};
use crate::sensors::SensorId;
use crate::store::Version;

/// Characters of a client's name.
pub const NAME_CHARACTERS: usize = 256;
/// Bytes of a client's URL.
pub const URL_BYTES: usize = 2048;
/// Characters of the reason for which a client is disabled.
pub const REASON_CHARACTERS: usize = 256;

/// What a client wants of a sensor's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ClientMode))]
pub enum Mode {
    /// All of them, in order per sensor: a later one waits for an earlier one's success or death.
    #[default]
    Every,
    /// What is so now: one that was overtaken by a newer one of its sensor and kind is dropped.
    Latest,
}

impl Mode {
    /// As it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Every => "every",
            Mode::Latest => "latest",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        match text {
            "every" => Ok(Mode::Every),
            "latest" => Ok(Mode::Latest),
            _ => Err("a mode is every or latest".to_owned()),
        }
    }
}

/// Whether deliveries are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientState {
    /// They are.
    Enabled,
    /// They are kept until the client is enabled again.
    Disabled {
        /// Why.
        reason: String,
        /// Since when.
        since: Timestamp,
    },
}

/// What was seen of a client's endpoint lately; see [`crate::deliveries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Attempts that failed since the last one that succeeded.
    pub failures: u32,
    /// Until when nothing is sent.
    pub open_until: Option<Timestamp>,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// What it is called by.
    pub id: ClientId,
    /// What people call it.
    pub name: String,
    /// Where deliveries go.
    pub url: String,
    /// Which of them it wants.
    pub mode: Mode,
    /// Whether they are sent.
    pub state: ClientState,
    /// How its endpoint has been doing.
    pub circuit: Circuit,
    /// How often it was written, from 1 on. What happens to its circuit does not count.
    pub version: Version,
    /// When it was made.
    pub created: Timestamp,
    /// When it was changed last.
    pub updated: Timestamp,
}

/// A client to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClient {
    /// Its id; one is made up without it.
    pub id: Option<ClientId>,
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// Its mode.
    pub mode: Mode,
    /// Who asks for it, if the same request may be sent again.
    pub requested: Option<RequestKey>,
}

/// A client that was just made, and the only time its secret is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Created {
    pub client: Client,
    pub secret: Secret,
}

/// A secret that was just put in force, and the only time it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The new one.
    pub secret: Secret,
    /// Until when the one before is in force beside it.
    pub previous_until: Timestamp,
}

/// What is to be changed of a client; `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct ClientPatch {
    pub name: Option<String>,
    pub url: Option<String>,
    pub mode: Option<Mode>,
}

/// That a client is told of a sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Link {
    pub client: ClientId,
    pub sensor: SensorId,
    /// The client's mode, kept with the link so that one look at a sensor's links is enough to send.
    pub mode: Mode,
    /// When the link was made.
    pub since: Timestamp,
}

/// A client that a sensor's change goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LinkedClient {
    pub client: ClientId,
    pub mode: Mode,
}
