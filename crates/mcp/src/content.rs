//! The items of `content`: what the model reads, in the shapes of the protocol.

use serde::Serialize;

/// One item of a tool's `content` or of a prompt's message.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64 of the picture.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Base64 of the sound.
        data: String,
        /// Such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A resource carried inside the result.
    Resource {
        /// The resource.
        resource: ResourceText,
    },
    /// A pointer to a resource that the client may read.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
    },
}

/// A text resource with its address.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceText {
    /// Its address.
    pub uri: String,
    /// Such as `text/plain`.
    pub mime_type: String,
    /// Its text.
    pub text: String,
}

impl ContentBlock {
    /// A text item.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A picture, given as base64.
    #[must_use]
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image {
            data: data.into(),
            mime_type: mime_type.into(),
        }
    }

    /// A sound, given as base64.
    #[must_use]
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio {
            data: data.into(),
            mime_type: mime_type.into(),
        }
    }

    /// A text resource carried inside the result.
    #[must_use]
    pub fn resource(
        uri: impl Into<String>,
        mime: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self::Resource {
            resource: ResourceText {
                uri: uri.into(),
                mime_type: mime.into(),
                text: text.into(),
            },
        }
    }
}
