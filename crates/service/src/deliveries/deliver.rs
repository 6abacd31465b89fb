//! Carries out attempts to deliver.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use antumbra_shadow::Timestamp;
use futures_util::future::{Either, join, select};

use super::body::body;
use super::decide::{
    AttemptOutcome, NextStep, Policy, attempt_outcome, begun, circuit_after_failure, is_in_order,
    next_step,
};
use super::delivery::{Attempt, DeliveryRecord, Status};
use super::message::DeliveryMessage;
use super::ports::{
    Claim, DeliveryContext, DeliveryStore, HttpResponse, Post, PostError, Saved, Sender,
    Transition, Wait,
};
use super::queues::{DeadLetters, QueueError, Queues};
use crate::backoff;
use crate::clients::{Client, ClientState, Mode, Secret, Secrets};
use crate::clock::{Clock, time_left};
use crate::sensors::reading_time::milliseconds;
use crate::store::StoreError;

/// Delay before the next attempt if the store failed or the situation kept changing.
const UNDECIDED_DELAY: Duration = Duration::from_secs(5);
/// Characters of an error that are recorded.
const ERROR_CHARACTERS: usize = 300;
/// Number of times an attempt is decided anew because the delivery or its client changed meanwhile.
const DECISIONS: usize = 3;
/// Number of times a result is written while the store fails.
const SAVES: u32 = 3;
/// Error of an attempt without a recorded result.
const INTERRUPTED: &str =
    "interrupted: no result of this attempt was recorded, the request may have been sent";

/// Disposition of the message of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageDisposition {
    /// Delete it: the delivery has its final status, or waits outside of the queue.
    Done(Status),
    /// Make it visible again after this time.
    RetryAfter(Duration),
    /// Quarantine it: the history does not know the delivery.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processed {
    pub disposition: MessageDisposition,
    /// The client was disabled because it failed for too long, or its endpoint is gone.
    pub client_disabled: bool,
}

/// Part of an attempt in probing the circuit of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probing {
    /// The circuit is closed.
    No,
    /// The attempt is the probe: its result closes or opens the circuit.
    Own,
    /// The attempt is slow, and another one is the probe.
    Other,
}

/// A step that failed and can be retried.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Everything about one message, read at one time.
#[derive(Clone, Copy)]
struct Step<'a> {
    message: &'a DeliveryMessage,
    context: &'a DeliveryContext,
    record: &'a DeliveryRecord,
    now: Timestamp,
}

pub struct Deliver<L, S> {
    store: L,
    sender: S,
    queues: Queues,
    dead_letters: DeadLetters,
    clock: Arc<dyn Clock>,
    policy: Policy,
}

