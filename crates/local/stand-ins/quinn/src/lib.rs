//! Empty stand-in; see ../../README.md.
