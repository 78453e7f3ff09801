//! The connection's handler: what a server sends unasked, sorted to the closures installed for it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{decode, member, text};
use crate::mcp::handlers::{Context, Handlers, ListKind, Refusal};
use crate::mcp::log::LogMessage;
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
}

impl Handler for Answers {
    fn request(&self, peer: &Peer, request: Request) -> Result<Value, RpcError> {
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
        if let Some(task) = params.and_then(|params| member(params, &["_meta", RELATED_TASK])) {
            if let Ok(task) = decode::<Value>(task) {
                result["_meta"] = json!({ RELATED_TASK: task });
            }
        }
        Ok(result)
    }

    fn notification(&self, peer: &Peer, notification: Notification) {
        let session = self.session(peer);
        let cx = Context::new(&session, None);
        let handlers = self.handlers();
        let part =
            |name: &str| -> Option<Cow<'_, str>> { text(member(notification.params()?, &[name])?) };
        match (notification.method(), handlers) {
            (
                "notifications/message",
                Handlers {
                    on_log: Some(on_log),
                    ..
                },
            ) => {
                on_log(
                    &cx,
                    &LogMessage::new(notification.params().unwrap_or(RawValue::NULL)),
                );
            }
            (
                "notifications/tools/list_changed",
                Handlers {
                    on_list_changed: Some(changed),
                    ..
                },
            ) => {
                changed(&cx, ListKind::Tools);
            }
            (
                "notifications/resources/list_changed",
                Handlers {
                    on_list_changed: Some(changed),
                    ..
                },
            ) => {
                changed(&cx, ListKind::Resources);
            }
            (
                "notifications/prompts/list_changed",
                Handlers {
                    on_list_changed: Some(changed),
                    ..
                },
            ) => {
                changed(&cx, ListKind::Prompts);
            }
            (
                "notifications/resources/updated",
                Handlers {
                    on_updated: Some(updated),
                    ..
                },
            ) => {
                if let Some(uri) = part("uri") {
                    updated(&cx, &uri);
                }
            }
            (
                "notifications/elicitation/complete",
                Handlers {
                    on_elicitation_complete: Some(complete),
                    ..
                },
            ) => {
                // A stranger's, or one that is complete already, is to be ignored.
                if let Some(id) = part("elicitationId").filter(|id| self.0.complete_page(id)) {
                    complete(&cx, &id);
                }
            }
            (
                _,
                Handlers {
                    on_other: Some(other),
                    ..
                },
            ) => other(&cx, &notification),
            _ => {}
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
