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
use crate::mcp::error::{Error, Result};
use crate::mcp::meta::Meta;

/// The params of a request of one method.
#[derive(Debug, Clone)]
pub(crate) struct Params<'m> {
    pub(crate) method: &'m str,
    members: Vec<(Cow<'static, str>, Box<RawValue>)>,
    pub(crate) meta: Meta,
}

impl<'m> Params<'m> {
    pub(crate) fn of(method: &'m str) -> Self {
        Params {
            method,
            members: Vec::new(),
            meta: Meta::new(),
        }
    }

    /// Adds a member.
    pub(crate) fn with(
        mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<Self> {
        let value = self.raw(value)?;
        self.members.push((name.into(), value));
        Ok(self)
    }

    /// Adds the caller's arguments: an object, or nothing.
    pub(crate) fn with_arguments(mut self, arguments: &impl Serialize) -> Result<Self> {
        let value = self.raw(arguments)?;
        match value.get().as_bytes() {
            b"null" => {}
            [b'{', ..] => self.members.push(("arguments".into(), value)),
            _ => return Err(self.refused("its arguments must be an object")),
        }
        Ok(self)
    }

    /// Adds arguments whose values are strings, as those of prompts are.
    pub(crate) fn with_texts(self, arguments: &impl Serialize) -> Result<Self> {
        let params = self.with_arguments(arguments)?;
        let texts = params.members.last().and_then(|(_, value)| entries(value));
        let is_text = |value: &&RawValue| value.get().starts_with('"');
        if texts.is_some_and(|texts| !texts.iter().all(|(_, value)| is_text(value))) {
            return Err(params.refused("its arguments must be strings"));
        }
        Ok(params)
    }

    /// Takes params of the caller's own making: an object, or nothing.
    pub(crate) fn with_all(mut self, params: &impl Serialize) -> Result<Self> {
        let raw = self.raw(params)?;
        if raw.get() == "null" {
            return Ok(self);
        }
        let Some(members) = entries(&raw) else {
            return Err(Error::encode(self.method, EncodeError::Scalar));
        };
        for (name, value) in members {
            match &*name {
                "_meta" => self.meta.take_in(value)?,
                // A round would write them a second time.
                "requestState" | "inputResponses" => {
                    return Err(
                        self.refused("`requestState` and `inputResponses` are the client's own")
                    );
                }
                _ => self
                    .members
                    .push((Cow::Owned(name.into_owned()), value.to_owned())),
            }
        }
        Ok(self)
    }

    /// The arguments that were added, if there are any.
    pub(crate) fn arguments(&self) -> Option<&RawValue> {
        let (_, value) = self.members.iter().find(|(name, _)| name == "arguments")?;
        Some(value)
    }

    fn raw(&self, value: &(impl Serialize + ?Sized)) -> Result<Box<RawValue>> {
        to_raw_value(value)
            .map_err(|error| Error::encode(self.method, EncodeError::Serialize(error)))
    }

    fn refused(&self, reason: &'static str) -> Error {
        Error::Params {
            method: self.method.into(),
            reason,
        }
    }
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
    pub(crate) params: &'a Params<'a>,
    pub(crate) inputs: &'a Inputs,
    /// `None` in the legacy era.
    pub(crate) sender: Option<Sender<'a>>,
    pub(crate) progress_token: Option<u64>,
}

/// An object, or null where there is nothing to say, which leaves the params out.
impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
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
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
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
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
