//! `antumbra local`: runs the local stack until Ctrl-C.

mod ready_file;
mod reload;
mod settings;

use std::io::IsTerminal;
use std::path::PathBuf;

use antumbra_lambda_kit::functions::queues;
use antumbra_local::listen::StartError;
use antumbra_local::rabbitmq::{Broker, Source};
use antumbra_local::stack::{HttpToken, Options, Settings, Stack, StackError};
use antumbra_local::unkind::Unkind;
use antumbra_service::access::Grant;
use antumbra_service::shadows::Layout;
use clap::Args;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::commands::registrations::Directory;
use crate::connection::Connection;
use crate::error::{CliError, chain};
use crate::output::{BAD, FAINT, STRONG, print, styled, table};
use crate::signals::{Enter, Signals};
use crate::stacks::{self, DEFAULT_NAME, Entry, LimitedToken, RunningStack};
use ready_file::ReadyFile;
use reload::Reload;
use settings::SettingsOptions;

#[derive(Debug, Args)]
pub(crate) struct LocalArguments {
    /// Directory for data between runs.
    #[arg(long, default_value = ".antumbra", value_name = "DIR")]
    data_dir: PathBuf,
    /// Keep data in memory only.
    #[arg(long, conflicts_with = "data_dir")]
    memory: bool,
    /// Name by which `--local=NAME` finds this stack among several.
    #[arg(long, default_value = DEFAULT_NAME, value_parser = stacks::name)]
    name: String,
    #[command(flatten)]
    registrations: Directory,
    /// Port of DynamoDB; 0 for any free one, as for all ports.
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,
    /// Port of SQS, SNS and EventBridge.
    #[arg(long, default_value_t = 4566, value_name = "PORT")]
    aws_port: u16,
    /// Port of the MQTT broker.
    #[arg(long, default_value_t = 1883, value_name = "PORT")]
    mqtt_port: u16,
    /// Port of the HTTP API.
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    http_port: u16,
    /// Bearer token of the HTTP API. By default one is generated at the first start and kept with the data.
    #[arg(long, value_name = "TOKEN", env = "ANTUMBRA_TOKEN", hide_env_values = true, value_parser = bearer_token)]
    token: Option<String>,
    /// Grant of a second bearer token, such as 'shadows:read:House%20A#'; see docs/access.md. Can be repeated.
    #[arg(long, value_name = "GRANT")]
    grant: Vec<Grant>,
    /// Host name that requests may have beside loopback ones, for example of functions in a container. Can be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Faults that AWS allows, by this seed: late, repeated and reordered invocations and messages, throttling,
    /// latency, transaction conflicts.
    #[arg(long, value_name = "SEED", env = "ANTUMBRA_UNKIND")]
    unkind: Option<u64>,
    /// RabbitMQ broker that sends signals, as amqp://user:password@host:port/virtual-host; read as an event source of
    /// Amazon MQ would. Needs a build with --features rabbitmq.
    #[arg(long, value_name = "URL", hide = cfg!(not(feature = "rabbitmq")))]
    rabbitmq: Option<Broker>,
    /// Queue of that broker.
    #[arg(long, value_name = "NAME", default_value = queues::SIGNALS, requires = "rabbitmq", hide = cfg!(not(feature = "rabbitmq")))]
    rabbitmq_queue: String,
    /// File with all addresses and the token as JSON; it exists while the stack is up.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Log more; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(flatten)]
    settings: SettingsOptions,
}

impl LocalArguments {
    /// Settings of the functions, by variables and options.
    fn settings(&self, connection: &Connection) -> Settings {
        let mut settings = self.settings.0.clone();
        if let Some(layout) = connection.given_layout() {
            let is_combined = layout == Layout::Combined;
            settings = settings.with("COMBINED", &is_combined.to_string());
        }
        if let Some(prefix) = connection.given_topic_prefix() {
            settings = settings.with("TOPIC_PREFIX", &prefix.to_string());
        }
        settings
    }
}

