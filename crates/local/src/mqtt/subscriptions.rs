//! Those in the process who listen to the broker.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::{Message, TopicFilter};

/// Messages that pass a filter, in the order the broker took them.
#[derive(Debug)]
pub struct Subscription(mpsc::UnboundedReceiver<Message>);

impl Subscription {
    /// The next message; `None` once the broker has stopped.
    pub async fn next(&mut self) -> Option<Message> {
        self.0.recv().await
    }
}

/// Clones share the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions(Arc<Mutex<Vec<Listener>>>);

#[derive(Debug)]
struct Listener {
    filter: TopicFilter,
    // Unbounded: a subscriber that publishes a response would wait for itself once its own queue is full.
    messages: mpsc::UnboundedSender<Message>,
}

impl Subscriptions {
    pub(super) fn add(&self, filter: TopicFilter) -> Subscription {
        let (messages, receiver) = mpsc::unbounded_channel();
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Listener { filter, messages });
        Subscription(receiver)
    }

    /// Ends every subscription. The broker's context holds on to its hooks, and
    /// they to this list, so it does not end by being dropped.
    pub(super) fn close(&self) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.clear();
    }

    /// Gives the message to all who want it, and forgets those who are gone.
    pub(super) fn offer(&self, message: &Message) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            if listener.filter.matches(&message.topic) {
                listener.messages.send(message.clone()).is_ok()
            } else {
                !listener.messages.is_closed()
            }
        });
    }
}
