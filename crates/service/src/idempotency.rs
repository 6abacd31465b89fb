//! Requests that may be sent again: the first one runs, the others get its answer.
//!
//! A caller that hears nothing sends the same request with the same key once more. The port remembers the
//! key before the request runs and the answer after it, so that a request runs once unless whoever ran it
//! died half-way: then its lease ends, and the next one with the key runs. What runs must therefore
//! survive to be run twice; this makes it rare, and tells the caller what came of it.

use antumbra_shadow::Timestamp;

use crate::notifications::BoxFuture;
use crate::store::StoreError;

/// A request that carries a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Request {
    /// Key, unique to the caller.
    pub key: String,
    /// Fingerprint of the request: the same text for the same request only.
    pub fingerprint: String,
    /// Unique name of the invocation that would run it.
    pub owner: String,
    pub now: Timestamp,
    /// End of the lease; after that another invocation may run the request.
    pub lease_ends: Timestamp,
    /// Expiry of key and response.
    pub forget_at: Timestamp,
}

/// State of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotencyState {
    /// Run it, then [`IdempotencyStore::finish`] or [`IdempotencyStore::release`] it.
    Run,
    /// It is being run by another at this moment.
    Running,
    /// It was answered already, with this.
    Answered(String),
    /// The key belongs to another request.
    OtherRequest,
}

/// Remembers requests and their answers.
///
/// Laws:
/// - Of requests with one key, [`IdempotencyState::Run`] is given to one at a time, and to none after an answer was
///   kept, until the key may be forgotten.
/// - It is given again when the lease of the one that has it is over, to the same request only.
/// - Only the one that has it keeps an answer or releases it; after its lease was given to another, both
///   do nothing.
/// - An answer comes back as it was kept, whatever its length.
pub trait IdempotencyStore: Send + Sync {
    /// Asks whether to run a request.
    fn begin<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<IdempotencyState, StoreError>>;

    /// Keeps the answer for whoever asks again.
    fn finish<'a>(
        &'a self,
        request: &'a Request,
        answer: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets the request: it came to nothing, and the next one may run.
    fn release<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(), StoreError>>;
}
