//! Grants: every operation with every shape of grant, requests with several ids, and responses that depend on grants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use antumbra_http_api::routes::{Route, all};
use antumbra_http_api::{Access, Ids, Requirement};
use antumbra_service::access::{Grants, Resource, Verb};
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{TestApi, token_of};

const DELIVERY: &str = "_019c13ffc8000000000011_85944171f73967e8";

/// A request of a route about one id.
fn path_of(route: &Route, id: &str) -> String {
    let is_delivery = route.path.starts_with("/v1/deliveries/");
    let id = match is_delivery {
        true => format!("{id}{DELIVERY}"),
        false => id.to_owned(),
    };
    let mut path = route.path.to_owned();
    for name in ["id", "uuid", "sensor"] {
        path = path.replace(&format!("{{{name}}}"), &id.replace('#', "%23"));
    }
    while let Some((before, after)) = path.split_once('{') {
        path = format!("{before}x{}", after.split_once('}').unwrap().1);
    }
    path
}

fn body_of(route: &Route, ids: &[&str]) -> Value {
    match route.operation_id {
        "report_many" => {
            let one = |id: &&str| json!({"id": id, "reported": {"led": 1}});
            json!({"reports": ids.iter().map(one).collect::<Vec<_>>()})
        }
        "record_signals" => {
            let one = |id: &&str| json!({"sensor_id": id, "data": 1});
            json!({"signals": ids.iter().map(one).collect::<Vec<_>>()})
        }
        "register_sensor" => json!({"id": ids[0]}),
        "create_client" => json!({"id": ids[0], "name": "n", "url": "http://127.0.0.1:1/"}),
        _ => json!({}),
    }
}

fn requirements(route: &Route) -> &'static [Requirement] {
    match route.access {
        Access::Requires(requirements) => requirements,
        Access::Open | Access::AnyGrant => &[],
    }
}

/// Returns `true` if a grant with a prefix can cover a requirement.
fn takes_prefix(requirement: &Requirement) -> bool {
    !matches!(requirement.ids, Ids::All)
}

/// Grants for each requirement of a route, by a function; those without a text are left out.
fn grants(route: &Route, one: impl Fn(&Requirement) -> Option<String>) -> String {
    let grants: Vec<String> = requirements(route).iter().filter_map(one).collect();
    grants.join(" ")
}

/// All routes, and those whose requests need another verb with a query parameter once more with it.
fn all_with_parameters() -> Vec<Route> {
    let routes = all();
    let raised = routes.iter().filter_map(|route| {
        let [requirement] = requirements(route) else {
            return None;
        };
        let (parameter, verb) = requirement.raised_by?;
        let raised = [Requirement {
            verb,
            ..*requirement
        }];
        Some(Route {
            path: format!("{}?{parameter}=true", route.path).leak(),
            operation_id: format!("{}_{parameter}", route.operation_id).leak(),
            access: Access::Requires(Box::leak(Box::new(raised))),
            ..route.clone()
        })
    });
    let raised: Vec<Route> = raised.collect();
    assert_eq!(raised.len(), 2, "purges of main and of named shadows");
    routes.into_iter().chain(raised).collect()
}

/// The shapes of grants for a route, each with the id of the request and whether it is allowed.
fn shapes(route: &Route) -> Vec<(&'static str, String, &'static str, bool)> {
    let of = |prefix: &str, verb: Option<Verb>| {
        grants(route, |one| {
            let verb = verb.unwrap_or(one.verb);
            let takes = prefix.is_empty() || one.resource.takes_prefix();
            takes.then(|| match prefix {
                "" => format!("{}:{verb}", one.resource),
                prefix => format!("{}:{verb}:{prefix}", one.resource),
            })
        })
    };
    let admin = Some(Verb::Admin);
    let by_id = requirements(route).iter().all(takes_prefix);
    // A list shows nothing of others instead.
    let listed = requirements(route)
        .iter()
        .any(|one| matches!(one.ids, Ids::Listed));
    let mut shapes = vec![
        ("none", String::new(), "a:1", false),
        ("whole", of("", None), "a:1", true),
        ("admin", of("", admin), "a:1", true),
        ("everything", "*".to_owned(), "a:1", true),
        ("prefix", of("a:", None), "a:1", by_id),
        ("one id", of("a:1", None), "a:1", by_id),
        ("other prefix", of("b:", admin), "a:1", listed),
        ("other id", of("a:2", admin), "a:1", listed),
        // Texts that the id starts with, but that are no prefixes of ids.
        ("string prefix", of("a", admin), "a:1", listed),
        ("shorter id", of("a:1", admin), "a:10", listed),
        ("longer prefix", of("a:1:", admin), "a:1", listed),
        ("other case", of("A:", admin), "a:1", listed),
    ];
    let resources: BTreeSet<&str> = requirements(route)
        .iter()
        .map(|one| one.resource.as_str())
        .collect();
    let others = Resource::ALL
        .iter()
        .filter(|one| !resources.contains(one.as_str()));
    let others: Vec<String> = others.map(|one| format!("{one}:admin")).collect();
    shapes.push(("other resources", others.join(" "), "a:1", false));
    let lower = |one: &Requirement| match one.verb {
        Verb::Read => None,
        Verb::Write => Some(format!("{}:read", one.resource)),
        Verb::Admin => Some(format!("{}:write", one.resource)),
    };
    shapes.push(("lower verb", grants(route, lower), "a:1", false));
    for verb in Verb::ALL {
        let enough = requirements(route).iter().all(|one| one.verb <= *verb);
        shapes.push(("every resource", format!("*:{verb}"), "a:1", enough));
        let prefix = format!("*:{verb}:a:");
        let prefixed = enough
            && by_id
            && requirements(route)
                .iter()
                .all(|one| one.resource.takes_prefix());
        shapes.push(("prefix of every resource", prefix, "a:1", prefixed));
    }
    if let [first, second] = requirements(route) {
        shapes.push((
            "first only",
            format!("{}:admin", first.resource),
            "a:1",
            false,
        ));
        shapes.push((
            "second only",
            format!("{}:admin", second.resource),
            "a:1",
            false,
        ));
    }
    shapes
}

