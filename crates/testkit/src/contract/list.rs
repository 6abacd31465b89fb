//! Listings contain each document once, in pages.

use std::collections::BTreeSet;

use antumbra_service::access::{IdRanges, Prefix};
use antumbra_service::shadows::{
    ClientToken, Cursor, Delete, DocumentSummary, ExpectedVersion, Layout, ShadowId, ShadowStore,
    State, StoreError, Version, Write,
};
use antumbra_shadow::Timestamp;

use crate::all_pages;
use crate::sample::{delete, delete_one, desire_of, named, shadow, whole, write_one};

/// Id, name and state of a document.
type Place = (String, String, State);

/// Upper bound of the pages of a listing in these tests.
const PAGES: usize = 500;

fn place(listed: &DocumentSummary) -> Place {
    let (id, name) = (listed.shadow.id(), listed.shadow.name());
    (id.to_owned(), name.to_owned(), listed.state)
}

fn places<'a>(shadows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Place> {
    let mut places: Vec<Place> = shadows
        .into_iter()
        .flat_map(|(id, name)| {
            [State::Reported, State::Desired].map(|state| (id.to_owned(), name.to_owned(), state))
        })
        .collect();
    places.sort();
    places
}

/// Returns the rows of all pages, sorted, after checking the size of each page.
async fn all<P: ShadowStore>(store: &P, id: &str, limit: usize) -> Vec<DocumentSummary> {
    let most = match store.layout() {
        Layout::Separate => limit,
        Layout::Combined => limit.max(2),
    };
    let next = async |cursor: Option<&_>| store.list(id, limit, cursor).await.unwrap();
    let mut found = all_pages(most, next).await;
    found.sort_by_key(place);
    found
}

pub async fn an_empty_store_lists_nothing<P: ShadowStore>(store: P) {
    assert!(all(&store, "lamp", 10).await.is_empty());
    assert_eq!(fleet(&store, "", 10).await, []);
}

pub async fn a_listing_of_one_id_contains_only_its_documents<P: ShadowStore>(store: P) {
    let shadows = [
        ("lamp", "a"),
        ("lamp", "b"),
        ("lamp", "main"),
        ("lamp", "#"),
        ("lamp", "ö"),
        ("lamp1", "a"),
        ("lam", "a"),
        ("lamp#", "a"),
        ("lamp#a", "a"),
        ("Lamp", "a"),
        ("other", "lamp"),
    ];
    for (id, name) in shadows {
        write_one(&store, whole(&named(id, name), 1, 0))
            .await
            .unwrap();
    }
    for id in ["lamp", "lamp#", "lamp#a", "lam", "absent", "DS#lamp"] {
        let expected = places(shadows.into_iter().filter(|(of, _)| *of == id));
        for limit in [1, 2, 3, 4, 1000] {
            let found = all(&store, id, limit).await;
            let found: Vec<Place> = found.iter().map(place).collect();
            assert_eq!(found, expected, "{id} by {limit}");
        }
    }
}

pub async fn a_listing_contains_version_time_and_token<P: ShadowStore>(store: P) {
    let lamp = shadow("lamp");
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    let second = Write {
        timestamp: Timestamp::from_nanoseconds(1_800_000_000_987_654_321),
        client_token: Some(ClientToken::new("token").unwrap()),
        ..whole(&lamp, 2, 1)
    };
    write_one(&store, second.clone()).await.unwrap();
    let found = all(&store, "lamp", 10).await;
    let expected = [State::Reported, State::Desired].map(|state| DocumentSummary {
        shadow: lamp.clone(),
        state,
        version: Version(2),
        timestamp: second.timestamp,
        client_token: second.client_token.clone(),
    });
    assert_eq!(found, expected);
    if store.layout() == Layout::Separate {
        let desired = desire_of(&lamp, 3, 2);
        write_one(&store, desired).await.unwrap();
        let found = all(&store, "lamp", 10).await;
        let versions: Vec<i64> = found.iter().map(|listed| listed.version.0).collect();
        assert_eq!(versions, [2, 3]);
        assert_eq!(found[1].client_token, None);
    }
}

