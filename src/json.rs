//! Raw JSON text, read no further than needed.
//!
//! For a protocol layer that keeps what the peer wrote: finds the members of an object and the
//! elements of an array as raw text, and decodes raw text into a caller's type, without building a
//! value on the way. Present and null are told apart everywhere.

use std::borrow::Cow;
use std::fmt;

use serde_core::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// Decodes raw text into the type asked for.
///
/// Half of a surrogate pair, which JavaScript writes when it cuts a string inside one, is replaced
/// by U+FFFD where the text cannot be decoded otherwise.
///
/// # Errors
///
/// The text is not of that type.
///
/// # Examples
///
/// ```
/// let raw = serde_json::value::RawValue::from_string(r#"{"size": [2, 3]}"#.into())?;
/// let size = landline::json::member(&raw, &["size"]).unwrap();
/// assert_eq!(landline::json::decode::<(u8, u8)>(size)?, (2, 3));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn decode<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
    decode_repairing(raw).map(|decoded| decoded.value)
}

/// The text of a JSON string, borrowed where it holds no escapes; `None` for anything else.
///
/// ```
/// let raw = serde_json::value::RawValue::from_string(r#""a\u0062""#.into())?;
/// assert_eq!(landline::json::text(&raw).unwrap(), "ab");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        decode(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Finds the raw value at a path of member names inside an object; `None` where there is none. Of
/// duplicates the last one counts, as in [`serde_json::Value`].
pub fn member<'a>(raw: &'a RawValue, path: &[impl AsRef<str>]) -> Option<&'a RawValue> {
    path.iter().try_fold(raw, |raw, name| {
        let [member] = members(raw.get(), [name.as_ref()]).ok()?;
        member
    })
}

/// The elements of an array; `None` if it is none, or one of more than `most`: an element of one
/// byte takes sixteen here.
pub fn elements(array: &RawValue, most: usize) -> Option<Vec<&RawValue>> {
    elements_of(array.get(), most)
}

/// The members of an object in their order, duplicates included; `None` if it is none.
pub fn entries(object: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let mut deserializer = serde_json::Deserializer::from_str(object.get());
    deserializer.deserialize_map(Entries).ok()
}

/// What was decoded, and whether its text had to be repaired for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded<T> {
    pub(crate) value: T,
    pub(crate) repaired: bool,
}

/// Decodes as [`decode`] does and tells of a repair.
pub(crate) fn decode_repairing<T: DeserializeOwned>(
    raw: &RawValue,
) -> Result<Decoded<T>, serde_json::Error> {
    let (value, repaired) = match serde_json::from_str(raw.get()) {
        Ok(value) => (value, false),
        Err(error) => match without_lone_surrogates(raw.get()) {
            Some(repaired) => (serde_json::from_str(&repaired)?, true),
            None => return Err(error),
        },
    };
    Ok(Decoded { value, repaired })
}

/// Decodes params; absent ones decode as `null`.
pub(crate) fn decode_params<T: DeserializeOwned>(
    params: Option<&RawValue>,
) -> Result<Decoded<T>, serde_json::Error> {
    decode_repairing(params.unwrap_or(RawValue::NULL))
}

/// Finds the members of these names in the text of one object. Of duplicates the last one counts,
/// as in `serde_json::Value`.
pub(crate) fn members<'a, const N: usize>(
    object: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let found = deserializer.deserialize_map(Members(names))?;
    deserializer.end()?;
    Ok(found)
}

/// As [`elements`], from text that need not be JSON.
pub(crate) fn elements_of(array: &str, most: usize) -> Option<Vec<&RawValue>> {
    if !array.starts_with('[') {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(array);
    let found = deserializer.deserialize_seq(Elements(most)).ok()?;
    deserializer.end().ok()?;
    Some(found)
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some((Key(key), value)) = map.next_entry()? {
            found.push((key, value));
        }
        Ok(found)
    }
}

struct Elements(usize);

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {} elements", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = seq.next_element()? {
            if found.len() == self.0 {
                return Err(Error::invalid_length(self.0, &self));
            }
            found.push(element);
        }
        Ok(found)
    }
}

struct Members<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Members<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(Key(key)) = map.next_key()? {
            match self.0.iter().position(|name| *name == key) {
                // Not through `Option`, which would take null for absent.
                Some(at) => found[at] = Some(map.next_value::<&RawValue>()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// A member's name, borrowed where it holds no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_bytes<E: Error>(self, name: &'de [u8]) -> Result<Key<'de>, E> {
                // Nothing was escaped, so that it is text as it came. Asked for bytes, the
                // deserializer lets control characters pass, which no JSON has.
                let text = std::str::from_utf8(name).map_err(E::custom)?;
                if text.contains(|c: char| c < ' ') {
                    return Err(E::custom("a control character in a member name"));
                }
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(repaired_name(name))))
            }
        }
        // As text, half of a surrogate pair in one name would take all other members with it.
        deserializer.deserialize_bytes(Name)
    }
}

