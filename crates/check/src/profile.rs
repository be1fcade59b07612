//! Profiles: the hosts, and the features of hosts, that have requirements of their own.
//!
//! A rule lists each profile that requires it with the severity there, so one table serves all of them. The same fault
//! may be an error for the review of a directory and a warning for a host. `Protocol` is the specification alone.

/// A host, or a feature of one, whose requirements a check evaluates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckProfile {
    /// The MCP specification itself, independent of any host.
    Protocol,
    /// ChatGPT in developer mode: any tool, any server.
    ChatGpt,
    /// ChatGPT's deep research, which calls `search` and `fetch`.
    DeepResearch,
    /// ChatGPT's company knowledge, which calls the same two tools.
    CompanyKnowledge,
    /// Claude on the web, on desktops and phones, and Claude Code.
    Claude,
    /// Widgets (MCP Apps) in ChatGPT and in Claude.
    Apps,
    /// The review of OpenAI's plugin directory and of Claude's directory.
    Submission,
}

impl CheckProfile {
    /// All profiles, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Protocol,
        Self::ChatGpt,
        Self::DeepResearch,
        Self::CompanyKnowledge,
        Self::Claude,
        Self::Apps,
        Self::Submission,
    ];

    /// The name on the command line, such as `deep-research`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::ChatGpt => "chatgpt",
            Self::DeepResearch => "deep-research",
            Self::CompanyKnowledge => "company-knowledge",
            Self::Claude => "claude",
            Self::Apps => "apps",
            Self::Submission => "submission",
        }
    }

    /// A short description, for the documentation.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Protocol => "the MCP specification, for every client",
            Self::ChatGpt => "ChatGPT in developer mode",
            Self::DeepResearch => "ChatGPT's deep research",
            Self::CompanyKnowledge => "ChatGPT's company knowledge",
            Self::Claude => "Claude and Claude Code",
            Self::Apps => "widgets in ChatGPT and Claude",
            Self::Submission => "review for the directories of OpenAI and Claude",
        }
    }

    /// Looks a profile up by its command-line name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_found_by_its_name() {
        for profile in CheckProfile::ALL {
            assert_eq!(CheckProfile::from_name(profile.name()), Some(profile));
        }
        assert_eq!(CheckProfile::from_name("gemini"), None);
    }
}
