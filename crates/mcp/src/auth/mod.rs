//! Who is calling: the only place where a [`Caller`] is made.

/// The verified identity behind a request. A tool receives one with every call and cannot make
/// one, so that no path to data exists around this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Anonymous,
}

impl Caller {
    /// The caller of a server without sign-in.
    pub(crate) const fn anonymous() -> Self {
        Self(Kind::Anonymous)
    }

    /// What tells this caller from every other, for those who count; nothing for an anonymous one.
    pub(crate) const fn key(&self) -> Option<&str> {
        match self.0 {
            Kind::Anonymous => None,
        }
    }

    /// True when nobody has signed in.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(self.0, Kind::Anonymous)
    }
}