pub async fn a_listing_contains_each_document_once<P: ShadowStore>(store: P) {
    let names: Vec<String> = (0..23).map(|n| format!("name-{n}")).collect();
    let writes: Vec<Write> = names
        .iter()
        .map(|name| whole(&named("lamp", name), 1, 0))
        .collect();
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    let expected = places(names.iter().map(|name| ("lamp", name.as_str())));
    for limit in [1, 2, 3, 7, 45, 46, 47, 1000] {
        let found = all(&store, "lamp", limit).await;
        let found: Vec<Place> = found.iter().map(place).collect();
        assert_eq!(found, expected, "by {limit}");
    }
}

/// A document that exists throughout is listed once, even if the last document of a page is deleted.
pub async fn a_listing_tolerates_changes_between_pages<P: ShadowStore>(store: P) {
    let staying: Vec<String> = (0..12).map(|n| format!("stays-{n}")).collect();
    let leaving: Vec<String> = (0..12).map(|n| format!("leaves-{n}")).collect();
    for name in staying.iter().chain(&leaving) {
        let write = whole(&named("lamp", name), 1, 0);
        write_one(&store, write).await.unwrap();
    }
    let mut found: Vec<Place> = Vec::new();
    let mut cursor: Option<Cursor> = None;
    for round in 0.. {
        assert!(round < PAGES, "the listing does not end");
        let page = store.list("lamp", 4, cursor.as_ref()).await.unwrap();
        found.extend(page.rows.iter().map(place));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        for listed in &page.rows {
            if listed.shadow.name().starts_with("leaves") {
                delete_one(&store, delete(&listed.shadow, ExpectedVersion::Any))
                    .await
                    .unwrap();
            }
        }
        if round < 6 {
            let comes = named("lamp", &format!("comes-{round}"));
            write_one(&store, whole(&comes, 1, 0)).await.unwrap();
        }
    }
    let once: BTreeSet<&Place> = found.iter().collect();
    assert_eq!(once.len(), found.len(), "each once");
    let stayed: Vec<Place> = once
        .into_iter()
        .filter(|(_, name, _)| name.starts_with("stays"))
        .cloned()
        .collect();
    assert_eq!(
        stayed,
        places(staying.iter().map(|name| ("lamp", name.as_str())))
    );
}

pub async fn a_cursor_is_valid_only_for_its_own_listing<P: ShadowStore>(store: P) {
    for name in ["a", "b", "c"] {
        for id in ["lamp", "other"] {
            write_one(&store, whole(&named(id, name), 1, 0))
                .await
                .unwrap();
        }
    }
    let ids = ["lamp", "other"];
    for id in ids {
        let page = store.list(id, 2, None).await.unwrap();
        let Cursor(text) = page.next.unwrap();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        assert!(text.chars().all(safe), "{text} is not safe in a URL");

        for other in ids.into_iter().filter(|other| *other != id) {
            let listed = store.list(other, 2, Some(&Cursor(text.clone()))).await;
            assert!(matches!(listed, Err(StoreError::Invalid(_))));
        }
        let mut bad = vec![
            String::new(),
            "x".to_owned(),
            format!("{text}0"),
            text.repeat(2),
        ];
        for at in (0..text.len()).step_by(5) {
            let mut changed = text.clone();
            let other = if &text[at..=at] == "0" { "1" } else { "0" };
            changed.replace_range(at..=at, other);
            bad.push(changed);
            bad.push(text[..at].to_owned());
        }
        for bad in bad {
            let listed = store.list(id, 2, Some(&Cursor(bad.clone()))).await;
            assert!(matches!(listed, Err(StoreError::Invalid(_))), "{bad}");
        }
    }
}

pub async fn an_invalid_limit_or_cursor_is_rejected<P: ShadowStore>(store: P) {
    for (id, limit) in [
        ("lamp", 0),
        ("lamp", 1001),
        ("lamp", usize::MAX),
        ("", 10),
        (&"d".repeat(2046), 10),
    ] {
        let listed = store.list(id, limit, None).await;
        assert!(matches!(listed, Err(StoreError::Invalid(_))), "{limit}");
    }
}

pub async fn deleted_documents_are_not_listed<P: ShadowStore>(store: P) {
    let [lamp, fan] = ["lamp", "fan"].map(shadow);
    for shadow in [&lamp, &fan] {
        write_one(&store, whole(shadow, 1, 0)).await.unwrap();
    }
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let of_lamp = store.list("lamp", 100, None).await;
    assert_eq!(of_lamp.unwrap().rows, []);
    let of_fan = store.list("fan", 100, None).await.unwrap();
    assert_eq!(of_fan.rows.len(), 2);
}

