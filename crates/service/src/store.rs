//! What any store may answer instead of doing what it was asked.

/// Why a call to a store failed, for whichever noun. What a noun adds of its own (not found, another
/// version, already there) is in its own error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The operation makes no sense as asked: trying again is no use.
    #[error("invalid: {0}")]
    Invalid(String),
    /// An item would be larger than the store allows: trying again is no use.
    #[error("the item has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Too many requests; worth trying again. Nothing was changed.
    #[error("throttled")]
    Throttled,
    /// The store did not answer or failed; worth trying again. A write may have taken place.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

impl StoreError {
    /// Whether the same operation may succeed a moment later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, StoreError::Throttled | StoreError::Unavailable(_))
    }
}
