//! Random operations, compared with a model.

use std::collections::BTreeMap;

use antumbra_service::inbox::{
    ListRequest, MessageDeleter, MessageId, MessageIndex, MessageReader, MessageWriter, Order,
    Range, Stored, list, shorten_page,
};
use antumbra_service::store::StoreError;

use super::{NOON, at, id, message, source};
use crate::store::inbox;

/// The messages; `false` for a deleted one.
type Model = BTreeMap<String, bool>;

fn expected(model: &Model, range: &Range) -> Vec<String> {
    let within = |name: &&String| {
        let name = name.as_str();
        range.from.as_ref().is_none_or(|from| name >= from.as_str())
            && range.to.as_ref().is_none_or(|to| name <= to.as_str())
            && range.after.as_ref().is_none_or(|after| match range.order {
                Order::OldestFirst => name > after.as_str(),
                Order::NewestFirst => name < after.as_str(),
            })
    };
    let live = model
        .iter()
        .filter(|(_, live)| **live)
        .map(|(name, _)| name);
    let mut names: Vec<String> = live.filter(within).cloned().collect();
    if range.order == Order::NewestFirst {
        names.reverse();
    }
    names
}

#[tokio::test]
async fn any_order_of_operations_matches_the_model() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    let mut random = fastrand::Rng::with_seed(20260131);
    let mut model = Model::new();
    let name = |random: &mut fastrand::Rng| format!("{:02}", random.u32(0..40));
    for step in 0..600 {
        let one = name(&mut random);
        match random.u32(0..6) {
            0 | 1 => {
                let stored = inbox
                    .store(&message("testThing", &one, "{}"))
                    .await
                    .unwrap();
                let new = !model.contains_key(&one);
                assert_eq!(stored == Stored::New, new, "step {step}");
                model.entry(one).or_insert(true);
            }
            2 => {
                inbox.delete(&thing, &id(&one), at(NOON)).await.unwrap();
                if let Some(live) = model.get_mut(&one) {
                    *live = false;
                }
            }
            3 => {
                let found = inbox.get(&thing, &id(&one)).await.unwrap();
                assert_eq!(
                    found.is_some(),
                    model.get(&one) == Some(&true),
                    "step {step}"
                );
            }
            _ => {
                let mut bound = || random.bool().then(|| id(&name(&mut random)));
                let (from, to, after) = (bound(), bound(), bound());
                let order = [Order::OldestFirst, Order::NewestFirst][usize::from(random.bool())];
                let range = Range {
                    from,
                    to,
                    order,
                    after,
                };
                let limit = random.usize(1..8);
                let mut wanted = expected(&model, &range);
                wanted.truncate(limit);
                let found = inbox.ids(&thing, &range, limit).await.unwrap();
                let found: Vec<&str> = found.iter().map(MessageId::as_str).collect();
                assert_eq!(found, wanted, "step {step}: {range:?} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn pages_add_up_to_the_whole_in_both_orders() {
    let inbox = &inbox().await;
    let thing = source("testThing");
    for number in 0..23 {
        let name = format!("{number:02}");
        inbox
            .store(&message("testThing", &name, "{}"))
            .await
            .unwrap();
    }
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut request = ListRequest {
            from: Some(id("03")),
            to: Some(id("19")),
            order,
            limit: 5,
            cursor: None,
        };
        let mut all = Vec::new();
        loop {
            let page = list(&**inbox, &thing, &request).await.unwrap();
            // As in a response with room for two.
            let page = shorten_page(page, &thing, &request, 2);
            all.extend(page.rows.iter().map(ToString::to_string));
            request.cursor = page.next;
            if request.cursor.is_none() {
                break;
            }
        }
        let mut expected: Vec<String> = (3..=19).map(|number| format!("{number:02}")).collect();
        if order == Order::NewestFirst {
            expected.reverse();
        }
        assert_eq!(all, expected);
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_listing() {
    let inbox = &inbox().await;
    for name in ["1", "2", "3"] {
        inbox.store(&message("a", name, "{}")).await.unwrap();
    }
    let mut request = ListRequest {
        from: None,
        to: None,
        order: Order::OldestFirst,
        limit: 1,
        cursor: None,
    };
    let page = list(&**inbox, &source("a"), &request).await.unwrap();
    request.cursor = page.next;
    assert!(list(&**inbox, &source("a"), &request).await.is_ok());
    let other = list(&**inbox, &source("b"), &request).await.unwrap_err();
    assert_eq!(
        other.to_string(),
        "invalid: the cursor belongs to another listing"
    );
    let others = [
        ListRequest {
            order: Order::NewestFirst,
            ..request.clone()
        },
        ListRequest {
            from: Some(id("1")),
            ..request.clone()
        },
        ListRequest {
            to: Some(id("2")),
            ..request.clone()
        },
    ];
    for other in others {
        let rejected = list(&**inbox, &source("a"), &other).await;
        assert!(rejected.is_err(), "{other:?}");
    }
    for limit in [0, 1001] {
        let rejected = inbox.ids(&source("a"), &Range::default(), limit).await;
        assert!(matches!(rejected, Err(StoreError::Invalid(_))));
    }
}
