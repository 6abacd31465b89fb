//! What the routes need of shadows.

use antumbra_service::notifications::BoxFuture;
use antumbra_service::shadows::{
    Delete, DocumentSet, Shadow, ShadowError, ShadowId, ShadowStore, Shadows, Update, UpdateResult,
};

/// The use cases of shadows that the routes call.
pub trait ShadowService: Send + Sync {
    /// See [`Shadows::read`].
    fn read<'a>(
        &'a self,
        shadow: &'a ShadowId,
        parts: DocumentSet,
    ) -> BoxFuture<'a, Result<Shadow, ShadowError>>;

    /// See [`Shadows::update`].
    fn update(&self, update: Update) -> BoxFuture<'_, Result<UpdateResult, ShadowError>>;

    /// See [`Shadows::delete`].
    fn delete(&self, delete: Delete) -> BoxFuture<'_, Result<(), ShadowError>>;
}

impl<P: ShadowStore> ShadowService for Shadows<P> {
    fn read<'a>(
        &'a self,
        shadow: &'a ShadowId,
        parts: DocumentSet,
    ) -> BoxFuture<'a, Result<Shadow, ShadowError>> {
        Box::pin(self.read(shadow, parts))
    }

    fn update(&self, update: Update) -> BoxFuture<'_, Result<UpdateResult, ShadowError>> {
        Box::pin(self.update(update))
    }

    fn delete(&self, delete: Delete) -> BoxFuture<'_, Result<(), ShadowError>> {
        Box::pin(self.delete(delete))
    }
}
