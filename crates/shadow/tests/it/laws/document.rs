//! Reading JSON, with serde_json as the oracle for valid JSON.

use std::collections::BTreeSet;
use std::fmt;

use antumbra_shadow::{Document, DocumentError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::strategies::document;
use crate::config;
use crate::reference::value::{all_names, normal};

// DynamoDB's limits, written out so that a change of the crate's is seen.
const DEPTH: usize = 32;
const DIGITS: usize = 38;

/// Reasons for which a document rejects a JSON text.
#[derive(Default)]
struct Shape {
    object: bool,
    depth: usize,
    name_twice: bool,
    number_out_of_range: bool,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl Shape {
    fn leaf() -> Shape {
        Shape {
            depth: 1,
            ..Shape::default()
        }
    }

    fn holds(&mut self, child: Shape) {
        self.depth = self.depth.max(child.depth + 1);
        self.name_twice |= child.name_twice;
        self.number_out_of_range |= child.number_out_of_range;
    }
}

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::leaf())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::leaf())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::leaf())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Shape, E> {
        // A number that underflows to zero counts as zero here; such texts are not compared.
        let number_out_of_range = number != 0.0 && !(1e-130..1e126).contains(&number.abs());
        Ok(Shape {
            number_out_of_range,
            ..Shape::leaf()
        })
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::leaf())
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::leaf())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::leaf();
        while let Some(item) = items.next_element()? {
            shape.holds(item);
        }
        Ok(shape)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Shape, A::Error> {
        let mut shape = Shape {
            object: true,
            ..Shape::leaf()
        };
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            shape.name_twice |= !names.insert(name);
            shape.holds(members.next_value()?);
        }
        Ok(shape)
    }
}

/// Equal, floating point read from another spelling of the number allowed for.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (
                a.as_f64().unwrap_or(f64::NAN),
                b.as_f64().unwrap_or(f64::NAN),
            );
            (a - b).abs() <= a.abs() * 1e-14
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        _ => one == other,
    }
}

