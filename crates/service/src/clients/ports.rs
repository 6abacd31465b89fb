//! Ports of clients and links.

use antumbra_shadow::Timestamp;
use async_trait::async_trait;

use super::client::{Client, ClientPatch, ClientState, Link, LinkedClient};
use super::id::ClientId;
use super::secret::{RequestKey, Secret, Secrets};
use crate::access::IdRanges;
use crate::paging::{Cursor, Page};
use crate::sensors::SensorId;
use crate::store::{ErrorClass, SendFuture, StoreError, Version};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("no such client")]
    NotFound,
    #[error("no such sensor")]
    NoSensor,
    #[error("the client and the sensor are not linked")]
    NotLinked,
    #[error("the client exists already")]
    AlreadyExists,
    #[error("the client has version {actual}, not {expected}")]
    Conflict { expected: Version, actual: Version },
    /// The client has links and cascade was not requested.
    #[error("the client has links to sensors")]
    HasLinks,
    /// A request created a secret, and another one has replaced it since.
    #[error("the secret that this request created is not valid any more; rotate the secret again")]
    SecretReplaced,
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Url(#[from] UrlRejection),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClientError {
    pub fn class(&self) -> ErrorClass {
        match self {
            ClientError::NotFound | ClientError::NoSensor | ClientError::NotLinked => {
                ErrorClass::NotFound
            }
            ClientError::AlreadyExists
            | ClientError::Conflict { .. }
            | ClientError::HasLinks
            | ClientError::SecretReplaced => ErrorClass::Conflict,
            ClientError::Invalid(_) | ClientError::Url(_) => ErrorClass::Invalid,
            ClientError::Store(error) => error.class(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the URL is refused: {0}")]
pub struct UrlRejection(pub String);

/// Decides which URLs may be called.
///
/// Law: a URL that is rejected here is also rejected when it is called. A URL that passes may still be rejected
/// then, because its host name can resolve to another address.
pub trait UrlPolicy: Send + Sync {
    /// Checks the text of a URL, and the addresses that its host name resolves to if they are known. Returns
    /// the URL as it will be called.
    fn check(&self, url: &str) -> impl SendFuture<Result<String, UrlRejection>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    pub secret: Secret,
    /// Time until which the previous secret stays valid.
    pub previous_until: Timestamp,
    pub requested: RequestKey,
    pub now: Timestamp,
}

/// Laws: every write of a client increments its version; a write with an expected version is applied only to
/// that version. Secrets are stored apart from clients and are returned by [`ClientStore::secrets`] alone.
pub trait ClientStore: Send + Sync {
    /// Stores a new client and its secret, both or neither. `AlreadyExists` if the id is taken.
    fn create(
        &self,
        client: &Client,
        secret: &Secret,
        requested: &RequestKey,
    ) -> impl SendFuture<Result<(), ClientError>>;

    fn get(&self, id: &ClientId) -> impl SendFuture<Result<Client, ClientError>>;

    /// Lists the clients whose id is one of `within` by id, in pages of at most `limit`. A client created a moment ago may
    /// be missing. Entries of other ids are not read.
    fn list(
        &self,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<Client>, ClientError>>;

    /// Changes a client and returns it. If the mode changes, so do the client's links; if that is interrupted,
    /// repeating the call completes it, also if it returns `Conflict`.
    fn update(
        &self,
        id: &ClientId,
        patch: &ClientPatch,
        expected: Option<Version>,
        now: Timestamp,
    ) -> impl SendFuture<Result<Client, ClientError>>;

    /// Enables or disables a client. Setting the current state changes nothing, not even the version.
    fn set_state(
        &self,
        id: &ClientId,
        state: &ClientState,
        now: Timestamp,
    ) -> impl SendFuture<Result<Client, ClientError>>;

    /// Makes a new secret valid and returns the secrets. The previous one stays valid for a while, older ones
    /// do not. If the newest secret, or the one before it, was created by the same request, nothing changes.
    fn rotate(
        &self,
        id: &ClientId,
        rotation: &Rotation,
    ) -> impl SendFuture<Result<Secrets, ClientError>>;

    fn secrets(&self, id: &ClientId) -> impl SendFuture<Result<Secrets, ClientError>>;

    /// Deletes a client, with `cascade` also its links; without it, a client with links is `HasLinks`. An
    /// error other than `Unavailable` means that nothing was deleted; the same call completes a delete that
    /// was interrupted. The history remains until it expires.
    fn delete(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        cascade: bool,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), ClientError>>;
}

/// Law: a link exists on both sides or on neither, and only between an existing client and an existing sensor.
pub trait LinkStore: Send + Sync {
    /// Links a client to a sensor; a second time changes nothing.
    fn link(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), ClientError>>;

    /// Removes a link; `NotLinked` if there is none.
    fn unlink(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> impl SendFuture<Result<(), ClientError>>;

    /// Lists the links of a client, by sensor.
    fn of_client(
        &self,
        client: &ClientId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<Link>, ClientError>>;

    /// Lists the links of a sensor, by client.
    fn of_sensor(
        &self,
        sensor: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl SendFuture<Result<Page<Link>, ClientError>>;
}

/// The clients that a sensor's events go to: the only access to links that the stream listener needs.
///
/// Laws: every link made before the call is in the result, however many there are. So is a link that was removed, for
/// longer than a stream keeps a record: the listener may have recorded a delivery to its client that it has yet to
/// queue.
#[async_trait]
pub trait LinkedClients: Send + Sync {
    async fn linked(&self, sensor: &SensorId) -> Result<Vec<LinkedClient>, StoreError>;
}
