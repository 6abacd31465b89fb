//! `antumbra shadow …`: reads and changes device shadows.

pub(crate) mod past;
mod purge;
mod render;

use antumbra_service::shadows::{
    ClientToken, Delete, DesiredMode, DocumentSet, ExpectedVersion, ShadowId, ShadowStore, Shadows,
    State, Update, Version, Zone,
};
use antumbra_shadow::{Document, Mode, Timestamp};
use clap::{Args, Subcommand, ValueEnum};

use super::changes::Watch;
use crate::connection::Connection;
use crate::error::CliError;
use crate::input::{Paging, text};
pub(crate) use past::{HistoryTable, PastCommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    #[command(flatten)]
    Stored(StoredCommand),
    #[command(flatten)]
    Past(PastCommand),
    /// Delete a shadow and its past.
    ///
    /// The shadow is deleted as by `shadow delete`. Recorded changes up to then are deleted too, for good; backups keep
    /// theirs for up to 35 days. The liveness sweep continues if the command is interrupted.
    ///
    /// Example: antumbra shadow purge lamp-7
    Purge(purge::Purge),
    /// Show changes of shadows as they happen, until Ctrl-C.
    ///
    /// They are read from the change feed, without a registration or a broker, about a second after they were made.
    ///
    /// Example: antumbra shadow watch lamp-7
    Watch(Watch),
}

/// Commands that read or write the table.
#[derive(Debug, Subcommand)]
pub(crate) enum StoredCommand {
    /// Show a shadow, as it is or as it was.
    ///
    /// Example: antumbra shadow get lamp-7 --at -10m
    Get {
        #[command(flatten)]
        shadow: ShadowArguments,
        /// Time of the state: RFC 3339, or back from now such as -10m.
        #[arg(long, value_name = "TIME", value_parser = past::moment, allow_hyphen_values = true)]
        at: Option<Timestamp>,
        #[command(flatten)]
        history: HistoryTable,
        /// Part of the shadow to show.
        #[arg(long, value_enum, default_value_t = Part::All)]
        part: Part,
    },
    /// Merge a document into the reported document, and with --desire another into the desired one, in one write.
    ///
    /// Example: antumbra shadow report lamp-7 '{"led":{"value":"on","timestamp":"2026-01-31T12:00:00Z"}}'
    Report {
        #[command(flatten)]
        change: Change,
        /// Desired document to merge in the same write: a JSON object or @FILE.
        #[arg(long, value_name = "DOCUMENT", conflicts_with = "expected")]
        desire: Option<String>,
    },
    /// Merge a document into the desired document.
    ///
    /// Example: antumbra shadow desire lamp-7 '{"led":{"value":"off"}}'
    Desire(Change),
    /// Delete a shadow, or one of its documents.
    ///
    /// Example: antumbra shadow delete lamp-7 --part desired
    Delete {
        #[command(flatten)]
        shadow: ShadowArguments,
        /// Part of the shadow to delete.
        #[arg(long, value_enum, default_value_t = Deletable::All)]
        part: Deletable,
        /// Delete only if this version is stored: of the part, or else of the shadow, which is the sum of both
        /// documents' versions in the separate layout.
        #[arg(long)]
        expected: Option<i64>,
    },
    /// List the documents of a device, or the shadows of many devices.
    ///
    /// Example: antumbra shadow list --prefix lamp-
    List {
        /// Device id, to list its documents.
        #[arg(conflicts_with = "prefix")]
        id: Option<String>,
        /// Start of the device ids, to list their shadows; all shadows by default.
        #[arg(long, default_value = "", hide_default_value = true)]
        prefix: String,
        #[command(flatten)]
        paging: Paging,
    },
}

impl StoredCommand {
    /// Shows a shadow as it was at a time; `None` for any other command.
    pub(crate) async fn run_at(
        &self,
        connection: &Connection,
        json: bool,
    ) -> Option<Result<String, CliError>> {
        let StoredCommand::Get {
            shadow,
            part,
            at: Some(at),
            history,
        } = self
        else {
            return None;
        };
        Some(match shadow.id() {
            Ok(id) => past::get_at(&id, *at, *part, history, connection, json).await,
            Err(error) => Err(error),
        })
    }

    /// Returns `true` if the command may create a shadow.
    pub(crate) fn writes(&self) -> bool {
        matches!(
            self,
            StoredCommand::Report { .. } | StoredCommand::Desire(_)
        )
    }

