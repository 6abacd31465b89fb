//! The port of who has one document of a shadow and needs the other.

use antumbra_shadow::State;

use super::id::ShadowId;
use super::store::{DocumentSet, Read, ReadConsistency, ShadowStore, StoredDocument};
use crate::notifications::BoxFuture;
use crate::store::StoreError;

/// Reads documents that are kept apart, each as it is now.
///
/// Laws: one result per document, in the order asked; every write that was answered before is seen; what
/// is not there is `None`.
pub trait CurrentDocuments: Send + Sync {
    /// Reads documents.
    fn current<'a>(
        &'a self,
        wanted: &'a [(ShadowId, State)],
    ) -> BoxFuture<'a, Vec<Result<Option<StoredDocument>, StoreError>>>;
}

impl<P: ShadowStore + 'static> CurrentDocuments for P {
    fn current<'a>(
        &'a self,
        wanted: &'a [(ShadowId, State)],
    ) -> BoxFuture<'a, Vec<Result<Option<StoredDocument>, StoreError>>> {
        Box::pin(async move {
            let reads: Vec<Read> = wanted
                .iter()
                .map(|(shadow, state)| Read {
                    shadow: shadow.clone(),
                    parts: match state {
                        State::Reported => DocumentSet::Reported,
                        State::Desired => DocumentSet::Desired,
                    },
                })
                .collect();
            let found = self.read_many(&reads, ReadConsistency::Strong).await;
            found
                .into_iter()
                .map(|found| match found {
                    Ok(snapshot) => Ok(snapshot.reported.or(snapshot.desired)),
                    Err(StoreError::NotFound) => Ok(None),
                    Err(error) => Err(error),
                })
                .collect()
        })
    }
}
