//! The reader thread: from the peer to whom each message concerns.
//!
//! Takes frames, finds out whose each is and moves it there: an answer to its call, a notification
//! to the call that it belongs to or to the handler, a request to the handler. It runs no user
//! code, but for the stream itself, and waits for nobody.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use crate::dialect::{Arrays, Dialect};
use crate::dispatch::Dispatcher;
use crate::error::AnswerFault;
use crate::framing::{Frame, FrameReader};
use crate::json::{elements_of, member};
use crate::link::Link;
use crate::message::{
    AnswerId, Id, Message, Notification, Outcome, Parsed, RpcError, parse, reply, text,
};
use crate::pending::{CallEnd, Heard};
use crate::request::{Batch, Request};
use crate::scan::{Scanner, Sighting};
use crate::sync::using;

/// What the reader thread owns.
pub(crate) struct Reader {
    pub(crate) link: Arc<Link>,
    pub(crate) dispatcher: Arc<Dispatcher>,
}

/// Counts the reads of a stream, so that a caller who looks can tell whether anything still comes.
struct Counted {
    inner: Box<dyn Read + Send>,
    link: Arc<Link>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.link.note_read();
        let read = using(|| match self.inner.read(buf)? {
            read if read <= buf.len() => Ok(read),
            _ => Err(io::Error::other("the stream gave more than was asked for")),
        });
        self.link.note_read();
        read
    }
}

