//! The invariants, checked when everything has settled.

mod deliveries;
mod history;
mod inbox;
mod leaves;
mod mqtt;
mod notifications;
mod order;
mod sensors;
mod shadows;
mod spill;
mod suppressed;

use std::sync::Arc;

use crate::actors::clients::ClientActors;
use crate::actors::devices::Devices;
use crate::actors::followers::Followers;
use crate::actors::historians::Historians;
use crate::actors::inbox::InboxActors;
use crate::actors::lamps::Lamps;
use crate::actors::reports::ReportActors;
use crate::actors::sensors::SensorActors;
use crate::endpoint::Endpoints;
use crate::stream::Change;
use crate::world::World;

/// Evidence that the invariants are checked against.
pub(crate) struct Evidence<'a> {
    pub(crate) world: &'a World,
    /// All writes, in order.
    pub(crate) changes: Vec<Arc<Change>>,
    pub(crate) devices: &'a Devices,
    pub(crate) reports: &'a ReportActors,
    pub(crate) sensors: &'a SensorActors,
    pub(crate) inbox: &'a InboxActors,
    pub(crate) clients: &'a ClientActors,
    pub(crate) lamps: &'a Lamps,
    pub(crate) followers: &'a Followers,
    pub(crate) historians: &'a Historians,
    pub(crate) endpoints: &'a Endpoints,
    /// End of the last sweep, in milliseconds.
    pub(crate) swept_until: u64,
}

impl Evidence<'_> {
    /// Records a violation unless the invariant holds.
    fn expect(&self, invariant: &'static str, kept: bool, seen: impl FnOnce() -> String) {
        if !kept {
            self.world.broken(invariant, seen());
        }
    }

    pub(crate) async fn check(&self) {
        shadows::check(self);
        order::check(self);
        mqtt::check(self);
        notifications::check(self);
        leaves::check(self);
        spill::check(self);
        sensors::check(self);
        inbox::check(self);
        deliveries::check(self).await;
        suppressed::check(self);
        history::check(self).await;
    }
}
