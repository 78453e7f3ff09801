//! [`Client`]: an MCP server to call, and the owner of its process.

use std::ops::Deref;

use crate::mcp::error::ConnectError;
use crate::mcp::options::Options;
use crate::mcp::server::Server;
use crate::mcp::session::Session;
use crate::{ChildSpec, Connection};

/// A client of one MCP server, and the owner of its process.
///
/// It is used through `&self` from any number of threads; its methods stand at [`Session`], to
/// which it dereferences, and are the same in both eras. Dropping it closes the connection like
/// [`Connection`].
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    session: Session,
    server: Server,
}

impl Client {
    pub(crate) fn new(connection: Connection, session: Session, server: Server) -> Self {
        Client {
            connection,
            session,
            server,
        }
    }

    /// Starts a server and connects to it with default options, under this crate's name; see
    /// [`Options::spawn`].
    ///
    /// ```
    /// use landline::ChildSpec;
    /// use landline::mcp::Client;
    ///
    /// # let script = r#"read probe; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}'
    /// #     read hello; echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25",
    /// #     "capabilities":{},"serverInfo":{"name":"sh"}}}' | tr -d "\n"; echo; cat >/dev/null"#;
    /// # let my_server = ["sh", "-c", script];
    /// let server = Client::spawn(&ChildSpec::from_argv(my_server)?)?;
    /// assert_eq!(server.server().version(), "2025-11-25");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Options::spawn`].
    pub fn spawn(spec: &ChildSpec) -> Result<Self, ConnectError> {
        Options::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).spawn(spec)
    }

    /// The connection below.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// assert_eq!(server.connection().pid(), None, "it is no child");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A handle to this client that does not keep it open.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let session = server.session();
    /// let tools = std::thread::spawn(move || session.tools()).join().unwrap()?;
    /// assert_eq!(tools.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn session(&self) -> Session {
        self.session.clone()
    }

    /// The server as it presented itself.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Era, Revision};
    /// # let server = demo::client()?;
    /// assert_eq!(server.server().era(), Era::Modern);
    /// assert_eq!(server.server().revision(), Revision::V2026_07_28);
    /// assert!(server.server().capabilities().has("tools"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Closes the connection and tells how it went; see [`Peer::close`](crate::Peer::close).
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// server.close();
    /// assert!(server.tools().unwrap_err().is_closed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> crate::Ended {
        self.session.core.over.tell();
        self.connection.close()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The handler is told too, but a slow one only after the notifications before.
        self.session.core.over.tell();
    }
}

impl Deref for Client {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
