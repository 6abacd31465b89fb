//! Clients of webhooks: their endpoints come and go, and so do they.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clients::{ClientId, ClientState, Mode, NewClient};
use antumbra_service::deliveries::{DeliveryRecord, HistoryQuery, Subject};
use antumbra_service::sensors::{SensorError, SensorId};
use tokio::time::Instant;

use super::{moments, until};
use crate::endpoint::{Behaviour, Endpoints};
use crate::functions::Wiring;
use crate::world::{World, lock};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before a call that must succeed is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Maximum time for which a sensor is not registered.
const ABSENCE: Duration = Duration::from_secs(20);
/// Maximum attempts of a call that must succeed.
const TRIES: usize = 50;

/// Expected behaviour of a client's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Character {
    /// Always there; its endpoint is healthy from the beginning.
    Steady,
    /// Always there; its endpoint has bad days, but not for ever.
    Moody,
    /// Always there; its endpoint never works.
    Dead,
    /// Is disabled and enabled, also by its endpoint.
    Fickle,
    Leaving,
}

#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    pub(crate) character: Character,
    /// The sensors it was linked to at the beginning.
    pub(crate) sensors: Vec<String>,
}

/// An intent to link or unlink a client and a sensor or, without a sensor, to enable or disable the client.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    pub(crate) client: String,
    pub(crate) sensor: Option<String>,
    pub(crate) wanted: bool,
    /// In milliseconds.
    pub(crate) began: u64,
    /// Time of the confirmation, if there was one.
    pub(crate) confirmed: Option<u64>,
}

/// A registration of a sensor that was registered before.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) sensor: String,
    pub(crate) generation: String,
    /// Time of the confirmation, in milliseconds.
    pub(crate) confirmed: u64,
}

/// All clients. Clones are the same.
#[derive(Clone)]
pub(crate) struct ClientActors {
    world: Arc<World>,
    wiring: Wiring,
    endpoints: Endpoints,
    clients: Arc<Mutex<Vec<Known>>>,
    intents: Arc<Mutex<Vec<Intent>>>,
    registrations: Arc<Mutex<Vec<Registration>>>,
}

impl ClientActors {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> ClientActors {
        ClientActors {
            world: Arc::clone(world),
            wiring: wiring.clone(),
            endpoints: wiring.endpoints.clone(),
            clients: Arc::default(),
            intents: Arc::default(),
            registrations: Arc::default(),
        }
    }

    /// Intents, in the order in which they began.
    pub(crate) fn intents(&self) -> Vec<Intent> {
        lock(&self.intents).clone()
    }