/// Reads bytes with the crate and with the oracle, and compares the results.
fn compare(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ours = Document::from_slice(bytes);
    let shown = String::from_utf8_lossy(bytes).into_owned();
    let Ok(theirs) = serde_json::from_slice::<Value>(bytes) else {
        prop_assert!(ours.is_err(), "read, though no JSON: {}", shown);
        return Ok(());
    };
    let shape: Shape =
        serde_json::from_slice(bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
    match ours {
        Ok(document) => {
            prop_assert!(
                shape.object && !shape.name_twice && shape.depth <= DEPTH,
                "{}",
                shown
            );
            let value: Value = document
                .to_value()
                .map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert!(alike(&value, &theirs), "{} is read as {}", shown, document);
            let again = Document::parse(document.as_str());
            prop_assert_eq!(again.as_ref().map(Document::as_str), Ok(document.as_str()));
        }
        Err(DocumentError::NotAnObject { .. }) => prop_assert!(!shape.object, "{}", shown),
        Err(DocumentError::DuplicateKey { .. }) => prop_assert!(shape.name_twice, "{}", shown),
        Err(DocumentError::TooDeep { .. }) => {
            prop_assert!(shape.depth > DEPTH, "{}", shown)
        }
        Err(DocumentError::Number { .. }) => {
            let long = shown
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .any(|run| run.len() > DIGITS);
            let tiny = shown.contains("e-") || shown.contains("E-");
            prop_assert!(shape.number_out_of_range || long || tiny, "{}", shown);
        }
        Err(other) => prop_assert!(false, "{}: {}", other, shown),
    }
    Ok(())
}

/// Canonical text written by hand: names by their written form, no white space.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(canonical).collect::<Vec<_>>().join(",")
        ),
        Value::Object(_) => {
            let member = |name: String| format!("{}:{}", json!(name), canonical(&value[&name]));
            let members = all_names(value, &Value::Null).into_iter().map(member);
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// A change to a text: at a position, some bytes are removed and others inserted.
fn edits() -> impl Strategy<Value = Vec<(Index, usize, Vec<u8>)>> {
    let bytes = prop_oneof![
        "[]{}\\[\",:0-9eE+. \n\t\\\\/ubfnrtals\r-]{0,3}"
            .prop_map(String::into_bytes)
            .boxed(),
        proptest::sample::select(vec![
            "\"a\":1,",
            "\\ud83d",
            "\\ud83d\\ude00",
            "\\u0041",
            "\\u004",
            "1e126",
            "-1.5E-3",
            "00",
            "-0",
            "1e-131",
            ".5",
            "true",
            "nul",
            "\u{7f}",
            "\u{feff}",
            "é",
            "12345678901234567890123456789012345678901",
            "[[",
            "]]",
            "//",
            "NaN",
        ])
        .prop_map(|text| text.as_bytes().to_vec())
        .boxed(),
        vec(any::<u8>(), 1..3).boxed(),
    ];
    vec((any::<Index>(), 0..3_usize, bytes), 0..3)
}

/// Parts of strings: plain, well escaped, badly escaped, and halves of surrogate pairs.
const FRAGMENTS: [&str; 16] = [
    "a",
    "é",
    "\u{1f600}",
    "\\n",
    "\\\"",
    "\\\\",
    "\\/",
    "\\u0041",
    "\\u00e9",
    "\\ud83d",
    "\\uDE00",
    "\\uD83D\\ude00",
    "\\u12",
    "\\x",
    "\t",
    "\u{7f}",
];

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn agrees_on_valid_json(document in document(), pretty in any::<bool>(), edits in edits()) {
        let write = if pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
        let mut bytes = write(&document).unwrap();
        for (at, out, new) in edits {
            let at = at.index(bytes.len() + 1);
            let end = (at + out).min(bytes.len());
            bytes.splice(at..end, new);
        }
        compare(&bytes)?;
    }

    #[test]
    fn agrees_on_any_text(text in prop_oneof![
        "\\PC{0,12}",
        "[\\[\\]{}\",:0-9eE+. truefalsn\\\\-]{0,16}",
        "\\{\"[a-c\\\\u0-9\"]{0,8}\":[0-9eE+.-]{1,6}\\}",
    ]) {
        compare(text.as_bytes())?;
    }

    #[test]
    fn agrees_on_escapes(parts in vec(proptest::sample::select(FRAGMENTS.to_vec()), 0..5), name in any::<bool>()) {
        let string = parts.concat();
        let text = if name { format!("{{\"{string}\":1}}") } else { format!("{{\"a\":\"{string}\"}}") };
        compare(text.as_bytes())?;
    }

    #[test]
    fn agrees_on_numbers(number in "[+-]{0,1}[0-9]{0,3}(\\.[0-9]{0,2}){0,1}([eE][+-]?[0-9]{0,2}){0,1}") {
        compare(format!("{{\"a\":{number}}}").as_bytes())?;
    }

    #[test]
    fn is_canonical(document in document()) {
        let value = normal(document);
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let read = Document::parse(&text).unwrap();
            prop_assert_eq!(read.as_str(), canonical(&value));
        }
    }

    #[test]
    fn names_and_strings_are_unchanged(text in any::<String>()) {
        let plain = Document::from_value(&json!({ text.as_str(): { "v": text.as_str() } })).unwrap();
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        let other = Document::parse(&format!("{{\"{escaped}\" : {{\"\\u0076\":\"{escaped}\"}}}}")).unwrap();
        prop_assert_eq!(plain.as_str(), other.as_str());
        let member = plain.view().get(&text).unwrap();
        prop_assert_eq!(member.key(), text.as_str());
        prop_assert_eq!(member.get("v").unwrap().as_str().unwrap(), text.as_str());
    }

    #[test]
    fn digits_have_their_limit(digits in 30..45_usize, point in 0..45_usize) {
        let mut text = "7".repeat(digits);
        if point > 0 && point < digits {
            text.insert(point, '.');
        }
        prop_assert_eq!(Document::parse(&format!("{{\"n\":{text}}}")).is_ok(), digits <= DIGITS, "{}", text);
    }

    #[test]
    fn magnitude_has_its_limits(exponent in prop_oneof![120..130_i32, -135..-125_i32], sign in "-?") {
        let document = Document::parse(&format!("{{\"n\":{sign}1e{exponent}}}"));
        prop_assert_eq!(document.is_ok(), (-130..=125).contains(&exponent));
    }

    #[test]
    fn all_spellings_of_a_number_are_equal(
        digits in "[1-9]|[1-9][0-9]{0,36}[1-9]",
        exponent in -90..80_i32,
        zeros in 0..4_usize,
        minus in any::<bool>(),
    ) {
        let sign = if minus { "-" } else { "" };
        let pad = "0".repeat(zeros);
        let count = digits.len() as i32;
        let (first, rest) = digits.split_at(1);
        let mut texts = vec![
            format!("{sign}{digits}e{exponent}"),
            format!("{sign}{digits}{pad}E{}", exponent - zeros as i32),
            format!("{sign}{digits}.0{pad}e{exponent:+}"),
            format!("{sign}{first}.{rest}0{pad}e{}", exponent + count - 1),
            format!("{sign}0.{pad}{digits}e{}", exponent + count + zeros as i32),
        ];
        let plain = if exponent >= 0 {
            format!("{sign}{digits}{}", "0".repeat(exponent as usize))
        } else if -exponent < count {
            let (whole, fraction) = digits.split_at((count + exponent) as usize);
            format!("{sign}{whole}.{fraction}")
        } else {
            format!("{sign}0.{}{digits}", "0".repeat((-exponent - count) as usize))
        };
        let expected = format!("{{\"n\":{plain}}}");
        texts.push(plain);
        for text in texts {
            let document = Document::parse(&format!("{{\"n\":{text}}}"));
            prop_assert_eq!(document.as_ref().map(Document::as_str), Ok(expected.as_str()), "{}", text);
        }
    }

    #[test]
    fn depth_has_its_limit(objects in 0..40_usize, arrays in 0..40_usize) {
        let (open, close) = ("{\"a\":".repeat(objects + 1), "}".repeat(objects + 1));
        let text = format!("{open}{}0{}{close}", "[".repeat(arrays), "]".repeat(arrays));
        let depth = objects + arrays + 2;
        match Document::parse(&text) {
            Ok(_) => prop_assert!(depth <= DEPTH),
            Err(fault) => {
                prop_assert!(depth > DEPTH);
                let too_deep = matches!(fault, DocumentError::TooDeep { limit: DEPTH, .. });
                prop_assert!(too_deep, "{}", fault);
            }
        }
    }
}
