//! What the SDK promises of report, desire, read, delete and list.
