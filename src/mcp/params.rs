//! The params of a request, and how they go out.
//!
//! A call may go out several times: once more for each round in which the server asks for
//! something, or for another version. [`Params`] are therefore kept as raw members, serialised
//! once; [`Body`] puts them on the wire with what belongs to this one sending.

use std::borrow::Cow;

use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::EncodeError;
use crate::json::entries;
use crate::mcp::meta::Meta;

/// The members of a request's params.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    members: Vec<(Cow<'static, str>, Box<RawValue>)>,
    pub(crate) meta: Meta,
}

impl Params {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a member.
    pub(crate) fn with(
        mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self, EncodeError> {
        let value = to_raw_value(value).map_err(EncodeError::Serialize)?;
        self.members.push((name.into(), value));
        Ok(self)
    }

    /// Adds a member unless it serialises to null.
    pub(crate) fn with_some(
        mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self, EncodeError> {
        let value = to_raw_value(value).map_err(EncodeError::Serialize)?;
        if value.get() != "null" {
            self.members.push((name.into(), value));
        }
        Ok(self)
    }

    /// Splits params of the caller's own making: an object, or nothing.
    pub(crate) fn split(params: &impl Serialize) -> Result<Split, EncodeError> {
        let raw = to_raw_value(params).map_err(EncodeError::Serialize)?;
        if raw.get() == "null" {
            return Ok(Split::default());
        }
        let mut split = Split::default();
        for (name, value) in entries(&raw).ok_or(EncodeError::Scalar)? {
            if name == "_meta" {
                split.meta = Some(value.to_owned());
            } else {
                let name = Cow::Owned(name.into_owned());
                split.params.members.push((name, value.to_owned()));
            }
        }
        Ok(split)
    }
}

/// Params of the caller's own, with the `_meta` that stood in them.
#[derive(Debug, Default)]
pub(crate) struct Split {
    pub(crate) params: Params,
    pub(crate) meta: Option<Box<RawValue>>,
}

/// What a modern request says of its sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) version: &'a str,
    pub(crate) capabilities: &'a RawValue,
    /// Left out if the caller wants it so.
    pub(crate) client: Option<&'a RawValue>,
    pub(crate) log_level: Option<&'a str>,
}

/// What a retry carries besides its params: the answers to what the server asked for, and the state
/// that it wants back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    pub(crate) responses: Option<Vec<(Box<str>, Value)>>,
    /// As the server wrote it, escapes included.
    pub(crate) state: Option<Box<RawValue>>,
}

/// The params of one sending.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Body<'a> {
    pub(crate) params: &'a Params,
    pub(crate) inputs: &'a Inputs,
    /// `None` in the legacy era.
    pub(crate) sender: Option<Sender<'a>>,
    pub(crate) progress_token: Option<u64>,
}

/// An object, or null where there is nothing to say, which leaves the params out.
impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = BodyMeta(*self);
        let Inputs { responses, state } = self.inputs;
        if self.params.members.is_empty()
            && meta.is_empty()
            && responses.is_none()
            && state.is_none()
        {
            return serializer.serialize_unit();
        }
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.params.members {
            map.serialize_entry(name, value)?;
        }
        if let Some(responses) = responses {
            map.serialize_entry("inputResponses", &Entries(responses))?;
        }
        if let Some(state) = state {
            map.serialize_entry("requestState", state)?;
        }
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

struct BodyMeta<'a>(Body<'a>);

impl BodyMeta<'_> {
    fn is_empty(&self) -> bool {
        let Body {
            params,
            sender,
            progress_token,
            ..
        } = self.0;
        sender.is_none() && progress_token.is_none() && params.meta.entries().is_empty()
    }
}

impl Serialize for BodyMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(sender) = self.0.sender {
            map.serialize_entry("io.modelcontextprotocol/protocolVersion", sender.version)?;
            map.serialize_entry(
                "io.modelcontextprotocol/clientCapabilities",
                sender.capabilities,
            )?;
            if let Some(client) = sender.client {
                map.serialize_entry("io.modelcontextprotocol/clientInfo", client)?;
            }
            if let Some(level) = sender.log_level {
                map.serialize_entry("io.modelcontextprotocol/logLevel", level)?;
            }
        }
        if let Some(token) = self.0.progress_token {
            map.serialize_entry("progressToken", &token)?;
        }
        for (key, value) in self.0.params.meta.entries() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Entries<'a>(&'a [(Box<str>, Value)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