impl<L: DeliveryStore, S: Sender> Deliver<L, S> {
    pub fn new(
        store: L,
        sender: S,
        queues: Queues,
        dead_letters: DeadLetters,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Deliver<L, S> {
        Deliver {
            store,
            sender,
            queues,
            dead_letters,
            clock,
            policy,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Processes a message: makes an attempt if one is due.
    ///
    /// A failing store never loses a delivery: before the request nothing has happened, and after it the client
    /// receives the same delivery again, with the same id.
    pub async fn process(&self, message: &DeliveryMessage) -> Processed {
        let mut client_disabled = false;
        let disposition = match self.try_process(message, &mut client_disabled).await {
            Ok(disposition) => disposition,
            Err(error) => {
                tracing::warn!(id = %message.id, %error, "could not complete an attempt");
                MessageDisposition::RetryAfter(UNDECIDED_DELAY)
            }
        };
        Processed {
            disposition,
            client_disabled,
        }
    }

    async fn try_process(
        &self,
        message: &DeliveryMessage,
        disabled: &mut bool,
    ) -> Result<MessageDisposition, StepError> {
        let mut probe = None;
        // The delivery or its client may change between the read and the write.
        for _ in 0..DECISIONS {
            let context = self.store.context(message).await?;
            let Some(record) = &context.record else {
                return Ok(MessageDisposition::Unknown);
            };
            let step = Step {
                message,
                context: &context,
                record,
                now: self.clock.now(),
            };
            let carried_out = self.carry_out(step, disabled, &mut probe).await?;
            if let Some(disposition) = carried_out {
                return Ok(disposition);
            }
        }
        Ok(MessageDisposition::RetryAfter(UNDECIDED_DELAY))
    }

    /// Decides and carries out the next step; `None` if it must be decided anew. `probe` is the time at which this
    /// message became the probe of its client's circuit.
    async fn carry_out(
        &self,
        step: Step<'_>,
        disabled: &mut bool,
        probe: &mut Option<Timestamp>,
    ) -> Result<Option<MessageDisposition>, StepError> {
        let Step { message, now, .. } = step;
        match next_step(step.context, message, now, &self.policy) {
            NextStep::Unknown => Ok(Some(MessageDisposition::Unknown)),
            NextStep::Drop(status) => Ok(Some(MessageDisposition::Done(status))),
            NextStep::InProgress(until) => {
                Ok(Some(MessageDisposition::RetryAfter(time_left(now, until))))
            }
            NextStep::Settle(status) => self.settle(step, status).await,
            NextStep::Hold => {
                let held = self.transition(step, Some(Wait::Held));
                self.hold(step, held).await
            }
            NextStep::WaitBehind => {
                let saved = self.save(self.transition(step, Some(Wait::Behind))).await?;
                Ok(done(&saved, step.status()))
            }
            NextStep::DeadLetter => {
                self.dead_letter(step).await?;
                self.settle(step, Status::Dead).await
            }
            NextStep::Wait(until) => match step.own_probe(until, *probe) {
                Some((client, secrets)) => {
                    self.send(step, client, secrets, Probing::Own, disabled)
                        .await
                }
                None => self.wait(step, until).await,
            },
            NextStep::Send(client, secrets) => {
                self.send(step, client, secrets, Probing::No, disabled)
                    .await
            }
            NextStep::Probe(client, secrets, seen) => {
                let until = now.after(self.policy.probe);
                match self.store.claim_probe(&client.id, seen, now, until).await? {
                    true => {
                        *probe = Some(now);
                        self.send(step, client, secrets, Probing::Own, disabled)
                            .await
                    }
                    // Another delivery is the probe, or was it and the circuit is closed.
                    false => Ok(None),
                }
            }
        }
    }

    /// Records a final status without an attempt.
    async fn settle(
        &self,
        step: Step<'_>,
        status: Status,
    ) -> Result<Option<MessageDisposition>, StepError> {
        let transition = Transition {
            status,
            ..self.transition(step, None)
        };
        let saved = self.save(transition).await?;
        self.queue_next(step, None, &saved).await;
        Ok(done(&saved, status))
    }

    /// Holds a delivery for its disabled client. Enabling a client releases held deliveries afterwards: while the
    /// client is still disabled, that release is to come. If it is enabled, the release may have run before the
    /// record, and nothing would release the delivery.
    async fn hold(
        &self,
        step: Step<'_>,
        transition: Transition<'_>,
    ) -> Result<Option<MessageDisposition>, StepError> {
        let transition = Transition {
            status: Status::Held,
            ..transition
        };
        if self.save(transition).await? == Saved::Changed {
            return Ok(None);
        }
        let context = self.store.context(step.message).await?;
        let disabled = |(client, _): &(Client, Secrets)| client.state != ClientState::Enabled;
        let is_held = context.client.as_ref().is_some_and(disabled);
        Ok(is_held.then_some(MessageDisposition::Done(Status::Held)))
    }

    /// Waits without an attempt, in the due index: a message that is hidden in its queue would be in flight.
    async fn wait(
        &self,
        step: Step<'_>,
        until: Timestamp,
    ) -> Result<Option<MessageDisposition>, StepError> {
        let wait = time_left(step.now, until);
        // Spreads the deliveries that wait for the same circuit, by whole seconds, as queues delay messages.
        let spread = wait.mul_f64(fastrand::f64() / 4.0).as_secs();
        let wait = wait + Duration::from_secs(spread);
        let due = Some(Wait::Due(step.now.after(wait)));
        let saved = self.save(self.transition(step, due)).await?;
        self.queue_next(step, due, &saved).await;
        Ok(done(&saved, step.status()))
    }

    async fn send(
        &self,
        step: Step<'_>,
        client: &Client,
        secrets: &Secrets,
        probing: Probing,
        disabled: &mut bool,
    ) -> Result<Option<MessageDisposition>, StepError> {
        let Step {
            message, record, ..
        } = step;
        let number = begun(record, message) + 1;
        let at = self.clock.now();
        let token = format!("{}-{:016x}", at.nanoseconds(), fastrand::u64(..));
        let claim = Claim {
            record,
            message,
            attempt: number,
            token: &token,
            until: at.after(self.policy.lease),
            interrupted: self.interrupted(step),
            now: at,
        };
        if !self.store.claim(&claim).await? {
            return Ok(None);
        }
        let active: Vec<&Secret> = secrets.active(at).collect();
        let body = body(&record.delivery, client);
        let post = Post {
            url: &client.url,
            id: &message.id,
            now: at,
            secrets: &active,
            body: &body,
        };
        let (outcome, probing) = self.post(post, client, probing).await;
        let now = self.clock.now();
        let made = attempt(&outcome, message.round, number, at, now);
        let attempts: Vec<Attempt> = claim.interrupted.into_iter().chain([made]).collect();
        let step = Step { now, ..step };
        let mut decided = attempt_outcome(&outcome, number, fastrand::f64(), &self.policy);
        if decided == AttemptOutcome::Gone {
            // Disable first: nothing would release a delivery that is held for an enabled client. An endpoint that
            // the client left meanwhile says nothing about the new one.
            let reason = "the endpoint responded 410 Gone";
            if self.store.disable(client, reason, now).await? {
                *disabled = true;
                let held = Transition {
                    claim: Some(&token),
                    attempts,
                    ..self.transition(step, Some(Wait::Held))
                };
                let held = self.hold(step, held).await?;
                return Ok(Some(
                    held.unwrap_or(MessageDisposition::RetryAfter(UNDECIDED_DELAY)),
                ));
            }
            decided = self
                .policy
                .after_failure(number, Duration::ZERO, fastrand::f64());
        }
        let (status, wait) = match decided {
            AttemptOutcome::Delivered => (Status::Delivered, None),
            AttemptOutcome::Dead => (Status::Dead, None),
            AttemptOutcome::Gone => (Status::Failed, Some(Wait::Due(now.after(UNDECIDED_DELAY)))),
            AttemptOutcome::RetryAfter(delay) => {
                (Status::Failed, Some(Wait::Due(now.after(delay))))
            }
        };
        if status == Status::Dead {
            self.dead_letter(step).await?;
        }
        let transition = Transition {
            status,
            claim: Some(&token),
            attempts,
            ..self.transition(step, wait)
        };
        let saved = self.save(transition).await?;
        // Before a delivery is queued that has to wait for the circuit.
        let updated = self
            .update_circuit(decided, &outcome, probing, client, now, disabled)
            .await;
        self.queue_next(step, wait, &saved).await;
        updated?;
        // If another writer changed the delivery meanwhile, it has queued it.
        Ok(Some(MessageDisposition::Done(status)))
    }

    /// Sends the request. An attempt that gets no response soon becomes the probe of the circuit: other deliveries to
    /// the client wait for its result in the due index, and no invocation waits with them.
    async fn post(
        &self,
        post: Post<'_>,
        client: &Client,
        probing: Probing,
    ) -> (Result<HttpResponse, PostError>, Probing) {
        let response = pin!(self.sender.post(post));
        if probing == Probing::Own {
            return (response.await, probing);
        }
        let slow = pin!(async { self.clock.sleep(self.policy.slow_after).await });
        let response = match select(response, slow).await {
            Either::Left((outcome, _)) => return (outcome, probing),
            Either::Right(((), response)) => response,
        };
        let (id, seen, now) = (&client.id, client.circuit.open_until, self.clock.now());
        let until = now.after(self.policy.probe);
        let claim = self.store.claim_probe(id, seen, now, until);
        let (outcome, claimed) = join(response, claim).await;
        let probing = match claimed {
            Ok(false) => Probing::Other,
            // After an error it may be claimed.
            Ok(true) | Err(_) => Probing::Own,
        };
        (outcome, probing)
    }

    async fn update_circuit(
        &self,
        decided: AttemptOutcome,
        outcome: &Result<HttpResponse, PostError>,
        probing: Probing,
        client: &Client,
        now: Timestamp,
        disabled: &mut bool,
    ) -> Result<(), StoreError> {
        let failures = client.circuit.failures;
        let is_probe = probing == Probing::Own;
        if decided == AttemptOutcome::Delivered {
            return match failures {
                0 if !is_probe => Ok(()),
                _ => self.store.record_success(&client.id).await,
            };
        }
        // The attempts that were in flight with the probe count as one failure, or the first outage would open the
        // circuit for the longest time.
        if probing != Probing::Other {
            let (weight, open) = circuit_after_failure(outcome, failures, is_probe, &self.policy);
            let until = open.map(|open| now.after(open));
            self.store
                .record_failure(&client.id, weight, until, now)
                .await?;
        }
        let since = client.circuit.failing_since.unwrap_or(now);
        if since.after(self.policy.disable_after) <= now {
            let reason = format!("no delivery succeeded since {since}");
            *disabled |= self.store.disable(client, &reason, now).await?;
        }
        Ok(())
    }

    /// Returns a transition without an attempt to another place to wait.
    fn transition<'a>(&self, step: Step<'a>, wait: Option<Wait>) -> Transition<'a> {
        let client = step.context.client.as_ref();
        Transition {
            context: step.context,
            record: step.record,
            message: step.message,
            claim: None,
            status: step.status(),
            attempts: self.interrupted(step).into_iter().collect(),
            wait,
            in_order: client.is_some_and(|(client, _)| is_in_order(client, step.message)),
            now: step.now,
        }
    }

    /// Returns a record of the attempt before, if it was interrupted.
    fn interrupted(&self, step: Step<'_>) -> Option<Attempt> {
        let progress = &step.record.progress;
        let until = progress.claimed_until?;
        let lease = i128::try_from(self.policy.lease.as_nanos()).unwrap_or(0);
        Some(Attempt {
            at: Timestamp::from_nanoseconds(until.nanoseconds() - lease),
            round: progress.round,
            number: progress.begun,
            status: None,
            latency_ms: 0,
            error: Some(INTERRUPTED.to_owned()),
        })
    }

    /// Sends the dead letter of a delivery, which starts a new round if it is moved back.
    async fn dead_letter(&self, step: Step<'_>) -> Result<(), QueueError> {
        let message = step.record.next_round(true);
        self.dead_letters.send(step.mode(), &message).await
    }

    /// Queues this delivery with a delay if it is due later, or the one that waited behind it. Both are in the due index as
    /// well, so a failure only delays them until the schedule queues them.
    async fn queue_next(&self, step: Step<'_>, wait: Option<Wait>, saved: &Saved) {
        let Saved::Applied(Some(next)) = saved else {
            return;
        };
        let queued = match wait {
            Some(Wait::Due(until)) => {
                let delay = time_left(step.now, until);
                self.queues.send_delayed(next, delay).await
            }
            _ => self.queues.send(step.mode(), next).await,
        };
        if let Err(error) = queued {
            tracing::warn!(id = %next.id, %error, "a due delivery was not queued");
        }
    }

    /// Records a transition. The result of a request that was sent must not be lost to a moment of throttling.
    async fn save(&self, transition: Transition<'_>) -> Result<Saved, StoreError> {
        let mut failures = 0;
        loop {
            let error = match self.store.save(&transition).await {
                Ok(saved) => return Ok(saved),
                Err(error) => error,
            };
            failures += 1;
            if failures >= SAVES || !error.is_retryable() {
                return Err(error);
            }
            let pause = backoff::delay(failures, fastrand::f64());
            self.clock.sleep(pause).await;
        }
    }
}

impl<'a> Step<'a> {
    /// The client, if the message is the probe for whose result it would wait until this time. Its attempt could not begin
    /// because the delivery changed meanwhile.
    fn own_probe(
        &self,
        until: Timestamp,
        probe: Option<Timestamp>,
    ) -> Option<(&'a Client, &'a Secrets)> {
        let (client, secrets) = self.context.client.as_ref()?;
        let since = client.circuit.probing_since?;
        let is_own = probe.is_some_and(|probe| milliseconds(probe) == milliseconds(since));
        let waits_for_circuit = self.record.progress.not_before != Some(until);
        (is_own && waits_for_circuit).then_some((client, secrets))
    }

    /// Returns the status of a delivery that waits.
    fn status(self) -> Status {
        match begun(self.record, self.message) {
            0 => Status::Pending,
            _ => Status::Failed,
        }
    }

    fn mode(self) -> Mode {
        let client = self.context.client.as_ref();
        client.map_or(Mode::Latest, |(client, _)| client.mode)
    }
}

fn done(saved: &Saved, status: Status) -> Option<MessageDisposition> {
    match saved {
        Saved::Applied(_) => Some(MessageDisposition::Done(status)),
        Saved::Changed => None,
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
        latency_ms: time_left(at, now).as_millis() as u64,
        error,
    }
}
