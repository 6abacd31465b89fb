//! Peak memory of requests, counted, on the worst documents that are legal.

use antumbra_service::shadows::adapter::document_bytes;
use antumbra_shadow::Document;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use tower::ServiceExt;

use crate::support::{TOKEN, TestApi};

/// Peak of allocated bytes, as a multiple of the bytes of sent and stored document, counted as DynamoDB counts them.
const FACTOR: usize = 20;
/// Bytes for the SDK, which keeps each value as one of these: of the item that is read, and of the one that is written.
const VALUE_BYTES: usize = 3 * size_of::<aws_sdk_dynamodb::types::AttributeValue>();
/// Bytes for verdicts that are too large for a response.
const VERDICT_BYTES: usize = 8 * 1024 * 1024;

fn members(count: usize, value: &str) -> String {
    let members: Vec<String> = (0..count).map(|n| format!("\"{n}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn below(name_bytes: usize, members: &str) -> String {
    format!("{{\"{}\":{members}}}", "n".repeat(name_bytes))
}

/// Reports a document and returns status and size of the response, and the peak of bytes that the request allocates on
/// this thread. The database is on others.
fn report(router: &Router, device: &str, body: String) -> (u16, usize, usize) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let request = Request::patch(format!("/v1/shadows/{device}/reported"))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    let (mut status, mut response_bytes) = (0, 0);
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            let response = router.clone().oneshot(request).await.unwrap();
            status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap();
            response_bytes = body.to_bytes().len();
        });
    });
    let peak = usize::try_from(counted.bytes_max).unwrap();
    (status, response_bytes, peak)
}

#[test]
fn memory_of_a_report_is_bounded_by_its_documents() {
    let server = tokio::runtime::Runtime::new().unwrap();
    let api = server.block_on(TestApi::start());
    let router = api.router.clone();
    let (_, _, small) = report(&router, "small", r#"{"a":1}"#.to_owned());
    let elements =
        |count: usize, value: &str| format!("{{\"a\":[{}]}}", vec![value; count].join(","));
    let deep = |members: &str| format!("{}{members}{}", "{\"d\":".repeat(29), "}".repeat(29));
    let long = format!("\"{}\"", "x".repeat(50));
    for (case, first, second, expected) in [
        (
            "long name",
            below(40_000, &members(8_500, "1")),
            below(40_000, &members(8_500, "2")),
            200,
        ),
        (
            "longest name",
            below(60_000, &members(5_000, "1")),
            below(60_000, &members(5_000, "null")),
            200,
        ),
        (
            "name too long",
            below(70_000, &members(5_000, "1")),
            below(70_000, &members(5_000, "2")),
            400,
        ),
        (
            "levels",
            deep(&members(5_000, "1")),
            deep(&members(5_000, "2")),
            200,
        ),
        (
            "empty objects",
            elements(20_000, "{}"),
            elements(15_000, "{}"),
            200,
        ),
        (
            "elements",
            elements(20_000, "1"),
            elements(20_000, "2"),
            200,
        ),
        (
            "too large",
            below(40_000, &members(8_500, &long)),
            below(40_000, &members(8_500, &long)),
            413,
        ),
    ] {
        let bytes = [&first, &second].map(|text| document_bytes(&Document::parse(text).unwrap()));
        let bytes: usize = bytes.iter().sum();
        let values = first.matches(',').count();
        for body in [first, second] {
            api.endpoint.take_calls();
            let (status, response, peak) = report(&router, &case.replace(' ', "-"), body);
            assert_eq!(status, expected, "{case}");
            let verdicts = if case.contains("name") {
                VERDICT_BYTES
            } else {
                4 * response
            };
            let limit = small + FACTOR * bytes + VALUE_BYTES * values + verdicts;
            assert!(peak <= limit, "{case}: {bytes} bytes, peak {peak}");
            // A document that can never be stored is rejected before anything is read.
            let calls = api.endpoint.take_calls().len();
            assert_eq!(calls > 0, status == 200, "{case}: {calls} calls");
        }
    }
}