/// Ids in a list that the grants do not cover.
fn foreign_ids<'a>(grants: &str, body: &'a Value) -> Vec<&'a str> {
    let grants: Grants = grants
        .split_whitespace()
        .map(|one| one.parse().unwrap())
        .collect();
    let mut foreign = Vec::new();
    for (rows, resource) in [
        ("shadows", Resource::Shadows),
        ("sensors", Resource::Sensors),
        ("clients", Resource::Clients),
    ] {
        let rows = body
            .get(rows)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let ids = rows.filter_map(|row| row.get("id")?.as_str());
        let is_foreign = |id: &&str| grants.covering(resource, Verb::Read, Some(id)).is_none();
        foreign.extend(ids.filter(is_foreign));
    }
    foreign
}

async fn call(api: &TestApi, route: &Route, grants: &str, id: &str) -> (u16, Value) {
    let request = Request::builder()
        .method(&*route.method.to_uppercase())
        .uri(path_of(route, id))
        .header("authorization", format!("Bearer {}", token_of(grants)))
        .header("content-type", "application/json")
        .header(
            "idempotency-key",
            format!("{} {grants} {id}", route.operation_id).replace(' ', "-"),
        )
        .body(Body::from(body_of(route, &[id]).to_string()))
        .unwrap();
    let response = api.router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Two tenants with the same things.
async fn fill(api: &TestApi) {
    for tenant in ["a:1", "a:10", "b:1"] {
        let report = format!("/v1/shadows/{tenant}/reported");
        api.patch(&report, r#"{"led":1}"#).await.ok(200);
        let sensor = json!({"id": tenant}).to_string();
        api.post("/v1/sensors", &sensor).await.ok(201);
        let client = json!({"id": tenant, "name": "n", "url": "http://127.0.0.1:1/"}).to_string();
        api.post("/v1/clients", &client).await.ok(201);
        crate::messages::fill(api, tenant, 1, "").await;
    }
}

#[tokio::test]
async fn every_operation_with_every_shape_of_grant() {
    let routes = all_with_parameters();
    let lists: BTreeSet<String> = routes
        .iter()
        .flat_map(shapes)
        .map(|(_, grants, ..)| grants)
        .collect();
    let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
    let api = TestApi::start_with(&lists).await;
    fill(&api).await;
    let mut leaks = 0;
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for route in &routes {
        let is_open = matches!(route.access, Access::Open);
        for (shape, grants, id, allowed) in shapes(route) {
            // Any grant is enough for the description, and none is needed for health.
            let allowed = match route.access {
                Access::Open => true,
                Access::AnyGrant => !grants.is_empty(),
                Access::Requires(_) => allowed,
            };
            api.endpoint.take_calls();
            let (status, body) = call(&api, route, &grants, id).await;
            let case = format!(
                "{} {shape} {grants:?} {id}: {status} {body}",
                route.operation_id
            );
            assert_eq!(status != 403, allowed, "{case}");
            assert!(!is_open || status == 200, "{case}");
            leaks += foreign_ids(&grants, &body).len();
            assert_eq!(foreign_ids(&grants, &body), [""; 0], "{case}");
            if !allowed {
                assert_eq!(body["code"], "Forbidden", "{case}");
                // Nothing was looked up, not even the key of an earlier request.
                assert!(api.endpoint.take_calls().is_empty(), "{case}");
                let detail = body["detail"].as_str().unwrap();
                assert!(detail.contains("grant"), "{case}");
            }
            *counts.entry((shape, allowed)).or_default() += 1;
        }
    }
    let total: usize = counts.values().sum();
    let allowed: usize = counts
        .iter()
        .filter(|((_, allowed), _)| *allowed)
        .map(|(_, n)| n)
        .sum();
    println!(
        "{} operations, {total} cases: {allowed} allowed, {} refused, {leaks} leaks",
        routes.len(),
        total - allowed
    );
    assert!(
        routes.len() > 60 && total > 1000 && allowed > 300,
        "{counts:?}"
    );
}

/// A line of the table without its grants does not compile, so routes without grants could only be added elsewhere.
#[test]
fn routes_are_added_by_the_table_only() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    let mut added = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let calls = [".route(", ".nest(", ".merge(", ".fallback(", "_service("];
            let lines = text.lines().filter(|line| {
                let is_call = calls.iter().any(|call| line.contains(call));
                is_call || line.contains("Router::new()") || line.contains("(Endpoint {")
            });
            added.extend(lines.map(|line| line.trim().to_owned()));
        }
    }
    let table = "static ENDPOINTS: &[Endpoint] = &[$(Endpoint {";
    assert_eq!(added, [table, "Router::new()", ".fallback(serve)"]);
}

