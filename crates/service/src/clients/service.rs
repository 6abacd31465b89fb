//! Use cases of clients and links.

use std::sync::Arc;
use std::time::Duration;

use super::client::{
    Circuit, Client, ClientPatch, ClientState, Created, Link, NAME_CHARACTERS, NewClient,
    REASON_CHARACTERS, Rotated, URL_BYTES,
};
use super::id::ClientId;
use super::ports::{ClientError, ClientStore, LinkStore, Rotation, UrlPolicy, UrlRejection};
use super::secret::{RequestKey, Secret};
use crate::access::IdRanges;
use crate::clock::Clock;
use crate::paging::{Cursor, Page, page_limit};
use crate::sensors::SensorId;
use crate::store::Version;

/// Default time for which deliveries are also signed with the previous secret.
pub const KEEP_PREVIOUS: Duration = Duration::from_secs(24 * 3600);
/// Longest time for which the previous secret stays valid.
const KEEP_LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

pub struct Clients<S, D> {
    store: S,
    destinations: D,
    clock: Arc<dyn Clock>,
}

impl<S, D> Clients<S, D>
where
    S: ClientStore + LinkStore,
    D: UrlPolicy,
{
    pub fn new(store: S, destinations: D, clock: Arc<dyn Clock>) -> Clients<S, D> {
        Clients {
            store,
            destinations,
            clock,
        }
    }

    /// Creates a client with a new secret, which only this response contains. A repeated request gets the
    /// client and the secret that it created.
    pub async fn create(&self, new: NewClient) -> Result<Created, ClientError> {
        let now = self.clock.now();
        check_name(&new.name)?;
        let client = Client {
            id: new.id.unwrap_or_else(ClientId::random),
            name: new.name,
            url: self.check_url(&new.url).await?,
            mode: new.mode,
            state: ClientState::Enabled,
            circuit: Circuit::default(),
            version: Version::NONE.next(),
            created: now,
            updated: now,
        };
        let secret = Secret::random();
        let requested = new.requested.unwrap_or_else(|| RequestKey::once(now));
        match self.store.create(&client, &secret, &requested).await {
            Ok(()) => Ok(Created { client, secret }),
            Err(ClientError::AlreadyExists) => self.made_by(&client.id, &requested).await,
            Err(error) => Err(error),
        }
    }

    /// Returns an existing client if this request created it.
    async fn made_by(&self, id: &ClientId, by: &RequestKey) -> Result<Created, ClientError> {
        let secrets = self.store.secrets(id).await?;
        let now = self.clock.now();
        let same = |made: &RequestKey| made.by == by.by && now < made.until;
        if !secrets.requested.as_ref().is_some_and(same) {
            return Err(ClientError::AlreadyExists);
        }
        Ok(Created {
            client: self.store.get(id).await?,
            secret: secrets.current,
        })
    }

    pub async fn get(&self, id: &ClientId) -> Result<Client, ClientError> {
        self.store.get(id).await
    }

    pub async fn list(
        &self,
        within: &IdRanges,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Client>, ClientError> {
        self.store.list(within, page_limit(limit)?, cursor).await
    }

    /// Changes a client, which must have the expected version if one is given.
    pub async fn update(
        &self,
        id: &ClientId,
        patch: ClientPatch,
        expected: Option<Version>,
    ) -> Result<Client, ClientError> {
        let mut patch = patch;
        if let Some(name) = &patch.name {
            check_name(name)?;
        }
        if let Some(url) = &patch.url {
            patch.url = Some(self.check_url(url).await?);
        }
        self.store
            .update(id, &patch, expected, self.clock.now())
            .await
    }

    /// Stops sending to a client. Deliveries are held until it is enabled again (see
    /// [`crate::deliveries::Deliveries::enable`]).
    pub async fn disable(&self, id: &ClientId, reason: &str) -> Result<Client, ClientError> {
        let reason: String = reason.chars().take(REASON_CHARACTERS).collect();
        let now = self.clock.now();
        let state = ClientState::Disabled { reason, since: now };
        self.store.set_state(id, &state, now).await
    }

    /// Creates a new secret, which only this response contains. The previous one stays valid for a while. A
    /// repeated request gets the secret that it created, unless another one has replaced it since.
    pub async fn rotate_secret(
        &self,
        id: &ClientId,
        keep_previous: Duration,
        requested: Option<RequestKey>,
    ) -> Result<Rotated, ClientError> {
        if keep_previous > KEEP_LONGEST {
            let (asked, limit) = (keep_previous.as_secs(), KEEP_LONGEST.as_secs());
            return Err(ClientError::Invalid(format!(
                "the previous secret would be kept {asked} seconds, the limit is {limit}"
            )));
        }
        let now = self.clock.now();
        let rotation = Rotation {
            secret: Secret::random(),
            previous_until: now.after(keep_previous),
            requested: requested.unwrap_or_else(|| RequestKey::once(now)),
            now,
        };
        let secrets = self.store.rotate(id, &rotation).await?;
        let made = secrets.requested.as_ref();
        if made.is_none_or(|made| made.by != rotation.requested.by) {
            return Err(ClientError::SecretReplaced);
        }
        Ok(Rotated {
            secret: secrets.current,
            previous_until: secrets.previous.map_or(now, |(_, until)| until),
        })
    }

    /// Returns the secret that a request created, if it is still the newest.
    pub async fn secret_made_by(
        &self,
        id: &ClientId,
        request: &str,
    ) -> Result<Option<Secret>, ClientError> {
        match self.store.secrets(id).await {
            Ok(secrets) => {
                let made = secrets.requested.is_some_and(|made| made.by == request);
                Ok(made.then_some(secrets.current))
            }
            Err(ClientError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a client; one with links only if they are to be deleted too.
    pub async fn delete(
        &self,
        id: &ClientId,
        expected: Option<Version>,
        cascade: bool,
    ) -> Result<(), ClientError> {
        let now = self.clock.now();
        self.store.delete(id, expected, cascade, now).await
    }

    pub async fn link(&self, client: &ClientId, sensor: &SensorId) -> Result<(), ClientError> {
        self.store.link(client, sensor, self.clock.now()).await
    }

    /// Removes a link; deliveries in progress are skipped.
    pub async fn unlink(&self, client: &ClientId, sensor: &SensorId) -> Result<(), ClientError> {
        self.store.unlink(client, sensor, self.clock.now()).await
    }

    pub async fn links_of_client(
        &self,
        client: &ClientId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        // An unknown client is an error, not an empty list.
        if cursor.is_none() {
            self.store.get(client).await?;
        }
        self.store
            .of_client(client, page_limit(limit)?, cursor)
            .await
    }

    pub async fn links_of_sensor(
        &self,
        sensor: &SensorId,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<Link>, ClientError> {
        self.store
            .of_sensor(sensor, page_limit(limit)?, cursor)
            .await
    }

    async fn check_url(&self, url: &str) -> Result<String, ClientError> {
        if url.len() > URL_BYTES {
            let bytes = url.len();
            let refusal = format!("it has {bytes} bytes, the limit is {URL_BYTES}");
            return Err(ClientError::Url(UrlRejection(refusal)));
        }
        Ok(self.destinations.check(url).await?)
    }
}

fn check_name(name: &str) -> Result<(), ClientError> {
    let characters = name.chars().count();
    if characters == 0 || characters > NAME_CHARACTERS || name.chars().any(char::is_control) {
        return Err(ClientError::Invalid(format!(
            "a client's name has 1 to {NAME_CHARACTERS} characters and no control characters"
        )));
    }
    Ok(())
}
