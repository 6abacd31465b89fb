//! Carries out attempts to deliver.

use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;

use super::body::body;
use super::decide::{
    AttemptOutcome, NextStep, Policy, attempt_outcome, circuit_after_failure, next_step,
    unrecorded_attempts,
};
use super::delivery::{Attempt, Delivery, Status};
use super::ports::{DeliveryContext, DeliveryStore, HttpResponse, Post, PostError, Sender};
use crate::clients::{Client, ClientState, Secret, Secrets};
use crate::clock::Clock;
use crate::store::StoreError;

/// Delay before the next attempt if the store failed or the situation kept changing.
const UNDECIDED: Duration = Duration::from_secs(5);
/// Characters of an error that are recorded.
const ERROR_CHARACTERS: usize = 300;

/// Number of times an attempt is decided anew because the client changed meanwhile.
const DECISIONS: usize = 3;
/// Error of an attempt without a recorded result.
const INTERRUPTED: &str =
    "interrupted: no result of this attempt was recorded, the request may have been sent";

/// Disposition of the message of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDisposition {
    /// Delete it: the delivery has its final status.
    Done(Status),
    /// Make it visible again after this time.
    RetryAfter(Duration),
    /// Let the queue move it to the dead-letter queue, which happens at the next receive.
    DeadLetter,
}

/// An attempt in progress.
struct CurrentAttempt<'a> {
    delivery: &'a Delivery,
    number: u32,
    /// Earlier attempts without a record.
    unrecorded: Vec<Attempt>,
}

/// Sends deliveries.
pub struct Deliver<L, S> {
    store: L,
    sender: S,
    clock: Arc<dyn Clock>,
    policy: Policy,
}

impl<L: DeliveryStore, S: Sender> Deliver<L, S> {
    /// Creates a sender of deliveries.
    pub fn new(store: L, sender: S, clock: Arc<dyn Clock>, policy: Policy) -> Deliver<L, S> {
        Deliver {
            store,
            sender,
            clock,
            policy,
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Makes the attempt with this number in the round of the delivery.
    ///
    /// A failing store never loses a delivery: before the request nothing has happened, and after it the client
    /// receives the same delivery again, with the same id.
    pub async fn attempt(&self, delivery: &Delivery, number: u32) -> MessageDisposition {
        match self.try_attempt(delivery, number).await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::warn!(id = %delivery.id, %error, "could not complete an attempt");
                MessageDisposition::RetryAfter(
                    UNDECIDED.max(self.policy.delays.after(number, fastrand::f64())),
                )
            }
        }
    }

    async fn try_attempt(
        &self,
        delivery: &Delivery,
        number: u32,
    ) -> Result<MessageDisposition, StoreError> {
        // A client may be enabled or disabled while its delivery is recorded.
        for _ in 0..DECISIONS {
            let context = self.store.context(delivery).await?;
            if let Some(settled) = self.decide(delivery, number, &context).await? {
                return Ok(settled);
            }
        }
        Ok(MessageDisposition::RetryAfter(UNDECIDED))
    }

    /// Decides and carries out an attempt; `None` if it must be decided anew.
    async fn decide(
        &self,
        delivery: &Delivery,
        number: u32,
        context: &DeliveryContext,
    ) -> Result<Option<MessageDisposition>, StoreError> {
        let now = self.clock.now();
        let current = CurrentAttempt {
            delivery,
            number,
            unrecorded: self.unrecorded(delivery, number, context, now),
        };
        let settled = match next_step(context, delivery, number, now, &self.policy) {
            NextStep::Nothing => MessageDisposition::Done(Status::Delivered),
            NextStep::Settle(Status::Held) => {
                self.record(&current, Status::Held, None, now).await?;
                if !self.is_held(delivery).await? {
                    return Ok(None);
                }
                MessageDisposition::Done(Status::Held)
            }
            NextStep::Settle(status) => {
                self.record(&current, status, None, now).await?;
                MessageDisposition::Done(status)
            }
            NextStep::DeadLetter => {
                self.record(&current, Status::Dead, None, now).await?;
                MessageDisposition::DeadLetter
            }
            NextStep::Wait(until) => self.postpone(&current, until, now).await?,
            NextStep::Send(client, secrets) => self.send(&current, client, secrets).await?,
            NextStep::Probe(client, secrets, seen) => {
                let until = now.after(self.policy.probe);
                if self.store.claim_probe(&client.id, seen, until).await? {
                    self.send(&current, client, secrets).await?
                } else {
                    self.postpone(&current, until, now).await?
                }
            }
        };
        Ok(Some(settled))
    }

    /// Returns whether a delivery that was just recorded as held stays held. Enabling a client releases held
    /// deliveries afterwards: while the client is still disabled, that release is to come. If it is enabled, the
    /// release may have run before the record, and nothing would release the delivery.
    async fn is_held(&self, delivery: &Delivery) -> Result<bool, StoreError> {
        let context = self.store.context(delivery).await?;
        let disabled = |(client, _): &(Client, Secrets)| client.state != ClientState::Enabled;
        Ok(context.client.as_ref().is_some_and(disabled))
    }

