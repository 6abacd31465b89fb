//! What the routes need of clients, links and deliveries.

use std::time::Duration;

use antumbra_service::clients::{
    Client, ClientError, ClientId, ClientPatch, ClientStore, Clients, Created, Link, LinkStore,
    NewClient, RequestKey, Rotated, Secret, UrlPolicy,
};
use antumbra_service::deliveries::{
    Deliveries, DeliveryId, DeliveryRecord, History, HistoryQuery, RedeliverError, Requeued,
};
use antumbra_service::notifications::BoxFuture;
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;

type Outcome<'a, T> = BoxFuture<'a, Result<T, ClientError>>;

/// The use cases of clients and links that the routes call; see [`Clients`] for each.
#[allow(missing_docs)]
pub trait ClientService: Send + Sync {
    fn create(&self, new: NewClient) -> Outcome<'_, Created>;
    fn get<'a>(&'a self, id: &'a ClientId) -> Outcome<'a, Client>;
    fn list<'a>(&'a self, limit: usize, cursor: Option<&'a Cursor>) -> Outcome<'a, Page<Client>>;
    fn update<'a>(
        &'a self,
        id: &'a ClientId,
        patch: ClientPatch,
        expected: Option<Version>,
    ) -> Outcome<'a, Client>;
    fn rotate_secret<'a>(
        &'a self,
        id: &'a ClientId,
        keep_previous: Duration,
        requested: Option<RequestKey>,
    ) -> Outcome<'a, Rotated>;
    fn secret_made_by<'a>(
        &'a self,
        id: &'a ClientId,
        request: &'a str,
    ) -> Outcome<'a, Option<Secret>>;
    fn delete<'a>(
        &'a self,
        id: &'a ClientId,
        expected: Option<Version>,
        cascade: bool,
    ) -> Outcome<'a, ()>;
    fn link<'a>(&'a self, client: &'a ClientId, sensor: &'a SensorId) -> Outcome<'a, ()>;
    fn unlink<'a>(&'a self, client: &'a ClientId, sensor: &'a SensorId) -> Outcome<'a, ()>;
    fn links_of_client<'a>(
        &'a self,
        client: &'a ClientId,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Link>>;
    fn links_of_sensor<'a>(
        &'a self,
        sensor: &'a SensorId,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Link>>;
}

impl<S, D> ClientService for Clients<S, D>
where
    S: ClientStore + LinkStore,
    D: UrlPolicy,
{
    fn create(&self, new: NewClient) -> Outcome<'_, Created> {
        Box::pin(self.create(new))
    }

    fn get<'a>(&'a self, id: &'a ClientId) -> Outcome<'a, Client> {
        Box::pin(self.get(id))
    }

    fn list<'a>(&'a self, limit: usize, cursor: Option<&'a Cursor>) -> Outcome<'a, Page<Client>> {
        Box::pin(self.list(limit, cursor))
    }

    fn update<'a>(
        &'a self,
        id: &'a ClientId,
        patch: ClientPatch,
        expected: Option<Version>,
    ) -> Outcome<'a, Client> {
        Box::pin(self.update(id, patch, expected))
    }

    fn rotate_secret<'a>(
        &'a self,
        id: &'a ClientId,
        keep_previous: Duration,
        requested: Option<RequestKey>,
    ) -> Outcome<'a, Rotated> {
        Box::pin(self.rotate_secret(id, keep_previous, requested))
    }

    fn secret_made_by<'a>(
        &'a self,
        id: &'a ClientId,
        request: &'a str,
    ) -> Outcome<'a, Option<Secret>> {
        Box::pin(self.secret_made_by(id, request))
    }

    fn delete<'a>(
        &'a self,
        id: &'a ClientId,
        expected: Option<Version>,
        cascade: bool,
    ) -> Outcome<'a, ()> {
        Box::pin(self.delete(id, expected, cascade))
    }

    fn link<'a>(&'a self, client: &'a ClientId, sensor: &'a SensorId) -> Outcome<'a, ()> {
        Box::pin(self.link(client, sensor))
    }

    fn unlink<'a>(&'a self, client: &'a ClientId, sensor: &'a SensorId) -> Outcome<'a, ()> {
        Box::pin(self.unlink(client, sensor))
    }

    fn links_of_client<'a>(
        &'a self,
        client: &'a ClientId,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Link>> {
        Box::pin(self.links_of_client(client, limit, cursor))
    }

    fn links_of_sensor<'a>(
        &'a self,
        sensor: &'a SensorId,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Link>> {
        Box::pin(self.links_of_sensor(sensor, limit, cursor))
    }
}

type Told<'a, T> = BoxFuture<'a, Result<T, RedeliverError>>;

/// The use cases of deliveries that the routes call; see [`Deliveries`] for each.
#[allow(missing_docs)]
pub trait DeliveryService: Send + Sync {
    fn list<'a>(
        &'a self,
        query: &'a HistoryQuery,
        cursor: Option<&'a Cursor>,
    ) -> Told<'a, Page<DeliveryRecord>>;
    fn redeliver<'a>(&'a self, id: &'a DeliveryId) -> Told<'a, ()>;
    fn redeliver_since<'a>(
        &'a self,
        client: &'a ClientId,
        since: Timestamp,
        delivered: bool,
        cursor: Option<&'a Cursor>,
    ) -> Told<'a, Requeued>;
    fn enable<'a>(&'a self, client: &'a ClientId) -> Told<'a, usize>;
    fn test<'a>(&'a self, client: &'a ClientId) -> Told<'a, DeliveryId>;
}

impl<S: ClientStore, H: History> DeliveryService for Deliveries<S, H> {
    fn list<'a>(
        &'a self,
        query: &'a HistoryQuery,
        cursor: Option<&'a Cursor>,
    ) -> Told<'a, Page<DeliveryRecord>> {
        Box::pin(self.list(query, cursor))
    }

    fn redeliver<'a>(&'a self, id: &'a DeliveryId) -> Told<'a, ()> {
        Box::pin(self.redeliver(id))
    }

    fn redeliver_since<'a>(
        &'a self,
        client: &'a ClientId,
        since: Timestamp,
        delivered: bool,
        cursor: Option<&'a Cursor>,
    ) -> Told<'a, Requeued> {
        Box::pin(self.redeliver_since(client, since, delivered, cursor))
    }

    fn enable<'a>(&'a self, client: &'a ClientId) -> Told<'a, usize> {
        Box::pin(self.enable(client))
    }

    fn test<'a>(&'a self, client: &'a ClientId) -> Told<'a, DeliveryId> {
        Box::pin(self.test(client))
    }
}
