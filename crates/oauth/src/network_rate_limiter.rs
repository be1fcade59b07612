//! Rate limits for registrations and logins by the client's network.
//!
//! The address of a public peer is taken as the client's network. A peer with a loopback or private address
//! is most likely a reverse proxy: then the last entry of `X-Forwarded-For` names the client. Whoever is
//! inside that network could have forged it, so a rate that all forwarded requests share applies as well.
//! Nothing else is decided by that header.
//!
//! An attacker has many addresses, so there are buckets for two prefix lengths: the network of one
//! customer, and the site around it. Behind a proxy a site's rate is below the shared rate, so one site
//! alone cannot exhaust that. If several do, a reserve admits the first requests of networks that have not
//! used it lately.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use docent_mcp::http::RouteRequest;
use docent_mcp::oauth::is_public_address;
use tokio::time::Instant;

use super::rate_limiter::RateLimiter;

/// The number of buckets of each table. Networks beyond it share buckets.
const SLOTS: usize = 16_384;

/// The prefix length of a network, for IPv4 and IPv6.
#[derive(Debug, Clone, Copy)]
struct PrefixLength {
    v4: u32,
    v6: u32,
}

/// The network that a provider assigns to one customer.
const CUSTOMER: PrefixLength = PrefixLength { v4: 24, v6: 56 };
/// The network of one site: a /48 contains 256 customer networks.
const SITE: PrefixLength = PrefixLength { v4: 16, v6: 48 };
/// The network of one provider: an IPv6 /32 contains 65,536 sites. The reserve is divided by these.
const PROVIDER: PrefixLength = PrefixLength { v4: 16, v6: 32 };

/// An address with the bits after its prefix set to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NetworkPrefix(IpAddr);

impl NetworkPrefix {
    fn of(ip: IpAddr, length: PrefixLength) -> Self {
        Self(match ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - length.v4).unwrap_or(0);
                Ipv4Addr::from_bits(ip.to_bits() & mask).into()
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - length.v6).unwrap_or(0);
                Ipv6Addr::from_bits(ip.to_bits() & mask).into()
            }
        })
    }
}

/// The parameters of a token bucket: its capacity, and the period in which it gains one token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetworkBucket {
    burst: u32,
    period: Duration,
}

impl NetworkBucket {
    const fn new(burst: u32, period: Duration) -> Self {
        Self { burst, period }
    }

    fn limiter(self, slots: usize) -> RateLimiter {
        RateLimiter::new(slots, self.burst, self.period)
    }
}

/// The rate limits of one kind of request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetworkLimits {
    customer: NetworkBucket,
    site: NetworkBucket,
    /// The limiter shared by all requests whose network may be forged.
    shared: NetworkBucket,
    /// The share of the reserve that one provider's networks may use, and the reserve itself.
    reserve_each: NetworkBucket,
    reserve: NetworkBucket,
}

/// The limits of client registrations. All users of a hosted MCP client share its few networks, and each of
/// their connections may register a client.
pub(crate) const REGISTRATIONS: NetworkLimits = NetworkLimits {
    customer: NetworkBucket::new(60, Duration::from_secs(5)),
    site: NetworkBucket::new(180, Duration::from_secs(1)),
    shared: NetworkBucket::new(300, Duration::from_millis(500)),
    reserve_each: NetworkBucket::new(5, Duration::from_secs(60)),
    reserve: NetworkBucket::new(120, Duration::from_secs(2)),
};

/// The limits of logins, right or wrong. A small machine hashes about twenty passwords a second: no rate
/// exhausts that, and no burst exceeds what it hashes before a login times out.
pub(crate) const SIGN_INS: NetworkLimits = NetworkLimits {
    customer: NetworkBucket::new(30, Duration::from_secs(2)),
    site: NetworkBucket::new(90, Duration::from_millis(500)),
    shared: NetworkBucket::new(120, Duration::from_millis(200)),
    reserve_each: NetworkBucket::new(3, Duration::from_secs(60)),
    reserve: NetworkBucket::new(30, Duration::from_secs(1)),
};

/// Rate limiter of one kind of request by the client's network.
pub(crate) struct NetworkRateLimiter {
    customers: RateLimiter,
    sites: RateLimiter,
    shared: RateLimiter,
    reserve_each: RateLimiter,
    reserve: RateLimiter,
}

impl NetworkRateLimiter {
    pub(crate) fn new(limits: &NetworkLimits) -> Self {
        Self {
            customers: limits.customer.limiter(SLOTS),
            sites: limits.site.limiter(SLOTS),
            shared: limits.shared.limiter(1),
            reserve_each: limits.reserve_each.limiter(SLOTS),
            reserve: limits.reserve.limiter(1),
        }
    }

    /// Takes one token for a request, or returns the time to wait.
    pub(crate) fn take(&self, request: &RouteRequest, now: Instant) -> Result<(), Duration> {
        // Some proxies append to the existing header, others add a second one after it, so the last one
        // counts.
        let forwarded = request.last_header("x-forwarded-for");
        self.take_from(request.peer(), forwarded, now)
    }

