//! Login tokens and sessions, in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_shadow::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::Markup;
use subtle::ConstantTimeEq as _;

use crate::state::lock;

/// Time within which a login token can be used.
const TOKEN_TIME: Duration = Duration::from_secs(10 * 60);
/// Unused tokens and open sessions that are kept; the oldest make room for new ones.
const KEPT: usize = 64;

/// Login tokens that were not used yet, and sessions.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tokens: VecDeque<(String, Timestamp)>,
    sessions: VecDeque<Arc<SessionState>>,
}

/// The content of the cookie.
#[derive(Debug, Clone)]
pub(crate) struct SessionId(pub(crate) String);

#[derive(Debug)]
pub(crate) struct SessionState {
    id: String,
    /// Token that every form of this session carries.
    pub(crate) csrf: String,
    /// Result of the last write, shown once on the next page.
    toast: Mutex<Option<Markup>>,
}

impl SessionState {
    pub(crate) fn set_toast(&self, toast: Markup) {
        *lock(&self.toast) = Some(toast);
    }

    pub(crate) fn take_toast(&self) -> Option<Markup> {
        lock(&self.toast).take()
    }

    pub(super) fn is_csrf(&self, token: &str) -> bool {
        same(&self.csrf, token)
    }
}

impl Logins {
    /// Makes a token that opens one session.
    pub(crate) fn new_token(&self, now: Timestamp) -> String {
        let token = random();
        let mut known = lock(&self.0);
        known.tokens.push_back((token.clone(), now));
        if known.tokens.len() > KEPT {
            known.tokens.pop_front();
        }
        token
    }

    /// Uses a token up, and opens a session for it.
    pub(crate) fn log_in(&self, token: &str, now: Timestamp) -> Option<SessionId> {
        let mut known = lock(&self.0);
        known
            .tokens
            .retain(|(_, made)| now < made.after(TOKEN_TIME));
        let found = known.tokens.iter().position(|(one, _)| same(one, token))?;
        known.tokens.remove(found);
        let session = SessionState {
            id: random(),
            csrf: random(),
            toast: Mutex::default(),
        };
        let id = SessionId(session.id.clone());
        known.sessions.push_back(Arc::new(session));
        if known.sessions.len() > KEPT {
            known.sessions.pop_front();
        }
        Some(id)
    }

    pub(super) fn session(&self, id: &str) -> Option<Arc<SessionState>> {
        let known = lock(&self.0);
        let found = known.sessions.iter().find(|one| same(&one.id, id));
        found.cloned()
    }
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// 256 bits from the operating system, for URLs and cookies.
pub(crate) fn random() -> String {
    let mut bytes = [0; 32];
    // A system without randomness has no secrets, and so no console.
    #[allow(clippy::expect_used)]
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}
