//! Checksums and receipt handles, in the form that SDKs verify.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use md5::{Digest as _, Md5};

use crate::error::ApiError;
use crate::queue::{AttributeValue, Receipt};

pub(super) fn md5_hex(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The checksum over attributes in the order of their names; `None` without attributes.
pub(super) fn md5_of_attributes(attributes: &BTreeMap<String, AttributeValue>) -> Option<String> {
    let mut encoded = Vec::new();
    let add = |encoded: &mut Vec<u8>, bytes: &[u8]| {
        encoded.extend((bytes.len() as u32).to_be_bytes());
        encoded.extend(bytes);
    };
    for (name, value) in attributes {
        add(&mut encoded, name.as_bytes());
        add(&mut encoded, value.data_type.as_bytes());
        if let Some(text) = &value.string_value {
            encoded.push(1);
            add(&mut encoded, text.as_bytes());
        } else {
            let binary = value.binary_value.as_deref().unwrap_or_default();
            encoded.push(2);
            add(&mut encoded, &STANDARD.decode(binary).unwrap_or_default());
        }
    }
    (!attributes.is_empty()).then(|| md5_hex(&encoded))
}

pub(super) fn receipt_handle(queue: &str, receipt: Receipt) -> String {
    URL_SAFE_NO_PAD.encode(format!("{queue}:{}:{}", receipt.number, receipt.receive))
}

pub(super) fn read_receipt(queue: &str, handle: &str) -> Result<Receipt, ApiError> {
    let parse = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(handle).ok()?).ok()?;
        let (number, receive) = text
            .strip_prefix(queue)?
            .strip_prefix(':')?
            .split_once(':')?;
        Some(Receipt {
            number: number.parse().ok()?,
            receive: receive.parse().ok()?,
        })
    };
    parse().ok_or_else(|| {
        let text = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
        ApiError::new("ReceiptHandleIsInvalid", text)
    })
}
