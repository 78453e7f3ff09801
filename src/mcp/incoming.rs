//! The connection's handler: what a server sends unasked, sorted to the closures installed for it.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{decode, member, text};
use crate::mcp::fault::Refusal;
use crate::mcp::handlers::{Context, Handlers, ListKind};
use crate::mcp::log::LogMessage;
use crate::mcp::revision::Revision;
use crate::mcp::session::{Core, Session};
use crate::{Closed, Handler, Notification, Peer, Request, RpcError};

/// Answers for one connection.
pub(crate) struct Answers(pub(crate) Arc<Core>);

impl Answers {
    fn handlers(&self) -> &Handlers {
        &self.0.options.handlers
    }

    fn session(&self, peer: &Peer) -> Session {
        Session::new(peer.clone(), self.0.clone())
    }

    /// Hands a notification to the closure that is installed for its method; `None`: there is none.
    fn hand_over(&self, cx: &Context, notification: &Notification) -> Option<()> {
        let handlers = self.handlers();
        let params = notification.params().unwrap_or(RawValue::NULL);
        let list_changed = |kind| {
            let changed = handlers.on_list_changed.as_ref()?;
            changed(cx, kind);
            Some(())
        };
        match notification.method() {
            "notifications/message" => {
                let on_log = handlers.on_log.as_ref()?;
                on_log(cx, &LogMessage::new(params));
            }
            "notifications/tools/list_changed" => return list_changed(ListKind::Tools),
            "notifications/resources/list_changed" => return list_changed(ListKind::Resources),
            "notifications/prompts/list_changed" => return list_changed(ListKind::Prompts),
            "notifications/resources/updated" => {
                let updated = handlers.on_updated.as_ref()?;
                updated(cx, &text(member(params, &["uri"])?)?);
            }
            "notifications/elicitation/complete" => {
                let complete = handlers.on_elicitation_complete.as_ref()?;
                let id = text(member(params, &["elicitationId"])?)?;
                // A stranger's, or one that is complete already, is to be ignored.
                if !self.0.complete_page(&id) {
                    return None;
                }
                complete(cx, &id);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Handler for Answers {
    fn request(&self, peer: &Peer, request: Request) -> Result<Value, RpcError> {
        // What stands right behind the answer to the greeting is in time. Before it a server may do
        // no more than ping (revision 2025-11-25, lifecycle): nobody is asked for one that is not
        // known yet, or connecting could take for ever. Roots harm nobody.
        if request.method() != "roots/list" && !self.0.is_ready() {
            let words = "the handshake is not over";
            return Err(RpcError::new(RpcError::INVALID_REQUEST, words));
        }
        let session = self.session(peer);
        let cx = Context::new(&session, Some(&request));
        let params = request.params();
        let question = self
            .handlers()
            .question(self.0.revision(), request.method(), params);
        let mut result = question
            .map_err(Refusal::into_error)?
            .answer(&cx, self.0.revision())?;
        // Revision 2025-11-25: the answer belongs to the task that its question belongs to.
        let task = params.and_then(|params| member(params, &["_meta", RELATED_TASK]));
        if let Some(task) = task.filter(|_| self.0.revision() == Revision::V2025_11_25) {
            if let Ok(task) = decode::<Value>(task) {
                result["_meta"] = json!({ RELATED_TASK: task });
            }
        }
        Ok(result)
    }

    fn notification(&self, peer: &Peer, notification: Notification) {
        let session = self.session(peer);
        let cx = Context::new(&session, None);
        if self.hand_over(&cx, &notification).is_none() {
            match &self.handlers().on_other {
                Some(on_other) => on_other(&cx, &notification),
                None => peer.note_unhandled(),
            }
        }
    }

    fn lagged(&self, peer: &Peer, lost: u64) {
        if let Some(on_lost) = &self.handlers().on_lost {
            on_lost(&Context::new(&self.session(peer), None), lost);
        }
    }

    fn closed(&self, why: &Closed) {
        self.0.over.tell();
        if let Some(on_closed) = &self.handlers().on_closed {
            on_closed(why);
        }
    }
}

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
