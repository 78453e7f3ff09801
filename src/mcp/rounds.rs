//! Rounds of the modern era: what a result asks for, and the answers that the next sending carries.
//!
//! A result that asks ends its request (revision 2026-07-28). The answers go with the same call
//! sent once more, under the same keys; its state goes back byte for byte. A refusal has no form
//! there but an elicitation's own, so that anything else refused abandons the call. The invariant:
//! nobody is asked anything by a result that cannot be answered as a whole.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::RpcError;
use crate::json::{entries, member, text};
use crate::mcp::error::{Error, Result};
use crate::mcp::fault::{Fault, Refusal};
use crate::mcp::handlers::{Context, Question};
use crate::mcp::params::Inputs;
use crate::mcp::revision::Revision;
use crate::mcp::view::present;

/// Answers all that a result asks for. `go_on` is asked before each question, and fails once the
/// call is over.
pub(crate) fn gather(
    cx: &Context,
    method: &str,
    result: &RawValue,
    go_on: impl Fn() -> Result<()>,
) -> Result<Inputs> {
    let requests = present(result, "inputRequests");
    let state = present(result, "requestState");
    let may_ask = ["tools/call", "prompts/get", "resources/read"].contains(&method);
    // A state is a string; anything else is none that could be given back.
    let is_sound = state.is_none_or(|state| state.get().starts_with('"'));
    if !may_ask || !is_sound || (requests.is_none() && state.is_none()) {
        return Err(Error::invalid(method, Fault::Input));
    }
    let mut responses = None;
    if let Some(requests) = requests {
        let mut answers = Vec::new();
        for asked in understand(cx, method, requests)? {
            go_on()?;
            let answer = run(cx, asked.question);
            let answer = answer.map_err(|refusal| refused(method, &asked.what, refusal))?;
            answers.push((asked.key.into(), answer));
        }
        responses = Some(answers);
    }
    Ok(Inputs {
        responses,
        state: state.map(ToOwned::to_owned),
    })
}

/// One entry of what a result asks for.
struct Asked<'a> {
    key: Cow<'a, str>,
    what: Cow<'a, str>,
    question: Question<'a>,
}

/// Reads all that a result asks for, before anything of it is put to a handler.
fn understand<'a>(cx: &'a Context, method: &str, requests: &'a RawValue) -> Result<Vec<Asked<'a>>> {
    let invalid = || Error::invalid(method, Fault::Input);
    let requests = entries(requests).ok_or_else(invalid)?;
    if requests.len() > MOST_QUESTIONS {
        return Err(invalid());
    }
    let handlers = &cx.core.options.handlers;
    let mut all: Vec<Asked> = Vec::with_capacity(requests.len());
    for (key, request) in requests {
        let what = member(request, &["method"]).and_then(text);
        let what = what.ok_or_else(invalid)?;
        let params = member(request, &["params"]);
        let question = match handlers.question(Revision::MODERN, &what, params) {
            Ok(question) => question,
            Err(Refusal::Undeclared(_)) => {
                let fault = Fault::Undeclared(what.into());
                return Err(Error::invalid(method, fault));
            }
            Err(Refusal::Malformed(refusal)) => return Err(refused(method, &what, refusal)),
        };
        // Of duplicates the last one counts, as everywhere.
        all.retain(|asked| asked.key != key);
        all.push(Asked {
            key,
            what,
            question,
        });
    }
    Ok(all)
}

/// Runs a handler on the caller's own thread, where its panic is a failure like any other.
fn run(cx: &Context, question: Question) -> std::result::Result<Value, RpcError> {
    // What it leaves behind is the handler's own: nothing of this layer is shared with it.
    catch_unwind(AssertUnwindSafe(|| question.answer(cx, Revision::MODERN))).unwrap_or_else(
        |thrown| {
            // Its drop could panic in its turn; a few bytes are the lesser loss.
            std::mem::forget(thrown);
            let words = "the handler failed";
            Err(RpcError::new(RpcError::INTERNAL_ERROR, words))
        },
    )
}

fn refused(method: &str, what: &str, refusal: RpcError) -> Error {
    Error::Refused {
        method: method.into(),
        asked: what.into(),
        refusal,
    }
}

// Far more than anybody answers for one call.
const MOST_QUESTIONS: usize = 1000;
