//! Icons of apps and tools.

use serde::Serialize;

use crate::error::BuildError;

/// An icon of an app or a tool, which hosts show beside its title.
///
/// ```rust
/// use docent_mcp::{App, Icon};
///
/// let icon = Icon {
///     src: "https://tides.example/icon.png".to_owned(),
///     mime_type: "image/png".to_owned(),
///     sizes: vec!["48x48".to_owned()],
/// };
/// let app = App::builder("tides", "1.0.0").icon(icon).build()?;
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// The address of the image: an `https://` URL or a `data:image/` URI. Hosts load nothing else.
    pub src: String,
    /// The media type of the image, such as `image/png`.
    pub mime_type: String,
    /// The sizes that the image is made for, such as `48x48`.
    pub sizes: Vec<String>,
}

impl Icon {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let fits = ["https://", "data:image/"]
            .iter()
            .any(|start| self.src.starts_with(start));
        if fits {
            Ok(())
        } else {
            Err(BuildError::Icon(self.src.clone()))
        }
    }
}
