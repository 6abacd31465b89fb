//! Purges: data of something that was deleted, which is deleted in the background.

use antumbra_shadow::Timestamp;

use crate::clock::Clock;
use crate::sensors::{Generation, SensorId};
use crate::shadows::ShadowId;
use crate::store::{SendFuture, StoreError};

/// Data to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// The readings of a sensor that was unregistered.
    Readings {
        sensor: SensorId,
        generation: Generation,
    },
    /// The past of a shadow.
    Past(ShadowId),
}

/// Carries out purges, a part per call. Progress is kept, so a purge can stop anywhere.
pub trait PurgeQueue: Send + Sync {
    fn due_purges(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> impl SendFuture<Result<Vec<Purge>, StoreError>>;

    /// Deletes some of the remaining data. Returns whether this was the last. A purge that finds nothing is kept for a
    /// while, because a function that runs may still add to the data, and is then removed.
    fn purge(&self, purge: &Purge, now: Timestamp) -> impl SendFuture<Result<bool, StoreError>>;
}

/// Continues due purges as long as there are any and `more` returns true. Returns the number of completed purges. After
/// an error it goes on with the other purges that are due, and then fails; the next call continues.
pub async fn purge_due<P: PurgeQueue>(
    store: &P,
    clock: &dyn Clock,
    more: impl Fn() -> bool,
) -> Result<usize, StoreError> {
    const PURGES_AT_ONCE: usize = 100;
    let mut ended = 0;
    while more() {
        let due = store.due_purges(clock.now(), PURGES_AT_ONCE).await?;
        let (mut went_on, mut failure) = (false, None);
        for purge in &due {
            if more() {
                match store.purge(purge, clock.now()).await {
                    Ok(has_ended) => ended += usize::from(has_ended),
                    Err(error) => failure = failure.or(Some(error)),
                }
                went_on = true;
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if !went_on {
            break;
        }
    }
    Ok(ended)
}
