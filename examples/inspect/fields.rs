//! The fields of a JSON schema, in the server's order, and what may be written into them.
//!
//! For the arguments of tools, of which names and types are shown, and for forms, which are flat: a
//! field is a text, a number, yes or no, or a choice.

use std::collections::BTreeMap;
use std::fmt;

use serde_core::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) is_required: bool,
    schema: Value,
}

/// The fields of an object's schema; none where it has no properties that can be read.
pub(crate) fn fields(schema: &RawValue) -> Vec<Field> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(schema.get()).unwrap_or_default();
    let properties = members.get("properties");
    let Some(Ok(InOrder(properties))) = properties.map(|raw| serde_json::from_str(raw.get()))
    else {
        return Vec::new();
    };
    let required = members.get("required");
    let required: Vec<String> = required
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let field = |(name, schema)| Field {
        is_required: required.contains(&name),
        name,
        schema,
    };
    properties.into_iter().map(field).collect()
}

impl Field {
    /// The type, as the schema names it.
    pub(crate) fn kind(&self) -> String {
        match &self.schema["type"] {
            Value::String(kind) => kind.clone(),
            Value::Array(kinds) => {
                let kinds: Vec<_> = kinds.iter().filter_map(Value::as_str).collect();
                kinds.join("|")
            }
            _ => "any".into(),
        }
    }

    /// The question for this field: its title or name, what it is, and how it is answered.
    pub(crate) fn question(&self) -> String {
        let title = self.schema["title"].as_str().unwrap_or(&self.name);
        let mut words = title.to_owned();
        if let Some(description) = self.schema["description"].as_str() {
            words.push_str(&format!(" ({description})"));
        }
        let choices = self.choices();
        for (number, (value, title)) in (1..).zip(&choices) {
            words.push_str(&format!(
                "\n    {number}: {}",
                title.as_ref().unwrap_or(value)
            ));
        }
        match self.kind().as_str() {
            "boolean" => words.push_str(", yes or no"),
            "array" => words.push_str("\n  some of these, commas between"),
            _ if !choices.is_empty() => words.push_str("\n  one of these"),
            _ => {}
        }
        match &self.schema["default"] {
            Value::Null if self.is_required => {}
            Value::Null => words.push_str(" [nothing]"),
            default => words.push_str(&format!(" [{default}]")),
        }
        words
    }

    /// Takes an answer: the value, nothing for a field that is left out, or what is wrong with it.
    pub(crate) fn read(&self, answer: &str) -> Result<Option<Value>, String> {
        if answer.is_empty() {
            return match &self.schema["default"] {
                Value::Null if self.is_required => Err("it is required".into()),
                Value::Null => Ok(None),
                default => Ok(Some(default.clone())),
            };
        }
        let value = match self.kind().as_str() {
            "boolean" => match answer.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err("it is yes or no".into()),
            },
            "integer" => json!(answer.parse::<i64>().map_err(|_| "it is a whole number")?),
            "number" => json!(answer.parse::<Number>().map_err(|_| "it is a number")?),
            "array" => {
                let parts = answer.split(',').map(|part| self.choose(part.trim()));
                json!(parts.collect::<Result<Vec<_>, _>>()?)
            }
            _ if self.choices().is_empty() => json!(answer),
            _ => json!(self.choose(answer)?),
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    /// A choice by its value, or by its number in the list.
    fn choose(&self, answer: &str) -> Result<String, String> {
        let choices = self.choices();
        let by_value = choices.iter().find(|(value, _)| value == answer);
        let number: Option<usize> = answer.parse().ok();
        let by_number = || choices.get(number?.checked_sub(1)?);
        let chosen = by_value.or_else(by_number);
        chosen
            .map(|(value, _)| value.clone())
            .ok_or_else(|| format!("`{answer}` is none of them"))
    }

    /// The values to choose from, each with its title, if it has one.
    fn choices(&self) -> Vec<(String, Option<String>)> {
        let (schema, items) = (&self.schema, &self.schema["items"]);
        let titled = [
            &schema["oneOf"],
            &schema["anyOf"],
            &items["anyOf"],
            &items["oneOf"],
        ];
        let titled = titled.into_iter().find_map(Value::as_array);
        if let Some(titled) = titled {
            let text = |choice: &Value, name: &str| choice[name].as_str().map(String::from);
            let choice = |choice| Some((text(choice, "const")?, text(choice, "title")));
            return titled.iter().filter_map(choice).collect();
        }
        let plain = schema["enum"].as_array().or(items["enum"].as_array());
        let titles = &schema["enumNames"];
        let choice = |(at, value): (usize, &Value)| {
            let title = titles[at].as_str().map(String::from);
            Some((value.as_str()?.to_owned(), title))
        };
        plain
            .into_iter()
            .flatten()
            .enumerate()
            .filter_map(choice)
            .collect()
    }

    /// The bounds that a form's field can have.
    fn check(&self, value: &Value) -> Result<(), String> {
        let (size, least, most, unit) = match value {
            Value::String(text) => (
                text.chars().count() as f64,
                "minLength",
                "maxLength",
                " characters",
            ),
            Value::Array(chosen) => (chosen.len() as f64, "minItems", "maxItems", " of them"),
            Value::Number(number) => (
                number.as_f64().unwrap_or_default(),
                "minimum",
                "maximum",
                "",
            ),
            _ => return Ok(()),
        };
        if let Some(least) = self.schema[least].as_f64().filter(|least| size < *least) {
            return Err(format!("it is at least {least}{unit}"));
        }
        if let Some(most) = self.schema[most].as_f64().filter(|most| size > *most) {
            return Err(format!("it is at most {most}{unit}"));
        }
        Ok(())
    }
}

/// The members of an object as they came; a map would sort them.
struct InOrder(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = InOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(InOrder(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
