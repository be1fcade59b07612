//! The address that a benchmark sends load to. Only loopback addresses are accepted, so no other machine gets the load.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anyhow::{Context, bail};

/// A loopback endpoint. A value of this type cannot name another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopbackTarget {
    address: SocketAddr,
    path: String,
}

impl LoopbackTarget {
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

impl FromStr for LoopbackTarget {
    type Err = anyhow::Error;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let rest = typed
            .strip_prefix("http://")
            .with_context(|| format!("not an http address: `{typed}`"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Host names are not resolved, because a name can point at another machine.
        let address: SocketAddr = authority
            .parse()
            .with_context(|| format!("not a numeric address and port: `{authority}`"))?;
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
    fn loopback_addresses_are_accepted() {
        let target: LoopbackTarget = "http://127.0.0.1:8787/mcp".parse().unwrap();
        assert_eq!(target.address().to_string(), "127.0.0.1:8787");
        assert_eq!(target.path(), "/mcp");
        assert_eq!(
            "http://[::1]:1".parse::<LoopbackTarget>().unwrap().path(),
            "/"
        );
        assert!("http://127.255.0.9:1/".parse::<LoopbackTarget>().is_ok());
    }

    #[test]
    fn other_addresses_are_rejected() {
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
            assert!(
                typed.parse::<LoopbackTarget>().is_err(),
                "{typed} must be rejected"
            );
        }
    }
}