    fn unrecorded(
        &self,
        delivery: &Delivery,
        number: u32,
        context: &DeliveryContext,
        now: Timestamp,
    ) -> Vec<Attempt> {
        let interrupted = |number| Attempt {
            at: now,
            round: delivery.round,
            number,
            status: None,
            latency_ms: 0,
            error: Some(INTERRUPTED.to_owned()),
        };
        unrecorded_attempts(context, number, &self.policy)
            .map(interrupted)
            .collect()
    }

    async fn record(
        &self,
        current: &CurrentAttempt<'_>,
        status: Status,
        attempt: Option<Attempt>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let attempts: Vec<Attempt> = current.unrecorded.iter().cloned().chain(attempt).collect();
        self.store
            .record(current.delivery, status, &attempts, now)
            .await
    }

    /// Postpones an attempt until the circuit closes, and at least by the usual delay: an open circuit uses up
    /// attempts, but does not shorten the time a client has to recover.
    async fn postpone(
        &self,
        current: &CurrentAttempt<'_>,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<MessageDisposition, StoreError> {
        let attempt = Attempt {
            at: now,
            round: current.delivery.round,
            number: current.number,
            status: None,
            latency_ms: 0,
            error: Some("not sent: the circuit of the client is open".to_owned()),
        };
        self.record(current, Status::Failed, Some(attempt), now)
            .await?;
        let wait = elapsed(now, until);
        let own = self.policy.delays.after(current.number, fastrand::f64());
        // Spreads the deliveries that wait for the same circuit.
        let spread = wait.mul_f64(fastrand::f64() / 4.0);
        Ok(MessageDisposition::RetryAfter(own.max(wait + spread)))
    }

    async fn send(
        &self,
        current: &CurrentAttempt<'_>,
        client: &Client,
        secrets: &Secrets,
    ) -> Result<MessageDisposition, StoreError> {
        let CurrentAttempt {
            delivery, number, ..
        } = *current;
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
        let attempt = attempt(&outcome, delivery.round, number, at, now);
        let decided = attempt_outcome(&outcome, number, fastrand::f64(), &self.policy);
        let (status, settled) = match decided {
            AttemptOutcome::Delivered => (
                Status::Delivered,
                MessageDisposition::Done(Status::Delivered),
            ),
            AttemptOutcome::Gone => (Status::Held, MessageDisposition::Done(Status::Held)),
            AttemptOutcome::RetryAfter(wait) => {
                (Status::Failed, MessageDisposition::RetryAfter(wait))
            }
            AttemptOutcome::Dead => (Status::Dead, MessageDisposition::DeadLetter),
        };
        // Disable first: nothing would release a delivery that is held for an enabled client.
        if decided == AttemptOutcome::Gone {
            let reason = "the endpoint responded 410 Gone";
            self.store.disable(&client.id, reason, now).await?;
        }
        self.record(current, status, Some(attempt), now).await?;
        self.update_circuit(decided, &outcome, client, now).await?;
        if decided == AttemptOutcome::Gone && !self.is_held(delivery).await? {
            return Ok(MessageDisposition::RetryAfter(UNDECIDED));
        }
        Ok(settled)
    }

    async fn update_circuit(
        &self,
        decided: AttemptOutcome,
        outcome: &Result<HttpResponse, PostError>,
        client: &Client,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match decided {
            AttemptOutcome::Delivered if client.circuit.failures == 0 => Ok(()),
            AttemptOutcome::Delivered => self.store.record_success(&client.id).await,
            AttemptOutcome::Gone => Ok(()),
            AttemptOutcome::RetryAfter(_) | AttemptOutcome::Dead => {
                let (weight, open) =
                    circuit_after_failure(outcome, client.circuit.failures, &self.policy);
                let until = open.map(|open| now.after(open));
                self.store.record_failure(&client.id, weight, until).await
            }
        }
    }
}

fn attempt(
    outcome: &Result<HttpResponse, PostError>,
    round: u32,
    number: u32,
    at: Timestamp,
    now: Timestamp,
) -> Attempt {
    let error = match outcome {
        Ok(response) if (200..300).contains(&response.status) => None,
        Ok(response) if (300..400).contains(&response.status) => {
            Some("redirects are not followed".to_owned())
        }
        Ok(_) => None,
        Err(error) => Some(error.to_string().chars().take(ERROR_CHARACTERS).collect()),
    };
    Attempt {
        at,
        round,
        number,
        status: outcome.as_ref().ok().map(|response| response.status),
        latency_ms: elapsed(at, now).as_millis() as u64,
        error,
    }
}

fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    let nanoseconds = to.nanoseconds() - from.nanoseconds();
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}