    fn take_from(
        &self,
        peer: Option<IpAddr>,
        forwarded: Option<&str>,
        now: Instant,
    ) -> Result<(), Duration> {
        if let Some(ip) = peer.and_then(public) {
            return self.take_network(ip, now);
        }
        // The last address in the header is the one that the proxy saw; the client could have written those
        // before it.
        let last = forwarded.and_then(|all| all.rsplit(',').next());
        let last = last.and_then(|ip| ip.trim().parse().ok());
        let Some(ip) = last.and_then(public) else {
            return self.shared.take(&(), now);
        };
        self.take_network(ip, now)?;
        let shared = self.shared.take(&(), now);
        shared.or_else(|wait| self.take_reserve(ip, now).ok_or(wait))
    }

    /// Takes from the narrow bucket first, so that one customer takes no more of the site's bucket than its
    /// own rate.
    fn take_network(&self, ip: IpAddr, now: Instant) -> Result<(), Duration> {
        self.customers.take(&NetworkPrefix::of(ip, CUSTOMER), now)?;
        self.sites.take(&NetworkPrefix::of(ip, SITE), now)
    }

    fn take_reserve(&self, ip: IpAddr, now: Instant) -> Option<()> {
        let provider = NetworkPrefix::of(ip, PROVIDER);
        self.reserve_each.take(&provider, now).ok()?;
        let taken = self.reserve.take(&(), now).ok();
        if taken.is_none() {
            self.reserve_each.give_back(&provider);
        }
        taken
    }
}

