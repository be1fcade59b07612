//! SSRF guard: which network addresses a check may connect to.
//!
//! The metadata, challenges and documents of a server contain URLs that its author chose. Without this guard, a server
//! on the internet could make the check call the machine that it runs on, its private network, or a cloud's metadata
//! service. So URLs that the server names must be at least as public as the server itself. The server's own name is
//! resolved once, which defeats DNS rebinding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The scope of an address, ordered from this machine outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetworkScope {
    Loopback,
    Private,
    Public,
}

impl NetworkScope {
    /// The scope of an address. `None` for addresses that are never called: link-local ones, where clouds keep their
    /// metadata services, multicast, and reserved ranges.
    fn of(ip: IpAddr) -> Option<Self> {
        match ip {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => Self::of_v6(ip),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Option<Self> {
        let [a, b, c, _] = ip.octets();
        match (a, b, c) {
            (127, ..) => Some(Self::Loopback),
            (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => {
                Some(Self::Private)
            }
            (0 | 224.., ..)
            | (169, 254, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113) => None,
            _ => Some(Self::Public),
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = ip.segments();
        let inner = |high: u16, low: u16| {
            let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(w, x, y, z))
        };
        match (a, b, c, d, e, f) {
            _ if ip.is_loopback() => Some(Self::Loopback),
            // An IPv4 address embedded in an IPv6 address (mapped, NAT64, 6to4) has the scope of the IPv4 address.
            (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => inner(g, h),
            (0x2002, high, low, ..) => inner(high, low),
            (0xfc00..=0xfdff, ..) => Some(Self::Private),
            (0x2001, 0 | 0xdb8, ..) => None,
            // 2000::/3 is the only range of global unicast addresses that is allocated.
            _ if a & 0xe000 == 0x2000 => Some(Self::Public),
            _ => None,
        }
    }
}

/// The host that the user named, with its resolved addresses. The name is resolved once and pinned, so that DNS
/// rebinding changes nothing.
#[derive(Debug)]
pub(crate) struct TargetHost {
    host: String,
    found: Mutex<Option<ResolvedSocketAddrs>>,
}

impl TargetHost {
    pub(super) fn new(host: &str) -> Arc<Self> {
        Arc::new(Self {
            host: host.to_ascii_lowercase(),
            found: Mutex::new(None),
        })
    }

    /// Whether the host, as it was typed, is `localhost` or a loopback address.
    pub(super) fn is_loopback(&self) -> bool {
        let literal = self.host.trim_start_matches('[').trim_end_matches(']');
        let ip = literal.parse::<IpAddr>();
        self.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    }

    /// The pinned addresses; empty before the first request, and behind a proxy, which resolves the name itself.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found
            .as_ref()
            .map_or_else(Vec::new, |found| found.iter().copied().collect())
    }

    /// The least scope that addresses named by the server must have. Where the name was not resolved here, a proxy did
    /// it, and the server counts as public: the guard fails closed.
    fn scope(&self) -> NetworkScope {
        if self.is_loopback() {
            return NetworkScope::Loopback;
        }
        let addresses = self.addresses();
        let scopes = addresses.iter().filter_map(|at| NetworkScope::of(at.ip()));
        scopes.max().unwrap_or(NetworkScope::Public)
    }
}

/// Resolves a host name with the resolver of the system.
fn resolve_host(
    uri: &Uri,
    config: &Config,
    timeout: NextTimeout,
) -> Result<ResolvedSocketAddrs, Error> {
    let found = DefaultResolver::default().resolve(uri, config, timeout);
    // Operating systems report an unknown host in many different ways.
    found.map_err(|error| match error {
        Error::Io(_) => Error::HostNotFound,
        other => other,
    })
}

/// Resolves the name of the target once and pins the result; other names, such as that of a proxy, as usual.
#[derive(Debug)]
pub(super) struct TargetResolver(pub Arc<TargetHost>);

impl Resolver for TargetResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let is_target = uri
            .host()
            .is_some_and(|host| host.eq_ignore_ascii_case(&self.0.host));
        if !is_target {
            return resolve_host(uri, config, timeout);
        }
        let mut known = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.as_ref() {
            return Ok(found.clone());
        }
        let found = resolve_host(uri, config, timeout)?;
        *known = Some(found.clone());
        Ok(found)
    }
}

/// The error for a URL named by the server that resolves to an address which the SSRF guard blocks.
#[derive(Debug, thiserror::Error)]
#[error("address blocked by the SSRF guard")]
pub(super) struct BlockedAddress;

/// Resolves hosts that a server names, and blocks those below its own scope. The connection goes to exactly the
/// addresses that were examined, so there is no second lookup that could return others.
#[derive(Debug)]
pub(super) struct GuardedResolver(pub Arc<TargetHost>);

impl Resolver for GuardedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let least = self.0.scope();
        let found = resolve_host(uri, config, timeout)?;
        let is_allowed =
            |at: &SocketAddr| NetworkScope::of(at.ip()).is_some_and(|scope| scope >= least);
        if found.iter().all(is_allowed) {
            Ok(found)
        } else {
            Err(Error::Other(Box::new(BlockedAddress)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NetworkScope::{Loopback, Private, Public};
    use super::*;

    #[test]
    fn addresses_have_a_scope_or_none() {
        for (address, scope) in [
            ("127.0.0.1", Some(Loopback)),
            ("127.9.9.9", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("10.1.2.3", Some(Private)),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.168.1.1", Some(Private)),
            ("100.64.0.1", Some(Private)),
            ("fd00::1", Some(Private)),
            ("64:ff9b::a00:1", Some(Private)),
            ("2002:0a00:0001::1", Some(Private)),
            ("1.1.1.1", Some(Public)),
            ("172.32.0.1", Some(Public)),
            ("2606:4700::1", Some(Public)),
            ("0.0.0.0", None),
            ("169.254.169.254", None),
            ("::ffff:169.254.169.254", None),
            ("fe80::1", None),
            ("::", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("ff02::1", None),
            ("2001:db8::1", None),
            ("203.0.113.7", None),
        ] {
            assert_eq!(
                NetworkScope::of(address.parse().unwrap()),
                scope,
                "{address}"
            );
        }
    }

    fn host(name: &str, found: &[&str]) -> Arc<TargetHost> {
        let host = TargetHost::new(name);
        let mut addresses = DefaultResolver::default().empty();
        for address in found {
            addresses.push(SocketAddr::new(address.parse().unwrap(), 443));
        }
        *host.found.lock().unwrap() = Some(addresses);
        host
    }

    #[test]
    fn a_server_leads_only_to_what_is_as_public_as_itself() {
        assert_eq!(host("localhost", &["127.0.0.1"]).scope(), Loopback);
        assert_eq!(host("[::1]", &["::1"]).scope(), Loopback);
        assert_eq!(host("0.0.0.0", &["0.0.0.0"]).scope(), Loopback);
        assert_eq!(host("intra.example", &["10.0.0.5"]).scope(), Private);
        assert_eq!(host("a.example", &["1.1.1.1"]).scope(), Public);
        // A name with addresses of several scopes gets the strictest limit.
        assert_eq!(host("b.example", &["127.0.0.1", "1.1.1.1"]).scope(), Public);
        assert_eq!(TargetHost::new("c.example").scope(), Public);
        assert!(!TargetHost::new("127.evil.example").is_loopback());
    }

    /// A server that counts its connections, and its port.
    fn counting() -> (Arc<std::sync::atomic::AtomicUsize>, u16) {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n");
            }
        });
        (count, port)
    }

    fn agent(resolver: impl Resolver) -> ureq::Agent {
        let config = ureq::Agent::config_builder().proxy(None).build();
        let connector = ureq::unversioned::transport::DefaultConnector::new();
        ureq::Agent::with_parts(config, connector, resolver)
    }

    #[test]
    fn a_public_server_leads_to_no_other_network() {
        let (count, port) = counting();
        let is_refused = |target: &str, found: &str, host: &str| {
            let agent = agent(GuardedResolver(self::host(target, &[found])));
            let got = agent.get(format!("http://{host}:{port}/")).call();
            matches!(got, Err(Error::Other(inner)) if inner.is::<BlockedAddress>())
        };
        for host in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "10.0.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "0.0.0.0",
        ] {
            assert!(is_refused("a.example", "1.1.1.1", host), "{host}");
        }
        assert!(is_refused("intra.example", "10.0.0.5", "127.0.0.1"));
        assert!(is_refused("localhost", "127.0.0.1", "169.254.169.254"));
        assert_eq!(
            count.load(std::sync::atomic::Ordering::SeqCst),
            0,
            "no connection was made"
        );
        let near = agent(GuardedResolver(self::host("localhost", &["127.0.0.1"])));
        let got = near.get(format!("http://127.0.0.1:{port}/")).call();
        assert_eq!(
            got.unwrap().status(),
            204,
            "a server on this machine may name loopback addresses"
        );
    }

    /// The name of this target no longer resolves; requests still go to the address that was pinned first.
    #[test]
    fn a_name_is_looked_up_once() {
        let (count, port) = counting();
        let host = TargetHost::new("rebound.invalid");
        let mut first = DefaultResolver::default().empty();
        first.push(SocketAddr::new("127.0.0.1".parse().unwrap(), port));
        *host.found.lock().unwrap() = Some(first);
        let agent = agent(TargetResolver(host));
        for _ in 0..2 {
            let got = agent.get(format!("http://rebound.invalid:{port}/")).call();
            assert_eq!(got.unwrap().status(), 204);
        }
        assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 2);
    }
}