    /// Records an intent; the response confirms it.
    fn intend(&self, client: &str, sensor: Option<&str>, wanted: bool) -> impl Fn(bool) {
        let mut intents = lock(&self.intents);
        let at = intents.len();
        intents.push(Intent {
            client: client.to_owned(),
            sensor: sensor.map(str::to_owned),
            wanted,
            began: self.world.clock.milliseconds(),
            confirmed: None,
        });
        let (world, intents) = (Arc::clone(&self.world), Arc::clone(&self.intents));
        move |done| {
            let now = world.clock.milliseconds();
            if let Some(intent) = lock(&intents).get_mut(at) {
                intent.confirmed = done.then_some(now);
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<Known> {
        lock(&self.clients).clone()
    }

    /// Creates the clients and their links.
    pub(crate) async fn create(&self, sensors: &[String]) {
        let operator = self.wiring.clients(self.world.clock);
        let chance = &self.world.chance;
        for number in 0..self.world.profile.clients {
            let id = format!("client-{number}");
            let mode = *chance.pick(&[Mode::Every, Mode::Every, Mode::Latest]);
            let mut character = *chance.pick(&[
                Character::Steady,
                Character::Steady,
                Character::Moody,
                Character::Dead,
                Character::Fickle,
                Character::Leaving,
            ]);
            if number == 0 && self.world.profile.aims.needs_operator() {
                let both = [Character::Fickle, Character::Fickle, Character::Leaving];
                character = *chance.pick(&both);
            }
            if number == 0 && self.world.profile.aims.needs_unlinking() {
                character = Character::Leaving;
            }
            let new = NewClient {
                id: ClientId::new(&id).ok(),
                name: format!("Client {number}"),
                url: Endpoints::url(&id),
                mode,
                requested: None,
            };
            let created = match operator.create(new).await {
                Ok(created) => created,
                Err(error) => panic!("{id} is not made: {error}"),
            };
            self.endpoints.set_secret(&id, created.secret.reveal());
            let linked: Vec<String> = sensors
                .iter()
                .filter(|_| chance.happens(0.8))
                .cloned()
                .collect();
            for sensor in &linked {
                self.link(&id, sensor, true).await;
            }
            if character == Character::Dead {
                let behaviour = *chance.pick(&[
                    Behaviour::Hanging,
                    Behaviour::Hanging,
                    Behaviour::Failing,
                    Behaviour::Refusing,
                ]);
                self.endpoints.set_behaviour(&id, behaviour);
            }
            lock(&self.clients).push(Known {
                id,
                mode,
                character,
                sensors: linked,
            });
        }
    }

    /// Returns the repeated registrations, in order.
    pub(crate) fn registrations(&self) -> Vec<Registration> {
        lock(&self.registrations).clone()
    }

    /// Unregisters and registers sensors again, now and then.
    pub(crate) fn start_registrations(&self, began: Instant, sensors: &[super::sensors::Known]) {
        for sensor in sensors.iter().filter(|sensor| sensor.returns) {
            let count = self.world.chance.between(1, 2) as usize;
            let (actors, sensor) = (self.clone(), sensor.clone());
            let moments = moments(&self.world, count);
            self.world.begin_work();
            self.world.spawner.spawn(async move {
                for moment in moments {
                    until(began, moment).await;
                    actors.register_again(&sensor).await;
                }
                actors.world.end_work();
            });
        }
    }

    /// Unregisters a sensor, which removes its links, registers it again, and links it again.
    async fn register_again(&self, known: &super::sensors::Known) {
        let Ok(id) = SensorId::new(&known.id) else {
            return;
        };
        let registry = self.wiring.sensors(self.world.clock);
        let clients = self.all();
        let linked = clients.iter().filter(|one| one.sensors.contains(&known.id));
        let linked: Vec<&Known> = linked.collect();
        let unlinked = linked
            .iter()
            .map(|client| self.intend(&client.id, Some(&known.id), false));
        let unlinked: Vec<_> = unlinked.collect();
        loop {
            let work = registry.unregister(&id, None);
            let done = self.world.invoke("operator", SETTLE_TIMEOUT, work).await;
            self.world
                .trace
                .step("unregister", || format!("{id}: {done:?}"));
            if matches!(done, Some(Ok(()) | Err(SensorError::NotFound))) {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        unlinked.iter().for_each(|confirm| confirm(true));
        if self.world.chance.happens(0.5) {
            tokio::time::sleep(self.world.chance.within(ABSENCE)).await;
        }
        loop {
            let sensor = super::sensors::sensor(&known.id, known.silence.as_secs());
            // A repeated attempt may find the sensor registered by the first one.
            let work = registry.put(sensor);
            let done = self.world.invoke("operator", SETTLE_TIMEOUT, work).await;
            self.world
                .trace
                .step("register", || format!("{id}: {done:?}"));
            if let Some(Ok((registered, _))) = done {
                lock(&self.registrations).push(Registration {
                    sensor: known.id.clone(),
                    generation: registered.generation.to_string(),
                    confirmed: self.world.clock.milliseconds(),
                });
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        for client in linked {
            self.link(&client.id, &known.id, true).await;
        }
    }

    pub(crate) fn start(&self, began: Instant) {
        for client in self.all() {
            let count = match client.character {
                Character::Steady | Character::Dead => 0,
                _ => self.world.chance.between(1, 4) as usize,
            };
            for moment in moments(&self.world, count) {
                let (actors, client) = (self.clone(), client.clone());
                self.world.spawner.spawn(async move {
                    until(began, moment).await;
                    actors.act(&client).await;
                });
            }
        }
    }

    async fn act(&self, client: &Known) {
        let chance = &self.world.chance;
        match client.character {
            Character::Moody => {
                let behaviours = [
                    Behaviour::Healthy,
                    Behaviour::Failing,
                    Behaviour::Refusing,
                    Behaviour::Hanging,
                    Behaviour::Busy,
                    Behaviour::Busy,
                ];
                self.endpoints
                    .set_behaviour(&client.id, *chance.pick(&behaviours));
            }
            Character::Fickle => match chance.below(4) {
                0 => self.endpoints.set_behaviour(&client.id, Behaviour::Gone),
                1 => self.disable(&client.id).await,
                2 => {
                    self.endpoints.set_behaviour(&client.id, Behaviour::Healthy);
                    self.enable(&client.id).await;
                }
                _ => {
                    let behaviour = *chance.pick(&[Behaviour::Healthy, Behaviour::Busy]);
                    self.endpoints.set_behaviour(&client.id, behaviour);
                }
            },
            Character::Leaving => {
                // Running deliveries while a link is removed are the interesting case.
                let behaviour =
                    *chance.pick(&[Behaviour::Healthy, Behaviour::Failing, Behaviour::Busy]);
                self.endpoints.set_behaviour(&client.id, behaviour);
                let linked = chance.happens(0.3);
                for sensor in &client.sensors {
                    if chance.happens(0.5) {
                        self.link(&client.id, sensor, linked).await;
                    }
                }
            }
            Character::Steady | Character::Dead => {}
        }
    }

    /// An operator acts at this moment: a client that a call is about is disabled, enabled, unlinked
    /// or linked.
    pub(crate) async fn intervene(&self, about: &str) {
        let clients = self.all();
        let is_meant = |client: &&Known| about.contains(&format!("\"CLIENT#{}\"", client.id));
        let Some(client) = clients.iter().find(is_meant) else {
            return;
        };
        let intents = self.intents();
        let is_wanted = |sensor: Option<&str>| {
            let of_both =
                |intent: &&Intent| intent.client == client.id && intent.sensor.as_deref() == sensor;
            intents.iter().rfind(of_both).is_none_or(|last| last.wanted)
        };
        match client.character {
            Character::Fickle if is_wanted(None) => self.disable(&client.id).await,
            Character::Fickle => {
                self.endpoints.set_behaviour(&client.id, Behaviour::Healthy);
                self.enable(&client.id).await;
            }
            Character::Leaving => {
                for sensor in &client.sensors {
                    self.link(&client.id, sensor, !is_wanted(Some(sensor)))
                        .await;
                }
            }
            Character::Steady | Character::Moody | Character::Dead => {}
        }
    }

    /// Returns whether a client is enabled and that was confirmed: then none of its deliveries may be held.
    async fn is_enabled(&self, client: &str) -> bool {
        let intents = self.intents();
        let mut intents = intents.iter().rev();
        let last = intents.find(|intent| intent.client == client && intent.sensor.is_none());
        let confirmed = last.is_none_or(|last| last.wanted && last.confirmed.is_some());
        let Ok(client) = ClientId::new(client) else {
            return false;
        };
        let found = self.wiring.clients(self.world.clock).get(&client).await;
        confirmed && found.is_ok_and(|client| client.state == ClientState::Enabled)
    }

    /// Ends the failures: endpoints work again, and disabled clients are enabled.
    pub(crate) async fn recover(&self) {
        for client in self.all() {
            if client.character == Character::Dead {
                continue;
            }
            self.endpoints.set_behaviour(&client.id, Behaviour::Healthy);
            if client.character == Character::Fickle && !self.is_enabled(&client.id).await {
                for _ in 0..TRIES {
                    if self.enable(&client.id).await {
                        break;
                    }
                }
            }
        }
    }

    async fn link(&self, client: &str, sensor: &str, linked: bool) {
        let (Ok(client), Ok(sensor)) = (ClientId::new(client), SensorId::new(sensor)) else {
            return;
        };
        let confirm = self.intend(client.as_str(), Some(sensor.as_str()), linked);
        let operator = self.wiring.clients(self.world.clock);
        let work = async {
            match linked {
                true => operator.link(&client, &sensor).await,
                false => operator.unlink(&client, &sensor).await,
            }
        };
        let done = self.world.invoke("operator", SETTLE_TIMEOUT, work).await;
        confirm(matches!(done, Some(Ok(()))));
        self.world
            .trace
            .step("link", || format!("{client} {sensor} {linked}: {done:?}"));
    }

    async fn disable(&self, client: &str) {
        let Ok(client) = ClientId::new(client) else {
            return;
        };
        let confirm = self.intend(client.as_str(), None, false);
        let operator = self.wiring.clients(self.world.clock);
        let work = operator.disable(&client, "the simulation says so");
        let done = self.world.invoke("operator", SETTLE_TIMEOUT, work).await;
        confirm(matches!(done, Some(Ok(_))));
        self.world
            .trace
            .step("disable", || format!("{client}: {done:?}"));
    }

    async fn enable(&self, client: &str) -> bool {
        let Ok(client) = ClientId::new(client) else {
            return false;
        };
        let confirm = self.intend(client.as_str(), None, true);
        let deliveries = self.wiring.deliveries(self.world.clock);
        let work = deliveries.enable(&client);
        let done = self.world.invoke("operator", SETTLE_TIMEOUT, work).await;
        confirm(matches!(done, Some(Ok(_))));
        self.world
            .trace
            .step("enable", || format!("{client}: {done:?}"));
        matches!(done, Some(Ok(_)))
    }

    /// Returns the whole history of a client.
    pub(crate) async fn history(&self, client: &str) -> Vec<DeliveryRecord> {
        let Ok(client) = ClientId::new(client) else {
            return Vec::new();
        };
        let deliveries = self.wiring.deliveries(self.world.clock);
        let query = HistoryQuery {
            oldest_first: true,
            ..HistoryQuery::of(Subject::Client(client))
        };
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = match deliveries.list(&query, cursor.as_ref()).await {
                Ok(page) => page,
                Err(error) => panic!("the history cannot be read: {error}"),
            };
            all.extend(page.rows);
            cursor = page.next;
            if cursor.is_none() {
                return all;
            }
        }
    }
}
