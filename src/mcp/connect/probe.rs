//! The probe: what a server says to `server/discover`, and what that says of its era.

use serde_json::value::RawValue;

use super::{Connecting, Line, Probed, outcome};
use crate::json::member;
use crate::mcp::error::{Reason, UNSUPPORTED_VERSION, is_modern, supported, versions};
use crate::mcp::params::{Body, Inputs, Params};
use crate::mcp::revision::Revision;
use crate::mcp::server::Server;
use crate::{Call, CallOptions, Error};

impl Connecting<'_> {
    /// Asks with `server/discover`, in one version after the other while the server refuses them.
    pub(super) fn probe(&mut self, line: &mut Line) -> Probed {
        let Some(version) = self.options.modern.first().cloned() else {
            return Probed::Legacy(None);
        };
        let probed = self.probe_in(line, version);
        self.settle(line, probed)
    }

    fn probe_in(&mut self, line: &mut Line, version: String) -> Probed {
        match self.discover(line, version) {
            Ok(call) => self.wait(line, call),
            Err(error) => Probed::Failed(Reason::Call(error)),
        }
    }

    /// Asks again in another version for as long as the server refuses one and names others.
    pub(super) fn settle(&mut self, line: &mut Line, mut probed: Probed) -> Probed {
        loop {
            let Probed::Failed(Reason::Call(error)) = &probed else {
                return probed;
            };
            let theirs = error
                .rpc()
                .filter(|rpc| rpc.code == UNSUPPORTED_VERSION)
                .and_then(supported);
            let Some(theirs) = theirs else {
                return probed;
            };
            let other = self
                .options
                .modern
                .iter()
                .find(|ours| theirs.contains(ours) && !line.tried.contains(ours));
            let other = other.cloned();
            self.theirs = theirs;
            self.proved = true;
            probed = match other {
                Some(other) => self.probe_in(line, other),
                None if self.names_legacy() => return Probed::Legacy(None),
                None => return Probed::Failed(Reason::NoCommonVersion),
            };
        }
    }

    /// Whether a modern server that names only legacy versions may be greeted in one of them.
    fn names_legacy(&self) -> bool {
        let known = |theirs: &String| {
            self.options
                .legacy
                .iter()
                .any(|ours| ours.as_str() == theirs)
        };
        self.options.legacy_by_name && self.may_greet() && self.theirs.iter().any(known)
    }

    fn discover(&self, line: &mut Line, version: String) -> crate::Result<Call> {
        // Its limit is whoever waits; a late answer is of use, and no legacy server, not yet
        // greeted, is told that it is not.
        let options = CallOptions::new().timeout(self.left()).quiet();
        let (params, inputs) = (Params::of("server/discover"), Inputs::default());
        let call = line
            .connection
            .start_with(params.method, &options, |_| Body {
                params: &params,
                inputs: &inputs,
                sender: Some(line.core.sender(&version, None)),
                progress_token: None,
            });
        line.tried.push(version);
        call
    }

    /// Waits for a probe's answer, for the limit of probes, and leaves as much time for a greeting.
    pub(super) fn wait(&mut self, line: &mut Line, mut call: Call) -> Probed {
        let limit = self.options.probe.min(self.left() / 2);
        match call.wait_timeout::<Box<RawValue>>(limit) {
            Ok(None) => {
                // The first limit that it missed is the one to tell.
                line.probe
                    .get_or_insert_with(|| format!("no answer within {limit:.1?}"));
                Probed::Silent(call)
            }
            Ok(Some(result)) => self.discovered(line, result),
            Err(error) => refused(line, self.whole(error)),
        }
    }

    /// Waits for a probe's answer to the end of all time there is.
    pub(super) fn finish(&mut self, line: &mut Line, call: Call) -> Probed {
        match call.wait::<Box<RawValue>>() {
            Ok(result) => self.discovered(line, result),
            Err(error) => refused(line, self.whole(error)),
        }
    }

    pub(super) fn discovered(&mut self, line: &mut Line, result: Box<RawValue>) -> Probed {
        let supported = member(&result, &["supportedVersions"]).and_then(versions);
        let declares =
            member(&result, &["capabilities"]).is_some_and(|raw| raw.get().starts_with('{'));
        let Some(supported) = supported.filter(|_| declares) else {
            line.probe = Some("an answer without versions and capabilities".into());
            return Probed::Legacy(None);
        };
        let ours = self
            .options
            .modern
            .iter()
            .find(|ours| supported.contains(ours));
        let Some(ours) = ours.cloned() else {
            self.theirs = supported;
            line.probe = Some(format!("it speaks {}", self.theirs.join(", ")));
            return match self.names_legacy() {
                true => Probed::Legacy(None),
                false => Probed::Failed(Reason::NoCommonVersion),
            };
        };
        self.proved = true;
        line.probe = Some(format!("it speaks {ours}"));
        let revision = Revision::from_name(&ours).unwrap_or(Revision::MODERN);
        Probed::Modern(Server::new(revision, &ours, result))
    }
}

/// What the failure of a probe says of the server's era.
pub(super) fn refused(line: &mut Line, error: Error) -> Probed {
    // A probe that was given up waiting for has its word already.
    if line.probe.is_none() || !error.is_timeout() {
        line.probe = Some(outcome(&error));
    }
    match &error {
        Error::Rpc { error: rpc, .. } if !is_modern(rpc) => Probed::Legacy(Some(error)),
        // An answer that cannot be used is none of a modern server's.
        Error::Answer { .. } => Probed::Legacy(Some(error)),
        _ => Probed::Failed(Reason::Call(error)),
    }
}
