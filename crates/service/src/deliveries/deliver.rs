//! One turn of a delivery, done.

use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::body::body;
use super::decide::{AttemptOutcome, NextStep, Policy, after, before, open_for, unheard};
use super::delivery::{Attempt, Delivery, Status};
use super::ports::{DeliveryContext, DeliveryStore, HttpAnswer, Post, PostError, Sender};
use crate::clients::{Client, ClientState, Secret, Secrets};
use crate::clock::Clock;
use crate::store::StoreError;

/// How long a turn waits that could not even be decided.
const UNDECIDED: Duration = Duration::from_secs(5);
/// Characters of an error that are kept.
const ERROR_CHARACTERS: usize = 300;

/// How often a turn is decided.
const LOOKS: usize = 3;
/// What is said of a turn that nothing was written down of.
const CUT_OFF: &str =
    "cut off: nothing was recorded of this turn, and the request may have been made";

/// What is to become of a delivery's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDisposition {
    /// It is done with.
    Done(Status),
    /// It is to come back after this long.
    Again(Duration),
    /// It is to go to the dead letters, which the queue does when it is received once more.
    Dead,
}

/// A turn that is being taken.
struct Turn<'a> {
    delivery: &'a Delivery,
    turn: u32,
    /// Earlier turns that nothing was written down of.
    unheard: Vec<Attempt>,
}

/// Sends deliveries.
pub struct Deliver<L, S> {
    ledger: L,
    sender: S,
    clock: Arc<dyn Clock>,
    policy: Policy,
}

impl<L: DeliveryStore, S: Sender> Deliver<L, S> {
    /// By these rules.
    pub fn new(ledger: L, sender: S, clock: Arc<dyn Clock>, policy: Policy) -> Deliver<L, S> {
        Deliver {
            ledger,
            sender,
            clock,
            policy,
        }
    }