/// The text of a name in which half of a surrogate pair was escaped: three bytes that are no UTF-8,
/// each of which would be replaced by itself.
fn repaired_name(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        if chunk.invalid().first() == Some(&FIRST_OF_SURROGATE) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

const FIRST_OF_SURROGATE: u8 = 0xed;

/// Replaces each `\uD800`..`\uDFFF` escape that has no partner; `None` if there is no such escape.
fn without_lone_surrogates(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (keep, skip) = match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (true, 12),
            (Some(0xd800..=0xdfff), _) => (false, 6),
            // Any other escape is two characters as far as this search goes: `\\` must not begin
            // one.
            _ => (true, 2.min(rest.len())),
        };
        // An escaped character beyond ASCII is no JSON; it is left for the decoder to refuse.
        let (escape, tail) = rest.split_at_checked(skip)?;
        out.push_str(if keep { escape } else { "\\ufffd" });
        found |= !keep;
        rest = tail;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// The code unit of a `\uXXXX` escape at the beginning of the text.
fn escaped_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may unwrap")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_surrogate_without_its_partner_is_replaced_and_nothing_else() {
        let table = [
            (r#""a\ud800b""#, Some(r#""a\ufffdb""#)),
            (r#""\udc00""#, Some(r#""\ufffd""#)),
            (r#""\uD83D\uDE00 \uDBFF""#, Some(r#""\uD83D\uDE00 \ufffd""#)),
            (r#""\ud800\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#""\ud800\n""#, Some(r#""\ufffd\n""#)),
            (r#"{"\ud800":["\udfff"]}"#, Some(r#"{"\ufffd":["\ufffd"]}"#)),
            // An escaped backslash begins no escape.
            (r#""\\ud800""#, None),
            (r#""\\\ud800""#, Some(r#""\\\ufffd""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""plain é \" \u00e9""#, None),
            ("", None),
            // No JSON at all.
            ("\\", None),
            (r"\u", None),
            (r"\ud80", None),
            ("\\é", None),
        ];
        for (text, expected) in table {
            assert_eq!(without_lone_surrogates(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn every_prefix_and_suffix_of_a_text_with_surrogates_is_survived() {
        let text = r#"{"\ud800é":"\\\ud83d\ude00\udc00","a":["\u00e9\\","\ud83d"]}"#;
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            for part in [&text[..at], &text[at..]] {
                // Once repaired, there is nothing left to repair.
                if let Some(repaired) = without_lone_surrogates(part) {
                    assert_eq!(without_lone_surrogates(&repaired), None, "{part}");
                }
            }
        }
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        let expected = json!({"\u{fffd}é": "\\\u{1f600}\u{fffd}", "a": ["é\\", "\u{fffd}"]});
        let decoded = decode_repairing::<Value>(&raw).unwrap();
        assert_eq!(decoded.value, expected);
        assert!(decoded.repaired);
    }

    #[test]
    fn what_cannot_be_decoded_otherwise_keeps_its_first_error() {
        let raw = RawValue::from_string("\"text\"".into()).unwrap();
        let error = decode::<u8>(&raw).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid type: string \"text\", expected u8 at line 1 column 6"
        );
        let absent = decode_params::<Option<u8>>(None).unwrap();
        assert_eq!(absent.value, None);
        assert!(!absent.repaired);
    }

    #[test]
    fn members_are_found_as_they_were_written() {
        let text = r#"{"a":1.50,"b":null,"x":{"a":2},"\u0063":[ ],"a":{"d": "e"}}"#;
        let [a, b, c, d] = members(text, ["a", "b", "c", "d"]).unwrap();
        assert_eq!(a.unwrap().get(), r#"{"d": "e"}"#, "the last of two");
        assert_eq!(b.unwrap().get(), "null", "present and null");
        assert_eq!(c.unwrap().get(), "[ ]");
        assert!(d.is_none(), "absent");
        for none in ["[]", "1", "", "{", r#"{"a":1}x"#, r#"{"a":}"#, r#"{a:1}"#] {
            assert!(members(none, ["a"]).is_err(), "{none}");
        }
    }

    #[test]
    fn a_name_with_half_of_a_surrogate_pair_costs_no_other_member() {
        let text = r#"{"\ud800":1,"a\udc00\ud83d\ude00":2,"b":3}"#;
        let [odd, b] = members(text, ["a\u{fffd}\u{1f600}", "b"]).unwrap();
        assert_eq!((odd.unwrap().get(), b.unwrap().get()), ("2", "3"));
        let raw = RawValue::from_string(text.into()).unwrap();
        let names = entries(&raw).unwrap().into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.collect();
        assert_eq!(names, ["\u{fffd}", "a\u{fffd}\u{1f600}", "b"]);
        assert!(members("{\"a\n\":1}", ["b"]).is_err(), "no JSON");
    }

    #[test]
    fn a_path_leads_to_a_value_through_objects_alone() {
        let raw = RawValue::from_string(r#"{"a":{"b":{"c": 7}},"l":[{"c":1}]}"#.into()).unwrap();
        let at = |path: &[&str]| member(&raw, path).map(RawValue::get);
        assert_eq!(at(&["a", "b", "c"]), Some("7"));
        assert_eq!(at(&["a", "b"]), Some(r#"{"c": 7}"#));
        assert_eq!(at(&[]), Some(raw.get()));
        for nowhere in [&["x"][..], &["a", "x"], &["l", "c"], &["a", "b", "c", "d"]] {
            assert_eq!(at(nowhere), None, "{nowhere:?}");
        }
    }

    #[test]
    fn only_an_array_has_elements() {
        let count = |text| elements_of(text, 3).map(|elements| elements.len());
        assert_eq!(count(r#"[{"a":1},2]"#), Some(2));
        assert_eq!(count("[[]]"), Some(1));
        assert_eq!(count("[ ]"), Some(0));
        for none in ["{}", "[INFO] text", "[1", "[1,]", "", "1"] {
            assert_eq!(count(none), None, "{none}");
        }
    }

    #[test]
    fn an_array_has_as_many_elements_as_were_allowed() {
        assert_eq!(elements_of("[1,2,3]", 3).unwrap().len(), 3);
        assert!(elements_of("[1,2,3,4]", 3).is_none());
    }
}
