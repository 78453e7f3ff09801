//! Frames ⇄ requests, notifications and responses; ids; the peer's [`RpcError`].
//!
//! Takes the text of a frame and finds its envelope once (JSON-RPC 2.0); params and results stay
//! the raw text that the peer wrote, for whoever decodes them. Reading is lenient, and each
//! leniency is reported to the caller to be counted; writing always gives one strict, compact
//! message.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use serde_core::de::DeserializeOwned;
use serde_core::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::framing::{BreaksFraming, Encoded, FrameWriter, Framing};
use crate::json::{decode, decode_params, members};
use crate::quote::clean;

/// The id of a peer's request. Integer and string ids are told apart, also when shown: `92` and
/// `"92"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Id {
    /// An integer.
    Integer(i64),
    /// A string.
    String(String),
    /// A number beyond 64 bits, a fraction, or null: JSON text as the peer wrote it. No revision of
    /// MCP and no version of LSP allows it; it is echoed all the same.
    Other(String),
}

impl Id {
    /// Reads an id from its JSON text; what can be no id at all gives `None`.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        match text.bytes().next()? {
            b'"' => Some(
                serde_json::from_str(text).map_or_else(|_| Id::Other(text.to_owned()), Id::String),
            ),
            b'-' | b'0'..=b'9' | b'n' => Some(
                text.parse()
                    .map_or_else(|_| Id::Other(text.to_owned()), Id::Integer),
            ),
            _ => None,
        }
    }
}

impl Id {
    /// How many bytes its text takes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Id::Integer(_) => 0,
            Id::String(text) | Id::Other(text) => text.len(),
        }
    }
}

impl fmt::Display for Id {
    /// Writes the id as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Integer(number) => number.fmt(f),
            Id::String(text) => f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?),
            Id::Other(json) => f.write_str(json),
        }
    }
}

/// Serialises as the peer wrote it, through [`RawValue`] where it is no plain integer or string.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Integer(number) => serializer.serialize_i64(*number),
            Id::String(text) => serializer.serialize_str(text),
            Id::Other(json) => RawValue::from_string(json.clone())
                .map_err(serde_core::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

/// The error with which one side of a connection answers a request of the other (JSON-RPC 2.0,
/// section 5.1).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} (code {code})", clean(message))]
#[non_exhaustive]
pub struct RpcError {
    /// The code; 0 where the peer gave none that is an integer.
    pub code: i64,
    /// The message, as it came; `Display` shows it without control characters.
    pub message: String,
    /// What the peer sent beside it. `null` and absent are told apart.
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// The request's text could not be parsed.
    pub const PARSE_ERROR: i64 = -32700;
    /// The request is no valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are not what the method takes.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The method failed by itself.
    pub const INTERNAL_ERROR: i64 = -32603;

    /// Makes an error without data.
    ///
    /// ```
    /// use landline::RpcError;
    /// let error = RpcError::new(RpcError::INVALID_PARAMS, "`path` is missing");
    /// assert_eq!(error.to_string(), "`path` is missing (code -32602)");
    /// ```
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds data.
    ///
    /// # Errors
    ///
    /// The data does not serialise to JSON.
    pub fn with_data(mut self, data: impl Serialize) -> Result<Self, serde_json::Error> {
        self.data = Some(serde_json::value::to_raw_value(&data)?);
        Ok(self)
    }

    /// The answer to a method that nobody serves.
    pub fn method_not_found(method: &str) -> Self {
        RpcError::new(
            Self::METHOD_NOT_FOUND,
            format!("method not found: {method}"),
        )
    }

    /// Reads the `error` member, whatever it is: an error that is no object, or whose code is no
    /// integer, is still the peer's refusal and keeps its words.
    fn from_json(raw: &RawValue) -> Self {
        let Ok([code, message, data]) = members(raw.get(), ["code", "message", "data"]) else {
            return RpcError::new(0, plain_text(raw));
        };
        let code = code.map_or(0, |code| {
            let code = code.get().trim_matches('"');
            // A float is a sloppy encoder's integer; the cast saturates.
            code.parse()
                .unwrap_or_else(|_| code.parse().map_or(0, |code: f64| code as i64))
        });
        RpcError {
            code,
            message: message.map_or_else(String::new, plain_text),
            data: data.map(ToOwned::to_owned),
        }
    }
}

/// `code`, `message` and `data` in the order of the specification; `data` only where there is some.
impl Serialize for RpcError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde_core::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}

