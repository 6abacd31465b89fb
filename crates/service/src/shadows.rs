//! Device shadows: report, desire, read, delete, list.

pub mod id;
mod persistence;

pub use id::{ClientToken, InvalidId, ShadowId, Zone};
pub use persistence::{
    Cursor, Delete, Expect, Held, Layout, ListQuery, Listed, NewDocument, Page, Parts, Persistence,
    PersistenceError, Read, ReadConsistency, Snapshot, State, Version, Write, Written,
};