pub(crate) async fn run(
    arguments: LocalArguments,
    connection: &Connection,
    as_json: bool,
) -> Result<(), CliError> {
    let settings = arguments.settings(connection);
    settings.check().map_err(|faults| {
        CliError::invalid(format!("{faults}; correct the variable or its option"))
    })?;
    start_logging(arguments.verbose, settings.get("LOG_LEVEL"));
    for name in settings::unused_variables() {
        anstream::eprintln!("the variable {name} is not used: the local stack sets it itself");
    }
    let terminal = std::io::stderr().is_terminal();
    let (mut reload, registrations, registration_files) = Reload::start(&arguments.registrations)?;
    let enabled_registrations = registrations
        .iter()
        .filter(|(_, registration)| registration.enabled)
        .count();
    let ready_file = arguments
        .ready_file
        .as_deref()
        .map(ReadyFile::prepare)
        .transpose()?;
    let mut signals = Signals::listen().map_err(CliError::unavailable)?;
    let starting = Stack::start(Options {
        data_dir: (!arguments.memory).then(|| arguments.data_dir.clone()),
        dynamodb_port: arguments.dynamodb_port,
        aws_port: arguments.aws_port,
        mqtt_port: arguments.mqtt_port,
        http_port: arguments.http_port,
        http_token: arguments.token.clone(),
        http_grants: arguments.grant.iter().cloned().collect(),
        registrations,
        registration_files,
        settings: settings.clone(),
        unkind: arguments.unkind.map(Unkind::with_seed).unwrap_or_default(),
        rabbitmq: arguments.rabbitmq.clone().map(|broker| Source {
            broker,
            queue: arguments.rabbitmq_queue.clone(),
        }),
        allowed_hosts: arguments.allow_host.iter().cloned().collect(),
        ..Options::default()
    });
    let stack = tokio::select! {
        stack = starting => stack.map_err(start_error)?,
        () = signals.next() => return Ok(()),
    };
    let console_url = stack.console_url();
    let running = running_stack(&stack, &arguments.name, &arguments.grant, &console_url);
    // The stack can be used without its entry, by its addresses.
    let entry = Entry::claim(&arguments.name).and_then(|entry| {
        let Some(mut entry) = entry else {
            return Ok(None);
        };
        entry.write(&running).map(|()| Some(entry))
    });
    let entry = entry.unwrap_or_else(|error| {
        anstream::eprintln!(
            "--local will not find this stack: its file cannot be written: {error}"
        );
        None
    });
    if let Some(file) = &ready_file {
        file.write(&crate::output::json(&running))?;
    }
    print(&match as_json {
        true => crate::output::json(&running),
        false => banner(
            &stack,
            &arguments,
            &settings,
            enabled_registrations,
            entry.is_some(),
            &console_url,
        ),
    })?;
    let mut enter = Enter::listen();
    loop {
        tokio::select! {
            () = signals.next() => break,
            () = enter.pressed() => {
                print(&format!("Console: {}", stack.console_url()))?;
                continue;
            }
            () = reload.wanted() => {}
        }
        // A closed terminal sends the same signal as a request to reload.
        if terminal && !std::io::stderr().is_terminal() {
            break;
        }
        match reload.apply(&stack).await {
            Ok(changes) => print(&format!("registrations reloaded: {changes}"))?,
            Err(error) => anstream::eprintln!(
                "{} the registrations in force stay: {}",
                styled(BAD, "error:"),
                error.reason
            ),
        }
    }
    drop(ready_file);
    drop(entry);
    anstream::eprintln!("stopping");
    tokio::select! {
        () = stack.stop() => {}
        // A second signal skips waiting for calls in progress; stored data stays consistent.
        () = signals.next() => {}
    }
    Ok(())
}