#[tokio::test]
async fn the_missing_grant_is_named_as_it_can_be_given() {
    let limited = "shadows:read:House%20A#";
    let api = TestApi::start_with(&[limited]).await;
    for (method, path, grant) in [
        (
            "GET",
            "/v1/shadows/House%20B%231",
            "shadows:read:House%20B#1",
        ),
        (
            "DELETE",
            "/v1/shadows/House%20A%231",
            "shadows:write:House%20A#1",
        ),
        ("GET", "/v1/messages", "messages:read, without a prefix,"),
        ("GET", "/v1/clients/x", "clients:read:x"),
        ("POST", "/v1/clients/x/rotate-secret", "clients:admin:x"),
        ("POST", "/v1/reports", "shadows:write"),
    ] {
        let response = api
            .request_as(limited, method, path)
            .json("{}")
            .send()
            .await;
        let problem = response.problem(403, "Forbidden");
        let detail = format!("the grant {grant} is missing");
        assert_eq!(problem["detail"], *detail, "{method} {path}");
    }
    let own = "/v1/shadows/House%20A%231";
    api.request_as(limited, "GET", own)
        .send()
        .await
        .problem(404, "NotFound");
}

#[tokio::test]
async fn a_request_for_many_is_refused_as_a_whole() {
    let limited = "shadows:write:a: sensors:write:a:";
    let api = TestApi::start_with(&[limited]).await;
    for (path, both, own) in [
        (
            "/v1/reports",
            json!({"reports": [{"id": "a:1", "reported": {}}, {"id": "b:1", "reported": {}}]}),
            json!({"reports": [{"id": "a:1", "reported": {}}, {"id": "", "reported": {}}]}),
        ),
        (
            "/v1/signals",
            json!({"signals": [{"sensor_id": "a:1", "data": 1}, {"sensor_id": "b:1", "data": 1}]}),
            json!({"signals": [{"sensor_id": "a:1", "data": 1}, {"sensor_id": 7}]}),
        ),
    ] {
        api.endpoint.take_calls();
        let request = |body: &Value| {
            api.request_as(limited, "POST", path)
                .json(&body.to_string())
        };
        let refused = request(&both).send().await.problem(403, "Forbidden");
        assert!(
            refused["detail"].as_str().unwrap().contains(":write:b:1"),
            "{refused}"
        );
        assert!(api.endpoint.take_calls().is_empty());
        let results = request(&own).send().await;
        if path == "/v1/signals" {
            // An invalid signal has no id.
            assert_eq!(results.ok(200)["results"].as_array().unwrap().len(), 2);
        } else {
            // An empty id is nobody's.
            results.problem(403, "Forbidden");
        }
        for invalid in ["", "[]", "{\"reports\":[{\"id\":\"a:1\",\"id\":\"b:1\"}]}"] {
            let response = api
                .request_as(limited, "POST", path)
                .json(invalid)
                .send()
                .await;
            assert_eq!(response.status, 400, "{invalid}: {}", response.text);
        }
    }
}

