//! Rounds of the modern era: what a result asks for, and the answers that the next sending carries.
//!
//! A result that asks ends its request (revision 2026-07-28). The answers go with the same call
//! sent once more, under the same keys; its state goes back byte for byte. A refusal has no form
//! there but an elicitation's own, so that anything else refused abandons the call.

use serde_json::value::RawValue;

use crate::json::{entries, member, text};
use crate::mcp::error::{Error, Fault, Result};
use crate::mcp::handlers::{Context, Refusal};
use crate::mcp::params::Inputs;
use crate::mcp::revision::Revision;
use crate::mcp::session::Session;

/// Answers all that a result asks for.
pub(crate) fn gather(session: &Session, method: &str, result: &RawValue) -> Result<Inputs> {
    let requests = member(result, &["inputRequests"]);
    let state = member(result, &["requestState"]);
    let may_ask = ["tools/call", "prompts/get", "resources/read"].contains(&method);
    // A state is a string; anything else is none that could be given back.
    let is_sound = state.is_none_or(|state| state.get().starts_with('"'));
    if !may_ask || !is_sound || (requests.is_none() && state.is_none()) {
        return Err(Error::invalid(method, Fault::Input));
    }
    let responses = match requests {
        Some(requests) => Some(answers(session, method, requests)?),
        None => None,
    };
    Ok(Inputs {
        responses,
        state: state.map(ToOwned::to_owned),
    })
}

fn answers(
    session: &Session,
    method: &str,
    requests: &RawValue,
) -> Result<Vec<(Box<str>, Box<RawValue>)>> {
    let requests = entries(requests).ok_or_else(|| Error::invalid(method, Fault::Input))?;
    let mut answers = Vec::with_capacity(requests.len());
    for (key, request) in requests {
        let asked = member(request, &["method"]).and_then(text);
        let asked = asked.ok_or_else(|| Error::invalid(method, Fault::Input))?;
        let cx = Context::new(session, None);
        let params = member(request, &["params"]);
        let handlers = &session.core.options.handlers;
        match handlers.answer(&cx, Revision::V2026_07_28, &asked, params) {
            Ok(answer) => answers.push((key.into(), answer)),
            Err(Refusal::Undeclared(_)) => {
                let asked = asked.into_owned().into();
                return Err(Error::invalid(method, Fault::Undeclared(asked)));
            }
            Err(Refusal::Refused(refusal)) => {
                return Err(Error::Refused {
                    method: method.into(),
                    asked: asked.into_owned().into(),
                    refusal,
                });
            }
        }
    }
    Ok(answers)
}
