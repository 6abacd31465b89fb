//! The last attempts of clients. They are read at most once in five seconds, whatever the number of open pages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clients::{Client, ClientId, ClientState};
use antumbra_service::deliveries::{Attempt, HistoryQuery, Status, Subject};
use antumbra_shadow::Timestamp;

use super::clients::succeeded;
use crate::state::lock;
use crate::view::View;

/// Time for which attempts are kept.
const KEPT: Duration = Duration::from_secs(5);
/// Attempts in the bars of a client, and the deliveries that are read for them: the newest may have none yet.
const BARS: usize = 20;
const BARS_DELIVERIES: usize = 100;
/// Held deliveries that are counted.
pub(super) const HELD: usize = 100;

/// The last attempts of a client.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Oldest first.
    pub(super) attempts: Vec<Attempt>,
    pub(super) last_success: Option<Timestamp>,
    /// Held deliveries of a disabled client, up to [`HELD`].
    pub(super) held: usize,
}

/// The last attempts of clients, with the times at which they were read.
#[derive(Debug, Default)]
pub(crate) struct LastAttempts(Mutex<HashMap<ClientId, (Timestamp, Arc<Attempts>)>>);

/// Reads the last attempts of a client, unless they were read in the last seconds.
pub(super) async fn last_attempts(view: &View, client: &Client) -> Arc<Attempts> {
    let LastAttempts(cache) = &view.console.last_attempts;
    let found = lock(cache).get(&client.id).cloned();
    if let Some((read, found)) = found
        && view.now < read.after(KEPT)
    {
        return found;
    }
    let attempts = Arc::new(read(view, client).await);
    let mut cached = lock(cache);
    cached.retain(|_, (read, _)| view.now < read.after(KEPT));
    cached.insert(client.id.clone(), (view.now, Arc::clone(&attempts)));
    attempts
}

async fn read(view: &View, client: &Client) -> Attempts {
    let deliveries = &view.console.services.deliveries;
    let query = HistoryQuery {
        limit: BARS_DELIVERIES,
        ..HistoryQuery::of(Subject::Client(client.id.clone()))
    };
    let found = deliveries.list(&query, None).await;
    let rows = found.map(|page| page.rows).unwrap_or_default();
    let mut attempts: Vec<Attempt> = rows.into_iter().flat_map(|row| row.attempts).collect();
    attempts.sort_by_key(|attempt| attempt.at);
    let success = attempts.iter().rev().find(|attempt| succeeded(attempt));
    let last_success = success.map(|attempt| attempt.at);
    let first = attempts.len().saturating_sub(BARS);
    let held = match client.state {
        ClientState::Enabled => 0,
        ClientState::Disabled { .. } => count_held(view, &client.id, HELD).await,
    };
    Attempts {
        attempts: attempts.split_off(first),
        last_success,
        held,
    }
}

/// Counts the held deliveries of a client, up to a limit.
pub(super) async fn count_held(view: &View, client: &ClientId, limit: usize) -> usize {
    let query = HistoryQuery {
        status: Some(Status::Held),
        limit,
        ..HistoryQuery::of(Subject::Client(client.clone()))
    };
    let page = view.console.services.deliveries.list(&query, None).await;
    page.map_or(0, |page| page.rows.len())
}
