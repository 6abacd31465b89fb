//! Messages to send, and their results.

use antumbra_service::notifications::{Channel, Message, SendError};

/// The `n`th message: complete for every channel, its number in the body.
pub(crate) fn message(n: usize) -> Message {
    Message {
        id: format!("id-{n}"),
        key: "DS#boiler#DSR#main".to_owned(),
        body: format!("{{\"n\":{n}}}"),
        attributes: vec![("state".to_owned(), "reported".to_owned())],
        topic: Some("shadows/boiler".to_owned()),
        qos: 1,
        detail_type: Some("Shadow Changed".to_owned()),
        ..Message::default()
    }
}

pub(crate) fn messages(count: usize) -> Vec<Message> {
    (0..count).map(message).collect()
}

/// Sends all messages in full batches.
pub(crate) async fn send_all(
    channel: &dyn Channel,
    messages: &[Message],
) -> Vec<Result<(), SendError>> {
    let mut results = Vec::new();
    for batch in messages.chunks(channel.limits().batch_count) {
        let sent = channel.send(batch).await;
        assert_eq!(sent.len(), batch.len(), "one result for each message");
        results.extend(sent);
    }
    results
}

/// Results as letters: `.` sent, `r` retryable, `p` permanent.
pub(crate) fn letters(results: &[Result<(), SendError>]) -> String {
    let letter = |result: &Result<(), SendError>| match result {
        Ok(()) => '.',
        Err(SendError::Retry(_)) => 'r',
        Err(SendError::Permanent(_)) => 'p',
    };
    results.iter().map(letter).collect()
}

/// The reason of a failure.
pub(crate) fn reason(result: &Result<(), SendError>) -> String {
    match result {
        Ok(()) => panic!("it was sent"),
        Err(SendError::Retry(reason) | SendError::Permanent(reason)) => reason.clone(),
    }
}

/// Sends messages and returns their results as letters.
pub(crate) async fn sent(channel: &dyn Channel, messages: &[Message]) -> String {
    letters(&channel.send(messages).await)
}
