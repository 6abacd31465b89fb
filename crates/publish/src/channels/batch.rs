//! The messages of one call and their results, in the same order.

use antumbra_service::notifications::{ChannelLimits, Message, SendError};

pub(crate) type Sent = Result<(), SendError>;

const MAX_ATTRIBUTES: usize = 10;
/// Batches of ten messages in flight at once. The largest are a megabyte, so this also limits the memory.
pub(crate) const CONCURRENT_BATCHES: usize = 4;

/// The messages of a call, each with its result as soon as it is known.
///
/// A message that the service would reject gets its result before the call, so that the rest of the batch is sent.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    label: &'a str,
    slots: Vec<(&'a Message, Option<Sent>)>,
}

impl<'a> Batch<'a> {
    /// `label` names the service and the target in errors.
    pub(crate) fn new(label: &'a str, messages: &'a [Message]) -> Batch<'a> {
        let slots = messages.iter().map(|message| (message, None)).collect();
        Batch { label, slots }
    }

    /// Makes an entry of every valid message; the others are rejected with the reason.
    pub(crate) fn entries<T>(
        &mut self,
        mut entry: impl FnMut(String, &'a Message) -> Result<T, String>,
    ) -> Vec<T> {
        let mut entries = Vec::with_capacity(self.slots.len());
        for (position, (message, result)) in self.slots.iter_mut().enumerate() {
            match entry(position.to_string(), message) {
                Ok(entry) => entries.push(entry),
                Err(reason) => *result = Some(Err(permanent(self.label, &reason))),
            }
        }
        entries
    }

    /// Records the result of the entry with this id. Unknown ids are ignored.
    pub(crate) fn settle(&mut self, id: &str, result: Sent) {
        let slot = id.parse().ok().and_then(|at: usize| self.slots.get_mut(at));
        if let Some((_, open @ None)) = slot {
            *open = Some(result);
        }
    }

    /// Fails all messages that have no result yet.
    pub(crate) fn fail(mut self, error: &SendError) -> Vec<Sent> {
        for (_, result) in &mut self.slots {
            result.get_or_insert_with(|| Err(error.clone()));
        }
        self.results()
    }

    /// One result per message. A message without a result in the response may have been accepted: it is retried.
    pub(crate) fn results(self) -> Vec<Sent> {
        let missing = || SendError::Retry(format!("{}: no result for the entry", self.label));
        let slots = self.slots.into_iter();
        slots
            .map(|(_, result)| result.unwrap_or_else(|| Err(missing())))
            .collect()
    }
}

pub(crate) fn permanent(label: &str, reason: &str) -> SendError {
    SendError::Permanent(format!("{label}: {reason}"))
}

pub(crate) fn check_size(message: &Message, limits: ChannelLimits) -> Result<(), String> {
    let (bytes, limit) = (message.bytes(), limits.message_bytes);
    if bytes > limit {
        return Err(format!(
            "the message has {bytes} bytes, the limit is {limit}"
        ));
    }
    Ok(())
}

/// The attributes in the form that SQS and SNS accept: empty values are left out.
pub(crate) fn attributes(message: &Message) -> Result<Vec<(String, String)>, String> {
    let with_value = message
        .attributes
        .iter()
        .filter(|(_, value)| !value.is_empty());
    let attributes: Vec<_> = with_value
        .map(|(name, value)| (name.clone(), super::text::attribute(value)))
        .collect();
    match attributes.len() {
        0..=MAX_ATTRIBUTES => Ok(attributes),
        many => Err(format!(
            "the message has {many} attributes, the limit is {MAX_ATTRIBUTES}"
        )),
    }
}

/// The body in the form that SQS and SNS accept.
pub(crate) fn body(message: &Message) -> Result<String, String> {
    match super::text::json_body(&message.body) {
        Some(body) if !body.is_empty() => Ok(body.into_owned()),
        Some(_) => Err("the message has no body".to_owned()),
        None => Err("the body has a control character that SQS and SNS do not accept".to_owned()),
    }
}
