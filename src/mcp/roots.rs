//! Roots: the directories that a server may work in.

use std::path::Path;

use serde_core::ser::{Serialize, SerializeMap, Serializer};

/// A directory or file that the server may work in, as a `file://` URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    uri: String,
    name: Option<String>,
}

/// Why something is no root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// It does not begin with `file://`, which is all that the protocol allows, or holds characters
    /// that no URI has (RFC 3986) and that are to be escaped.
    #[error("{uri:?} is no `file://` URI")]
    NoFileUri {
        /// The URI.
        uri: String,
    },
    /// The path does not begin at the root of the file system.
    #[error("{} is no absolute path", .path.display())]
    Relative {
        /// The path.
        path: std::path::PathBuf,
    },
}

impl Root {
    /// Makes a root of a URI.
    ///
    /// ```
    /// use landline::mcp::Root;
    /// let root = Root::new("file:///home/me")?.named("Home");
    /// assert_eq!((root.uri(), root.name()), ("file:///home/me", Some("Home")));
    /// assert!(Root::new("/home/me").is_err(), "it is a path");
    /// # Ok::<(), landline::mcp::RootError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// It is no `file://` URI; [`from_path`](Self::from_path) makes one of a path.
    pub fn new(uri: impl Into<String>) -> Result<Self, RootError> {
        let uri = uri.into();
        let is_file = uri
            .get(..7)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file://"));
        let is_uri = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if !is_file || !uri.bytes().all(is_uri) {
            return Err(RootError::NoFileUri { uri });
        }
        // The protocol writes the scheme in small letters.
        let uri = format!("file://{}", &uri[7..]);
        Ok(Root { uri, name: None })
    }

    /// Makes a root of an absolute path, whose bytes are escaped as a URI needs it (RFC 3986).
    ///
    /// ```
    /// use landline::mcp::Root;
    /// let root = Root::from_path("/home/me/my project")?;
    /// assert_eq!(root.uri(), "file:///home/me/my%20project");
    /// # Ok::<(), landline::mcp::RootError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The path is relative.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, RootError> {
        use std::fmt::Write;
        use std::os::unix::ffi::OsStrExt;
        let path = path.as_ref();
        if !path.is_absolute() {
            return Err(RootError::Relative { path: path.into() });
        }
        let mut uri = String::from("file://");
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(*byte))
                }
                // A String takes all that is written to it.
                other => drop(write!(uri, "%{other:02X}")),
            }
        }
        Ok(Root { uri, name: None })
    }

    /// Sets the name to show to people.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The name, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("uri", &self.uri)?;
        if let Some(name) = &self.name {
            map.serialize_entry("name", name)?;
        }
        map.end()
    }
}
