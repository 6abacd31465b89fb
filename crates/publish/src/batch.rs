//! The results of one call, kept in the order of its messages.

use antumbra_service::notifications::{ChannelLimits, Message, SendError};

/// What became of a message.
pub(crate) type Sent = Result<(), SendError>;

/// Attributes a message may have in a queue or topic.
const ATTRIBUTES: usize = 10;

/// The messages of a call, each in a slot with what is known of it so far.
///
/// A message that the service would refuse is settled before the call, so that
/// it does not take the others of its batch with it.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    called: &'a str,
    slots: Vec<(&'a Message, Option<Sent>)>,
}

impl<'a> Batch<'a> {
    /// `called` is the service and the target, for the reasons.
    pub(crate) fn of(called: &'a str, messages: &'a [Message]) -> Batch<'a> {
        let slots = messages.iter().map(|message| (message, None)).collect();
        Batch { called, slots }
    }

    /// Makes an entry of every message that can be one; the reason of any other is its result.
    pub(crate) fn entries<T>(
        &mut self,
        mut entry: impl FnMut(String, &'a Message) -> Result<T, String>,
    ) -> Vec<T> {
        let mut entries = Vec::with_capacity(self.slots.len());
        for (position, (message, sent)) in self.slots.iter_mut().enumerate() {
            match entry(position.to_string(), message) {
                Ok(made) => entries.push(made),
                Err(reason) => *sent = Some(Err(permanent(self.called, &reason))),
            }
        }
        entries
    }

    /// Says what became of the entry with this id. The service cannot name one that is not there.
    pub(crate) fn settle(&mut self, id: &str, sent: Sent) {
        let slot = id.parse().ok().and_then(|at: usize| self.slots.get_mut(at));
        if let Some((_, waiting @ None)) = slot {
            *waiting = Some(sent);
        }
    }

    /// All messages still waiting failed for the same reason.
    pub(crate) fn fail(mut self, error: &SendError) -> Vec<Sent> {
        for (_, sent) in &mut self.slots {
            sent.get_or_insert_with(|| Err(error.clone()));
        }
        self.results()
    }

    /// One result for each message. One that the service did not speak of may have been accepted.
    pub(crate) fn results(self) -> Vec<Sent> {
        let silence = || SendError::Retry(format!("{}: no result for the entry", self.called));
        let results = self.slots.into_iter();
        results
            .map(|(_, sent)| sent.unwrap_or_else(|| Err(silence())))
            .collect()
    }
}

/// A reason that will not go away.
pub(crate) fn permanent(called: &str, reason: &str) -> SendError {
    SendError::Permanent(format!("{called}: {reason}"))
}

/// Why a message is not sent that comes after the given ones, where they go one by one: one of its
/// key may not overtake it, and a service in trouble is not asked ten times.
pub(crate) fn held_back(called: &str, results: &[Sent]) -> Option<SendError> {
    let waits = || SendError::Retry(format!("{called}: waits for an earlier message"));
    matches!(results.last(), Some(Err(SendError::Retry(_)))).then(waits)
}

/// Says if a message is larger than the channel takes.
pub(crate) fn check_size(message: &Message, limits: ChannelLimits) -> Result<(), String> {
    let (bytes, limit) = (message.bytes(), limits.message_bytes);
    if bytes > limit {
        return Err(format!(
            "the message has {bytes} bytes, the limit is {limit}"
        ));
    }
    Ok(())
}

/// The attributes as a queue or topic takes them: none without a value.
pub(crate) fn attributes(message: &Message) -> Result<Vec<(String, String)>, String> {
    let with_value = message
        .attributes
        .iter()
        .filter(|(_, value)| !value.is_empty());
    let taken: Vec<_> = with_value
        .map(|(name, value)| (name.clone(), crate::text::attribute(value)))
        .collect();
    match taken.len() {
        0..=ATTRIBUTES => Ok(taken),
        many => Err(format!(
            "the message has {many} attributes, the limit is {ATTRIBUTES}"
        )),
    }
}

/// The body as a queue or topic takes it.
pub(crate) fn body(message: &Message) -> Result<String, String> {
    match crate::text::json_body(&message.body) {
        Some(body) if !body.is_empty() => Ok(body.into_owned()),
        Some(_) => Err("the message has no body".to_owned()),
        None => Err("the body has a character that cannot be sent".to_owned()),
    }
}
