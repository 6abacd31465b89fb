//! The invariants, each with a name, checked when everything has settled.

mod deliveries;
mod heard;
mod inbox;
mod notifications;
mod sensors;
mod shadows;
mod unsent;

use std::sync::Arc;

use crate::actors::clients::ClientActors;
use crate::actors::devices::Devices;
use crate::actors::inbox::InboxActors;
use crate::actors::sensors::SensorActors;
use crate::endpoint::Endpoints;
use crate::stream::Change;
use crate::world::World;

/// Inputs of the invariants.
pub(crate) struct Evidence<'a> {
    pub(crate) world: &'a World,
    /// Everything that was written, in order.
    pub(crate) changes: Vec<Arc<Change>>,
    pub(crate) devices: &'a Devices,
    pub(crate) sensors: &'a SensorActors,
    pub(crate) inbox: &'a InboxActors,
    pub(crate) clients: &'a ClientActors,
    pub(crate) endpoints: &'a Endpoints,
    /// End of the last sweep, in milliseconds.
    pub(crate) swept_until: u64,
}

impl Evidence<'_> {
    /// Notes that a promise was not kept unless it was.
    fn expect(&self, promise: &'static str, kept: bool, seen: impl FnOnce() -> String) {
        if !kept {
            self.world.broken(promise, seen());
        }
    }

    /// Checks all of them.
    pub(crate) async fn check(&self) {
        shadows::check(self);
        heard::check(self);
        notifications::check(self);
        sensors::check(self);
        inbox::check(self);
        deliveries::check(self).await;
        unsent::check(self);
    }
}
