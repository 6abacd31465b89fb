//! Aimed faults: whenever a certain function makes a certain call, something happens at that moment.
//!
//! Random faults seldom fall between two calls of one delivery attempt, or into the second in which a deadline
//! passes. A seed that aims watches one kind of call and often interferes with it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chance::Chance;
use crate::cloud::Fate;

/// Interference with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interference {
    /// The call has this fate.
    HasFate(Fate),
    /// The caller ends before the call is sent.
    EndsBefore,
    /// The caller ends when the call is sent.
    EndsAfter,
    /// An actor completes an action before the call arrives.
    Intervenes,
}

/// Interference with one kind of calls of a function.
#[derive(Debug, Clone)]
pub(crate) struct Aim {
    pub(crate) function: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) about: &'static str,
    pub(crate) interference: Interference,
    pub(crate) often: f64,
}

/// Target of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// A sensor sends a signal at the last moment, while the sweep's marker is in flight.
    Marker,
    /// An operator acts between two calls of a delivery attempt.
    Operator,
    /// An operator's action is interrupted.
    InterruptedOperator,
    /// A delivery is held again while the release of held deliveries is not over.
    Release,
    /// A client is enabled, and the schedule runs, while a delivery is about to be held for it.
    Holding,
    /// A delivery is made while the release of held deliveries, which has queued it again, is interrupted.
    InterruptedRelease,
    /// A link is removed after a delivery was recorded, and the listener ends before it queues the delivery.
    Unlinking,
    /// The clients of a sensor cannot be read, or their deliveries cannot be queued.
    Listener,
    /// Entries of the history or segments of the change feed are not written, or late, while other shadows change and
    /// readers of the feed read.
    History,
    /// The last spilled messages are sent, but the marks of their keys are removed slowly, while other invocations send
    /// theirs.
    Spill,
    /// Any call of any function.
    Any,
}

/// Calls that are worth aiming at, by function.
const CALLS: [(&str, &[&str]); 11] = [
    (
        LISTENER,
        &["SendMessageBatch", "Publish", "Query", "BatchGetItem"],
    ),
    (
        "shadow-requests",
        &["BatchGetItem", "PutItem", "TransactWriteItems", "Publish"],
    ),
    ("device", &["BatchGetItem", "PutItem", "TransactWriteItems"]),
    (HISTORY, HISTORY_CALLS),
    (FOLLOWER, &["GetItem", "Query", "BatchGetItem"]),
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
        OPERATOR,
        &[
            "GetItem",
            "Query",
            "SendMessageBatch",
            "UpdateItem",
            "DeleteItem",
            "TransactWriteItems",
        ],
    ),
];
const LISTENER: &str = "stream-listener";
const SWEEP: &str = "liveness-sweep";
const INGEST: &str = "sensor-ingest";
const DELIVER: &str = "webhook-deliver";
const OPERATOR: &str = "operator";
const HISTORY: &str = "history-writer";
const FOLLOWER: &str = "follower";
/// Calls that write entries, reserve numbers of the feed, and write segments.
const HISTORY_CALLS: &[&str] = &[ENTRIES, "UpdateItem", SEGMENT];
const ENTRIES: &str = "BatchWriteItem";
const SEGMENT: &str = "PutItem";
/// Keys of the list of held deliveries, and of deliveries.
pub(crate) const HELD: &str = "\"HELD#";
const DELIVERY: &str = "\"DELIVERY#";
/// Keys of the marks of keys with spilled messages.
const SPILLED: &str = "\"SPILLED#";
/// The call that sends the sweep's marker.
const MARKER: &str = "SendMessageBatch";

const INTERFERENCES: [Interference; 10] = [
    Interference::EndsBefore,
    Interference::EndsAfter,
    Interference::HasFate(Fate::Throttled),
    Interference::HasFate(Fate::Failed),
    Interference::HasFate(Fate::LostBefore),
    Interference::HasFate(Fate::LostAfter),
    Interference::HasFate(Fate::Late),
    Interference::HasFate(Fate::Slow),
    Interference::HasFate(Fate::Partial),
    Interference::HasFate(Fate::Conflict),
];

