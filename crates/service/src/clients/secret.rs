//! Signing secrets of clients.
//!
//! A secret is shown once, when it is created. After that only signers read it: no listing contains it, and its
//! debug form hides it.

use std::fmt;
use std::time::Duration;

use antumbra_shadow::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Prefix of symmetric secrets in Standard Webhooks.
const PREFIX: &str = "whsec_";
/// Bytes of a generated secret; Standard Webhooks requires 24 to 64.
const BYTES: usize = 32;
/// Random bytes of a request without a name, and the time for which its write may be repeated.
const ONCE_BYTES: usize = 12;
const ONCE: Duration = Duration::from_secs(3600);

/// A signing secret, `whsec_` and base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Error of a text that is not a secret. It does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is whsec_ and the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

impl Secret {
    pub fn random() -> Secret {
        Secret(format!(
            "{PREFIX}{}",
            STANDARD.encode(random::<BYTES>().as_slice())
        ))
    }

    pub fn new(text: &str) -> Result<Secret, InvalidSecret> {
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok());
        match bytes {
            Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(Secret(text.to_owned())),
            _ => Err(InvalidSecret),
        }
    }

    /// Returns the secret, to sign with it or to show it to its owner once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The request that created a secret. If it is sent again, it gets the same secret and creates no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    pub by: String,
    /// Time until which the request is recognised. After that the same name is another request.
    pub until: Timestamp,
}

impl RequestKey {
    /// Creates the key of a request that is not sent again, but whose write a store may repeat.
    pub fn once(now: Timestamp) -> RequestKey {
        RequestKey {
            by: hexadecimal(&random::<ONCE_BYTES>()),
            until: now.after(ONCE),
        }
    }
}

/// The secrets of a client: one, or two for a while after a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    pub current: Secret,
    /// The previous secret, and the time until which deliveries are signed with it too.
    pub previous: Option<(Secret, Timestamp)>,
    /// The request that created the newest secret.
    pub requested: Option<RequestKey>,
}

impl Secrets {
    /// Returns the valid secrets, newest first.
    pub fn active(&self, now: Timestamp) -> impl Iterator<Item = &Secret> {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        std::iter::once(&self.current).chain(previous.map(|(secret, _)| secret))
    }
}

/// Returns random bytes that nobody can guess. Panics if the system has none: no secret may be created then.
#[allow(clippy::expect_used)]
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has no randomness");
    bytes
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_again_and_never_shown() {
        let secret = Secret::random();
        assert_eq!(Secret::new(secret.reveal()).as_ref(), Ok(&secret));
        assert_ne!(secret, Secret::random());
        let shown = format!("{secret:?}");
        assert!(!shown.contains(&secret.reveal()[6..]), "{shown}");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for text in ["", "whsec_", "whsec_???", "hunter2", &short, &long] {
            assert_eq!(Secret::new(text), Err(InvalidSecret), "{text}");
        }
    }

    #[test]
    fn the_previous_secret_ends() {
        let at = Timestamp::from_nanoseconds;
        let secrets = Secrets {
            current: Secret::random(),
            previous: Some((Secret::random(), at(10))),
            requested: None,
        };
        assert_eq!(secrets.active(at(9)).count(), 2);
        assert_eq!(
            secrets.active(at(10)).collect::<Vec<_>>(),
            [&secrets.current]
        );
    }
}
