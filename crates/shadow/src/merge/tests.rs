use super::*;
use crate::model::Arrays;

fn value(random: &mut fastrand::Rng, depth: u32) -> String {
    let below = |random: &mut fastrand::Rng| value(random, depth - 1);
    match random.u8(..if depth == 0 { 5 } else { 10 }) {
        0 => "null".to_owned(),
        1 => "{}".to_owned(),
        2 => random.u8(..3).to_string(),
        3 => format!(
            "\"{}\"",
            ["x", "a longer text than fits one step"][random.usize(..2)]
        ),
        4 => format!(
            r#"{{"timestamp":{},"v":{}}}"#,
            random.u8(1..4),
            random.u8(..3)
        ),
        5 => {
            let elements: Vec<String> = (0..random.usize(..4)).map(|_| below(random)).collect();
            format!("[{}]", elements.join(","))
        }
        _ => object(random, depth - 1),
    }
}

fn object(random: &mut fastrand::Rng, depth: u32) -> String {
    let names = ["a", "b", "c", "id", "longer", "longer name", "z"];
    let members = names.iter().filter_map(|name| {
        let present = random.u8(..3) > 0;
        present.then(|| format!("\"{name}\":{}", value(random, depth)))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A document, with some of its values replaced.
fn changed(random: &mut fastrand::Rng, view: View<'_>, depth: u32) -> String {
    if view.kind() != Kind::Object || depth == 0 || random.u8(..12) == 0 {
        return match random.u8(..8) {
            0 => value(random, 2),
            _ => view.to_json(),
        };
    }
    let mut members = Vec::new();
    for member in view.children() {
        if random.u8(..10) > 0 {
            let value = changed(random, member, depth - 1);
            members.push(format!("\"{}\":{value}", member.key()));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// A merge that reports verdicts looks at every leaf; one that does not copies what is equal.
#[test]
fn copies_of_equal_values_are_what_a_walk_finds() {
    let seconds = |seconds: i128| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
    let mut random = fastrand::Rng::with_seed(11);
    let mut unchanged = 0;
    for round in 0..1_500 {
        let stored = Document::parse(&object(&mut random, 3)).unwrap();
        let sent = match changed(&mut random, stored.view(), 4) {
            text if text.starts_with('{') => Document::parse(&text).unwrap(),
            _ => stored.clone(),
        };
        let model = Model {
            arrays: [Arrays::Matched, Arrays::Whole][round % 2],
            max_future: (round % 3 == 0).then_some(std::time::Duration::from_secs(1)),
            ..Model::default()
        };
        let before = Document::parse("{}").unwrap();
        let times = LeafTimes::default().after(&before, &stored, &model, seconds(5));
        let times = times.after(&stored, &stored, &model, seconds(6));
        let at = random.bool().then(|| MessageTime {
            time: seconds(random.i128(4..8)),
            yields: random.bool(),
        });
        for order in [None, Some((times, at))] {
            for mode in Mode::ALL {
                let input = Input::new(&stored, &sent, *mode, &model, seconds(6), order.clone());
                let copied = input.run(None);
                let mut report = |_: Change<'_>| {};
                let walked = input.run(Some(&mut report));
                let context = format!("{mode} {at:?}\n{stored}\n{sent}");
                assert_eq!(copied.changed, walked.changed, "{context}");
                unchanged += usize::from(!copied.changed);
                match (copied.order, walked.order) {
                    (Some(copied), Some(walked)) => {
                        assert_eq!(copied.changed, walked.changed, "{context}");
                        assert_eq!(copied.finish(), walked.finish(), "{context}");
                    }
                    (copied, walked) => assert!(copied.is_none() && walked.is_none()),
                }
                let (copied, walked) = (copied.out.finish(), walked.out.finish());
                assert_eq!(copied, walked, "{context}");
                // The copied nodes are those of the text.
                let parsed = Document::parse(copied.as_str()).unwrap();
                assert_eq!(
                    format!("{:?}", copied.view().nodes_to(copied.view())),
                    format!("{:?}", parsed.view().nodes_to(parsed.view())),
                    "{context}"
                );
            }
        }
    }
    assert!(unchanged > 250, "{unchanged}");
}
