//! Idempotency keys: the port that stores which requests ran, and their responses.
//!
//! A caller that gets no response sends the same request again with the same key. The first request runs; repeated
//! ones get its stored response. The key is stored before the request runs, the response afterwards. If the invocation
//! crashes in between, its lease ends and the next request with the key runs. A request can therefore run twice, and
//! its writes must be safe to repeat.
//!
//! The HTTP API uses this port for requests with the header `Idempotency-Key`.

use antumbra_shadow::Timestamp;

use crate::notifications::BoxFuture;
use crate::store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Key of the caller; other callers have other keys.
    pub key: String,
    /// Fingerprint of the request. Two requests are the same if their fingerprints are equal.
    pub fingerprint: String,
    /// Unique id of this attempt to run the request.
    pub owner: String,
    pub now: Timestamp,
    /// End of the lease. After it, another owner may run the request.
    pub lease_ends: Timestamp,
    /// Time after which key and response are forgotten.
    pub forget_at: Timestamp,
}

/// State of a request, and so what its caller should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotencyState {
    /// The caller owns the request: run it, then [`IdempotencyStore::finish`] or [`IdempotencyStore::release`] it.
    Run,
    /// Another owner is running the request.
    Running,
    /// The request ran before; this is its response.
    Answered(String),
    /// The key was used for a different request.
    OtherRequest,
}

/// Laws:
/// - Of all requests with one key, [`IdempotencyState::Run`] is returned to one owner at a time. Once a response is
///   stored, it is returned to nobody until [`Request::forget_at`].
/// - After the lease has ended, `Run` is returned to another owner if its request is the same.
/// - `finish` and `release` have an effect only for the current owner. They do nothing for an owner whose lease was
///   taken over.
/// - A stored response is returned unchanged, whatever its length.
pub trait IdempotencyStore: Send + Sync {
    /// Returns the state of a request, and takes the lease if the request should run.
    fn begin<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<IdempotencyState, StoreError>>;

    fn finish<'a>(
        &'a self,
        request: &'a Request,
        response: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes the key of a request that failed, so that a repeated request runs.
    fn release<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(), StoreError>>;
}