fn start_error(error: StackError) -> CliError {
    let reason = chain(&error);
    match error {
        StackError::Service(StartError::PortTaken { service, port }) => {
            CliError::unavailable(format!(
                "port {port} for {service} is in use; stop the process that uses it, or choose another port with {}",
                port_option(service)
            ))
        }
        StackError::Service(_)
        | StackError::DataDirectory { .. }
        | StackError::DataDirectoryInUse { .. }
        | StackError::Checkpoint(_) => CliError::unavailable(reason),
        _ => CliError::invalid(reason),
    }
}

fn port_option(service: &str) -> &'static str {
    match service {
        "DynamoDB" => "--dynamodb-port",
        "MQTT" => "--mqtt-port",
        "HTTP" => "--http-port",
        _ => "--aws-port",
    }
}

fn start_logging(verbose: u8, level: Option<&str>) {
    // `dynoxide` is off by default, because the caller reports its error responses.
    let filter = match (verbose, level) {
        (0, Some(level)) => level,
        (0, None) => {
            "error,antumbra_notify=warn,antumbra_local=warn,antumbra_http_api=warn,dynoxide=off"
        }
        (1, _) => {
            "warn,audit=info,antumbra_notify=debug,antumbra_local=debug,antumbra_http_api=debug,antumbra_message_requests=debug,dynoxide=error"
        }
        _ => "debug",
    };
    let filter: Targets = filter.parse().unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
}

/// Checks that a token can be sent in a header.
fn bearer_token(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid
        .then(|| text.to_owned())
        .ok_or_else(|| "a token must be visible ASCII characters without spaces".to_owned())
}

/// Describes the broker, and says that it does not check whose shadow a client uses.
fn broker_hint(settings: &Settings) -> String {
    let mut hint = "3.1.1 and 5".to_owned();
    if let Some(prefix) = settings.get("TOPIC_PREFIX") {
        hint.push_str(&format!(", topics below {prefix}"));
    }
    if settings.get("OWN_SHADOWS_ONLY") != Some("true") {
        hint.push_str(", any client may use any shadow");
    }
    hint
}

/// Returns the token itself if it is new, otherwise where it comes from.
fn token_hint(token: &HttpToken, arguments: &LocalArguments) -> String {
    match token.new {
        true => format!("bearer token {}", token.text),
        false if arguments.token.is_some() => "bearer token from --token".to_owned(),
        false => format!(
            "bearer token in {}",
            arguments.data_dir.join("http-token").display()
        ),
    }
}

/// The content of the ready file and of the file in the state directory.
fn running_stack(stack: &Stack, name: &str, grants: &[Grant], console_url: &str) -> RunningStack {
    let addresses = stack.addresses();
    RunningStack {
        name: name.to_owned(),
        process: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        dynamodb: format!("http://{}", addresses.dynamodb),
        aws: format!("http://{}", addresses.aws),
        mqtt: format!("mqtt://{}", addresses.mqtt),
        http: format!("http://{}", addresses.http),
        token: stack.http_token().text.clone(),
        console: console_url.to_owned(),
        limited_token: stack.limited_token().map(|token| LimitedToken {
            token: token.to_owned(),
            grants: grants.iter().map(ToString::to_string).collect(),
        }),
        region: antumbra_local::REGION.to_owned(),
        access_key_id: "local".to_owned(),
        secret_access_key: "local".to_owned(),
    }
}

