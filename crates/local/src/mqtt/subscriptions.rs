//! Subscriptions within the process.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::{Message, TopicFilter};

/// Messages that match a filter, in the order in which the broker accepted them.
#[derive(Debug)]
pub struct Subscription(mpsc::UnboundedReceiver<Message>);

impl Subscription {
    /// The next message; `None` once the broker has stopped.
    pub async fn next(&mut self) -> Option<Message> {
        self.0.recv().await
    }
}

/// Clones share the list.
#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Mutex<Vec<Listener>>>);

struct Listener {
    filter: TopicFilter,
    accept: Accept,
}

/// Takes a message; returns `false` once the subscription has ended.
type Accept = Box<dyn Fn(&Message) -> bool + Send>;

impl Subscriptions {
    pub(super) fn add(&self, filter: TopicFilter) -> Subscription {
        // Unbounded: a subscriber that publishes a response would wait for itself once its own queue is full.
        let (messages, receiver) = mpsc::unbounded_channel();
        self.call(
            filter,
            Box::new(move |message| messages.send(message.clone()).is_ok()),
        );
        Subscription(receiver)
    }

    pub(super) fn call(&self, filter: TopicFilter, accept: Accept) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Listener { filter, accept });
    }

    /// Ends every subscription. The broker's context keeps its hooks, and they keep this list, so dropping it is not
    /// enough.
    pub(super) fn close(&self) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.clear();
    }

    /// Sends the message to all matching subscriptions, and removes those that have ended.
    pub(super) fn offer(&self, message: &Message) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            !listener.filter.matches(&message.topic) || (listener.accept)(message)
        });
    }
}
