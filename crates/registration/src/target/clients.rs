//! The target `clients`: the webhook clients linked to the sensor that changed.

use antumbra_shadow::View;
use schemars::JsonSchema;

use crate::problem::Place;
use crate::read::{Fields, Reader};

/// The linked clients. There is nothing to say about them here: each has its own URL.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Clients {}

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
