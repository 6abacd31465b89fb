//! What the routes are served from: one use-case port per noun, so that the same router runs on AWS, on
//! the local stack and in tests.

mod clients;
mod messages;
mod sensors;
mod shadows;

use std::sync::Arc;

use antumbra_service::idempotency::IdempotencyStore;
use antumbra_shadow::Timestamp;

pub use clients::{ClientService, DeliveryService};
pub use messages::MessageService;
pub use sensors::SensorService;
pub use shadows::ShadowService;

/// Everything the routes need. Clones are the same.
#[derive(Clone)]
pub struct Api(Arc<Services>);

/// The services behind an [`Api`].
pub struct Services {
    /// Device shadows.
    pub shadows: Box<dyn ShadowService>,
    /// The inbox.
    pub messages: Box<dyn MessageService>,
    /// Sensors, their readings and states.
    pub sensors: Box<dyn SensorService>,
    /// Clients and their links to sensors.
    pub clients: Box<dyn ClientService>,
    /// What clients were told.
    pub deliveries: Box<dyn DeliveryService>,
    /// Answers to requests with an `Idempotency-Key`.
    pub answers: Box<dyn IdempotencyStore>,
    /// What the time is.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Api {
    /// Routes served from these.
    pub fn new(services: Services) -> Api {
        Api(Arc::new(services))
    }

    pub(crate) fn shadows(&self) -> &dyn ShadowService {
        &*self.0.shadows
    }

    pub(crate) fn messages(&self) -> &dyn MessageService {
        &*self.0.messages
    }

    pub(crate) fn sensors(&self) -> &dyn SensorService {
        &*self.0.sensors
    }

    pub(crate) fn clients(&self) -> &dyn ClientService {
        &*self.0.clients
    }

    pub(crate) fn deliveries(&self) -> &dyn DeliveryService {
        &*self.0.deliveries
    }

    pub(crate) fn answers(&self) -> &dyn IdempotencyStore {
        &*self.0.answers
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0.now)()
    }
}
