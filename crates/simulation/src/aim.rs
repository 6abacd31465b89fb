//! Faults that aim: whenever a certain function makes a certain call, something happens right then.
//!
//! What goes wrong by chance seldom falls between two calls of one turn, or into the second in which a
//! deadline passes. A seed that aims has an eye on one kind of call, and does something to it often.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chance::Chance;
use crate::cloud::Fate;

/// Fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It fares like this.
    Fares(Fate),
    /// The caller crashes before the call is sent.
    EndsBefore,
    /// The caller crashes after the call is sent.
    EndsAfter,
    /// Somebody acts from outside, to the end, before it arrives.
    Meets,
}

/// That something happens to a function's calls of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Aim {
    pub(crate) function: &'static str,
    pub(crate) operation: &'static str,
    /// Text that the request contains.
    pub(crate) about: &'static str,
    pub(crate) deed: Deed,
    /// Probability from 0 to 1.
    pub(crate) often: f64,
}

/// Target of a seed's faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// A sensor speaks up at the last moment, while the sweep's marker is under way.
    Marker,
    /// An operator comes between two calls of a delivery's turn.
    Operator,
    /// The operator's own work does not come to its end.
    Desk,
    /// The clients of a sensor cannot be read, or deliveries cannot be queued.
    Listener,
    /// Any call of any function.
    Any,
}

/// Calls that are worth an eye, by function.
const CALLS: [(&str, &[&str]); 9] = [
    (
        LISTENER,
        &["SendMessageBatch", "Publish", "Query", "BatchGetItem"],
    ),
    (
        "shadow-requests",
        &["BatchGetItem", "PutItem", "TransactWriteItems", "Publish"],
    ),
    ("device", &["BatchGetItem", "PutItem", "TransactWriteItems"]),
    ("message-ingest", &["PutItem", "SendMessageBatch"]),
    ("message-delete", &["UpdateItem", "Publish"]),
    (SWEEP, &[MARKER, "GetItem", "Query", "UpdateItem"]),
    (
        INGEST,
        &["UpdateItem", "BatchWriteItem", "SendMessageBatch"],
    ),
    (
        DELIVER,
        &["BatchGetItem", "UpdateItem", "ChangeMessageVisibility"],
    ),
    (
        DESK,
        &[
            "GetItem",
            "Query",
            "SendMessageBatch",
            "UpdateItem",
            "TransactWriteItems",
        ],
    ),
];
const LISTENER: &str = "stream-listener";
const SWEEP: &str = "liveness-sweep";
const INGEST: &str = "sensor-ingest";
const DELIVER: &str = "webhook-deliver";
const DESK: &str = "desk";
/// The call that sends the sweep's marker.
const MARKER: &str = "SendMessageBatch";

const DEEDS: [Deed; 10] = [
    Deed::EndsBefore,
    Deed::EndsAfter,
    Deed::Fares(Fate::Throttled),
    Deed::Fares(Fate::Failed),
    Deed::Fares(Fate::LostBefore),
    Deed::Fares(Fate::LostAfter),
    Deed::Fares(Fate::Late),
    Deed::Fares(Fate::Slow),
    Deed::Fares(Fate::Partial),
    Deed::Fares(Fate::Conflict),
];

/// Returns the target of a seed, if it has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aims {
    scene: Option<Scene>,
    all: Vec<Aim>,
}

impl Aims {
    pub(crate) fn of(chance: &Chance) -> Aims {
        let scene = *chance.pick(&[
            Scene::Marker,
            Scene::Operator,
            Scene::Desk,
            Scene::Listener,
            Scene::Any,
        ]);
        let aim = |function, operation, deed| Aim {
            function,
            operation,
            about: "",
            deed,
            often: chance.between(20, 100) as f64 / 100.0,
        };
        let any = |function, operations: &[&'static str]| {
            aim(function, *chance.pick(operations), *chance.pick(&DEEDS))
        };
        let operator = |calls: &[&'static str]| aim(DELIVER, *chance.pick(calls), Deed::Meets);
        let all = match scene {
            Scene::Marker => {
                let marker = aim(SWEEP, MARKER, Deed::Meets);
                let about = *chance.pick(&["SENSOR#", "SENSOR#", "SENSOR#", "LIVENESS"]);
                let ingest = any(INGEST, &["UpdateItem"]);
                vec![marker, Aim { about, ..ingest }]
            }
            Scene::Operator => vec![operator(&["BatchGetItem", "UpdateItem"])],
            Scene::Desk => vec![
                operator(&["UpdateItem"]),
                any(DESK, &["Query", "SendMessageBatch", "UpdateItem"]),
            ],
            Scene::Listener => vec![any(LISTENER, &["Query", "Query", "SendMessageBatch"])],
            Scene::Any => {
                let (function, operations) = *chance.pick(&CALLS);
                vec![any(function, operations)]
            }
        };
        let scene = Some(scene);
        Aims { scene, all }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns `true` if the target needs sensors.
    pub(crate) fn needs_sensors(&self) -> bool {
        self.scene.is_some_and(|scene| scene != Scene::Any)
    }

    /// Returns `true` if the target needs a client that an operator manages.
    pub(crate) fn needs_operator(&self) -> bool {
        matches!(self.scene, Some(Scene::Operator | Scene::Desk))
    }

    /// Returns `true` if the target needs clients.
    pub(crate) fn needs_clients(&self) -> bool {
        self.needs_sensors() && self.scene != Some(Scene::Marker)
    }

    /// Returns the fault for a call.
    pub(crate) fn hits(
        &self,
        (function, operation): (&str, &str),
        body: &str,
        chance: &Chance,
    ) -> Option<Deed> {
        let is_meant = |aim: &&Aim| {
            (aim.function, aim.operation) == (function, operation) && body.contains(aim.about)
        };
        let aim = self.all.iter().find(is_meant)?;
        chance.happens(aim.often).then_some(aim.deed)
    }
}

/// Somebody who acts from outside: a function, what it asks for, and what is done about it.
pub(crate) type Visitor = Arc<dyn Fn(&str, &str) -> Visit + Send + Sync>;
pub(crate) type Visit = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An invocation, as those see it who are called.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) function: &'static str,
    ended: Arc<AtomicBool>,
}

impl Caller {
    pub(crate) fn new(function: &'static str) -> Caller {
        Caller {
            function,
            ended: Arc::default(),
        }
    }

    /// Ends it where it stands.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
