//! `antumbra mqtt`: subscribes to and publishes MQTT messages, on the local broker or AWS IoT.

use clap::{Args, Subcommand};
use tokio::time::{Duration, Instant};

use crate::commands::messages::BrokerArguments;
use crate::connection::Connection;
use crate::error::CliError;
use crate::mqtt::{Session, new_client_id};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MqttArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    #[command(subcommand)]
    command: MqttCommand,
}

#[derive(Debug, Subcommand)]
enum MqttCommand {
    /// Print messages of a topic: topic and payload, one message a line.
    ///
    /// Example: antumbra mqtt subscribe shadow/lamp-7/update/documents --local
    Subscribe {
        /// Topic filter; + and # are wildcards.
        topic: String,
        /// Stop after this number of messages.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
    /// Publish a message, and with --response-topic print the response.
    ///
    /// Example: antumbra mqtt publish shadow/lamp-7/get '{}' --response-topic shadow/lamp-7/get/accepted --local
    Publish {
        /// Topic.
        topic: String,
        /// Payload: a text, @FILE, or - for standard input.
        payload: String,
        /// Topic filter of the response; + and # are wildcards.
        #[arg(long, value_name = "TOPIC")]
        response_topic: Option<String>,
        /// Client id of the connection, which a deployment compares with the thing of a shadow; by default a new one.
        #[arg(long, value_name = "ID")]
        client_id: Option<String>,
    },
}

pub(crate) async fn run(
    arguments: MqttArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let client_id = match &arguments.command {
        MqttCommand::Publish { client_id, .. } => client_id.clone(),
        MqttCommand::Subscribe { .. } => None,
    };
    let client_id = client_id.unwrap_or_else(new_client_id);
    let mut session = arguments.broker.open(connection, &client_id).await?;
    let expected_messages = match arguments.command {
        MqttCommand::Subscribe { topic, count } => {
            session.subscribe(&topic).await?;
            // Scripts wait for this line before they publish.
            anstream::eprintln!("subscribed to {topic}");
            count
        }
        MqttCommand::Publish {
            topic,
            payload,
            response_topic,
            client_id: _,
        } => {
            let payload = crate::input::text(&payload)?;
            if let Some(response_topic) = &response_topic {
                session.subscribe(response_topic).await?;
            }
            session.publish_and_wait(&topic, &payload).await?;
            u32::from(response_topic.is_some())
        }
    };
    for _ in 0..expected_messages {
        output::print(&next_message(&mut session, json).await?)?;
    }
    session.close().await;
    Ok(())
}

/// Waits for the next message and formats it. Fails after the timeout of the session.
async fn next_message(session: &mut Session, json: bool) -> Result<String, CliError> {
    loop {
        let wait_until = Instant::now() + Duration::from_secs(1);
        let Some(message) = session.next(wait_until).await? else {
            continue;
        };
        let payload = String::from_utf8_lossy(&message.payload).into_owned();
        return Ok(match json {
            true => serde_json::json!({ "topic": message.topic, "payload": payload }).to_string(),
            false => format!("{} {payload}", message.topic),
        });
    }
}
