//! Putting a message in the inbound queue, as the system does that feeds the inbox.

use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_service::inbox::Source;
use aws_sdk_sqs::Client;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::connect::Connection;
use crate::error::CliError;
use crate::input::text;
use crate::mqtt::Session;
use crate::queue;

#[derive(Debug, Args)]
pub(crate) struct Sending {
    /// The thing that the message comes from.
    thing: String,
    /// JSON, @FILE, or - for standard input; a made-up reading of the thing without it. Another message
    /// than that has to name the thing itself.
    message: Option<String>,
    /// The queue: its name or its URL.
    #[arg(
        long,
        default_value = "antumbra-inbound",
        env = "ANTUMBRA_INBOUND_QUEUE"
    )]
    queue: String,
    /// Do not wait until the message is in the inbox.
    #[arg(long)]
    no_wait: bool,
}

impl Sending {
    pub(crate) fn waits(&self) -> bool {
        !self.no_wait
    }

    /// Refuses here what could never be found again.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        Source::new(self.thing.as_str())
            .map(drop)
            .map_err(CliError::invalid)
    }

    /// Sends, and returns what is said of the message: where it lies if that was waited for.
    pub(crate) async fn run(
        self,
        connection: &Connection,
        session: Option<Session>,
    ) -> Result<String, CliError> {
        let topic = format!("notification/{}", self.thing);
        let mut session = session;
        if let Some(session) = &mut session {
            session.subscribe(&topic).await?;
        }
        let client = Client::new(&connection.aws().await);
        let id = queue::send(&client, &self.queue, &self.text()?, &self.thing).await?;
        let Some(mut session) = session else {
            let sent = json!({ "sqsMessageId": id, "uuid": self.thing });
            return Ok(sent.to_string());
        };
        loop {
            let soon = Instant::now() + std::time::Duration::from_secs(1);
            let Some(message) = session.next(soon).await? else {
                continue;
            };
            // The inbox names a message by the queue's id of it.
            let ours = |said: &Value| said["messageId"].as_str().is_some_and(|m| m.ends_with(&id));
            let said = serde_json::from_slice::<Value>(&message.payload);
            if said.is_ok_and(|said| ours(&said)) {
                session.close().await;
                return Ok(String::from_utf8_lossy(&message.payload).into_owned());
            }
        }
    }

    fn text(&self) -> Result<String, CliError> {
        if let Some(message) = &self.message {
            return text(message);
        }
        // Before 1970 the clock is wrong anyway.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let reading = json!({
            "thingName": self.thing,
            "epochTime": now.as_secs().to_string(),
            "tempSensor1F": "72",
            "tempSensor2F": "70",
        });
        Ok(reading.to_string())
    }
}
