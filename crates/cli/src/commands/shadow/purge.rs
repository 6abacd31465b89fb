//! `antumbra shadow purge`: deletes a shadow and its past.

use antumbra_dynamodb::PurgeState;
use antumbra_local::progress::Progress;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::history::purged_until;
use antumbra_service::shadows::{Delete, ShadowId};
use antumbra_shadow::Timestamp;
use clap::Args;
use serde_json::json;

use super::{HistoryTable, ShadowArguments};
use crate::connection::Connection;
use crate::error::CliError;
use crate::output::{self, FAINT, GOOD, STRONG, styled};

#[derive(Debug, Args)]
pub(crate) struct Purge {
    #[command(flatten)]
    shadow: ShadowArguments,
    #[command(flatten)]
    history: HistoryTable,
}

impl Purge {
    pub(crate) async fn run(self, connection: &Connection, json: bool) -> Result<String, CliError> {
        let id = self.shadow.id()?;
        let explain = |error: CliError| self.history.explain(connection, error);
        let history = self.history.connect(connection).await;
        // A table that does not exist is reported before anything is deleted.
        let found = history.feed_settings().await;
        found.map_err(|error| explain(error.into()))?;
        let shadows = connection.shadows(false).await?;
        let deleted = shadows.delete_timed(Delete::whole(id.clone())).await?;
        let store = shadows.store();
        let now = SystemClock.now();
        store
            .queue_purge(&id, purged_until(deleted, now), now)
            .await?;
        // The sweep would do the same within minutes, and continues if this is interrupted.
        let progress = Progress::new("items deleted");
        let purged =
            store.delete_past(&history, &id, &SystemClock, |deleted| progress.add(deleted));
        let purged = purged.await.map_err(|error| explain(error.into()))?;
        let again = match purged.state {
            PurgeState::WaitsUntil(time) => Some(time),
            _ => None,
        };
        Ok(text(&id, purged.deleted, again, json))
    }
}

fn text(id: &ShadowId, deleted: usize, again: Option<Timestamp>, json: bool) -> String {
    let again = again.map(|time| time.to_string());
    if json {
        let (id, name) = (id.id(), id.name());
        return output::json(
            &json!({ "id": id, "name": name, "purged": true, "deletedItems": deleted, "examinedAgainAt": again }),
        );
    }
    let title = styled(STRONG, &id.to_string());
    let done = styled(GOOD, "purged");
    let mut lines = vec![format!(
        "{title}  {done}, {deleted} items of its past deleted"
    )];
    if let Some(again) = again {
        let again = format!("changes that are being recorded now are deleted after {again}");
        lines.push(styled(FAINT, &again));
    }
    lines.join("\n")
}
