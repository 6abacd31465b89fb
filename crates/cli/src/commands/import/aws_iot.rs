//! Shadows of AWS IoT Device Shadow, read through the data plane.
//!
//! A shadow's metadata has a time in seconds for each value. Arrays are one value there, with the newest time of their
//! elements. A value without a time, such as an empty object, counts as older than any other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use antumbra_local::progress::Progress;
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{HeldValues, ShadowId, ShadowStore, Update};
use antumbra_shadow::{Arrays, Document, Kind, Model, Timestamp, View};
use aws_config::retry::RetryConfig;
use aws_sdk_iotdataplane::Client;
use aws_sdk_iotdataplane::error::{ProvideErrorMetadata, SdkError};
use clap::Args;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{Entry, ImportArguments, Summary, Target, check_time, check_times, import};
use crate::connection::Service;
use crate::error::CliError;
use crate::input::text;

/// Things that are read at the same time.
const CONCURRENCY: usize = 8;
/// Attempts of a call, which AWS IoT throttles by account.
const ATTEMPTS: u32 = 8;
/// Delay before the second attempt; it doubles with each.
const BACKOFF: Duration = Duration::from_millis(200);
/// Names of shadows in a page, the maximum.
const PAGE: i32 = 100;

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// @FILE, or - for standard input: one thing name a line.
    things: String,
    /// Name that a thing's unnamed shadow gets.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    unnamed: String,
    #[command(flatten)]
    pub(super) arguments: ImportArguments,
}

impl Import {
    pub(super) async fn run<P: ShadowStore>(
        self,
        target: &Target<'_, P>,
    ) -> Result<Summary, CliError> {
        if !self.things.starts_with(['@', '-']) {
            return Err(CliError::invalid(format!(
                "{} is not @FILE or -; write the names of things to a file, one a line",
                self.things
            )));
        }
        let list = text(&self.things)?;
        let things: BTreeSet<&str> = list.lines().map(str::trim).collect();
        let things: Vec<&str> = things
            .into_iter()
            .filter(|thing| !thing.is_empty())
            .collect();
        let service = Service::IotData;
        let source = self.arguments.source(target.connection, service).await?;
        let sdk = source.aws().await;
        let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS);
        let config = aws_sdk_iotdataplane::config::Builder::from(&sdk)
            .retry_config(retries.with_initial_backoff(BACKOFF))
            .build();
        let source = Source {
            client: Client::from_conf(config),
            unnamed: self.unnamed,
            model: Model {
                arrays: Arrays::Whole,
                ..target.model.clone()
            },
        };
        let progress = Progress::of(things.len(), "things read");
        let source = &source;
        let entries = stream::iter(things)
            .map(|thing| source.entries(thing))
            .buffer_unordered(CONCURRENCY)
            .inspect(|_| progress.add(1))
            .map_ok(|entries| stream::iter(entries.into_iter().map(Ok)))
            .try_flatten();
        import(entries, target, &progress).await
    }
}

struct Source {
    client: Client,
    unnamed: String,
    model: Model,
}

impl Source {
    /// All shadows of a thing. Errors end the import.
    async fn entries(&self, thing: &str) -> Result<Vec<Entry>, CliError> {
        let names = match self.names(thing).await {
            Ok(names) => names,
            Err(Failure::Absent) => Vec::new(),
            Err(Failure::Rejected(reason)) => {
                return Ok(vec![Entry::new(thing.to_owned(), Err(reason))]);
            }
            Err(Failure::Unavailable(reason)) => return Err(CliError::unavailable(reason)),
        };
        let mut entries = Vec::new();
        let is_taken = names.contains(&self.unnamed);
        let names = names.into_iter().map(Some);
        for name in std::iter::once(None).chain(names) {
            let label = match &name {
                Some(name) => format!("{thing}/{name}"),
                None => thing.to_owned(),
            };
            let update = match self.payload(thing, name.clone()).await {
                Ok(_) if name.is_none() && is_taken => Err(format!(
                    "the thing has a shadow named {}; give the unnamed one another name with --unnamed",
                    self.unnamed
                )),
                Ok(payload) => self.update(thing, name.as_deref(), &payload),
                // Deleted since the names were listed, or there is no unnamed one.
                Err(Failure::Absent) => continue,
                Err(Failure::Rejected(reason)) => Err(reason),
                Err(Failure::Unavailable(reason)) => return Err(CliError::unavailable(reason)),
            };
            entries.push(Entry::new(label, update));
        }
        if entries.is_empty() {
            entries.push(Entry::Empty);
        }
        Ok(entries)
    }

