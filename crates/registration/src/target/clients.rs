//! The target `clients`: the webhook clients linked to the sensor that changed.

use antumbra_shadow::View;

use super::TargetKind;
use crate::problem::Place;
use crate::read::{Fields, Reader};

/// The linked clients. There are no options here: each client has its own URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {}

impl TargetKind for Clients {}

impl Clients {
    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Clients> {
        Fields::open(view, place, reader, &[])?;
        Some(Clients {})
    }
}
