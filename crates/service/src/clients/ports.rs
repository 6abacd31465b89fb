//! Ports of clients and links.

use std::future::Future;

use antumbra_shadow::Timestamp;

use super::client::{Client, ClientPatch, ClientState, Link, LinkedClient};
use super::id::ClientId;
use super::secret::{RequestKey, Secret, Secrets};
use crate::paging::{Cursor, Page};
use crate::sensors::SensorId;
use crate::store::{ErrorClass, StoreError, Version};

/// Error of a request about clients or links.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client does not exist.
    #[error("no such client")]
    NotFound,
    /// The sensor does not exist.
    #[error("no such sensor")]
    NoSensor,
    /// The client is not linked to the sensor.
    #[error("the client and the sensor are not linked")]
    NotLinked,
    /// A client with this id exists.
    #[error("the client exists already")]
    AlreadyExists,
    /// Another version is stored than was expected.
    #[error("the client has version {actual}, not {expected}")]
    Conflict {
        /// Expected version.
        expected: Version,
        /// Stored version.
        actual: Version,
    },
    /// The client has links and cascade was not requested.
    #[error("the client has links to sensors")]
    HasLinks,
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The URL is not allowed.
    #[error(transparent)]
    Url(#[from] UrlRejection),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClientError {
    /// Returns the class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            ClientError::NotFound | ClientError::NoSensor | ClientError::NotLinked => {
                ErrorClass::NotFound
            }
            ClientError::AlreadyExists | ClientError::Conflict { .. } | ClientError::HasLinks => {
                ErrorClass::Conflict
            }
            ClientError::Invalid(_) | ClientError::Url(_) => ErrorClass::Invalid,
            ClientError::Store(error) => error.class(),
        }
    }
}

/// Reason for rejecting a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the URL is refused: {0}")]
pub struct UrlRejection(pub String);

/// Says which URLs are fit to be called.
///
/// Law: what is refused here is refused when it is called as well; what passes here may still be refused
/// then, as a name can lead elsewhere in the meantime.
pub trait UrlPolicy: Send + Sync {
    /// Checks the text of a URL, and where its host's name leads now if that can be told. The answer is
    /// the URL as it will be called.
    fn check(&self, url: &str) -> impl Future<Output = Result<String, UrlRejection>> + Send;
}

/// A secret that is to be put in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rotation {
    /// The new one.
    pub secret: Secret,
    /// Until when the one before stays in force.
    pub previous_until: Timestamp,
    /// Request that asks for it.
    pub requested: RequestKey,
    pub now: Timestamp,
}

/// Store of clients.
///
/// Laws: every write of a client raises its version by one; a write with an expected version takes place
/// only on that version. Secrets are kept apart from clients and are returned by
/// [`ClientStore::secrets`] alone.
pub trait ClientStore: Send + Sync {
    /// Keeps a new client and its secret, both or neither. `AlreadyExists` if the id is taken.
    fn create(
        &self,
        client: &Client,
        secret: &Secret,
        requested: &RequestKey,
    ) -> impl Future<Output = Result<(), ClientError>> + Send;

    /// The client.
    fn get(&self, id: &ClientId) -> impl Future<Output = Result<Client, ClientError>> + Send;

    /// All clients by id, in pages of at most `limit`. One that was made a moment ago may be missing.
    fn list(
        &self,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Client>, ClientError>> + Send;

    /// Changes a client and answers with what it is then. With another mode the links of the client
    /// follow; if that is interrupted, the same call again completes it.
    fn update(
        &self,
        id: &ClientId,
        patch: &ClientPatch,
        expected: Option<Version>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Client, ClientError>> + Send;

    /// Enables or disables a client. To what it already is changes nothing, not even the version.
    fn set_state(
        &self,
        id: &ClientId,
        state: &ClientState,
        now: Timestamp,
    ) -> impl Future<Output = Result<Client, ClientError>> + Send;

    /// Puts a new secret in force and answers with the secrets as they are then; the one before stays in
    /// force for a while, any other not. If the newest was made for the very request that asks, nothing
    /// changes.
    fn rotate(
        &self,
        id: &ClientId,
        rotation: &Rotation,
    ) -> impl Future<Output = Result<Secrets, ClientError>> + Send;

    /// The secrets.
    fn secrets(&self, id: &ClientId) -> impl Future<Output = Result<Secrets, ClientError>> + Send;

    /// Deletes a client, with `cascade` also its links; without it, a client with links is `HasLinks`. An
    /// error other than `Unavailable` means that nothing was deleted; the same call completes a delete that
    /// was interrupted. The history remains until it expires.
    fn delete(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        cascade: bool,
    ) -> impl Future<Output = Result<(), ClientError>> + Send;
}

/// Store of links.
///
/// Law: a link is there from both sides or from neither, and only between what exists.
pub trait LinkStore: Send + Sync {
    /// Links a client to a sensor; a second time changes nothing.
    fn link(
        &self,
        client: &ClientId,
        sensor: &SensorId,
        now: Timestamp,
    ) -> impl Future<Output = Result<(), ClientError>> + Send;

    /// Removes a link; `NotLinked` if there is none.
    fn unlink(
        &self,
        client: &ClientId,
        sensor: &SensorId,
    ) -> impl Future<Output = Result<(), ClientError>> + Send;

    /// The links of a client, by sensor.
    fn of_client(
        &self,
        client: &ClientId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Link>, ClientError>> + Send;

    /// The links of a sensor, by client.
    fn of_sensor(
        &self,
        sensor: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> impl Future<Output = Result<Page<Link>, ClientError>> + Send;
}

/// The clients a sensor's change goes to: all that the stream listener needs of links.
///
/// Law: every link that was made before the call is in the answer, however many there are.
pub trait LinkedClients: Send + Sync {
    /// All clients linked to a sensor.
    fn linked<'a>(
        &'a self,
        sensor: &'a SensorId,
    ) -> crate::notifications::BoxFuture<'a, Result<Vec<LinkedClient>, StoreError>>;
}
