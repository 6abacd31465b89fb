//! Pages of lists: the last one has no cursor, also when it is full.

use crate::messages::fill;
use crate::support::TestApi;

#[tokio::test]
async fn a_full_page_at_the_end_has_no_cursor() {
    let api = TestApi::start().await;
    for id in ["a", "b"] {
        let sensor = format!(r#"{{"id":"{id}","location":{{"city":"Poznań"}}}}"#);
        let sensor = sensor.replace(
            r#""Poznań""#,
            r#""Poznań","building":"A","floor":"2","room":"13""#,
        );
        api.post("/v1/sensors", &sensor).await.ok(201);
        let client = format!(r#"{{"id":"{id}","name":"{id}","url":"http://127.0.0.1:1/{id}"}}"#);
        api.post("/v1/clients", &client).await.ok(201);
    }
    let readings = r#"{"readings":[{"value":1,"time":"2026-01-31T11:00:00Z"},{"value":2,"time":"2026-01-31T11:00:01Z"}]}"#;
    api.post("/v1/sensors/a/readings", readings).await.ok(204);
    for id in ["a", "b"] {
        let link = format!("/v1/clients/a/sensors/{id}");
        api.request("PUT", &link).send().await.ok(204);
        api.patch(&format!("/v1/shadows/{id}/reported"), r#"{"led":1}"#)
            .await
            .ok(200);
    }
    fill(&api, "thing", 2, "").await;
    for (path, rows) in [
        ("/v1/sensors?limit=", "sensors"),
        ("/v1/locations/Pozna%C5%84/sensors?limit=", "sensors"),
        ("/v1/sensors/a/readings?limit=", "readings"),
        (
            "/v1/sensors/a/readings?from=2026-01-31T00:00:00Z&limit=",
            "readings",
        ),
        ("/v1/clients?limit=", "clients"),
        ("/v1/clients/a/sensors?limit=", "links"),
        ("/v1/messages/thing?limit=", "messages"),
        ("/v1/messages/thing?newestFirst=true&limit=", "messages"),
        ("/v1/shadows?limit=", "shadows"),
    ] {
        let full = api.get(&format!("{path}2")).await.ok(200);
        assert_eq!(full[rows].as_array().unwrap().len(), 2, "{path}: {full}");
        assert!(full.get("nextCursor").is_none(), "{path}: {full}");
        // One at a time: two pages, no third.
        let first = api.get(&format!("{path}1")).await.ok(200);
        let next = first["nextCursor"].as_str().unwrap();
        let second = api.get(&format!("{path}1&cursor={next}")).await.ok(200);
        assert_eq!(second[rows].as_array().unwrap().len(), 1, "{path}");
        assert_ne!(first[rows], second[rows], "{path}");
        assert!(second.get("nextCursor").is_none(), "{path}: {second}");
    }
}