/// Returns the shadows of all pages, after checking the size of each page.
async fn fleet<P: ShadowStore>(store: &P, prefix: &str, limit: usize) -> Vec<(String, String)> {
    fleet_within(store, &IdRanges::all(), prefix, limit).await
}

async fn fleet_within<P: ShadowStore>(
    store: &P,
    within: &IdRanges,
    prefix: &str,
    limit: usize,
) -> Vec<(String, String)> {
    let next = async |cursor: Option<&_>| {
        let page = store.list_by_prefix(prefix, within, limit, cursor).await;
        page.unwrap()
    };
    let names = |shadow: &ShadowId| (shadow.id().to_owned(), shadow.name().to_owned());
    all_pages(limit, next).await.iter().map(names).collect()
}

/// Limits of pages that give at most 15 pages: each page is a query per shard of the index.
fn limits(rows: usize, limits: &[usize]) -> impl Iterator<Item = usize> {
    limits
        .iter()
        .copied()
        .filter(move |limit| rows / limit <= 15)
}

pub async fn shadows_are_listed_by_prefix_in_order<P: ShadowStore>(store: P) {
    let mut shadows: Vec<(String, String)> = (0..60)
        .map(|n| (format!("lamp-{:02}", n % 45), format!("name-{}", n / 45)))
        .collect();
    let odd = [
        ("lamp", "main"),
        ("lamp#", "a"),
        ("Lamp", "a"),
        ("fan", "lamp-"),
        ("ö", "ö"),
    ];
    shadows.extend(odd.map(|(id, name)| (id.to_owned(), name.to_owned())));
    shadows.sort();
    let writes: Vec<Write> = shadows
        .iter()
        .map(|(id, name)| whole(&named(id, name), 1, 0))
        .collect();
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    for prefix in [
        "", "lamp", "lamp-", "lamp-1", "lamp-10", "lamp-10x", "ö", "F", "main",
    ] {
        let expected = shadows.iter().filter(|(id, _)| id.starts_with(prefix));
        let expected: Vec<_> = expected.cloned().collect();
        for limit in limits(expected.len(), &[1, 2, 7, 64, 65, 1000]) {
            assert_eq!(
                fleet(&store, prefix, limit).await,
                expected,
                "{prefix} by {limit}"
            );
        }
    }
}

/// The ids that prefixes of grants cover.
fn ids(prefixes: &[&str]) -> IdRanges {
    let prefixes: Vec<Prefix> = prefixes.iter().map(|one| one.parse().unwrap()).collect();
    prefixes.iter().map(Some).collect()
}

pub async fn shadows_are_listed_within_prefixes<P: ShadowStore>(store: P) {
    let long = "n".repeat(950);
    let mut shadows: Vec<(String, String)> = Vec::new();
    for tenant in ["a#", "a:", "a", "a#1", "b#", "ab#", &long] {
        for n in 0..12 {
            shadows.push((format!("{tenant}{n}"), "main".to_owned()));
        }
        shadows.push((tenant.to_owned(), "main".to_owned()));
        shadows.push((tenant.to_owned(), "other".to_owned()));
    }
    shadows.sort();
    shadows.dedup();
    let writes: Vec<Write> = shadows
        .iter()
        .map(|(id, name)| whole(&named(id, name), 1, 0))
        .collect();
    assert!(store.write_many(&writes).await.iter().all(Result::is_ok));
    for prefixes in [
        &["a#"][..],
        &["b#", "a#"],
        &["a#", "a#1"],
        &["a#1", "a", "b#3", "nobody#", "c"],
        &[&long],
        &["nobody"],
        &[],
    ] {
        let within = ids(prefixes);
        for prefix in ["", "a", "a#1", "b"] {
            let covered = |id: &str| id.starts_with(prefix) && within.contains(id);
            let expected = shadows.iter().filter(|(id, _)| covered(id));
            let expected: Vec<_> = expected.cloned().collect();
            for limit in limits(expected.len(), &[1, 5, 1000]) {
                let found = fleet_within(&store, &within, prefix, limit).await;
                assert_eq!(found, expected, "{prefix} within {prefixes:?} by {limit}");
            }
        }
    }
    let (own, other) = (ids(&["a#"]), ids(&["b#"]));
    let page = store.list_by_prefix("", &own, 3, None).await.unwrap();
    let outside = store.list_by_prefix("", &other, 3, page.next.as_ref());
    assert!(matches!(outside.await, Err(StoreError::Invalid(_))));
    // More grants do not make a cursor invalid.
    let both = ids(&["a#", "b#"]);
    let next = store.list_by_prefix("", &both, 3, page.next.as_ref()).await;
    assert_eq!(next.unwrap().rows.len(), 3);
}

