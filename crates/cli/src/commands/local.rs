//! `antumbra local`: everything on this machine, until Ctrl-C.

mod ready_file;

use std::io::IsTerminal;
use std::path::PathBuf;

use antumbra_local::listen::StartError;
use antumbra_local::stack::{Addresses, HttpToken, Options, Stack, StackError, Webhooks};
use antumbra_notify::files;
use antumbra_publish::webhook::Allow;
use clap::Args;
use serde::Serialize;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{CliError, chain};
use crate::output::{FAINT, STRONG, print, styled, table};
use crate::signals::Signals;
use ready_file::ReadyFile;

#[derive(Debug, Args)]
pub(crate) struct LocalArguments {
    /// Where data is kept between starts.
    #[arg(long, default_value = ".antumbra", value_name = "DIR")]
    data_dir: PathBuf,
    /// Keep nothing.
    #[arg(long, conflicts_with = "data_dir")]
    memory: bool,
    /// The registrations: who is told of changes.
    #[arg(long, default_value = "registrations", value_name = "DIR")]
    registrations: PathBuf,
    /// The port of DynamoDB; 0 for any free one, as for all ports.
    #[arg(long, default_value_t = 8000, value_name = "PORT")]
    dynamodb_port: u16,
    /// The port of SQS and SNS.
    #[arg(long, default_value_t = 4566, value_name = "PORT")]
    aws_port: u16,
    /// The port of the MQTT broker.
    #[arg(long, default_value_t = 1883, value_name = "PORT")]
    mqtt_port: u16,
    /// The port of the HTTP API.
    #[arg(long, default_value_t = 8080, value_name = "PORT")]
    http_port: u16,
    /// The bearer token that opens the HTTP API, in place of the one that is made at the first start and
    /// kept with the data.
    #[arg(long, value_name = "TOKEN", env = "ANTUMBRA_TOKEN", hide_env_values = true, value_parser = bearer_token)]
    token: Option<String>,
    /// What webhooks may call beside the public internet: hosts, addresses and networks, with http://
    /// where plain HTTP is meant. This machine unless said otherwise.
    #[arg(long, value_name = "LIST", env = "WEBHOOK_ALLOW")]
    webhook_allow: Option<Allow>,
    /// A file that holds all addresses, as JSON, while everything is up.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Say more; twice for everything.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl LocalArguments {
    fn webhooks(&self) -> Webhooks {
        let mut webhooks = Webhooks::default();
        if let Some(allow) = &self.webhook_allow {
            webhooks.allow = allow.clone();
        }
        webhooks
    }
}

pub(crate) async fn run(arguments: LocalArguments) -> Result<(), CliError> {
    start_logging(arguments.verbose);
    let registrations = files::load(&arguments.registrations, &|name| std::env::var(name).ok())
        .map_err(|error| {
            CliError::invalid(format!(
                "registrations: {}",
                error.lines().join("\n       ")
            ))
        })?;
    let count = registrations
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
        registrations,
        webhooks: arguments.webhooks(),
        ..Options::default()
    });
    let stack = tokio::select! {
        stack = starting => stack.map_err(failure)?,
        () = signals.next() => return Ok(()),
    };
    if let Some(file) = &ready_file {
        file.write(&ready(stack.addresses()))?;
    }
    print(&welcome(&stack, &arguments, count))?;
    signals.next().await;
    drop(ready_file);
    anstream::eprintln!("stopping");
    tokio::select! {
        () = stack.stop() => {}
        // Whoever asks twice does not want to wait for calls under way. The store survives it.
        () = signals.next() => {}
    }
    Ok(())
}

fn failure(error: StackError) -> CliError {
    let reason = chain(&error);
    match error {
        StackError::Service(StartError::PortTaken { service, port }) => {
            CliError::unavailable(format!(
                "port {port} for {service} is already in use: stop what uses it, or choose another with {}",
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

/// The option that moves a service, by the name the stack gives it.
fn port_option(service: &str) -> &'static str {
    match service {
        "DynamoDB" => "--dynamodb-port",
        "MQTT" => "--mqtt-port",
        "HTTP" => "--http-port",
        _ => "--aws-port",
    }
}

fn start_logging(verbose: u8) {
    // What the emulators answer with an error is their caller's to tell.
    let filter = match verbose {
        0 => "error,antumbra_notify=warn,antumbra_local=warn,antumbra_http_api=warn,dynoxide=off",
        1 => {
            "warn,antumbra_notify=debug,antumbra_local=debug,antumbra_http_api=debug,antumbra_message_requests=debug,dynoxide=error"
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

/// What can be sent in a header.
fn bearer_token(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned())
        .ok_or_else(|| "a token is visible ASCII characters without spaces".to_owned())
}

/// Where the token is to be had. It is printed when it is new, and when nothing keeps it.
fn token_hint(token: &HttpToken, arguments: &LocalArguments) -> String {
    match token.new {
        true => format!("bearer token {}", token.text),
        false if arguments.token.is_some() => "bearer token as given".to_owned(),
        false => format!(
            "bearer token in {}",
            arguments.data_dir.join("http-token").display()
        ),
    }
}

fn ready(addresses: Addresses) -> String {
    #[derive(Serialize)]
    struct Ready {
        process: u32,
        dynamodb: String,
        aws: String,
        mqtt: String,
        http: String,
    }
    crate::output::json(&Ready {
        process: std::process::id(),
        dynamodb: format!("http://{}", addresses.dynamodb),
        aws: format!("http://{}", addresses.aws),
        mqtt: format!("mqtt://{}", addresses.mqtt),
        http: format!("http://{}", addresses.http),
    })
}

fn welcome(stack: &Stack, arguments: &LocalArguments, registrations: usize) -> String {
    let addresses = stack.addresses();
    let row = |name: &str, address: String, what: &str| {
        vec![format!("  {name}"), address, styled(FAINT, what)]
    };
    let rows = [
        row(
            "DynamoDB",
            format!("http://{}", addresses.dynamodb),
            "tables antumbra, antumbra-messages",
        ),
        row(
            "SQS, SNS",
            format!("http://{}", addresses.aws),
            "queues antumbra-inbound, antumbra-undeliverable, ...",
        ),
        row("MQTT", format!("mqtt://{}", addresses.mqtt), "3.1.1 and 5"),
        row(
            "HTTP",
            format!("http://{}", addresses.http),
            &token_hint(stack.http_token(), arguments),
        ),
    ];
    let kept = if arguments.memory {
        "nothing is kept".to_owned()
    } else {
        format!("data in {}", arguments.data_dir.display())
    };
    let folder = arguments.registrations.display();
    let local = if addresses.dynamodb.port() == 8000 {
        "--local".to_owned()
    } else {
        format!("--endpoint-url http://{}", addresses.dynamodb)
    };
    format!(
        "{}\n{}\n\n{registrations} registrations from {folder}, {kept}. Try, in another terminal:\n\n  \
         cargo run --release -- {local} shadow report lamp-7 '{{\"led\":{{\"value\":\"on\"}}}}'\n\nCtrl-C stops.",
        styled(STRONG, "Antumbra is up."),
        table(&rows),
    )
}