/// A notification of the peer: a method and its raw params.
#[derive(Debug, Clone)]
pub struct Notification {
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

impl Notification {
    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params as the peer wrote them; `None` where there are none.
    pub fn params(&self) -> Option<&RawValue> {
        self.params.as_deref()
    }

    /// Decodes the params; absent ones decode as `null`.
    ///
    /// # Errors
    ///
    /// The params are not of the type asked for.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // Nothing is at hand here to count a repair with, and none loses a word.
        decode_params(self.params()).map(|decoded| decoded.value)
    }

    /// What it takes in a queue that is bounded in bytes, its own bookkeeping included.
    pub(crate) fn cost(&self) -> usize {
        self.method.len() + self.params().map_or(0, |raw| raw.get().len()) + size_of::<Self>()
    }
}

/// One message of the peer's.
#[derive(Debug)]
pub(crate) enum Message {
    Request {
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notification(Notification),
    Response {
        id: Option<AnswerId>,
        outcome: Outcome,
    },
}

/// What a response says.
#[derive(Debug)]
pub(crate) enum Outcome {
    Result(Box<RawValue>),
    Error(RpcError),
    /// Neither a result nor an error: it names its call and answers nothing.
    Neither,
}

/// Which call of ours a response names; we only ever send integer ids from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerId {
    pub(crate) call: u64,
    /// The id came back in another JSON form: `"7"` or `7.0` for `7`.
    pub(crate) reformed: bool,
}

impl AnswerId {
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        if let Ok(call) = text.parse() {
            return Some(AnswerId {
                call,
                reformed: false,
            });
        }
        let digits = text.trim_matches('"');
        let call = digits.parse().ok().or_else(|| {
            let number: f64 = digits.parse().ok()?;
            // Exact in a double, so that no other id can be meant.
            (number.fract() == 0.0 && (1.0..9.0e15).contains(&number)).then_some(number as u64)
        })?;
        Some(AnswerId {
            call,
            reformed: true,
        })
    }
}

/// A message, and what had to be overlooked to read it.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) message: Message,
    /// How many departures from JSON-RPC 2.0 were overlooked.
    pub(crate) deviations: u64,
}

/// Makes text of a frame; `true` says that bytes which are no UTF-8 were replaced by U+FFFD.
pub(crate) fn text(frame: &[u8]) -> (Cow<'_, str>, bool) {
    // Nearly every frame is UTF-8, which this finds out many bytes at a time; the other goes one by
    // one.
    match std::str::from_utf8(frame) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(frame), true),
    }
}

/// Reads one message; `None` means that the text is none, whatever else it may be.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    let [jsonrpc, id, method, params, result, error] = members(text, names).ok()?;
    let mut deviations = u64::from(jsonrpc.is_none_or(|raw| raw.get() != "\"2.0\""));
    if let Some(raw) = params {
        let structured = raw.get().starts_with(['{', '[']) || raw.get() == "null";
        deviations += u64::from(!structured);
    }
    let params = || {
        params
            .filter(|raw| raw.get() != "null")
            .map(ToOwned::to_owned)
    };
    let message = match (method.filter(|raw| raw.get() != "null"), id) {
        (Some(method), Some(id)) => {
            let id = Id::from_json(id.get())?;
            deviations += u64::from(matches!(id, Id::Other(_)));
            let method = decode(method).ok()?;
            Message::Request {
                id,
                method,
                params: params(),
            }
        }
        (Some(method), None) => Message::Notification(Notification {
            method: decode(method).ok()?,
            params: params(),
        }),
        (None, id) => {
            let looks_like_one = jsonrpc.is_some() || result.is_some() || error.is_some();
            let error = error.filter(|raw| raw.get() != "null");
            // An error that names no call has to say what it is: log lines have errors too.
            let is_lone_error = jsonrpc.is_some() && error.is_some();
            if !looks_like_one || (id.is_none() && !is_lone_error) {
                return None;
            }
            let outcome = match (error, result) {
                (Some(error), result) => {
                    // An error beside a result is an error: no success may be made of a refusal.
                    deviations += u64::from(result.is_some_and(|raw| raw.get() != "null"));
                    Outcome::Error(RpcError::from_json(error))
                }
                (None, Some(result)) => Outcome::Result(result.to_owned()),
                (None, None) => Outcome::Neither,
            };
            let id = id.and_then(|raw| AnswerId::from_json(raw.get()));
            deviations += u64::from(id.is_some_and(|id| id.reformed));
            Message::Response { id, outcome }
        }
    };
    Some(Parsed {
        message,
        deviations,
    })
}

