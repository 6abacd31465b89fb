//! Audit lines: one for each write, allowed or refused, without its content.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use hyper::Request;
use tower::ServiceExt;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{TestApi, token_of};

/// Keeps the fields of audit lines as text, and of all other lines only that there were some.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "audit"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0.trim().to_owned());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn every_write_leaves_one_line_without_its_content() {
    let grants = "shadows:write:a: sensors:write clients:admin";
    let api = TestApi::start_with(&[grants]).await;
    let lines = Lines::default();
    // With one subscriber in the process, the first thread that reaches a line decides for all whether it is enabled, and
    // threads of other tests have none.
    let _second = tracing::Dispatch::new(Lines::default());
    let guard = tracing::subscriber::set_default(lines.clone());
    for (method, path, body) in [
        ("GET", "/v1/shadows/a:1", ""),
        ("PATCH", "/v1/shadows/a:1/reported", r#"{"secret":"hush"}"#),
        ("PATCH", "/v1/shadows/b:1/reported", r#"{"secret":"hush"}"#),
        (
            "POST",
            "/v1/reports",
            r#"{"reports":[{"id":"a:1","reported":{"secret":"hush"}},{"id":"a:2","reported":{}}]}"#,
        ),
        (
            "POST",
            "/v1/clients",
            r#"{"name":"hush","url":"http://127.0.0.1:1/hush"}"#,
        ),
        ("DELETE", "/v1/sensors/door", ""),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", token_of(grants)))
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        api.router.clone().oneshot(request).await.unwrap();
    }
    drop(guard);
    let lines = lines.0.lock().unwrap().clone();
    let line = |grant: &str, operation: &str, resource: &str, ids: &str, status: u16| {
        format!(
            "message=write caller=\"token 2\" grant=\"{grant}\" operation=\"{operation}\" resource=\"{resource}\" \
             ids=\"{ids}\" status={status}"
        )
    };
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(
        lines[0],
        line("shadows:write:a:", "report", "shadows", "a:1", 200)
    );
    assert_eq!(lines[1], line("", "report", "shadows", "b:1", 403));
    assert_eq!(
        lines[2],
        line("shadows:write:a:", "report_many", "shadows", "a:1 a:2", 200)
    );
    // The id that the server chose.
    assert!(
        lines[3].contains(r#"operation="create_client" resource="clients" ids="cl"#),
        "{}",
        lines[3]
    );
    assert_eq!(
        lines[4],
        line("sensors:write", "unregister_sensor", "sensors", "door", 404)
    );
    assert!(!lines.join("\n").contains("hush"), "{lines:#?}");
}
