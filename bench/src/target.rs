//! Turns a typed address into a `Target`, and refuses every address that is not this machine's loopback.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anyhow::{Context, bail};

/// A loopback endpoint: where the load goes. A value of this type cannot name another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    address: SocketAddr,
    path: String,
}

impl Target {
    /// The socket to connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path to post to, with its leading slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let rest = typed
            .strip_prefix("http://")
            .with_context(|| format!("not an http address: `{typed}`"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Names are not resolved on purpose: a name can be pointed at another machine, a number cannot.
        let address: SocketAddr = authority
            .parse()
            .with_context(|| format!("not an address and port in numbers: `{authority}`"))?;
        if !is_loopback(address.ip()) {
            bail!("load is sent to loopback only, not to `{authority}`");
        }
        Ok(Self {
            address,
            path: format!("/{path}"),
        })
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_taken() {
        let target: Target = "http://127.0.0.1:8787/mcp".parse().unwrap();
        assert_eq!(target.address().to_string(), "127.0.0.1:8787");
        assert_eq!(target.path(), "/mcp");
        assert_eq!("http://[::1]:1".parse::<Target>().unwrap().path(), "/");
        assert!("http://127.255.0.9:1/".parse::<Target>().is_ok());
    }

    #[test]
    fn every_other_address_is_refused() {
        for typed in [
            "http://10.0.0.1:80/mcp",
            "http://0.0.0.0:80/mcp",
            "http://[2001:db8::1]:80/mcp",
            "http://[::ffff:10.0.0.1]:80/mcp",
            "http://localhost:80/mcp",
            "http://127.0.0.1.example.com:80/mcp",
            "http://127.0.0.1@10.0.0.1:80/mcp",
            "http://127.0.0.1/mcp",
            "https://127.0.0.1:80/mcp",
            "",
        ] {
            assert!(typed.parse::<Target>().is_err(), "{typed} must be refused");
        }
    }
}