/// Why params or a result could not be made into a frame. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// They do not serialise to JSON.
    #[error("they do not serialise to JSON: {0}")]
    Serialize(serde_json::Error),
    /// They serialise to a string, a number or a boolean; JSON-RPC 2.0 allows objects and arrays.
    #[error("params must be an object, an array, or nothing")]
    Scalar,
    /// The frame would be larger than the frame limit.
    #[error("the frame is over the limit of {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Pre-serialised JSON holds control characters that would break the framing.
    #[error("they hold raw control characters")]
    BreaksFraming,
}

/// Makes messages into frames: always one compact, valid frame each, within the frame limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoder {
    pub(crate) framing: Framing,
    pub(crate) limit: usize,
}

impl Encoder {
    /// Encodes a request or, without an id, a notification. Params that serialise to null are left
    /// out.
    pub(crate) fn call(
        self,
        id: Option<u64>,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Encoded, EncodeError> {
        self.frame(|frame| {
            match id {
                Some(id) => write!(frame, r#"{{"jsonrpc":"2.0","id":{id},"method":"#),
                None => frame.write_all(br#"{"jsonrpc":"2.0","method":"#),
            }
            .map_err(serde_json::Error::io)?;
            serde_json::to_writer(&mut *frame, method)?;
            let head = frame.body().len();
            frame.write_all(PARAMS).map_err(serde_json::Error::io)?;
            serde_json::to_writer(&mut *frame, params)?;
            match frame.body()[head + PARAMS.len()..].trim_ascii_start() {
                [b'{' | b'[', ..] => {}
                b"null" => frame.truncate_body(head),
                _ => return Ok(Err(EncodeError::Scalar)),
            }
            frame.write_all(b"}").map_err(serde_json::Error::io)?;
            Ok(Ok(()))
        })
    }

    /// Encodes the messages of one side as they stand: a reply, or an array of replies.
    pub(crate) fn raw(self, json: &[u8]) -> Result<Encoded, EncodeError> {
        self.frame(|frame| frame.write_all(json).map(Ok).map_err(serde_json::Error::io))
    }

    fn frame(
        self,
        fill: impl FnOnce(&mut FrameWriter) -> Result<Result<(), EncodeError>, serde_json::Error>,
    ) -> Result<Encoded, EncodeError> {
        // The room is for params that turn out to be null and are taken back.
        let room = self.limit.saturating_add(PARAMS.len() + b"null".len());
        let mut frame = FrameWriter::new(self.framing, room);
        match fill(&mut frame) {
            Ok(done) => done?,
            Err(_) if frame.over_limit() => {
                return Err(EncodeError::TooLarge { limit: self.limit });
            }
            Err(error) => return Err(EncodeError::Serialize(error)),
        }
        if frame.len() > self.limit {
            return Err(EncodeError::TooLarge { limit: self.limit });
        }
        frame
            .finish()
            .map_err(|BreaksFraming| EncodeError::BreaksFraming)
    }
}

/// Encodes the reply to a request of the peer, its id as it came.
pub(crate) fn reply(
    id: &Id,
    outcome: Result<&impl Serialize, &RpcError>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(128);
    write!(out, r#"{{"jsonrpc":"2.0","id":{id},"#).map_err(serde_json::Error::io)?;
    match outcome {
        Ok(result) => {
            out.extend_from_slice(br#""result":"#);
            serde_json::to_writer(&mut out, result)?;
        }
        Err(error) => {
            out.extend_from_slice(br#""error":"#);
            serde_json::to_writer(&mut out, error)?;
        }
    }
    out.push(b'}');
    Ok(out)
}

/// A JSON string's text, or the JSON text of anything else.
fn plain_text(raw: &RawValue) -> String {
    decode(raw).unwrap_or_else(|_| raw.get().to_owned())
}

const PARAMS: &[u8] = br#","params":"#;

#[cfg(test)]
mod tests;