impl Reader {
    pub(crate) fn run(&self, mut frames: FrameReader, inner: Box<dyn Read + Send>) {
        let mut input = BufReader::with_capacity(
            BUFFER,
            Counted {
                inner,
                link: self.link.clone(),
            },
        );
        let error = loop {
            match frames.next(&mut input) {
                Ok(Some(frame)) if !self.link.has_ended() => self.frame(frame),
                Ok(Some(_)) | Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        self.link.output_ended(error);
        // A peer that still writes must not be stopped by a full pipe on its way to its end.
        let _ = io::copy(&mut input, &mut io::sink());
        self.link.note_read();
        if let Some(child) = &self.link.child {
            child.wait();
        }
    }

    fn frame(&self, frame: Frame<'_>) {
        let counters = &self.link.counters;
        match frame {
            Frame::Body { text, marked } => {
                counters.deviations.add(u64::from(marked));
                self.body(text);
            }
            Frame::Stray(line) => counters.stray(line),
            Frame::Oversized {
                len,
                head,
                sightings,
            } => {
                counters.oversized_frames.bump();
                let limit = self.link.encoder.limit;
                if !self.fail_named(&sightings, || AnswerFault::TooLarge { len, limit }) {
                    counters.quote(head);
                }
                sightings
                    .iter()
                    .for_each(|sighting| self.refuse_oversized(sighting));
            }
            Frame::Cut { head, sightings } => {
                if !self.fail_named(&sightings, || AnswerFault::Malformed) {
                    counters.stray(head);
                }
            }
        }
    }

    fn body(&self, bytes: &[u8]) {
        let counters = &self.link.counters;
        let (text, repaired) = text(bytes);
        if let Some(parsed) = parse(&text) {
            counters.repaired_text.add(u64::from(repaired));
            return self.message(parsed, &text, None);
        }
        let dialect = self.link.dialect();
        if let Some(elements) = elements_of(&text, MAX_ELEMENTS)
            .filter(|found| !found.is_empty() && dialect.arrays != Arrays::Refuse)
        {
            counters.repaired_text.add(u64::from(repaired));
            let batch = (dialect.arrays == Arrays::Batch).then(|| Batch::new(&self.link));
            counters.deviations.add(u64::from(batch.is_none()));
            for element in elements {
                // One array may hold very much, and nothing counts after the end.
                if self.link.has_ended() {
                    return;
                }
                match parse(element.get()) {
                    Some(parsed) => self.message(parsed, element.get(), batch.as_ref()),
                    None => self.unreadable(element.get().as_bytes()),
                }
            }
            for replies in batch.iter().flat_map(|batch| batch.read()) {
                self.link.reply(&replies);
            }
            return;
        }
        // A log line without its line end may stand before an answer. A request or a notification
        // there is no message: a peer that logs what it reads shows our own.
        let glued = text.find(GLUED).filter(|at| *at > 0);
        let glued = glued.and_then(|at| Some((at, parse(&text[at..])?)));
        if let Some((at, parsed)) = glued.filter(|(_, parsed)| self.is_awaited(&parsed.message)) {
            counters.repaired_text.add(u64::from(repaired));
            self.unreadable(&text.as_bytes()[..at]);
            counters.deviations.bump();
            return self.message(parsed, &text[at..], None);
        }
        self.unreadable(bytes);
    }

    /// Whether a message is the answer to a pending call.
    fn is_awaited(&self, message: &Message) -> bool {
        match message {
            Message::Response { id: Some(id), .. } => self.link.pending(id.call).is_some(),
            _ => false,
        }
    }

    /// Text that is no message: it may still name the call that it should have answered.
    fn unreadable(&self, bytes: &[u8]) {
        let mut scanner = Scanner::new();
        scanner.feed(bytes);
        // Of an array, more is lost than the calls that it names.
        if !self.fail_named(&scanner.finish(), || AnswerFault::Malformed) || bytes.starts_with(b"[")
        {
            self.link.counters.stray(bytes);
        }
    }

    fn message(&self, parsed: Parsed, text: &str, batch: Option<&Arc<Batch>>) {
        let link = &self.link;
        link.note_message();
        link.counters.deviations.add(parsed.deviations);
        match parsed.message {
            Message::Response { id, outcome } => {
                let inbox = match (id, &outcome) {
                    (Some(id), _) => link.take_answered(id.call),
                    (None, Outcome::Error(_)) if link.dialect().lone_errors => link.take_lone(),
                    (None, _) => None,
                };
                if let Some(inbox) = inbox {
                    inbox.end(match outcome {
                        Outcome::Result(raw) => CallEnd::Result(raw),
                        Outcome::Error(error) => CallEnd::Rpc(error),
                        Outcome::Neither => CallEnd::Unusable(AnswerFault::Empty),
                    });
                } else if id.is_none() {
                    link.counters.unknown_answers.bump();
                    link.counters.quote(text.as_bytes());
                }
            }
            Message::Notification(notification) => self.notification(notification, &link.dialect()),
            Message::Request { id, method, params } => {
                let dialect = link.dialect();
                if !dialect.answers_requests {
                    return link.counters.unanswered_requests.bump();
                }
                let on_cancel = dialect.on_cancel();
                let (request, responder) =
                    Request::new(link, id, method, params, batch.cloned(), on_cancel);
                match dialect.answer_to(request.method()) {
                    Some(result) => responder.answer_now(Ok(result.clone())),
                    None => self.dispatcher.request(request, responder),
                }
            }
        }
    }

    fn notification(&self, notification: Notification, dialect: &Dialect) {
        if let Some((cancel, _)) = &dialect.cancelled_requests {
            if notification.method == cancel.method {
                let id = notification
                    .params()
                    .and_then(|params| member(params, &[&cancel.member]));
                return match id.and_then(|id| Id::from_json(id.get())) {
                    Some(id) => self.dispatcher.withdrawn(&id),
                    None => self.link.counters.unknown_withdrawals.bump(),
                };
            }
        }
        for route in &dialect.routes {
            if route
                .method
                .as_ref()
                .is_some_and(|method| *method != notification.method)
            {
                continue;
            }
            let named = notification
                .params()
                .and_then(|params| member(params, &route.path));
            // Tokens are compared with their JSON type: a string is one of the peer's own making.
            let call = named.and_then(|id| id.get().parse().ok());
            if let Some(inbox) = call.and_then(|id| self.link.pending(id)) {
                let cost = notification.cost();
                let at = self.link.clocks.mark();
                let dropped = inbox.push(Heard { notification, at }, cost);
                return self.link.counters.dropped_notifications.add(dropped);
            }
        }
        self.dispatcher.notification(notification);
    }

    /// Fails the pending calls that a frame which cannot be read names: it has the id of one, no
    /// method, and looks like an answer. `false`: it names none.
    fn fail_named(&self, sightings: &[Sighting], fault: impl Fn() -> AnswerFault) -> bool {
        let mut named = false;
        for sighting in sightings {
            if sighting.method || !(sighting.jsonrpc || sighting.result || sighting.error) {
                continue;
            }
            let id = sighting.id.as_deref().and_then(AnswerId::from_json);
            if let Some(inbox) = id.and_then(|id| self.link.retract(id.call)) {
                inbox.end(CallEnd::Unusable(fault()));
                named = true;
            }
        }
        named
    }

    /// Answers a request of the peer that was too large to be read: it must not wait for nothing.
    fn refuse_oversized(&self, sighting: &Sighting) {
        let id = sighting
            .id
            .as_deref()
            .filter(|_| sighting.method && sighting.jsonrpc);
        let Some(id) = id.and_then(Id::from_json) else {
            return;
        };
        if !self.link.dialect().answers_requests {
            return self.link.counters.unanswered_requests.bump();
        }
        self.link.counters.refused_requests.bump();
        let error = RpcError::new(
            RpcError::INVALID_REQUEST,
            "the request is over the frame limit",
        );
        if let Ok(json) = reply(&id, Err::<&(), _>(&error)) {
            self.link.reply(&json);
        }
    }
}

// A pipe's own capacity on Linux: one read empties it.
const BUFFER: usize = 64 << 10;

// Messages in one array: far more than calls in flight, and little enough to keep their places. A
// longer array is stray text, but for the calls that its first elements name.
const MAX_ELEMENTS: usize = 1 << 16;

// How a message begins that may stand behind other text on its line; every JSON encoder in the
// field writes the version first and without blanks.
const GLUED: &str = r#"{"jsonrpc""#;
