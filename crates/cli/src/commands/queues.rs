//! `antumbra queues …`: what was put aside, why, and back where it came from.

mod client;
mod redrive;
mod render;
mod route;

use clap::{Args, Subcommand};

use crate::connect::Connection;
use crate::error::{CliError, Kind};
use client::QueueClient;
use redrive::Redriving;

#[derive(Debug, Args)]
pub(crate) struct QueuesArguments {
    #[command(subcommand)]
    command: QueuesCommand,
}

#[derive(Debug, Subcommand)]
enum QueuesCommand {
    /// Show what lies in a queue for what was put aside, and why, and leave it there.
    ///
    /// Example: antumbra queues show antumbra-quarantine
    Show {
        /// The queue: its name, URL or ARN.
        queue: String,
        /// How many messages to look at.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// Each message with its text.
        #[arg(long)]
        bodies: bool,
    },
    /// Put what lies there back where it came from. Only says what it would do, unless told to go.
    ///
    /// Messages of the quarantine and dead letters go back to their queue, notifications to where their
    /// registration says, records that were given up are read again from their stream. Requests that
    /// came to nothing are left: whoever asked has asked again.
    ///
    /// Example: antumbra queues redrive antumbra-quarantine --go
    Redrive(Redriving),
}

pub(crate) async fn run(
    arguments: QueuesArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    match arguments.command {
        QueuesCommand::Show {
            queue,
            limit,
            bodies,
        } => {
            let desk = QueueClient::open(&sqs, &queue).await?;
            let lying = desk.look(limit as usize).await?;
            crate::output::print(&render::shown(&desk, &lying, bodies, json))
        }
        QueuesCommand::Redrive(redriving) => {
            let desk = QueueClient::open(&sqs, redriving.queue()).await?;
            let done = redriving.run(&desk, connection).await?;
            crate::output::print(&render::redriven(&desk, &done, json))?;
            match done.failed() {
                0 => Ok(()),
                failed => Err(CliError {
                    kind: Kind::Refused,
                    reason: format!("{failed} messages are still there"),
                }),
            }
        }
    }
}
