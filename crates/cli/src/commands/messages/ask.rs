//! Questions to the inbox: what is published, and where the answer comes.

use antumbra_service::inbox::{MessageId, Source};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, value::RawValue};

use crate::error::CliError;
use crate::input::text;
use crate::mqtt::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Question {
    /// Show the oldest and the newest message of a thing.
    ///
    /// Example: antumbra messages query testThing --local
    Query {
        /// The thing: the uuid of its messages.
        thing: String,
    },
    /// Show a message.
    ///
    /// Example: antumbra messages get testThing 1794817410-... --local
    Get(One),
    /// Show which message comes behind another; any text serves as a bound.
    ///
    /// Example: antumbra messages next testThing 1794817410 --local
    Next(One),
    /// Show which message comes before another; any text serves as a bound.
    ///
    /// Example: antumbra messages prev testThing 1794817410 --local
    Prev(One),
    /// Delete a message. It is no error if there is none.
    ///
    /// Example: antumbra messages delete testThing 1794817410-... --local
    Delete(One),
    /// List the messages of a thing.
    ///
    /// Example: antumbra messages list testThing --newest-first --limit 10 --local
    List {
        /// The thing: the uuid of its messages.
        thing: String,
        /// Not before this id.
        #[arg(long)]
        from: Option<String>,
        /// Not behind this id.
        #[arg(long)]
        to: Option<String>,
        /// The newest first.
        #[arg(long)]
        newest_first: bool,
        /// Whole messages instead of ids.
        #[arg(long)]
        bodies: bool,
        #[command(flatten)]
        page: PageArguments,
    },
    /// List the things that were heard of, and in which hour last.
    ///
    /// Example: antumbra messages devices --limit 20 --local
    Devices {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Put a message for a thing in the outbound queue.
    ///
    /// Example: antumbra messages send-to testThing '{"led":"on"}' --local
    SendTo {
        /// The thing: whom the message is for.
        thing: String,
        /// JSON, @FILE, or - for standard input.
        message: String,
        /// What makes two sendings one; a new one unless given.
        #[arg(long)]
        idempotency_key: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// The thing: the uuid of its messages.
    thing: String,
    /// The message's id.
    id: String,
}

#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// How many at most.
    #[arg(long)]
    limit: Option<u32>,
    /// Go on where an earlier page stopped.
    #[arg(long)]
    cursor: Option<String>,
}

/// What is published, and where the answer comes.
#[derive(Debug)]
pub(crate) struct Request {
    topic: String,
    payload: String,
    answer: String,
}

impl Question {
    /// Refuses here what the inbox would refuse.
    pub(crate) fn request(&self) -> Result<Request, CliError> {
        let mut members = Map::new();
        let (operation, names) = match self {
            Question::Query { thing } => ("query", vec![source(thing)?]),
            Question::Get(one) => ("get", one.names()?),
            Question::Next(one) => ("next", one.names()?),
            Question::Prev(one) => ("prev", one.names()?),
            Question::Delete(one) => ("delete", one.names()?),
            Question::List {
                thing,
                from,
                to,
                newest_first,
                bodies,
                page,
            } => {
                insert(&mut members, "from", from.as_deref().map(Value::from));
                insert(&mut members, "to", to.as_deref().map(Value::from));
                insert(
                    &mut members,
                    "newestFirst",
                    newest_first.then_some(true.into()),
                );
                insert(&mut members, "bodies", bodies.then_some(true.into()));
                page.insert(&mut members);
                ("list", vec![source(thing)?])
            }
            Question::Devices { page } => {
                page.insert(&mut members);
                ("devices", Vec::new())
            }
            Question::SendTo {
                thing,
                message,
                idempotency_key,
            } => {
                return send_to(thing, message, idempotency_key.clone());
            }
        };
        Ok(Request::new(operation, &names, |token| {
            members.insert("token".to_owned(), token.into());
            Value::Object(members).to_string()
        }))
    }
}

/// The message goes as it was written, so that no digit is lost.
fn send_to(thing: &str, message: &str, key: Option<String>) -> Result<Request, CliError> {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Payload {
        token: String,
        idempotency_key: String,
        message: Box<RawValue>,
    }
    let message = RawValue::from_string(text(message)?);
    let message = message.map_err(|fault| CliError::invalid(format!("the message: {fault}")))?;
    // Asked twice, it is sent once.
    let idempotency_key = key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    Ok(Request::new("send", &[source(thing)?], |token| {
        let payload = Payload {
            token,
            idempotency_key,
            message,
        };
        serde_json::to_string(&payload).unwrap_or_default()
    }))
}

impl One {
    fn names(&self) -> Result<Vec<String>, CliError> {
        let id = MessageId::new(self.id.as_str()).map_err(CliError::invalid)?;
        Ok(vec![source(&self.thing)?, id.to_string()])
    }
}

impl PageArguments {
    fn insert(&self, members: &mut Map<String, Value>) {
        insert(members, "limit", self.limit.map(Value::from));
        insert(members, "cursor", self.cursor.as_deref().map(Value::from));
    }
}

impl Request {
    fn new(operation: &str, names: &[String], payload: impl FnOnce(String) -> String) -> Request {
        let token = uuid::Uuid::new_v4().to_string();
        let mut topic = format!("request/{operation}");
        for name in names {
            topic.push('/');
            topic.push_str(name);
        }
        Request {
            topic,
            answer: format!("response/{operation}/{token}"),
            payload: payload(token),
        }
    }

    pub(crate) async fn ask(&self, mut session: Session) -> Result<String, CliError> {
        let answer = session
            .ask(&self.topic, &self.payload, &self.answer)
            .await?;
        session.close().await;
        String::from_utf8(answer.to_vec())
            .map_err(|_| CliError::unavailable("the answer is not text"))
    }
}

fn source(thing: &str) -> Result<String, CliError> {
    let source = Source::new(thing).map_err(CliError::invalid)?;
    Ok(source.to_string())
}

fn insert(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}
