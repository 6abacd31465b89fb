//! The lists of a diff.

/// A list that grows without copying: while a vector grows, it takes three times the memory of its items.
#[derive(Debug, Clone)]
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    pub(super) len: usize,
}

impl<T> Chunks<T> {
    const ITEMS: usize = 256;
    /// Chunks that are kept for the next diff.
    const KEPT: usize = 16;

    pub(super) fn clear(&mut self) {
        self.chunks.truncate(Self::KEPT);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    pub(super) fn push(&mut self, item: T) {
        let chunk = self.len / Self::ITEMS;
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(Self::ITEMS));
        }
        self.chunks[chunk].push(item);
        self.len += 1;
    }

    pub(super) fn get(&self, at: u32) -> &T {
        &self.chunks[at as usize / Self::ITEMS][at as usize % Self::ITEMS]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks {
            chunks: Vec::new(),
            len: 0,
        }
    }
}