/// Formats the text that is printed when the stack is up: addresses, storage and commands to try.
fn banner(
    stack: &Stack,
    arguments: &LocalArguments,
    settings: &Settings,
    enabled_registrations: usize,
    is_found: bool,
    console_url: &str,
) -> String {
    let addresses = stack.addresses();
    let row = |name: &str, address: String, hint: &str| {
        vec![format!("  {name}"), address, styled(FAINT, hint)]
    };
    let mut rows = vec![
        row(
            "DynamoDB",
            format!("http://{}", addresses.dynamodb),
            "tables antumbra, antumbra-messages, antumbra-history, antumbra-secrets",
        ),
        row(
            "SQS, SNS",
            format!("http://{}", addresses.aws),
            "queues antumbra-inbound, antumbra-undeliverable, ...",
        ),
        row(
            "MQTT",
            format!("mqtt://{}", addresses.mqtt),
            &broker_hint(settings),
        ),
        row(
            "HTTP",
            format!("http://{}", addresses.http),
            &token_hint(stack.http_token(), arguments),
        ),
    ];
    if let Some(token) = stack.limited_token() {
        let grants = arguments.grant.iter().map(ToString::to_string);
        let grants: Vec<String> = grants.collect();
        let hint = format!("bearer token {token} for {}", grants.join(" "));
        rows.push(row("", String::new(), &hint));
    }
    let differences = settings.differences().into_iter();
    let differences: Vec<String> = differences
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let differences = match differences.is_empty() {
        true => String::new(),
        false => format!(
            "\n{} {}",
            styled(STRONG, "Settings:"),
            differences.join(", ")
        ),
    };
    let another = match std::io::stdin().is_terminal() {
        true => "opens once, within 10 minutes; Enter prints another",
        false => "opens once, within 10 minutes",
    };
    let fill = format!("{another}; `{} demo --into-local` fills it", program());
    let console = format!(
        "  Console   {console_url}\n            {}",
        styled(FAINT, &fill)
    );
    format!(
        "{}\n{}\n{console}{differences}\n\n{}. Try in another terminal:\n\n  {}\n\n\
         Stop with Ctrl-C.",
        styled(STRONG, "Antumbra is up."),
        table(&rows),
        sources(arguments, enabled_registrations),
        commands_to_try(stack, arguments, is_found).join("\n  "),
    )
}

/// Formats the sources of registrations and data, and the seed of faults.
fn sources(arguments: &LocalArguments, enabled_registrations: usize) -> String {
    let registrations = match arguments.registrations.is_absent() {
        true => {
            "built-in registrations, because there is no directory registrations here".to_owned()
        }
        false => {
            let directory = arguments.registrations.path();
            format!("registrations from {}", directory.display())
        }
    };
    let storage = match arguments.memory {
        true => "data in memory only".to_owned(),
        false => format!("data in {}", arguments.data_dir.display()),
    };
    let unkind = arguments.unkind;
    let unkind = unkind.map(|seed| format!(", unkind with seed {seed}"));
    let unkind = unkind.unwrap_or_default();
    format!("{enabled_registrations} {registrations}, {storage}{unkind}")
}

/// Command lines for another terminal.
fn commands_to_try(stack: &Stack, arguments: &LocalArguments, is_found: bool) -> [String; 3] {
    let addresses = stack.addresses();
    let connection = match (is_found, arguments.name.as_str()) {
        (true, DEFAULT_NAME) => "--local".to_owned(),
        (true, name) => format!("--local={name}"),
        (false, _) => format!("--endpoint-url http://{}", addresses.dynamodb),
    };
    let token = match stack.http_token() {
        HttpToken { new: false, .. } if arguments.token.is_none() => {
            format!("$(cat {})", arguments.data_dir.join("http-token").display())
        }
        token => token.text.clone(),
    };
    let program = program();
    [
        format!("{program} {connection} shadow report lamp-7 '{{\"led\":{{\"value\":\"on\"}}}}'"),
        format!("{program} {connection} shadow get lamp-7"),
        format!(
            "curl -H \"authorization: Bearer {token}\" http://{}/v1/shadows/lamp-7",
            addresses.http
        ),
    ]
}

/// Returns the start of a command line that runs this program again: through cargo if it is in a target directory.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let path = path.unwrap_or_else(|| "antumbra".into());
    match path.components().any(|part| part.as_os_str() == "target") {
        true => "cargo run --quiet --".to_owned(),
        false => path.display().to_string(),
    }
}
