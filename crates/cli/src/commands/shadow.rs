//! `antumbra shadow …`: the SDK's verbs on the command line.

mod render;
pub(crate) mod watch;

use antumbra_service::shadows::{
    ClientToken, Cursor, Delete, DesiredMode, DocumentSet, ExpectedVersion, ListQuery, ShadowId,
    ShadowStore, Shadows, State, Update, Version, Zone,
};
use antumbra_shadow::{Document, Mode};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::CliError;
use crate::input::text;
pub(crate) use watch::Watch;

#[derive(Debug, Subcommand)]
pub(crate) enum ShadowCommand {
    #[command(flatten)]
    Act(Verb),
    /// Show changes of shadows as they happen, until Ctrl-C.
    ///
    /// They are read from the table's stream, so that no registration and no broker is needed; on AWS the
    /// caller may then read the stream (DescribeTable, DescribeStream, GetShardIterator, GetRecords).
    ///
    /// Example: antumbra shadow watch lamp-7
    Watch(Watch),
}

/// What is asked once and answered once.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show a shadow.
    ///
    /// Example: antumbra shadow get lamp-7 --part delta
    Get {
        #[command(flatten)]
        shadow: Which,
        /// What to show.
        #[arg(long, value_enum, default_value_t = Part::All)]
        part: Part,
    },
    /// Merge what a device says into its reported document.
    ///
    /// Example: antumbra shadow report lamp-7 '{"led":{"value":"on","timestamp":"2026-01-31T12:00:00Z"}}'
    Report(Change),
    /// Merge what is wanted of a device into its desired document.
    ///
    /// Example: antumbra shadow desire lamp-7 '{"led":{"value":"off"}}'
    Desire(Change),
    /// Delete a shadow, or one of its documents.
    ///
    /// Example: antumbra shadow delete lamp-7 --part desired
    Delete {
        #[command(flatten)]
        shadow: Which,
        /// What to delete.
        #[arg(long, value_enum, default_value_t = Deletable::All)]
        part: Deletable,
        /// Only if this version is stored.
        #[arg(long)]
        expected: Option<i64>,
    },
    /// List the shadows of a device, or all of them.
    ///
    /// Example: antumbra shadow list lamp-7
    List {
        /// The device's id; all devices without it.
        id: Option<String>,
        /// How many documents to show at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Go on where an earlier listing stopped.
        #[arg(long)]
        cursor: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The device's id; any text.
    id: String,
    /// The shadow's name.
    #[arg(long, default_value = "main")]
    name: String,
}

impl Which {
    fn id(&self) -> Result<ShadowId, CliError> {
        ShadowId::named(&self.id, &self.name).map_err(CliError::invalid)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    shadow: Which,
    /// A JSON object, @FILE, or - for standard input.
    document: String,
    /// ServerIsMaster, ClientIsMaster or Patch.
    #[arg(long)]
    mode: Option<Mode>,
    /// Only if this version is stored; 0 to create.
    #[arg(long)]
    expected: Option<i64>,
    /// A word to leave with what is written.
    #[arg(long)]
    token: Option<String>,
    /// The device's time zone, such as Europe/Stockholm.
    #[arg(long)]
    tz: Option<String>,
    /// Leave the desired document alone.
    #[arg(long)]
    ignore_desired: bool,
    /// How many times to try again when another writer was faster.
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
    command: Verb,
    shadows: &Shadows<P>,
    json: bool,
) -> Result<String, CliError> {
    match command {
        Verb::Get { shadow, part } => {
            let id = shadow.id()?;
            let parts = match part {
                Part::Reported => DocumentSet::Reported,
                Part::Desired => DocumentSet::Desired,
                Part::Delta | Part::All => DocumentSet::Both,
            };
            let found = shadows.read(&id, parts).await?;
            Ok(render::shadow(&id, &found, part, json))
        }
        Verb::Report(change) => change.run(State::Reported, shadows, json).await,
        Verb::Desire(change) => change.run(State::Desired, shadows, json).await,
        Verb::Delete {
            shadow,
            part,
            expected,
        } => {
            let shadow = shadow.id()?;
            let expect = Some(expected.map_or(ExpectedVersion::Any, |version| {
                ExpectedVersion::Version(Version(version))
            }));
            let delete = Delete {
                shadow: shadow.clone(),
                reported: expect.filter(|_| part != Deletable::Desired),
                desired: expect.filter(|_| part != Deletable::Reported),
            };
            shadows.delete(delete).await?;
            Ok(render::deleted(&shadow, json))
        }
        Verb::List { id, limit, cursor } => {
            let query = id.map_or(ListQuery::All, ListQuery::Of);
            let cursor = cursor.map(Cursor);
            let page = shadows
                .list(&query, limit as usize, cursor.as_ref())
                .await?;
            Ok(render::page(&page, json))
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
        Ok(render::updated(&shadow, state, &updated, json))
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