    /// The error if the shadow does not exist.
    pub(crate) fn missing(&self) -> Option<String> {
        let (StoredCommand::Get { shadow, .. } | StoredCommand::Delete { shadow, .. }) = self
        else {
            return None;
        };
        Some(format!(
            "the shadow {}/{} does not exist; `antumbra shadow list` shows those that do",
            shadow.id, shadow.name
        ))
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShadowArguments {
    /// Device id; any text.
    id: String,
    /// Shadow name.
    #[arg(long, default_value = "main")]
    name: String,
}

impl ShadowArguments {
    fn id(&self) -> Result<ShadowId, CliError> {
        ShadowId::named(&self.id, &self.name).map_err(CliError::invalid)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    shadow: ShadowArguments,
    /// A JSON object, @FILE, or - for standard input.
    document: String,
    /// ServerIsMaster, ClientIsMaster or Patch.
    #[arg(long)]
    mode: Option<Mode>,
    /// Write only if this version is stored; 0 to create.
    #[arg(long)]
    expected: Option<i64>,
    /// Client token that is stored with the document.
    #[arg(long)]
    token: Option<String>,
    /// Time zone of the device, such as Europe/Stockholm.
    #[arg(long)]
    tz: Option<String>,
    /// Do not acknowledge desired values.
    #[arg(long)]
    ignore_desired: bool,
    /// Maximum number of retries while other writers are faster.
    #[arg(long, default_value_t = antumbra_service::shadows::DEFAULT_RETRIES)]
    retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Reported,
    Desired,
    Delta,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deletable {
    Reported,
    Desired,
    All,
}

pub(crate) async fn run<P: ShadowStore>(
    command: StoredCommand,
    shadows: &Shadows<P>,
    json: bool,
) -> Result<String, CliError> {
    match command {
        StoredCommand::Get { shadow, part, .. } => {
            let id = shadow.id()?;
            let parts = match part {
                Part::Reported => DocumentSet::Reported,
                Part::Desired => DocumentSet::Desired,
                Part::Delta | Part::All => DocumentSet::Both,
            };
            let found = shadows.read(&id, parts).await?;
            Ok(render::shadow(&id, found, part, json))
        }
        StoredCommand::Report {
            change,
            desire: Some(desire),
        } => change.run_both(&desire, shadows, json).await,
        StoredCommand::Report { change, .. } => change.run(State::Reported, shadows, json).await,
        StoredCommand::Desire(change) => change.run(State::Desired, shadows, json).await,
        StoredCommand::Delete {
            shadow,
            part,
            expected,
        } => {
            let shadow = shadow.id()?;
            let expect = Some(expected.map_or(ExpectedVersion::Any, |version| {
                ExpectedVersion::Version(Version(version))
            }));
            if let (Deletable::All, Some(version)) = (part, expected) {
                // The version of the shadow as a whole, as over MQTT.
                let version = Some(Version(version));
                shadows.delete_shadow(&shadow, version, None, None).await?;
                return Ok(render::deleted(&shadow, json));
            }
            let delete = Delete {
                shadow: shadow.clone(),
                reported: expect.filter(|_| part != Deletable::Desired),
                desired: expect.filter(|_| part != Deletable::Reported),
                other_version: None,
                time: None,
            };
            // The store also deletes a shadow that does not exist; a person who types the name expects one.
            shadows.read(&shadow, DocumentSet::Both).await?;
            shadows.delete(delete).await?;
            Ok(render::deleted(&shadow, json))
        }
        StoredCommand::List { id, prefix, paging } => {
            let (limit, cursor) = (paging.limit(), paging.cursor());
            let cursor = cursor.as_ref();
            let Some(id) = id else {
                let page = shadows.list_by_prefix(&prefix, limit, cursor).await?;
                return Ok(render::names(page, json));
            };
            let page = shadows.list(&id, limit, cursor).await?;
            Ok(render::documents(page, json))
        }
    }
}

impl Change {
    async fn run<P: ShadowStore>(
        self,
        state: State,
        shadows: &Shadows<P>,
        json: bool,
    ) -> Result<String, CliError> {
        let shadow = self.shadow.id()?;
        let updated = shadows.update(self.update(shadow.clone(), state)?).await?;
        Ok(render::updated(&shadow, state, updated, json))
    }

    /// Writes both documents at once.
    async fn run_both<P: ShadowStore>(
        self,
        desire: &str,
        shadows: &Shadows<P>,
        json: bool,
    ) -> Result<String, CliError> {
        let shadow = self.shadow.id()?;
        let desired = Document::parse(&text(desire)?).map_err(CliError::invalid)?;
        let mut update = self.update(shadow.clone(), State::Reported)?;
        update = update.and_desire(desired);
        if let Some(mode) = self.mode {
            update = update.mode(mode);
        }
        let updated = shadows.update(update).await?;
        Ok(render::both_updated(&shadow, &updated, json))
    }

    fn update(&self, shadow: ShadowId, state: State) -> Result<Update, CliError> {
        let document = Document::parse(&text(&self.document)?).map_err(CliError::invalid)?;
        let mut update = match state {
            State::Reported => Update::report(shadow, document),
            State::Desired => Update::desire(shadow, document),
        };
        if let Some(mode) = self.mode {
            update = update.mode(mode);
        }
        if let Some(version) = self.expected {
            update = update.expected(Version(version));
        }
        if let Some(token) = &self.token {
            update = update.client_token(ClientToken::new(token).map_err(CliError::invalid)?);
        }
        if let Some(zone) = &self.tz {
            update = update.zone(Zone::new(zone).map_err(CliError::invalid)?);
        }
        if self.ignore_desired {
            update = update.desired_mode(DesiredMode::IgnoreDesiredState);
        }
        Ok(update.retries(self.retries))
    }
}
