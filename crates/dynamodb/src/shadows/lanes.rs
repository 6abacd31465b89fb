//! The order of a batch: what is done with one shadow is done in order, different shadows at once.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antumbra_service::shadows::ShadowId;
use futures_util::stream::{self, StreamExt};

/// The places in a batch, one lane per shadow, each in the order asked.
pub(super) fn lanes<'a>(shadows: impl Iterator<Item = &'a ShadowId>) -> Vec<Vec<usize>> {
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    let mut of: HashMap<&ShadowId, usize> = HashMap::new();
    for (place, shadow) in shadows.enumerate() {
        let lane = *of.entry(shadow).or_insert_with(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(place);
    }
    lanes
}

/// Runs one future per lane, at most so many at a time, and puts their results in the order asked.
pub(super) async fn run<T, F>(fan_out: NonZeroUsize, lanes: Vec<F>) -> Vec<T>
where
    F: Future<Output = Vec<(usize, T)>>,
{
    let done = stream::iter(lanes).buffer_unordered(fan_out.get());
    let mut results: Vec<(usize, T)> = done.flat_map(stream::iter).collect().await;
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}
