//! An update: changes to a shadow's documents, and their conditions.

use std::time::Duration;

use antumbra_shadow::{Document, Mode, Model, State, Timestamp};

use super::id::{ClientToken, ShadowId, Zone};
use crate::store::Version;

/// Retries of an update after failures of the store.
pub const DEFAULT_RETRIES: u32 = 5;
/// Time for which an update without an expected version is retried after conflicts.
pub const DEFAULT_RETRY_TIME: Duration = Duration::from_secs(10);

/// Effect of a report on the desired document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DesiredMode {
    /// Removes the reported values from it.
    #[default]
    UseDesiredState,
    /// Leaves it unchanged.
    IgnoreDesiredState,
}

/// New content for one of the two documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) document: Document,
    pub(super) mode: Mode,
    pub(super) expected: Option<Version>,
    /// Values that another system holds, with the time since when, merged before the document.
    pub(super) held: Vec<HeldValues>,
}

/// Values that another system has held since a time, as a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct HeldValues {
    pub since: Timestamp,
    pub values: Document,
}

/// A change to one shadow, to be merged with what is stored.
///
/// Made by [`Update::report`] or [`Update::desire`], refined by the other methods.
///
/// ```
/// use antumbra_service::shadows::{ClientToken, DesiredMode, ShadowId, Update, Version};
/// use antumbra_shadow::{Document, Mode};
///
/// let shadow = ShadowId::new("lamp-7")?;
/// let update = Update::report(shadow, Document::parse(r#"{"led":"on"}"#)?)
///     .mode(Mode::ClientIsMaster)
///     .expected(Version(3))
///     .client_token(ClientToken::new("job-12")?)
///     .desired_mode(DesiredMode::IgnoreDesiredState)
///     .retries(2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "an update does nothing until it is given to Shadows::update"]
pub struct Update {
    pub(super) shadow: ShadowId,
    pub(super) reported: Option<Sent>,
    pub(super) desired: Option<Sent>,
    /// The document that the next options apply to.
    about: State,
    pub(super) desired_mode: DesiredMode,
    pub(super) expected_shadow_version: Option<Version>,
    /// Expected versions of the reported and of the desired document.
    pub(super) expected_versions: Option<(Version, Version)>,
    pub(super) read_both: bool,
    pub(super) client_token: Option<ClientToken>,
    pub(super) zone: Option<Zone>,
    pub(super) model: Option<Model>,
    pub(super) retries: Option<u32>,
    pub(super) deadline: Option<Timestamp>,
    pub(super) time: Option<Timestamp>,
    pub(super) changes_only: bool,
}

#[allow(missing_docs)]
impl Update {
    /// Reports the state of a device: merged into its reported document, server is master.
    pub fn report(shadow: ShadowId, document: Document) -> Update {
        Update::new(shadow, State::Reported).with(State::Reported, document, Mode::ServerIsMaster)
    }

    /// Sets the desired state of a device: merged into its desired document as a patch; `null` removes a value.
    pub fn desire(shadow: ShadowId, document: Document) -> Update {
        Update::new(shadow, State::Desired).with(State::Desired, document, Mode::Patch)
    }

    fn new(shadow: ShadowId, about: State) -> Update {
        Update {
            shadow,
            reported: None,
            desired: None,
            about,
            desired_mode: DesiredMode::default(),
            expected_shadow_version: None,
            expected_versions: None,
            read_both: false,
            client_token: None,
            zone: None,
            model: None,
            retries: None,
            deadline: None,
            time: None,
            changes_only: false,
        }
    }

    /// Takes over the documents of another system: values that are newer than the stored ones replace them, a stored
    /// value of the same time stays, and nothing is removed or acknowledged. Repeating it changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// # use antumbra_memory::MemoryShadows;
    /// # use antumbra_service::shadows::{HeldValues, ShadowId, Shadows, Update};
    /// # use antumbra_shadow::{Document, Timestamp};
    /// let shadows = Shadows::new(MemoryShadows::default());
    /// let held = |since: &str, json: &str| HeldValues {
    ///     since: Timestamp::parse(since).unwrap(),
    ///     values: Document::parse(json).unwrap(),
    /// };
    /// let reported = vec![held("2026-01-31T12:00:00Z", r#"{"led":"on"}"#), held("2026-01-31T12:05:00Z", r#"{"fan":1}"#)];
    /// let import = Update::import(ShadowId::new("lamp-7")?, reported, vec![]);
    /// assert!(shadows.would_write(&import).await?);
    /// assert!(shadows.update(import.clone()).await?.written);
    /// assert!(!shadows.update(import).await?.written);
    /// # Ok::<(), antumbra_service::shadows::ShadowError>(())
    /// # }).unwrap();
    /// ```
    pub fn import(shadow: ShadowId, reported: Vec<HeldValues>, desired: Vec<HeldValues>) -> Update {
        let sent = |held: Vec<HeldValues>| {
            (!held.is_empty()).then(|| Sent {
                document: Document::default(),
                mode: Mode::ServerIsMaster,
                expected: None,
                held,
            })
        };
        let mut update = Update::new(shadow, State::Reported)
            .desired_mode(DesiredMode::IgnoreDesiredState)
            .changes_only();
        (update.reported, update.desired) = (sent(reported), sent(desired));
        update
    }

