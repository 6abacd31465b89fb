//! What the routes are served from: one use-case port per noun, so that the same router runs on AWS, on
//! the local stack and in tests.

use std::sync::Arc;

use antumbra_service::clock::Clock;
use antumbra_service::idempotency::Answers;
use antumbra_service::notifications::BoxFuture;
use antumbra_service::shadows::{
    Delete, Parts, Persistence, Shadow, ShadowError, ShadowId, Shadows, Update, Updated,
};
use antumbra_shadow::Timestamp;

/// Everything the routes need. Clones are the same.
#[derive(Clone)]
pub struct Api(Arc<Services>);

/// The services behind an [`Api`].
pub struct Services {
    /// Device shadows.
    pub shadows: Box<dyn ShadowService>,
    /// Answers to requests with an `Idempotency-Key`.
    pub answers: Box<dyn Answers>,
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

    pub(crate) fn answers(&self) -> &dyn Answers {
        &*self.0.answers
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0.now)()
    }
}

/// The use cases of shadows that the routes call.
pub trait ShadowService: Send + Sync {
    /// See [`Shadows::read`].
    fn read<'a>(
        &'a self,
        shadow: &'a ShadowId,
        parts: Parts,
    ) -> BoxFuture<'a, Result<Shadow, ShadowError>>;

    /// See [`Shadows::update`].
    fn update(&self, update: Update) -> BoxFuture<'_, Result<Updated, ShadowError>>;

    /// See [`Shadows::delete`].
    fn delete(&self, delete: Delete) -> BoxFuture<'_, Result<(), ShadowError>>;
}

impl<P: Persistence, C: Clock> ShadowService for Shadows<P, C> {
    fn read<'a>(
        &'a self,
        shadow: &'a ShadowId,
        parts: Parts,
    ) -> BoxFuture<'a, Result<Shadow, ShadowError>> {
        Box::pin(self.read(shadow, parts))
    }

    fn update(&self, update: Update) -> BoxFuture<'_, Result<Updated, ShadowError>> {
        Box::pin(self.update(update))
    }

    fn delete(&self, delete: Delete) -> BoxFuture<'_, Result<(), ShadowError>> {
        Box::pin(self.delete(delete))
    }
}
