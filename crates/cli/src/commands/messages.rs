//! `antumbra messages …`: asks the inbox over MQTT, waits for the answer and prints it.

mod ask;
mod send;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::connect::Connection;
use crate::error::{CliError, Kind};
use crate::mqtt::{Place, Session};
use crate::output;

pub(crate) use ask::Question;
pub(crate) use send::Sending;

/// Where the local stack's broker listens.
const LOCAL_MQTT: &str = "mqtt://127.0.0.1:1883";

#[derive(Debug, Args)]
pub(crate) struct MessagesArguments {
    #[command(flatten)]
    way: Way,
    #[command(subcommand)]
    command: MessagesCommand,
}

/// How the broker is reached.
#[derive(Debug, Args)]
pub(crate) struct Way {
    /// The account's data endpoint of AWS IoT, as `aws iot describe-endpoint --endpoint-type
    /// iot:Data-ATS` tells it. Connects over WebSockets with the AWS credentials.
    #[arg(
        long,
        global = true,
        value_name = "HOST",
        env = "ANTUMBRA_IOT_ENDPOINT"
    )]
    iot_endpoint: Option<String>,
    /// Another MQTT broker: mqtt://host:port, or ws:// and wss:// URLs.
    #[arg(long, global = true, value_name = "URL", env = "ANTUMBRA_MQTT_URL")]
    mqtt_url: Option<String>,
    /// How many seconds to wait for the answer.
    #[arg(long, global = true, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

#[derive(Debug, Subcommand)]
enum MessagesCommand {
    /// Put a message of a thing in the inbound queue, and wait until it is in the inbox.
    ///
    /// Example: antumbra messages send testThing --local
    Send(Sending),
    #[command(flatten)]
    Ask(Question),
}

impl Way {
    async fn place(&self, connection: &Connection) -> Result<Place, CliError> {
        let local = connection.is_local().then_some(LOCAL_MQTT);
        match (self.mqtt_url.as_deref().or(local), &self.iot_endpoint) {
            (Some(url), _) => {
                Place::parse(url).map_err(|fault| CliError::invalid(format!("{url}: {fault}")))
            }
            (None, Some(endpoint)) => Ok(Place::Aws {
                endpoint: endpoint.clone(),
                sdk: Box::new(connection.aws().await),
            }),
            (None, None) => Err(CliError::invalid(
                "which broker? Give --local, --iot-endpoint HOST or --mqtt-url URL",
            )),
        }
    }

    pub(crate) async fn open(&self, connection: &Connection) -> Result<Session, CliError> {
        let place = self.place(connection).await?;
        Session::open(&place, Duration::from_secs(self.timeout)).await
    }
}

/// Prints the answer; one that says no is a failure all the same.
pub(crate) async fn run(
    arguments: MessagesArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let MessagesArguments { way, command } = arguments;
    let answer = match command {
        MessagesCommand::Send(sending) => {
            sending.check()?;
            let session = match sending.waits() {
                true => Some(way.open(connection).await?),
                false => None,
            };
            sending.run(connection, session).await?
        }
        MessagesCommand::Ask(question) => {
            let request = question.request()?;
            request.ask(way.open(connection).await?).await?
        }
    };
    let printed = if json {
        answer.clone()
    } else {
        indent(&answer)
    };
    output::print(&printed)?;
    match refusal(&answer) {
        Some(reason) => Err(CliError {
            kind: Kind::Refused,
            reason,
        }),
        None => Ok(()),
    }
}

/// What an answer says is wrong, if it says so.
fn refusal(answer: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: Option<String>,
    }
    let answer: Answer = serde_json::from_str(answer).ok()?;
    answer.error
}

/// JSON with its members on lines of their own, and not a digit changed.
fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().filter(|c| *c != '\n').peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' if rest.peek().is_some_and(|next| matches!(next, '}' | ']')) => {
                out.push(c);
                out.extend(rest.next());
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_printed_as_the_contract_prints_it() {
        let answer = r#"{"body":{"t":72.50,"l":[1,{}],"e":[]},"messageId":"a\"{,:b\\","uuid":"x"}"#;
        let expected = r#"{
    "body": {
        "t": 72.50,
        "l": [
            1,
            {}
        ],
        "e": []
    },
    "messageId": "a\"{,:b\\",
    "uuid": "x"
}"#;
        assert_eq!(indent(answer), expected);
    }

    #[test]
    fn an_answer_that_says_no_is_told_from_one_that_says_yes() {
        let no = r#"{"error":"No messages available","uuid":"a"}"#;
        assert_eq!(refusal(no).as_deref(), Some("No messages available"));
        assert_eq!(refusal(r#"{"messageId":"1","uuid":"a"}"#), None);
    }
}