    async fn names(&self, thing: &str) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let mut next = None;
        loop {
            let call = self.client.list_named_shadows_for_thing();
            let call = call.thing_name(thing).page_size(PAGE);
            let page = call.set_next_token(next).send().await?;
            names.extend(page.results.unwrap_or_default());
            next = page.next_token.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(names);
            }
        }
    }

    async fn payload(&self, thing: &str, name: Option<String>) -> Result<Vec<u8>, Failure> {
        let call = self.client.get_thing_shadow().thing_name(thing);
        let shadow = call.set_shadow_name(name).send().await?;
        Ok(shadow
            .payload
            .map(|blob| blob.into_inner())
            .unwrap_or_default())
    }

    fn update(&self, thing: &str, name: Option<&str>, payload: &[u8]) -> Result<Update, String> {
        let id = ShadowId::named(thing, name.unwrap_or(&self.unnamed));
        let id = id.map_err(|fault| fault.to_string())?;
        let payload = std::str::from_utf8(payload).map_err(|fault| fault.to_string())?;
        let document = Document::parse(payload);
        let document =
            document.map_err(|fault| format!("the shadow is not a document: {fault}"))?;
        check_times(&document, &self.model)?;
        let part = |name: &str, state: &str| document.view().get(name)?.get(state);
        let held = |state| match part("state", state) {
            Some(values) => self.held(values, part("metadata", state)),
            None => Ok(Vec::new()),
        };
        let update = Update::import(id, held("reported")?, held("desired")?);
        Ok(update.model(self.model.clone()))
    }

    /// The values of a document by their times.
    fn held(&self, values: View<'_>, times: Option<View<'_>>) -> Result<Vec<HeldValues>, String> {
        if values.kind() != Kind::Object {
            return Err("its state is not an object".to_owned());
        }
        let mut found = BTreeMap::new();
        self.collect(values, times, &mut Vec::new(), &mut found);
        found
            .into_iter()
            .map(|(since, values)| {
                check_time(since)?;
                let values =
                    Document::parse(&nested(&values)).map_err(|fault| fault.to_string())?;
                Ok(HeldValues { since, values })
            })
            .collect()
    }

    fn collect<'a>(
        &self,
        values: View<'a>,
        times: Option<View<'a>>,
        path: &mut Vec<&'a str>,
        found: &mut BTreeMap<Timestamp, Vec<(Vec<&'a str>, View<'a>)>>,
    ) {
        for value in values.children() {
            let times = times.and_then(|times| times.get(&value.key()));
            path.push(value.raw_key());
            let is_object = value.kind() == Kind::Object && !value.is_empty_container();
            if is_object && self.model.time(value).is_none() {
                self.collect(value, times, path, found);
            } else {
                let since = times.and_then(newest).unwrap_or_default();
                found.entry(since).or_default().push((path.clone(), value));
            }
            path.pop();
        }
    }
}

/// The newest time in the metadata of a value.
fn newest(metadata: View<'_>) -> Option<Timestamp> {
    let own = metadata.get("timestamp").and_then(Timestamp::of);
    own.or_else(|| metadata.children().filter_map(newest).max())
}

/// The JSON of values at their paths, which are in document order and written as in JSON.
fn nested(values: &[(Vec<&str>, View<'_>)]) -> String {
    let mut json = String::from("{");
    let mut open: Vec<&str> = Vec::new();
    for (path, value) in values {
        let Some((name, parents)) = path.split_last() else {
            continue;
        };
        let common = open.iter().zip(parents).take_while(|(a, b)| a == b).count();
        json.push_str(&"}".repeat(open.len() - common));
        open.truncate(common);
        if !json.ends_with('{') {
            json.push(',');
        }
        for parent in &parents[common..] {
            json.push_str(&format!("\"{parent}\":{{"));
            open.push(parent);
        }
        json.push_str(&format!("\"{name}\":"));
        value.write_json(&mut json);
    }
    json.push_str(&"}".repeat(open.len() + 1));
    json
}

/// A failed call.
enum Failure {
    Absent,
    /// AWS rejects this request; others may succeed.
    Rejected(String),
    Unavailable(String),
}

impl<
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
> From<SdkError<E, R>> for Failure
{
    fn from(error: SdkError<E, R>) -> Failure {
        let stopped = |reason: String| Failure::Unavailable(format!("AWS IoT: {reason}"));
        let service = match &error {
            SdkError::ServiceError(failed) => failed.err(),
            SdkError::ResponseError(_) => {
                return Failure::Rejected("the response of AWS IoT cannot be read".to_owned());
            }
            SdkError::TimeoutError(_) => {
                return stopped("no response in time; repeat the import, which continues".into());
            }
            _ => {
                return stopped(
                    "no connection; check --source-region, --source-endpoint-url and the network, then repeat the import"
                        .into(),
                );
            }
        };
        let message = service.message().unwrap_or("no message");
        match service.code().unwrap_or_default() {
            "ResourceNotFoundException" => Failure::Absent,
            "InvalidRequestException" | "UnsupportedDocumentEncodingException" => {
                Failure::Rejected(format!("AWS IoT rejects the request: {message}"))
            }
            "ThrottlingException" => stopped(
                "it throttles the calls of this account; repeat the import later, it continues".into(),
            ),
            "UnauthorizedException" | "ForbiddenException" | "AccessDeniedException" => stopped(
                "the credentials may not call GetThingShadow and ListNamedShadowsForThing; choose others with --source-profile"
                    .into(),
            ),
            "" => Failure::Rejected("the response is not one of AWS IoT".to_owned()),
            code => stopped(format!("{code}: {message}; repeat the import, which continues")),
        }
    }
}
