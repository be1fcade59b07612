//! Content blocks: the items of `content` in a tool result or a prompt message, as the model reads them.

use serde::Serialize;

/// One item of a tool's `content` or of a prompt message.
///
/// ```rust
/// use docent_mcp::{Answer, ContentBlock};
///
/// let chart = "iVBORw0KGgo="; // base64
/// let answer = Answer::new(()).content([
///     ContentBlock::text("High water at 04:12 and 16:40."),
///     ContentBlock::image(chart, "image/png"),
/// ]);
/// # let _ = answer;
/// ```
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text, which every host passes to the model.
    Text {
        /// The text of the item itself.
        text: String,
    },
    /// An image that travels inside the result.
    Image {
        /// The bytes of the image, encoded as base64.
        data: String,
        /// The media type of the image, such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound that travels inside the result.
    Audio {
        /// The bytes of the sound, encoded as base64.
        data: String,
        /// The media type of the sound, such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A text resource that is embedded in the result.
    Resource {
        /// The embedded resource, with its URI and its text.
        resource: ResourceText,
    },
    /// A link to a resource that the client may read.
    ResourceLink {
        /// The URI of the linked resource.
        uri: String,
        /// The display name of the linked resource.
        name: String,
    },
}

/// A text resource with its URI, for [`ContentBlock::Resource`].
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResourceText {
    /// The URI of the resource.
    pub uri: String,
    /// The media type, such as `text/plain`.
    pub mime_type: String,
    /// The content of the resource.
    pub text: String,
}

impl ContentBlock {
    /// Creates a text item.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Creates an image item from base64.
    #[must_use]
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image {
            data: data.into(),
            mime_type: mime_type.into(),
        }
    }

    /// Creates a sound item from base64.
    #[must_use]
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio {
            data: data.into(),
            mime_type: mime_type.into(),
        }
    }

    /// Creates an item that embeds a text resource.
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
