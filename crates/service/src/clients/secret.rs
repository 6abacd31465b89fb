//! Signing secrets of clients.
//!
//! A secret is told once, when it is made. After that it is only read by whoever signs: it is in no
//! listing, and its debug form does not show it.

use std::fmt;
use std::time::Duration;

use antumbra_shadow::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// As Standard Webhooks serialises symmetric secrets.
const PREFIX: &str = "whsec_";
/// Bytes of a secret that we make: Standard Webhooks wants 24 to 64.
const BYTES: usize = 32;
/// Random bytes of a request without a name, and how long its write may be repeated.
const ONCE_BYTES: usize = 12;
const ONCE: Duration = Duration::from_secs(3600);

/// A signing secret, `whsec_` and base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A text that is no secret. It is not repeated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is whsec_ and the base64 of 24 to 64 bytes")]
pub struct InvalidSecret;

impl Secret {
    /// A new one.
    pub fn random() -> Secret {
        Secret(format!(
            "{PREFIX}{}",
            STANDARD.encode(random::<BYTES>().as_slice())
        ))
    }

    /// Reads one that was kept.
    pub fn new(text: &str) -> Result<Secret, InvalidSecret> {
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok());
        match bytes {
            Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(Secret(text.to_owned())),
            _ => Err(InvalidSecret),
        }
    }

    /// The secret itself, to sign with or to tell its owner once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The request that a secret was made for: sent again, it is given the same secret and makes no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Unique name of the request.
    pub by: String,
    /// Until when it is known again. After that the same text is another request.
    pub until: Timestamp,
}

impl RequestKey {
    /// By a request that nobody sends again, but whose write a store may repeat.
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
    /// The newest.
    pub current: Secret,
    /// The one before, and until when deliveries are signed with it too.
    pub previous: Option<(Secret, Timestamp)>,
    /// The request that the newest was made for.
    pub requested: Option<RequestKey>,
}

impl Secrets {
    /// Those in force, the newest first.
    pub fn active(&self, now: Timestamp) -> impl Iterator<Item = &Secret> {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        std::iter::once(&self.current).chain(previous.map(|(secret, _)| secret))
    }
}

/// Bytes that nobody can guess. Without a source of them nothing should be made that depends on it.
#[allow(clippy::expect_used)]
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has no randomness");
    bytes
}

/// Bytes as digits.
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