#[tokio::test]
async fn a_client_is_linked_only_to_sensors_that_the_caller_may_read() {
    let (client_only, both) = ("clients:write:a:", "clients:write:a: sensors:read:a:");
    let api = TestApi::start_with(&[client_only, both]).await;
    fill(&api).await;
    let link = |grants: &str, sensor: &str| {
        let path = format!("/v1/clients/a:1/sensors/{sensor}");
        api.request_as(grants, "PUT", &path).send()
    };
    let detail = |problem: Value| problem["detail"].as_str().unwrap().to_owned();
    let refused = detail(link(client_only, "a:1").await.problem(403, "Forbidden"));
    assert_eq!(refused, "the grant sensors:read:a:1 is missing");
    let refused = detail(link(both, "b:1").await.problem(403, "Forbidden"));
    assert_eq!(refused, "the grant sensors:read:b:1 is missing");
    link(both, "a:1").await.ok(204);
}

#[tokio::test]
async fn webhook_urls_are_shown_to_administrators_only() {
    let (reads, writes, admin) = (
        "clients:read",
        "clients:write",
        "clients:read clients:admin:a:",
    );
    let api = TestApi::start_with(&[reads, writes, admin]).await;
    fill(&api).await;
    let url = Value::from("http://127.0.0.1:1/");
    for (grants, shown) in [(reads, false), (writes, false), (admin, true)] {
        let get = |path: &'static str| api.request_as(grants, "GET", path).send();
        let client = get("/v1/clients/a:1").await.ok(200);
        assert_eq!(client.get("url"), shown.then_some(&url), "{grants}");
        let clients = get("/v1/clients").await.ok(200)["clients"].clone();
        let urls = clients
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.get("url").is_some());
        // Of the third, the caller is not the administrator.
        assert_eq!(urls.collect::<Vec<_>>(), [shown, shown, false], "{clients}");
    }
    let disable = api
        .request_as(writes, "POST", "/v1/clients/a:1/disable")
        .send()
        .await;
    assert_eq!(disable.ok(200).get("url"), None);
}

#[tokio::test]
async fn a_caller_with_a_prefix_names_the_client_that_it_creates() {
    let limited = "clients:admin:a:";
    let api = TestApi::start_with(&[limited]).await;
    let create = |id: Value| {
        let body = json!({"id": id, "name": "n", "url": "http://127.0.0.1:1/"});
        api.request_as(limited, "POST", "/v1/clients")
            .json(&body.to_string())
            .send()
    };
    create(Value::Null).await.problem(403, "Forbidden");
    create("b:1".into()).await.problem(403, "Forbidden");
    let created = create("a:hook".into()).await;
    assert_eq!(created.header("location"), Some("/v1/clients/a:hook"));
    created.ok(201);
}

#[tokio::test]
async fn a_repeated_request_needs_its_grant_again() {
    // Two tokens are two callers: neither gets the stored response of the other.
    let (writer, reader) = ("shadows:write:a:", "shadows:read");
    let api = TestApi::start_with(&[writer, reader]).await;
    let report = |grants: &str| {
        let request = api.request_as(grants, "PATCH", "/v1/shadows/a:1/reported");
        request
            .header("idempotency-key", "k")
            .json(r#"{"led":1}"#)
            .send()
    };
    report(writer).await.ok(200);
    report(reader).await.problem(403, "Forbidden");
    assert_eq!(
        report(writer).await.header("idempotency-replayed"),
        Some("true")
    );
}

#[tokio::test]
async fn odd_paths_are_compared_as_handlers_read_them() {
    let limited = "shadows:read:a#1 shadows:read:%61%2F%25:";
    let api = TestApi::start_with(&[limited]).await;
    for (path, status) in [
        ("/v1/shadows/a%231", 404),
        ("/v1/shadows/%61%23%31", 404),
        ("/v1/shadows/a%2310", 403),
        ("/v1/shadows/a%231%00", 403),
        ("/v1/shadows/a%2523%31", 403),
        ("/v1/shadows/a%231/name/b%231", 404),
        ("/v1/shadows/b%231/name/a%231", 403),
        ("/v1/shadows/a%2F%25:x", 404),
        ("/v1/shadows/a%2F%25", 403),
        ("/v1/shadows/a%252F%2525:x", 403),
        ("/v1/shadows/..", 403),
        ("/v1/shadows/%FF", 400),
        ("/v1/shadows/a%231?id=b%231", 400),
        ("/v1/shadows/a%231?at=2026-01-31T12:00:00Z", 404),
        ("/v1/shadows/b%231?at=2026-01-31T12:00:00Z", 403),
        ("/v1/shadows/a%231/history", 200),
        ("/v1/shadows/a%2310/history", 403),
        ("/v1/shadows/b%231/diff?from=2026-01-31T12:00:00Z", 403),
    ] {
        let response = api.request_as(limited, "GET", path).send().await;
        assert_eq!(response.status, status, "{path}: {}", response.text);
    }
}
