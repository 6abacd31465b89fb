//! What the routes of clients take and give.

use antumbra_service::clients::{
    Client, ClientId, ClientPatch, ClientState, Mode, NewClient, Rotated, Secret,
};
use antumbra_service::paging::Page;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Code, Problem};

/// A client.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TheClient {
    /// The client's id.
    #[param(
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_-]{1,64}$",
        example = "night-watch"
    )]
    id: String,
}

impl TheClient {
    pub(crate) fn id(&self) -> Result<ClientId, Problem> {
        ClientId::new(&self.id).map_err(|fault| Problem::new(Code::InvalidPath, fault.to_string()))
    }
}

/// Whether a client wants all that occurs, or what is so now.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ClientMode)]
pub(crate) enum ModeWord {
    /// All, in order per sensor.
    Every,
    /// What is so now: what was overtaken is dropped.
    Latest,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Mode {
        match word {
            ModeWord::Every => Mode::Every,
            ModeWord::Latest => Mode::Latest,
        }
    }
}

impl From<Mode> for ModeWord {
    fn from(mode: Mode) -> ModeWord {
        match mode {
            Mode::Every => ModeWord::Every,
            Mode::Latest => ModeWord::Latest,
        }
    }
}

/// A client to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewClient)]
pub(crate) struct ClientBody {
    /// Its id, of letters, digits, `-` and `_`; one is made up without it.
    #[schema(
        nullable = false,
        min_length = 1,
        max_length = 64,
        pattern = "^[A-Za-z0-9_-]{1,64}$",
        example = "night-watch"
    )]
    id: Option<String>,
    /// What people call it.
    #[schema(min_length = 1, max_length = 256, example = "Night watch")]
    name: String,
    /// Where deliveries are POSTed: https, to an address of the public internet unless more is allowed.
    #[schema(max_length = 2048, example = "https://hooks.example.com/antumbra")]
    url: String,
    /// Which deliveries it wants: `every` unless said otherwise.
    #[schema(nullable = false)]
    mode: Option<ModeWord>,
}

impl ClientBody {
    pub(super) fn client(self) -> Result<NewClient, Problem> {
        let id = self.id.as_deref().map(ClientId::new).transpose();
        Ok(NewClient {
            id: id.map_err(|fault| Problem::new(Code::Invalid, fault.to_string()))?,
            name: self.name,
            url: self.url,
            mode: self.mode.map(Mode::from).unwrap_or_default(),
            requested: None,
        })
    }
}

/// What is to be changed of a client. What is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientChange {
    /// What people call it.
    #[schema(
        nullable = false,
        min_length = 1,
        max_length = 256,
        example = "Night watch"
    )]
    name: Option<String>,
    /// Where deliveries are POSTed.
    #[schema(
        nullable = false,
        max_length = 2048,
        example = "https://hooks.example.com/antumbra"
    )]
    url: Option<String>,
    /// Which deliveries it wants.
    #[schema(nullable = false)]
    mode: Option<ModeWord>,
}

impl ClientChange {
    pub(super) fn patch(self) -> ClientPatch {
        ClientPatch {
            name: self.name,
            url: self.url,
            mode: self.mode.map(Mode::from),
        }
    }
}

/// How a client is deleted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Its links go with it.
    #[serde(default)]
    pub(super) cascade: bool,
}

/// How a secret is replaced.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(crate) struct RotateQuery {
    /// How long the secret before stays in force beside the new one: a day unless said otherwise.
    #[param(minimum = 0, maximum = 2592000, default = 86400)]
    pub(super) keep_previous_seconds: Option<u64>,
}

/// A client.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Client)]
pub(crate) struct ClientAnswer {
    /// Its id.
    #[schema(example = "night-watch")]
    id: String,
    /// What people call it.
    #[schema(example = "Night watch")]
    name: String,
    /// Where deliveries are POSTed.
    #[schema(example = "https://hooks.example.com/antumbra")]
    url: String,
    /// Which deliveries it wants.
    mode: ModeWord,
    /// Whether deliveries are sent. While they are not, they are kept.
    enabled: bool,
    /// Why they are not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disabled_reason: Option<String>,
    /// Since when they are not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    disabled_since: Option<String>,
    /// Attempts that failed since the last one that succeeded.
    failures: u32,
    /// Until when nothing is tried, after too many of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    paused_until: Option<String>,
    /// How often it was written. In quotes, it is the client's entity tag.
    #[schema(minimum = 1)]
    version: i64,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<&Client> for ClientAnswer {
    fn from(client: &Client) -> ClientAnswer {
        let (reason, since) = match &client.state {
            ClientState::Enabled => (None, None),
            ClientState::Disabled { reason, since } => {
                (Some(reason.clone()), Some(since.to_string()))
            }
        };
        ClientAnswer {
            id: client.id.to_string(),
            name: client.name.clone(),
            url: client.url.clone(),
            mode: client.mode.into(),
            enabled: reason.is_none(),
            disabled_reason: reason,
            disabled_since: since,
            failures: client.circuit.failures,
            paused_until: client.circuit.open_until.map(|until| until.to_string()),
            version: client.version.0,
            created_at: client.created.to_string(),
            updated_at: client.updated.to_string(),
        }
    }
}

/// A client that was just made.
#[derive(Serialize, ToSchema)]
#[schema(as = CreatedClient)]
pub(crate) struct CreatedAnswer {
    /// What its deliveries are signed with, as Standard Webhooks says. It is told this once.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    secret: String,
    #[serde(flatten)]
    client: ClientAnswer,
}

impl CreatedAnswer {
    pub(super) fn new(client: &Client, secret: &Secret) -> CreatedAnswer {
        CreatedAnswer {
            secret: secret.reveal().to_owned(),
            client: client.into(),
        }
    }
}

/// A new signing secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewSecret)]
pub(crate) struct SecretAnswer {
    /// What deliveries are signed with from now on. It is told this once.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    secret: String,
    /// Until when they are signed with the one before as well.
    #[schema(format = DateTime)]
    previous_until: String,
}

impl From<&Rotated> for SecretAnswer {
    fn from(rotated: &Rotated) -> SecretAnswer {
        SecretAnswer {
            secret: rotated.secret.reveal().to_owned(),
            previous_until: rotated.previous_until.to_string(),
        }
    }
}

/// A page of clients.
#[derive(Serialize, ToSchema)]
#[schema(as = Clients)]
pub(crate) struct ClientPage {
    /// The clients, by id.
    clients: Vec<ClientAnswer>,
    /// Where the next page starts; not there on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
}

impl From<Page<Client>> for ClientPage {
    fn from(page: Page<Client>) -> ClientPage {
        ClientPage {
            clients: page.rows.iter().map(ClientAnswer::from).collect(),
            next: page.next.map(|cursor| cursor.0),
        }
    }
}
