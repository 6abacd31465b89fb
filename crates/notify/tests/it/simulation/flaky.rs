//! Channels on a bad day.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use antumbra_notify::ChannelFactory;
use antumbra_registration::Target;
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use fastrand::Rng;
use tokio::task::yield_now;

use super::history::{Notification, PLACES, Place};
use crate::channels::{Sent, address, body, check};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    Fine,
    Storm,
}

/// The one channel that refuses some messages for good.
const PICKY: Place = Place::Queue;
const REFUSED: &str = "refused for its content";

/// How one call goes.
#[derive(Clone, Copy)]
enum Call {
    /// All arrive.
    Succeeds,
    /// The service is away, and nothing arrives.
    Fails,
    /// All arrive, and the answer does not.
    FailsAfterAcceptance,
    /// Each message goes its own way.
    InPart,
}

#[derive(Default)]
struct Log {
    /// In the order of their first arrival.
    first: Vec<Message>,
    positions: HashMap<String, usize>,
    known: HashSet<Notification>,
    duplicates: usize,
}

impl Log {
    fn take(&mut self, message: &Message) {
        if let Some(&position) = self.positions.get(&message.id) {
            assert_eq!(
                self.first[position], *message,
                "the same id, another content"
            );
            self.duplicates += 1;
            return;
        }
        self.positions.insert(message.id.clone(), self.first.len());
        self.first.push(message.clone());
        let body = body(message);
        // What is parked has the notification in it, beside the reason.
        let what = match body.get("reason") {
            None => Notification::of(&body),
            Some(reason) => {
                assert_eq!(reason, REFUSED);
                Notification::of(&body["notification"])
            }
        };
        let new = self.known.insert(what);
        assert!(new, "the same notification with another id: {body}");
    }
}

pub(crate) struct Flaky {
    fifo: bool,
    random: Mutex<Rng>,
    weather: Weather,
    /// How many calls an outage still lasts.
    outage: Mutex<usize>,
    /// Whether some messages are refused for good.
    picky: bool,
    log: Mutex<Log>,
}

const LIMITS: ChannelLimits = ChannelLimits {
    batch_count: 10,
    batch_bytes: 4000,
    message_bytes: 3000,
};

impl Flaky {
    fn new(random: &mut Rng, weather: Weather, place: Option<Place>) -> Arc<Flaky> {
        Arc::new(Flaky {
            fifo: place == Some(Place::Fifo),
            random: Mutex::new(random.fork()),
            weather,
            outage: Mutex::default(),
            picky: place == Some(PICKY),
            log: Mutex::default(),
        })
    }

    fn random(&self, below: usize) -> usize {
        self.random.lock().unwrap().usize(..below)
    }

    fn call(&self) -> Call {
        if self.weather == Weather::Fine {
            return Call::Succeeds;
        }
        let mut outage = self.outage.lock().unwrap();
        if *outage > 0 {
            *outage -= 1;
            return Call::Fails;
        }
        match self.random(100) {
            0 => {
                // Long enough, now and then, for an invocation to give up.
                *outage = self.random(60);
                Call::Fails
            }
            1..10 => Call::Fails,
            10..18 => Call::FailsAfterAcceptance,
            18..50 => Call::InPart,
            _ => Call::Succeeds,
        }
    }

    /// What becomes of one message: whether it arrives, and what is said of it.
    fn fate(&self, call: Call, message: &Message) -> (bool, Sent) {
        let retry = |reason: &str| Err(SendError::Retry(reason.to_owned()));
        if self.refuses(message) && !matches!(call, Call::Fails) {
            return (false, Err(SendError::Permanent(REFUSED.to_owned())));
        }
        match call {
            Call::Succeeds => (true, Ok(())),
            Call::Fails => (false, retry("service unavailable")),
            Call::FailsAfterAcceptance => (true, retry("timed out")),
            Call::InPart => match self.random(3) {
                0 => (false, retry("throttled")),
                1 => (true, retry("internal failure")),
                _ => (true, Ok(())),
            },
        }
    }

    fn refuses(&self, message: &Message) -> bool {
        self.picky && message.id.ends_with(['0'])
    }

    async fn pause(&self) {
        if self.weather == Weather::Storm {
            for _ in 0..self.random(3) {
                yield_now().await;
            }
        }
    }

    async fn deliver(&self, messages: &[Message]) -> Vec<Sent> {
        check(messages, LIMITS);
        let call = self.call();
        self.pause().await;
        let mut order: Vec<usize> = (0..messages.len()).collect();
        if !self.fifo {
            // Only FIFO queues take the messages of a batch in their order.
            self.random.lock().unwrap().shuffle(&mut order);
        }
        let mut answers: Vec<Sent> = vec![Ok(()); messages.len()];
        for at in order {
            let (arrives, answer) = self.fate(call, &messages[at]);
            if arrives {
                self.log.lock().unwrap().take(&messages[at]);
            }
            answers[at] = answer;
            // Whoever is dropped here has sent a part of the batch.
            self.pause().await;
        }
        self.pause().await;
        answers
    }
}

impl Channel for Flaky {
    fn limits(&self) -> ChannelLimits {
        LIMITS
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Sent>> {
        Box::pin(self.deliver(messages))
    }
}

/// All channels. They outlive every process.
pub(crate) struct World {
    pub(crate) weather: Weather,
    channels: HashMap<Place, Arc<Flaky>>,
    undeliverable: Arc<Flaky>,
}

impl World {
    pub(crate) fn new(random: &mut Rng, weather: Weather) -> World {
        let places = PLACES.into_iter();
        World {
            weather,
            channels: places
                .map(|(place, _)| (place, Flaky::new(random, weather, Some(place))))
                .collect(),
            undeliverable: Flaky::new(random, weather, None),
        }
    }

    /// Whether a notification is where it should be, or was parked.
    pub(crate) fn has(&self, place: Place, what: &Notification) -> bool {
        let known = |channel: &Flaky| channel.log.lock().unwrap().known.contains(what);
        known(&self.channels[&place]) || (place == PICKY && known(&self.undeliverable))
    }

    /// What arrived, in the order of first arrival.
    pub(crate) fn arrived(&self, place: Place) -> Vec<(Notification, Message)> {
        let log = self.channels[&place].log.lock().unwrap();
        let what = |message: &Message| (Notification::of(&body(message)), message.clone());
        log.first.iter().map(what).collect()
    }

    /// What was parked of a channel.
    pub(crate) fn parked(&self, place: Place) -> Vec<Notification> {
        let log = self.undeliverable.log.lock().unwrap();
        let all = log.known.iter().filter(|_| place == PICKY);
        all.cloned().collect()
    }

    pub(crate) fn duplicates(&self) -> usize {
        let all = self.channels.values().chain([&self.undeliverable]);
        all.map(|channel| channel.log.lock().unwrap().duplicates)
            .sum()
    }
}

impl ChannelFactory for World {
    fn channel(&self, target: &Target) -> Option<Arc<dyn Channel>> {
        let address = address(target);
        let known = PLACES.iter().find(|(_, name)| *name == address)?;
        Some(Arc::clone(&self.channels[&known.0]) as Arc<dyn Channel>)
    }

    fn undeliverable(&self) -> Arc<dyn Channel> {
        Arc::clone(&self.undeliverable) as Arc<dyn Channel>
    }
}
