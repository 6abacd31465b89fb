//! Compresses pages for browsers that read Zstandard, as all current ones do.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::TryStreamExt as _;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Marks a response whose body comes in parts, each as soon as it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InParts;

/// Smaller responses fit into one packet anyway.
const AT_LEAST: usize = 1024;

pub(crate) async fn compress(request: Request, next: Next) -> Response {
    let accepted = request.headers().get_all(ACCEPT_ENCODING).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    let is_accepted = accepted.any(|value| {
        let mut codings = value.split(',').map(str::trim);
        codings.any(|coding| {
            coding == "zstd" || coding.starts_with("zstd;") && !coding.ends_with("q=0")
        })
    });
    let response = next.run(request).await;
    let kind = response.headers().get(CONTENT_TYPE);
    // An event stream has no end.
    let is_text = kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/") && !kind.starts_with("text/event-stream"));
    if !is_text {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers
        .insert(VARY, HeaderValue::from_static("accept-encoding"));
    if head.extensions.get::<InParts>().is_some() {
        if !is_accepted {
            return Response::from_parts(head, body);
        }
        head.headers
            .insert(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
        // One frame after the other, as RFC 8878 allows.
        let frames = body.into_data_stream().map_ok(|part| zstd(&part));
        return Response::from_parts(head, Body::from_stream(frames));
    }
    // Other pages are whole in memory.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(head, Body::empty());
    };
    if !is_accepted || bytes.len() < AT_LEAST {
        return Response::from_parts(head, Body::from(bytes));
    }
    head.headers.remove(CONTENT_LENGTH);
    head.headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
    Response::from_parts(head, Body::from(zstd(&bytes)))
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}
