//! Idempotency keys: requests that ran, and their responses.
//!
//! A caller that gets no response sends the same request again with the same key. The first request runs; repeated
//! ones get its stored response. The key is stored before the request runs, the response afterwards. If the invocation
//! crashes in between, its lease ends and the next request with the key runs. A request can therefore run twice, and
//! its writes must be safe to repeat.
//!
//! The HTTP API does so for requests with the header `Idempotency-Key`.

use antumbra_shadow::Timestamp;

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
    /// The caller owns the request: run it, then store its response or release its key.
    Run,
    /// Another owner is running the request.
    Running,
    /// The request ran before; this is its response.
    Answered(String),
    /// The key was used for a different request.
    OtherRequest,
}
