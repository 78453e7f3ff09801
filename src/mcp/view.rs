//! How values are kept: as the raw JSON that the server wrote, read by accessors.
//!
//! A closed struct loses a whole reply over one new or odd member. A view keeps the text and reads
//! a member when it is asked for, so that nothing is lost, and a member of an unexpected type is as
//! good as absent; the raw text tells which. An accessor reads the value's text once.

use serde_json::value::RawValue;

/// A member that is there and not `null`, for where the protocol does not tell the two apart.
pub(crate) fn present<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    crate::json::member(object, &[name]).filter(|raw| raw.get() != "null")
}

/// The elements of a member that is an array, each made into a view; none where it is no array, or
/// one that is to be read raw for its size.
pub(crate) fn many<T>(raw: Option<&RawValue>, make: impl Fn(&RawValue) -> T) -> Vec<T> {
    let all = raw.and_then(|raw| crate::json::elements(raw, MOST_ELEMENTS));
    all.into_iter().flatten().map(make).collect()
}

// Far more than any value is made of.
const MOST_ELEMENTS: usize = 1 << 20;

/// The whole number in a JSON text, which may be written as a float.
pub(crate) fn whole(raw: &RawValue) -> Option<u64> {
    if let Ok(number) = crate::json::decode(raw) {
        return Some(number);
    }
    let number: f64 = crate::json::decode(raw).ok()?;
    // Up to where every whole number is a float of its own.
    let is_whole = number.fract() == 0.0 && (0.0..=MOST_EXACT).contains(&number);
    is_whole.then_some(number as u64)
}

// 2 to the power of 53.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Declares a type that is a view of a JSON value.
macro_rules! view {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {$(
        $(#[$doc])+
        #[derive(Clone)]
        pub struct $name {
            raw: Box<serde_json::value::RawValue>,
        }

        impl $name {
            #[allow(dead_code, reason = "not every view is made from a borrowed text")]
            pub(crate) fn new(raw: &serde_json::value::RawValue) -> Self {
                Self { raw: raw.to_owned() }
            }

            #[allow(dead_code, reason = "not every view is made from an owned text")]
            pub(crate) fn from_box(raw: Box<serde_json::value::RawValue>) -> Self {
                Self { raw }
            }

            /// The JSON text as it came.
            pub fn raw(&self) -> &serde_json::value::RawValue {
                &self.raw
            }

            /// A member that has no accessor of its own, as it came; present and `null` are told
            /// apart.
            pub fn member(&self, name: &str) -> Option<&serde_json::value::RawValue> {
                crate::json::member(&self.raw, &[name])
            }

            /// Decodes the whole into a type of the caller's own.
            ///
            /// # Errors
            ///
            /// The text is not of that type.
            pub fn decode<T: serde_core::de::DeserializeOwned>(
                &self,
            ) -> Result<T, serde_json::Error> {
                crate::json::decode(&self.raw)
            }

            #[allow(dead_code, reason = "not every view has a member of this type")]
            fn text(&self, name: &str) -> Option<std::borrow::Cow<'_, str>> {
                crate::json::text(self.member(name)?)
            }

            #[allow(dead_code, reason = "not every view has a member of this type")]
            fn value<T: serde_core::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
                crate::json::decode(self.member(name)?).ok()
            }
        }

        /// Shows the raw text.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.raw.get()).finish()
            }
        }

        /// Serialises as it came.
        impl serde_core::Serialize for $name {
            fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.raw.serialize(serializer)
            }
        }
    )+};
}

/// Gives views the accessors of what has a name.
macro_rules! named {
    ($($name:ident),+ $(,)?) => {$(
        impl $name {
            /// The name.
            pub fn name(&self) -> std::borrow::Cow<'_, str> {
                self.text("name").unwrap_or_default()
            }

            /// The name to show to people (revision 2025-06-18).
            pub fn title(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.text("title")
            }

            /// What it is, or is for.
            pub fn description(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.text("description")
            }
        }
    )+};
}

pub(crate) use named;
pub(crate) use view;
