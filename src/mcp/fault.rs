//! What can be wrong with what a server says: with a result, and with a question.

use crate::RpcError;
use crate::quote::clean;

/// What is wrong with a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A member that every such result has is missing or of another type.
    #[error("`{0}` is missing or of another type")]
    Missing(&'static str),
    /// Its `resultType` is none that this request can have (revision 2026-07-28).
    #[error("it is of the type {0:?}")]
    ResultType(Box<str>),
    /// It asks for input without saying what, or where the protocol does not allow it.
    #[error("it asks for input that this request cannot give")]
    Input,
    /// It asks for something that this client did not declare.
    #[error(
        "it asks for `{}`, which this client does not declare, or not in this mode",
        clean(_0)
    )]
    Undeclared(Box<str>),
}

/// Why a question of the server's is not put to a handler.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is installed for it, so that the server should not have asked: the refusal.
    Undeclared(RpcError),
    /// It is not what the protocol says: the refusal.
    Malformed(RpcError),
}

impl Refusal {
    pub(crate) fn into_error(self) -> RpcError {
        match self {
            Refusal::Undeclared(error) | Refusal::Malformed(error) => error,
        }
    }
}

/// A question whose params are not what the protocol says.
pub(crate) fn malformed(words: impl Into<String>) -> Refusal {
    Refusal::Malformed(RpcError::new(RpcError::INVALID_PARAMS, words))
}
