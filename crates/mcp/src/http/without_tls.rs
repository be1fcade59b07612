//! Takes the place of TLS in a build without the feature `tls`.
//!
//! Its type has no values, so a server has no certificate there, and the compiler knows that none of this runs. What
//! accepts connections is the same in every build.

use std::io;

use tokio::net::TcpStream;

/// The certificate of a server, which needs the feature `tls`. There is no value of this type.
#[derive(Debug, Clone)]
pub enum DisabledTls {}

impl DisabledTls {
    pub(crate) async fn accept(&self, _: TcpStream) -> io::Result<TcpStream> {
        match *self {}
    }

    pub(crate) async fn reload_loop(&self) {
        match *self {}
    }
}
