//! What the routes need of shadows.

use antumbra_service::clock::Clock;
use antumbra_service::notifications::BoxFuture;
use antumbra_service::shadows::{
    Delete, Parts, Persistence, Shadow, ShadowError, ShadowId, Shadows, Update, Updated,
};

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
