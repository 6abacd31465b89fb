//! `antumbra console`: the console for a deployment on AWS, on this machine and with the caller's credentials.

use std::sync::Arc;

use antumbra_console::{Console, DEVICE_CHANGES, Options, Place, console, follow_feed};
use antumbra_http_api::{AuthMode, Config, RegistrationFiles, services};
use antumbra_lambda_kit::config::FunctionConfig as _;
use antumbra_lambda_kit::environment::Environment;
use antumbra_lambda_kit::functions::queues;
use antumbra_local::http;
use antumbra_publish::queue_url;
use antumbra_service::clock::SystemClock;
use clap::Args;
use serde::Serialize;

use crate::commands::registrations::Directory;
use crate::connection::{Connection, Service};
use crate::error::{CliError, chain};
use crate::output::{FAINT, STRONG, json, print, styled};
use crate::signals::{Enter, Signals};

#[derive(Debug, Args)]
pub(crate) struct ConsoleArguments {
    /// Port on this machine; 0 for any free one.
    #[arg(long, default_value_t = 8090, value_name = "PORT")]
    port: u16,
    /// Allow changes. Without it, the console only reads.
    #[arg(long)]
    write: bool,
    /// Table of inbox messages [default: that of the deployment]
    #[arg(long, value_name = "NAME")]
    messages_table: Option<String>,
    /// Table of the history of shadows [default: that of the deployment]
    #[arg(long, value_name = "NAME")]
    history_table: Option<String>,
    #[command(flatten)]
    registrations: Directory,
}

/// Output of `--json`.
#[derive(Serialize)]
struct Started {
    console: String,
    write: bool,
}

/// Variables with the URL of a queue, as the HTTP API reads them.
const QUEUES: [(&str, &str); 10] = [
    ("UNDELIVERABLE_QUEUE_URL", queues::UNDELIVERABLE),
    ("QUARANTINE_QUEUE_URL", queues::QUARANTINE),
    ("DELIVERIES_DEAD_QUEUE_URL", queues::DELIVERIES_DEAD),
    (
        "DELIVERIES_DEAD_FIFO_QUEUE_URL",
        queues::DELIVERIES_DEAD_FIFO,
    ),
    ("DELIVERIES_QUEUE_URL", queues::DELIVERIES),
    ("DELIVERIES_FIFO_QUEUE_URL", queues::DELIVERIES_FIFO),
    ("INBOUND_QUEUE_URL", queues::INBOUND),
    ("SIGNALS_QUEUE_URL", queues::SIGNALS),
    ("SPILL_QUEUE_URL", queues::SPILL),
    ("OUTBOUND_QUEUE_URL", queues::OUTBOUND),
];

pub(crate) async fn run(
    arguments: ConsoleArguments,
    connection: &Connection,
    as_json: bool,
) -> Result<(), CliError> {
    if connection.is_local() {
        return Err(CliError::invalid(
            "the local stack serves the console itself: open the URL that `antumbra local` prints",
        ));
    }
    connection.check(Service::DynamoDb).await?;
    let files: Arc<[(String, String)]> = Arc::from(arguments.registrations.read_or_built_in()?);
    let sdk = connection.sdk_config().await;
    let sqs = aws_sdk_sqs::Client::new(&sdk);
    let messages = arguments.messages_table;
    let history = arguments.history_table;
    let mut variables = vec![
        ("TABLE", connection.table().to_owned()),
        (
            "MESSAGES_TABLE",
            messages.unwrap_or_else(|| connection.messages_table()),
        ),
        (
            "HISTORY_TABLE",
            history.unwrap_or_else(|| connection.history_table()),
        ),
    ];
    let names = QUEUES.map(|(_, name)| connection.queue(name));
    let urls = names.iter().map(|name| queue_url(&sqs, name));
    let urls = futures_util::future::try_join_all(urls).await?;
    let account = urls[0].rsplit('/').nth(1).map(str::to_owned);
    for ((variable, _), url) in QUEUES.iter().zip(urls) {
        variables.push((variable, url));
    }
    let settings = connection.settings().await?;
    let mut environment = Environment::from_lookup(move |name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| value.clone())
    });
    let mut config = Config::from_env(&mut environment);
    environment
        .finish()
        .map_err(|error| CliError::invalid(chain(&error)))?;
    config.auth = AuthMode::Tokens(Vec::new());
    config.layout = settings.layout;
    config.model = settings.model(config.model);
    config.registrations = RegistrationFiles::new(move || Ok(Arc::clone(&files)));
    let services = Arc::new(services(config, &sdk, Arc::new(SystemClock)));
    let follow = services.feed.clone().map(follow_feed);
    let region = sdk.region().map(ToString::to_string).unwrap_or_default();
    let (listener, address) = http::bind("the console", arguments.port)
        .await
        .map_err(|error| {
            CliError::unavailable(format!("{}; choose another with --port", chain(&error)))
        })?;
    let state = Console::new(Options {
        services,
        place: Place {
            name: region.clone(),
            account,
            table: connection.table().to_owned(),
            options: format!("--region {region}"),
            registrations: Some(arguments.registrations.path().display().to_string()),
        },
        write: arguments.write,
        port: address.port(),
        zone: antumbra_console::system_zone(),
        follow,
        device_changes: DEVICE_CHANGES,
    });
    let mut signals = Signals::listen().map_err(CliError::unavailable)?;
    let server = http::start(listener, console(Arc::clone(&state)));
    let url = state.login_url();
    print(&match as_json {
        true => json(&Started {
            console: url,
            write: arguments.write,
        }),
        false => banner(&url, connection.table(), &region, arguments.write),
    })?;
    let mut enter = Enter::listen();
    loop {
        tokio::select! {
            () = signals.next() => break,
            () = enter.pressed() => print(&format!("Console: {}", state.login_url()))?,
        }
    }
    state.stop();
    server.stop().await;
    Ok(())
}

fn banner(url: &str, table: &str, region: &str, write: bool) -> String {
    let access = match write {
        true => "read and write",
        false => "read-only; start with --write to change anything",
    };
    format!(
        "{} The table {table} in {region}, {access}.\n  {url}\n  {}",
        styled(STRONG, "The console is up."),
        styled(
            FAINT,
            "The URL opens the console once, within 10 minutes; Enter prints another. Stop with Ctrl-C."
        )
    )
}
