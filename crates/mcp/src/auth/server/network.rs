//! The network that a registration comes from, as far as it can be known, and how often one may register.
//!
//! A connection from a public address comes from there. One from this machine or a private network is most likely a
//! proxy's: what it appended to `X-Forwarded-For` names the network then, but whoever is in that network could have
//! written it, so a rate that all of them share counts as well. Nothing else is decided by that header.

use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::rate_limit::RateLimiter;
use crate::auth::web::is_public;
use crate::http::Visit;

/// Registrations of one network at once, and how long each one more takes. All users of a host share its few
/// networks, and each of their connections may register a client.
const NETWORK_BURST: u32 = 60;
const NETWORK_PERIOD: Duration = Duration::from_secs(5);
/// The same for all together whose network is not certain.
const SHARED_BURST: u32 = 300;
const SHARED_PERIOD: Duration = Duration::from_millis(500);
/// Networks that are told apart; more of them share.
const SLOTS: usize = 16_384;

/// A network: the first 24 bits of an older address, or the 56 that one customer gets of a newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NetworkPrefix {
    V4([u8; 3]),
    V6([u8; 7]),
}

impl NetworkPrefix {
    /// The network of a public address.
    fn of(ip: IpAddr) -> Option<Self> {
        let ip = ip.to_canonical();
        is_public(ip).then_some(match ip {
            IpAddr::V4(ip) => {
                let [a, b, c, _] = ip.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(ip) => {
                let [a, b, c, d, e, f, g, ..] = ip.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        })
    }
}

/// How often clients may register.
pub(crate) struct RegistrationRate {
    networks: RateLimiter,
    shared: RateLimiter,
}

impl Default for RegistrationRate {
    fn default() -> Self {
        Self {
            networks: RateLimiter::new(SLOTS, NETWORK_BURST, NETWORK_PERIOD),
            shared: RateLimiter::new(1, SHARED_BURST, SHARED_PERIOD),
        }
    }
}

impl RegistrationRate {
    /// Takes one registration, or says how long to wait.
    pub(crate) fn take(&self, visit: &Visit, now: Instant) -> Result<(), Duration> {
        // Some proxies append to the line that came, others add one of their own behind it.
        let forwarded = visit.last_header("x-forwarded-for");
        self.take_from(visit.peer(), forwarded, now)
    }

    fn take_from(
        &self,
        peer: Option<IpAddr>,
        forwarded: Option<&str>,
        now: Instant,
    ) -> Result<(), Duration> {
        if let Some(network) = peer.and_then(NetworkPrefix::of) {
            return self.networks.take(&network, now);
        }
        // Of the addresses in the header the last is what the proxy itself saw; those before are anybody's word.
        let last = forwarded.and_then(|all| all.rsplit(',').next());
        let last = last.and_then(|ip| ip.trim().parse().ok());
        if let Some(network) = last.and_then(NetworkPrefix::of) {
            self.networks.take(&network, now)?;
        }
        self.shared.take(&(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::MAX_PENDING;
    use super::*;

    /// How many of `tries` are let in.
    fn taken(rate: &RegistrationRate, peer: &str, forwarded: Option<&str>, tries: u32) -> u32 {
        let now = Instant::now();
        let peer = peer.parse().ok();
        let ok = |_: &u32| rate.take_from(peer, forwarded, now).is_ok();
        u32::try_from((0..tries).filter(ok).count()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_has_its_rate_and_others_have_their_own() {
        let rate = RegistrationRate::default();
        for (peer, left) in [
            ("8.8.4.4", NETWORK_BURST),
            ("8.8.4.250", 0),
            ("::ffff:8.8.4.7", 0),
            ("8.8.5.4", NETWORK_BURST),
            ("2001:4860:0:100::1", NETWORK_BURST),
            ("2001:4860:0:1ff:9::1", 0),
            ("2001:4860:0:200::1", NETWORK_BURST),
        ] {
            assert_eq!(taken(&rate, peer, None, NETWORK_BURST + 1), left, "{peer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_its_own_word_counts_and_a_made_up_one_is_bounded() {
        let rate = RegistrationRate::default();
        let proxy = "127.0.0.1";
        let flood = Some("1.1.1.1, 9.9.9.9");
        assert_eq!(taken(&rate, proxy, flood, 100), NETWORK_BURST);
        // Who writes another name before that of the proxy is the same network still.
        assert_eq!(taken(&rate, proxy, Some("1.0.0.1,9.9.9.8"), 100), 0);
        assert_eq!(taken(&rate, proxy, Some("9.9.8.8"), 1), 1, "others go on");
        // A public peer is no proxy, whatever it says.
        assert_eq!(taken(&rate, "9.9.9.1", Some("7.7.7.7"), 1), 0);
        // Whoever makes up networks from within has the shared rate, and so has everybody whose network is unknown.
        let made_up: u32 = (0..2_000_u32)
            .map(|n| {
                let [_, _, a, b] = n.to_be_bytes();
                taken(&rate, "10.0.0.9", Some(&format!("20.{a}.{b}.1")), 1)
            })
            .sum();
        assert_eq!(made_up, SHARED_BURST - NETWORK_BURST - 1);
        for odd in [
            None,
            Some(""),
            Some("x"),
            Some("9.9.7.1, "),
            Some("10.0.0.1"),
        ] {
            assert_eq!(taken(&rate, proxy, odd, 1), 0, "{odd:?}");
        }
        assert_eq!(taken(&rate, "", None, 1), 0, "no peer");
        assert_eq!(taken(&rate, "8.8.8.8", None, 1), 1, "who comes directly");
    }

    #[test]
    fn while_a_form_counts_no_single_rate_lets_in_more_than_there_is_room_for() {
        let form = Duration::from_secs(super::super::authorize::FORM_FOR);
        for (burst, period) in [
            (NETWORK_BURST, NETWORK_PERIOD),
            (SHARED_BURST, SHARED_PERIOD),
        ] {
            let most = u128::from(burst) + form.as_millis() / period.as_millis();
            assert!(most < MAX_PENDING as u128, "{most}");
        }
    }
}
