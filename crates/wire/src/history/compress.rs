//! Compression of stored texts with Zstandard.

use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A text that is longer is stored compressed.
pub(super) const PLAIN_BYTES: usize = 1024;
/// Longest text that is decompressed, so that damaged bytes cannot take all memory. Texts of ours are shorter: an entry has at
/// most both documents of the largest item, old and new, with every character escaped.
const TEXT_BYTES: u64 = 16 * 1024 * 1024;

/// Error of stored bytes that are not valid Zstandard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not valid Zstandard: {0}")]
pub struct CompressError(String);

pub(super) fn compress(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

pub(super) fn decompress(bytes: &[u8]) -> Result<String, CompressError> {
    let error = |error: &dyn std::fmt::Display| CompressError(error.to_string());
    let decoder = StreamingDecoder::new(bytes).map_err(|fault| error(&fault))?;
    let mut text = String::new();
    let read = decoder.take(TEXT_BYTES + 1).read_to_string(&mut text);
    read.map_err(|fault| error(&fault))?;
    match text.len() as u64 > TEXT_BYTES {
        true => Err(CompressError("longer than any text".to_owned())),
        false => Ok(text),
    }
}
