//! A handler that can be replaced while it is in use.

use std::sync::{Arc, PoisonError, RwLock};

use antumbra_lambda_kit::{Handler, HandlerError, Invocation, Response};
use async_trait::async_trait;

/// Hands each invocation to the handler that is in place when it starts, and replaces it for later ones. Clones share
/// the handler.
pub(super) struct Replaceable<H>(Arc<RwLock<Arc<H>>>);

impl<H> Replaceable<H> {
    pub(super) fn new(handler: H) -> Replaceable<H> {
        Replaceable(Arc::new(RwLock::new(Arc::new(handler))))
    }

    pub(super) fn replace(&self, handler: H) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(handler);
    }

    fn current(&self) -> Arc<H> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<H> Clone for Replaceable<H> {
    fn clone(&self) -> Replaceable<H> {
        Replaceable(Arc::clone(&self.0))
    }
}

#[async_trait]
impl<H: Handler> Handler for Replaceable<H> {
    async fn handle(&self, invocation: Invocation) -> Result<Response, HandlerError> {
        let current = self.current();
        current.handle(invocation).await
    }
}

#[cfg(test)]
mod tests {
    use antumbra_shadow::Timestamp;
    use tokio::sync::Notify;

    use super::*;

    /// Responds with its number, after it is released.
    struct Numbered(u32, Arc<Notify>);

    #[async_trait]
    impl Handler for Numbered {
        async fn handle(&self, _: Invocation) -> Result<Response, HandlerError> {
            self.1.notified().await;
            Response::json(&self.0, Vec::new())
        }
    }

    #[tokio::test]
    async fn an_invocation_in_progress_keeps_its_handler() {
        let invocation = || Invocation {
            event: "{}".into(),
            deadline: Timestamp::from_nanoseconds(0),
            request_id: String::new(),
        };
        let [first, second] = [Arc::new(Notify::new()), Arc::new(Notify::new())];
        let handler = Replaceable::new(Numbered(1, Arc::clone(&first)));
        let mut running = handler.handle(invocation());
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        handler.replace(Numbered(2, Arc::clone(&second)));
        first.notify_one();
        assert_eq!(running.await.unwrap().payload, "1");
        second.notify_one();
        assert_eq!(handler.handle(invocation()).await.unwrap().payload, "2");
    }
}