/// Chooses the target of a seed, if it has one.
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
            Scene::InterruptedOperator,
            Scene::Release,
            Scene::Holding,
            Scene::InterruptedRelease,
            Scene::Unlinking,
            Scene::Listener,
            Scene::History,
            Scene::Any,
        ]);
        let aim = |function, operation, interference| Aim {
            function,
            operation,
            about: "",
            interference,
            often: chance.between(20, 100) as f64 / 100.0,
        };
        let any = |function, operations: &[&'static str]| {
            aim(
                function,
                *chance.pick(operations),
                *chance.pick(&INTERFERENCES),
            )
        };
        let operator =
            |calls: &[&'static str]| aim(DELIVER, *chance.pick(calls), Interference::Intervenes);
        let all = match scene {
            Scene::Marker => {
                let marker = aim(SWEEP, MARKER, Interference::Intervenes);
                let about = *chance.pick(&["SENSOR#", "SENSOR#", "SENSOR#", "LIVENESS"]);
                let ingest = any(INGEST, &["UpdateItem"]);
                vec![marker, Aim { about, ..ingest }]
            }
            Scene::Operator => vec![operator(&["BatchGetItem", "UpdateItem"])],
            Scene::InterruptedOperator => vec![
                operator(&["UpdateItem"]),
                any(OPERATOR, &["Query", "SendMessageBatch", "UpdateItem"]),
            ],
            Scene::Release => {
                let fate = *chance.pick(&[Fate::Slow, Fate::Late]);
                let removal = |function| aim(function, "DeleteItem", Interference::HasFate(fate));
                vec![
                    operator(&["BatchGetItem"]),
                    removal(OPERATOR),
                    removal(SWEEP),
                ]
            }
            Scene::Holding => {
                // The client is disabled now and then, and enabled again at once. Otherwise a later release would
                // hide that nothing released the delivery.
                let disabling = Aim {
                    often: 0.15,
                    ..operator(&["BatchGetItem"])
                };
                let enabling = Aim {
                    about: HELD,
                    often: 1.0,
                    ..operator(&["TransactWriteItems"])
                };
                vec![disabling, enabling]
            }
            Scene::InterruptedRelease => {
                let interference = *chance.pick(&[
                    Interference::EndsBefore,
                    Interference::HasFate(Fate::LostBefore),
                    Interference::HasFate(Fate::Late),
                ]);
                let recording = Aim {
                    about: DELIVERY,
                    ..aim(OPERATOR, "UpdateItem", interference)
                };
                vec![operator(&["BatchGetItem"]), recording]
            }
            Scene::Unlinking => {
                let adding = Aim {
                    about: DELIVERY,
                    ..aim(LISTENER, "PutItem", Interference::Intervenes)
                };
                vec![
                    adding,
                    aim(LISTENER, "SendMessageBatch", Interference::EndsBefore),
                ]
            }
            Scene::Listener => vec![any(LISTENER, &["Query", "Query", "SendMessageBatch"])],
            Scene::History => {
                let slow = |function, operation| {
                    aim(function, operation, Interference::HasFate(Fate::Slow))
                };
                let late_segments = slow(HISTORY, SEGMENT);
                match chance.below(3) {
                    0 => {
                        let fates = [Fate::Throttled, Fate::Failed, Fate::LostBefore];
                        let failed = Interference::HasFate(*chance.pick(&fates));
                        // Readers take long over a page: entries are written meanwhile.
                        vec![
                            aim(HISTORY, ENTRIES, failed),
                            slow(FOLLOWER, "BatchGetItem"),
                        ]
                    }
                    1 => vec![late_segments],
                    // The first that concerns a call counts: also where others fail, segments are late.
                    _ => vec![any(HISTORY, HISTORY_CALLS), late_segments],
                }
            }
            Scene::Spill => return Aims::of_spill(),
            Scene::Any => {
                let (function, operations) = *chance.pick(&CALLS);
                vec![any(function, operations)]
            }
        };
        let scene = Some(scene);
        Aims { scene, all }
    }

    /// The target of a seed in which nothing fails but one target of registrations.
    pub(crate) fn of_spill() -> Aims {
        Aims {
            scene: Some(Scene::Spill),
            all: vec![Aim {
                function: LISTENER,
                operation: "DeleteItem",
                about: SPILLED,
                interference: Interference::HasFate(Fate::Slow),
                often: 0.5,
            }],
        }
    }

    /// Name of the target, such as `Release`; `None` if there is none.
    pub(crate) fn name(&self) -> Option<String> {
        self.scene.map(|scene| format!("{scene:?}"))
    }

    /// Returns whether no call of functions other than the listener is concerned, and none fails.
    pub(crate) fn is_harmless(&self) -> bool {
        matches!(self.scene, None | Some(Scene::Spill))
    }

    /// Number of keys that notifications of the target need.
    pub(crate) fn needed_keys(&self) -> usize {
        match self.scene {
            Some(Scene::Spill) => 3,
            _ => 1,
        }
    }

    /// Time that the target needs after the outage of a target of registrations, in seconds.
    pub(crate) fn needed_seconds(&self) -> u64 {
        match self.scene {
            Some(Scene::Spill) => 400,
            _ => 60,
        }
    }

    /// Returns whether nobody acts after the outage of a target of registrations: a later change would end a suspension
    /// that spilled messages have left.
    pub(crate) fn rests_after_outage(&self) -> bool {
        self.scene == Some(Scene::Spill)
    }

    /// Returns whether event sources of queues collect messages, so that a signal and a marker come together.
    pub(crate) fn collects_messages(&self) -> bool {
        matches!(self.scene, Some(Scene::Marker))
    }

    /// Returns whether the target needs sensors.
    pub(crate) fn needs_sensors(&self) -> bool {
        let without = [Scene::Any, Scene::History, Scene::Spill];
        self.scene.is_some_and(|scene| !without.contains(&scene))
    }

    /// Number of shadows with a past that the target needs.
    pub(crate) fn needed_shadows(&self) -> usize {
        match self.scene {
            Some(Scene::History) => 4,
            _ => 0,
        }
    }

    /// Returns whether the target needs shadows that change at the same time, in different shards of the stream and in one
    /// partition of the change feed.
    pub(crate) fn needs_bursts(&self) -> bool {
        self.scene == Some(Scene::History)
    }

    /// Returns whether the target needs a client with an operator.
    pub(crate) fn needs_operator(&self) -> bool {
        matches!(
            self.scene,
            Some(
                Scene::Operator
                    | Scene::InterruptedOperator
                    | Scene::Release
                    | Scene::Holding
                    | Scene::InterruptedRelease
            )
        )
    }

    /// Returns whether the target needs a client whose links are removed.
    pub(crate) fn needs_unlinking(&self) -> bool {
        self.scene == Some(Scene::Unlinking)
    }

    /// Returns whether the target needs clients.
    pub(crate) fn needs_clients(&self) -> bool {
        self.needs_sensors() && self.scene != Some(Scene::Marker)
    }

    /// Interference with a call now.
    pub(crate) fn hits(
        &self,
        (function, operation): (&str, &str),
        body: &str,
        chance: &Chance,
    ) -> Option<Interference> {
        let is_meant = |aim: &&Aim| {
            (aim.function, aim.operation) == (function, operation) && body.contains(aim.about)
        };
        let aim = self.all.iter().find(is_meant)?;
        chance.happens(aim.often).then_some(aim.interference)
    }
}

/// An actor: the function that triggers it, the call, and its action.
pub(crate) type Intervention = Arc<dyn Fn(&str, &str) -> Interruption + Send + Sync>;
pub(crate) type Interruption = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An invocation, as the called services see it.
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

    /// Ends the invocation.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