    /// The time by its clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes a turn, the `turn`th of its round.
    ///
    /// A store that fails never loses a delivery: before the request nothing has happened yet, and after
    /// it the client gets the same once more, which its id tells.
    pub async fn turn(&self, delivery: &Delivery, turn: u32) -> MessageDisposition {
        match self.try_turn(delivery, turn).await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::warn!(id = %delivery.id, %error, "a turn could not be completed");
                MessageDisposition::Again(
                    UNDECIDED.max(self.policy.delays.after(turn, fastrand::f64())),
                )
            }
        }
    }

    async fn try_turn(
        &self,
        delivery: &Delivery,
        turn: u32,
    ) -> Result<MessageDisposition, StoreError> {
        // What stood in the way may have gone while it was written down.
        for _ in 0..LOOKS {
            let standing = self.ledger.standing(delivery).await?;
            if let Some(settled) = self.decided(delivery, turn, &standing).await? {
                return Ok(settled);
            }
        }
        Ok(MessageDisposition::Again(UNDECIDED))
    }

    /// `None` if it is to be decided anew.
    async fn decided(
        &self,
        delivery: &Delivery,
        turn: u32,
        standing: &DeliveryContext,
    ) -> Result<Option<MessageDisposition>, StoreError> {
        let now = self.clock.now();
        let taken = Turn {
            delivery,
            turn,
            unheard: self.unheard(delivery, turn, standing, now),
        };
        let settled = match before(standing, delivery, turn, now, &self.policy) {
            NextStep::Nothing => MessageDisposition::Done(Status::Delivered),
            NextStep::Settle(Status::Parked) => {
                self.record(&taken, Status::Parked, None, now).await?;
                if !self.is_parked(delivery).await? {
                    return Ok(None);
                }
                MessageDisposition::Done(Status::Parked)
            }
            NextStep::Settle(status) => {
                self.record(&taken, status, None, now).await?;
                MessageDisposition::Done(status)
            }
            NextStep::Bury => {
                self.record(&taken, Status::Dead, None, now).await?;
                MessageDisposition::Dead
            }
            NextStep::Wait(until) => self.postponed(&taken, until, now).await?,
            NextStep::Send(client, secrets) => self.send(&taken, client, secrets).await?,
            NextStep::Probe(client, secrets, seen) => {
                let until = now.after(self.policy.probe);
                if self.ledger.claim_probe(&client.id, seen, until).await? {
                    self.send(&taken, client, secrets).await?
                } else {
                    self.postponed(&taken, until, now).await?
                }
            }
        };
        Ok(Some(settled))
    }

    /// Whether a delivery that was just recorded as parked stays so. Whoever enables a client looks for
    /// what is parked after it has done so; if the client is still disabled now, that look is to come. If
    /// it is not, the look may have been before the record, and nobody would ever look again.
    async fn is_parked(&self, delivery: &Delivery) -> Result<bool, StoreError> {
        let standing = self.ledger.standing(delivery).await?;
        let disabled = |(client, _): &(Client, Secrets)| client.state != ClientState::Enabled;
        Ok(standing.client.as_ref().is_some_and(disabled))
    }

    fn unheard(
        &self,
        delivery: &Delivery,
        turn: u32,
        standing: &DeliveryContext,
        now: Timestamp,
    ) -> Vec<Attempt> {
        let cut_off = |turn| Attempt {
            at: now,
            round: delivery.round,
            turn,
            status: None,
            latency_ms: 0,
            error: Some(CUT_OFF.to_owned()),
        };
        unheard(standing, turn, &self.policy).map(cut_off).collect()
    }

    async fn record(
        &self,
        taken: &Turn<'_>,
        status: Status,
        attempt: Option<Attempt>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attempts: Vec<Attempt> = taken.unheard.iter().cloned().chain(attempt).collect();
        self.ledger
            .record(taken.delivery, status, &attempts, now)
            .await
    }

    /// Not before the circuit's time, and never sooner than without one: a circuit takes turns, but it
    /// does not shorten the time a client has to come back.
    async fn postponed(
        &self,
        taken: &Turn<'_>,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<MessageDisposition, StoreError> {
        let attempt = Attempt {
            at: now,
            round: taken.delivery.round,
            turn: taken.turn,
            status: None,
            latency_ms: 0,
            error: Some("not sent: the endpoint failed lately and is given time".to_owned()),
        };
        self.record(taken, Status::Failed, Some(attempt), now)
            .await?;
        let wait = between(now, until);
        let own = self.policy.delays.after(taken.turn, fastrand::f64());
        // All that wait for one circuit come back one after another rather than at once.
        let spread = wait.mul_f64(fastrand::f64() / 4.0);
        Ok(MessageDisposition::Again(own.max(wait + spread)))
    }

    async fn send(
        &self,
        taken: &Turn<'_>,
        client: &Client,
        secrets: &Secrets,
    ) -> Result<MessageDisposition, StoreError> {
        let Turn { delivery, turn, .. } = *taken;
        let at = self.clock.now();
        let active: Vec<&Secret> = secrets.active(at).collect();
        let body = body(delivery, client);
        let outcome = self
            .sender
            .post(Post {
                url: &client.url,
                id: &delivery.id,
                now: at,
                secrets: &active,
                body: &body,
            })
            .await;
        let now = self.clock.now();
        let attempt = attempt(&outcome, delivery.round, turn, at, now);
        let decided = after(&outcome, turn, fastrand::f64(), &self.policy);
        let (status, settled) = match decided {
            AttemptOutcome::Delivered => (
                Status::Delivered,
                MessageDisposition::Done(Status::Delivered),
            ),
            AttemptOutcome::Gone => (Status::Parked, MessageDisposition::Done(Status::Parked)),
            AttemptOutcome::Again(wait) => (Status::Failed, MessageDisposition::Again(wait)),
            AttemptOutcome::Dead => (Status::Dead, MessageDisposition::Dead),
        };
        // Disabled first: what is parked for an enabled client would wait for nobody.
        if decided == AttemptOutcome::Gone {
            let reason = "the endpoint answered 410 Gone";
            self.ledger.disable(&client.id, reason, now).await?;
        }
        self.record(taken, status, Some(attempt), now).await?;
        self.tell_circuit(decided, &outcome, client, now).await?;
        if decided == AttemptOutcome::Gone && !self.is_parked(delivery).await? {
            return Ok(MessageDisposition::Again(UNDECIDED));
        }
        Ok(settled)
    }

    async fn tell_circuit(
        &self,
        decided: AttemptOutcome,
        outcome: &Result<HttpAnswer, PostError>,
        client: &Client,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match decided {
            AttemptOutcome::Delivered if client.circuit.failures == 0 => Ok(()),
            AttemptOutcome::Delivered => self.ledger.note_success(&client.id).await,
            AttemptOutcome::Gone => Ok(()),
            AttemptOutcome::Again(_) | AttemptOutcome::Dead => {
                let (weight, open) = open_for(outcome, client.circuit.failures, &self.policy);
                let until = open.map(|open| now.after(open));
                self.ledger.note_failure(&client.id, weight, until).await
            }
        }
    }
}

fn attempt(
    outcome: &Result<HttpAnswer, PostError>,
    round: u32,
    turn: u32,
    at: Timestamp,
    now: Timestamp,
) -> Attempt {
    let error = match outcome {
        Ok(answer) if (200..300).contains(&answer.status) => None,
        Ok(answer) if (300..400).contains(&answer.status) => {
            Some("redirects are not followed".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string().chars().take(ERROR_CHARACTERS).collect()),
    };
    Attempt {
        at,
        round,
        turn,
        status: outcome.as_ref().ok().map(|answer| answer.status),
        latency_ms: between(at, now).as_millis() as u64,
        error,
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    let nanoseconds = to.nanoseconds() - from.nanoseconds();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}