    /// Adds reported state to the same atomic write.
    pub fn and_report(self, document: Document) -> Update {
        self.with(State::Reported, document, Mode::ServerIsMaster)
    }

    /// Adds desired state to the same atomic write.
    pub fn and_desire(self, document: Document) -> Update {
        self.with(State::Desired, document, Mode::Patch)
    }

    fn with(mut self, state: State, document: Document, mode: Mode) -> Update {
        self.about = state;
        *self.slot() = Some(Sent {
            document,
            mode,
            expected: None,
            held: Vec::new(),
        });
        self
    }

    fn slot(&mut self) -> &mut Option<Sent> {
        match self.about {
            State::Reported => &mut self.reported,
            State::Desired => &mut self.desired,
        }
    }

    /// Sets the merge mode of the document given last.
    pub fn mode(mut self, mode: Mode) -> Update {
        if let Some(sent) = self.slot() {
            sent.mode = mode;
        }
        self
    }

    /// Sets the version that the document given last must have; [`Version::NONE`] to create it. Such an update
    /// is not merged again after a conflict.
    pub fn expected(mut self, version: Version) -> Update {
        if let Some(sent) = self.slot() {
            sent.expected = Some(version);
        }
        self
    }

    /// Sets the version that the shadow must have, as [`Snapshot::version`](super::Snapshot::version) computes
    /// it: neither document may have changed since. Such an update is not merged again after a conflict.
    pub fn expected_shadow_version(mut self, version: Version) -> Update {
        self.expected_shadow_version = Some(version);
        self.read_both()
    }

    /// Sets the versions that both documents must have; [`Version::NONE`] for one that must not exist. Such an
    /// update is not merged again after a conflict.
    pub fn expected_versions(mut self, reported: Version, desired: Version) -> Update {
        self.expected_versions = Some((reported, desired));
        self.read_both()
    }

    /// Returns whether neither document may have changed.
    pub(super) fn expects_shadow(&self) -> bool {
        self.expected_shadow_version.is_some() || self.expected_versions.is_some()
    }

    /// Reads both documents, whichever it changes, so that the version of the shadow is known and continues
    /// after deletes.
    pub fn read_both(mut self) -> Update {
        self.read_both = true;
        self
    }

    /// Returns whether the update expects a version.
    pub(super) fn is_conditional(&self) -> bool {
        let sent = [&self.reported, &self.desired];
        self.expects_shadow()
            || sent
                .iter()
                .any(|sent| sent.as_ref().is_some_and(|sent| sent.expected.is_some()))
    }

    /// Sets the effect of a report on the desired document.
    pub fn desired_mode(mut self, desired_mode: DesiredMode) -> Update {
        self.desired_mode = desired_mode;
        self
    }

    pub fn client_token(mut self, token: ClientToken) -> Update {
        self.client_token = Some(token);
        self
    }

    pub fn zone(mut self, zone: Zone) -> Update {
        self.zone = Some(zone);
        self
    }

    /// Sets the model of these documents, instead of the default one.
    pub fn model(mut self, model: Model) -> Update {
        self.model = Some(model);
        self
    }

    /// Limits the number of retries, after conflicts as well as after failures of the store. Without it, a
    /// failure is retried [`DEFAULT_RETRIES`] times and a conflict until the deadline.
    pub fn retries(mut self, retries: u32) -> Update {
        self.retries = Some(retries);
        self
    }

    /// Sets the time after which the update is not attempted again; [`DEFAULT_RETRY_TIME`] after its start if
    /// not set.
    pub fn deadline(mut self, deadline: Timestamp) -> Update {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the time of the message. Its plain values and `null`s are ordered by it: older ones than those stored are
    /// stale. Without it they win. Values that are stored already become as new as the message, by a write of their
    /// times only.
    pub fn time(mut self, time: Timestamp) -> Update {
        self.time = Some(time);
        self
    }

    /// Writes nothing unless the document changes, so that a value sent again does not become newer.
    pub fn changes_only(mut self) -> Update {
        self.changes_only = true;
        self
    }
}