pub async fn deleted_shadows_are_not_listed_by_prefix<P: ShadowStore>(store: P) {
    let [lamp, fan] = ["lamp", "fan"].map(shadow);
    for shadow in [&lamp, &fan] {
        write_one(&store, whole(shadow, 1, 0)).await.unwrap();
    }
    delete_one(&store, delete(&lamp, ExpectedVersion::Any))
        .await
        .unwrap();
    let main = |id: &str| (id.to_owned(), "main".to_owned());
    assert_eq!(fleet(&store, "", 10).await, [main("fan")]);
    write_one(&store, whole(&lamp, 1, 0)).await.unwrap();
    assert_eq!(fleet(&store, "", 10).await, [main("fan"), main("lamp")]);
    if store.layout() == Layout::Separate {
        let one = Delete {
            reported: None,
            ..delete(&fan, ExpectedVersion::Any)
        };
        delete_one(&store, one).await.unwrap();
        assert_eq!(fleet(&store, "", 10).await, [main("fan"), main("lamp")]);
    }
}

/// Ids and names that are longer than an index key, and some that lead to the same key.
pub async fn shadows_of_any_name_are_listed_by_prefix<P: ShadowStore>(store: P) {
    let long = "é".repeat(500);
    let mut shadows = vec![
        (long.clone(), "main".to_owned()),
        (format!("{long}x"), "main".to_owned()),
        (long.clone(), "n".repeat(256)),
        ("lamp".to_owned(), "n".repeat(256)),
        ("lamp".to_owned(), "n".repeat(255)),
    ];
    let parts: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    shadows.extend((1..40).map(|at| (parts[..at].join("\u{1}"), parts[at..].join("\u{1}"))));
    for (id, name) in &shadows {
        write_one(&store, whole(&named(id, name), 1, 0))
            .await
            .unwrap();
    }
    shadows.sort();
    for prefix in ["", "lamp", &long, &format!("{long}x"), "0"] {
        let expected = shadows.iter().filter(|(id, _)| id.starts_with(prefix));
        let expected: Vec<_> = expected.cloned().collect();
        for limit in limits(expected.len(), &[1, 3, 1000]) {
            let mut found = fleet(&store, prefix, limit).await;
            found.sort();
            assert_eq!(found, expected, "{prefix} by {limit}");
        }
    }
}

pub async fn a_cursor_of_a_prefix_is_valid_only_for_it<P: ShadowStore>(store: P) {
    for (id, name) in [("lamp-1", "a"), ("lamp-1", "b"), ("lamp-2", "a")] {
        let write = whole(&named(id, name), 1, 0);
        write_one(&store, write).await.unwrap();
    }
    let all = IdRanges::all();
    let next = store
        .list_by_prefix("lamp", &all, 1, None)
        .await
        .unwrap()
        .next;
    let documents = store.list("lamp-1", 2, None).await.unwrap().next;
    assert!(next.is_some() && documents.is_some());
    for (prefix, cursor) in [
        ("", next),
        ("lamp", documents),
        ("lamp", Some(Cursor("x".into()))),
    ] {
        let listed = store.list_by_prefix(prefix, &all, 1, cursor.as_ref()).await;
        assert!(matches!(listed, Err(StoreError::Invalid(_))), "{prefix}");
    }
    for (prefix, limit) in [
        (String::new(), 0),
        (String::new(), 1001),
        ("x".repeat(2046), 1),
    ] {
        let listed = store.list_by_prefix(&prefix, &all, limit, None).await;
        assert!(matches!(listed, Err(StoreError::Invalid(_))), "{limit}");
    }
}
