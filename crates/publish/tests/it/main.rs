//! Channels against endpoints that answer as AWS does.