/// The canonical form of a public address (IPv4-mapped IPv6 becomes IPv4); `None` for others.
fn public(ip: IpAddr) -> Option<IpAddr> {
    let ip = ip.to_canonical();
    is_public_address(ip).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_clients::{MAX_PENDING, UNSEEN_SHARE};

    const CUSTOMER_BURST: u32 = REGISTRATIONS.customer.burst;
    const SITE_BURST: u32 = REGISTRATIONS.site.burst;
    const SHARED_BURST: u32 = REGISTRATIONS.shared.burst;
    const PROXY: &str = "127.0.0.1";

    fn registrations() -> NetworkRateLimiter {
        NetworkRateLimiter::new(&REGISTRATIONS)
    }

    /// The number of `tries` requests that are admitted.
    fn taken(rate: &NetworkRateLimiter, peer: &str, forwarded: Option<&str>, tries: u32) -> u32 {
        let now = Instant::now();
        let peer = peer.parse().ok();
        let ok = |_: &u32| rate.take_from(peer, forwarded, now).is_ok();
        u32::try_from((0..tries).filter(ok).count()).unwrap()
    }

    /// The number of registrations from one /48 that are admitted, spread over its 256 customer networks.
    fn taken_by_site(
        rate: &NetworkRateLimiter,
        proxy: Option<&str>,
        site: &str,
        tries: u32,
    ) -> u32 {
        let one = |n: u32| {
            let address = format!("{site}:{:x}::1", (n % 256) << 8);
            match proxy {
                Some(proxy) => taken(rate, proxy, Some(&address), 1),
                None => taken(rate, &address, None, 1),
            }
        };
        (0..tries).map(one).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_has_its_rate_and_others_have_their_own() {
        let rate = registrations();
        for (peer, left) in [
            ("8.8.4.4", CUSTOMER_BURST),
            ("8.8.4.250", 0),
            ("::ffff:8.8.4.7", 0),
            ("8.8.5.4", CUSTOMER_BURST),
            ("2001:4860:0:100::1", CUSTOMER_BURST),
            ("2001:4860:0:1ff:9::1", 0),
            ("2001:4860:0:200::1", CUSTOMER_BURST),
        ] {
            assert_eq!(taken(&rate, peer, None, CUSTOMER_BURST + 1), left, "{peer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_with_many_networks_has_a_rate_of_its_own() {
        let rate = registrations();
        let flood = taken_by_site(&rate, None, "2001:470:1000", 2_000);
        assert_eq!(flood, SITE_BURST);
        assert_eq!(taken(&rate, "2001:470:1001::1", None, 1), 1, "the next /48");
        let ipv4: u32 = (0..=255)
            .map(|n| taken(&rate, &format!("9.8.{n}.1"), None, 4))
            .sum();
        assert_eq!(ipv4, SITE_BURST);
        assert_eq!(taken(&rate, "9.9.0.1", None, 1), 1, "the next /16");
        // A customer that floods takes no more of its site's bucket than its own rate.
        let rate = registrations();
        let flood = taken(&rate, "2001:470:1000:100::1", None, 2_000);
        assert_eq!(flood, CUSTOMER_BURST);
        assert_eq!(
            taken(&rate, "2001:470:1000:200::1", None, 100),
            CUSTOMER_BURST
        );
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_one_site_does_not_use_up_what_all_share() {
        let rate = registrations();
        for _ in 0..600 {
            taken_by_site(&rate, Some(PROXY), "2001:470:1000", 20);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(taken(&rate, PROXY, Some("9.8.8.8"), 20), 20);
        assert_eq!(taken(&rate, PROXY, None, 20), 20, "an unknown network");
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_its_own_word_counts_and_a_made_up_one_is_bounded() {
        let rate = registrations();
        let flood = Some("1.1.1.1, 9.9.9.9");
        assert_eq!(taken(&rate, PROXY, flood, 100), CUSTOMER_BURST);
        // An entry forged in front of the proxy's own does not change the network.
        assert_eq!(taken(&rate, PROXY, Some("1.0.0.1,9.9.9.8"), 100), 0);
        assert_eq!(taken(&rate, PROXY, Some("9.9.8.8"), 1), 1, "others go on");
        // A public peer is no proxy, so its header is ignored.
        assert_eq!(taken(&rate, "9.9.9.1", Some("7.7.7.7"), 1), 0);
        // An attacker inside the private network who forges addresses gets the shared rate and the reserve.
        let made_up: u32 = (0..4_000_u32)
            .map(|n| {
                let [_, _, a, b] = n.to_be_bytes();
                taken(&rate, "10.0.0.9", Some(&format!("{}.{b}.1.1", 20 + a)), 1)
            })
            .sum();
        let rest = SHARED_BURST - CUSTOMER_BURST - 1;
        assert_eq!(made_up, rest + REGISTRATIONS.reserve.burst);
        for odd in [
            None,
            Some(""),
            Some("x"),
            Some("9.9.7.1, "),
            Some("10.0.0.1"),
        ] {
            assert_eq!(taken(&rate, PROXY, odd, 1), 0, "{odd:?}");
        }
        assert_eq!(taken(&rate, "", None, 1), 0, "no peer");
        assert_eq!(taken(&rate, "8.8.8.8", None, 1), 1, "who comes directly");
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_shared_rate_is_spent_a_network_that_is_new_has_the_reserve() {
        for limits in [REGISTRATIONS, SIGN_INS] {
            let rate = NetworkRateLimiter::new(&limits);
            let each = limits.reserve_each.burst;
            // One provider's customers, from many sites.
            let flood = |rate: &NetworkRateLimiter| -> u32 {
                (0..3_000_u32)
                    .map(|n| taken(rate, PROXY, Some(&format!("2001:470:{n:x}::1")), 1))
                    .sum()
            };
            assert_eq!(flood(&rate), limits.shared.burst + each);
            assert_eq!(taken(&rate, PROXY, None, 1), 0, "an unknown network waits");
            assert_eq!(taken(&rate, PROXY, Some("9.8.8.8"), 10), each);
            assert_eq!(taken(&rate, PROXY, Some("9.8.7.8"), 1), 0, "the same one");
            assert_eq!(taken(&rate, PROXY, Some("2a00:1450::8"), 1), 1);
            // Later the network counts as new again, whatever the flood did meanwhile.
            tokio::time::advance(limits.reserve_each.period * each).await;
            flood(&rate);
            assert_eq!(taken(&rate, PROXY, Some("9.8.8.8"), 1), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whom_the_reserve_had_no_room_for_has_lost_nothing() {
        let rate = registrations();
        while rate.shared.take(&(), Instant::now()).is_ok() {}
        while rate.reserve.take(&(), Instant::now()).is_ok() {}
        assert_eq!(taken(&rate, PROXY, Some("9.8.8.8"), 20), 0);
        tokio::time::advance(REGISTRATIONS.reserve.period).await;
        while rate.shared.take(&(), Instant::now()).is_ok() {}
        assert_eq!(taken(&rate, PROXY, Some("9.8.8.8"), 1), 1);
    }

    #[test]
    fn while_a_form_counts_no_single_rate_lets_in_more_than_there_is_room_for() {
        let within = |bucket: NetworkBucket, time: Duration| {
            u128::from(bucket.burst) + time.as_millis() / bucket.period.as_millis()
        };
        let form = Duration::from_secs(crate::authorize_endpoint::FORM_LIFETIME);
        let seen = (MAX_PENDING - UNSEEN_SHARE) as u128;
        let proxied = within(REGISTRATIONS.shared, form) + within(REGISTRATIONS.reserve, form);
        for most in [within(REGISTRATIONS.site, form), proxied] {
            assert!(most < seen, "{most}");
        }
        // A browser opens the page within seconds of the registration.
        let opening = Duration::from_secs(120);
        let proxied =
            within(REGISTRATIONS.shared, opening) + within(REGISTRATIONS.reserve, opening);
        assert!(proxied < UNSEEN_SHARE as u128, "{proxied}");
    }

    #[test]
    fn a_site_has_less_than_all_share() {
        for limits in [REGISTRATIONS, SIGN_INS] {
            assert!(limits.customer.burst < limits.site.burst);
            assert!(limits.customer.period > limits.site.period);
            assert!(limits.site.burst < limits.shared.burst);
            assert!(limits.site.period > limits.shared.period);
        }
    }
}
