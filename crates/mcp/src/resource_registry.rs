//! The resource registry: every readable resource by URI.
//!
//! It contains resources, resource templates, and widgets under the address of every version they ever had.

use std::collections::HashSet;

use crate::error::BuildError;
use crate::resource::{Resource, ResourceTemplate};
use crate::uri_template::TemplateVars;
use crate::widget::{ServedWidget, Widget};

/// The readable resources of one app, with unique absolute URIs.
#[derive(Default)]
pub(crate) struct ResourceRegistry {
    resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    widgets: Vec<ServedWidget>,
}

/// The resource that a URI leads to.
pub(crate) enum ResourceMatch<'a> {
    One(&'a Resource),
    OfPattern(&'a ResourceTemplate, TemplateVars),
}

impl ResourceRegistry {
    /// Validates that every URI is absolute and unique.
    pub(crate) fn new(
        resources: Vec<Resource>,
        templates: Vec<ResourceTemplate>,
        widgets: &[Widget],
        app: &str,
    ) -> Result<Self, BuildError> {
        let widgets: Vec<ServedWidget> = widgets
            .iter()
            .map(|widget| ServedWidget::new(widget, app))
            .collect::<Result<_, _>>()?;
        let registry = Self {
            resources,
            templates,
            widgets,
        };
        let patterns = registry.templates.iter().map(|template| &template.pattern);
        let mut seen = HashSet::new();
        for uri in registry
            .listed_resources()
            .map(|resource| &resource.uri)
            .chain(patterns)
        {
            if !seen.insert(uri) {
                return Err(BuildError::Duplicate(uri.clone()));
            }
            if !uri.contains(':') {
                return Err(BuildError::Uri(uri.clone()));
            }
        }
        Ok(registry)
    }

    /// Returns the resources that `resources/list` shows, widgets included.
    pub(crate) fn listed_resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources
            .iter()
            .chain(self.widgets.iter().flat_map(ServedWidget::listed))
    }

    pub(crate) fn widget(&self, name: &str) -> Option<&ServedWidget> {
        self.widgets.iter().find(|widget| widget.name == name)
    }

    pub(crate) fn widget_names(&self) -> impl Iterator<Item = &str> {
        self.widgets.iter().map(|widget| widget.name.as_str())
    }

    /// Finds the resource at a URI, or the current version of a widget whose address has changed.
    pub(crate) fn find(&self, uri: &str) -> Option<ResourceMatch<'_>> {
        let one = self.resources.iter().find(|resource| resource.uri == uri);
        if let Some(one) = one.or_else(|| {
            self.widgets
                .iter()
                .find_map(|widget| widget.resource_at(uri))
        }) {
            return Some(ResourceMatch::One(one));
        }
        let mut templates = self.templates.iter();
        templates
            .find_map(|template| Some(ResourceMatch::OfPattern(template, template.matches(uri)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::ResourceBody;

    fn page(uri: &str) -> Resource {
        Resource::fixed(uri, "a", "text/plain", ResourceBody::Text(String::new()))
    }

    #[test]
    fn addresses_are_absolute_and_their_own() {
        let of = |resources| ResourceRegistry::new(resources, Vec::new(), &[], "a").err();
        assert_eq!(
            of(vec![page("x://a"), page("x://a")]),
            Some(BuildError::Duplicate("x://a".to_owned()))
        );
        assert_eq!(
            of(vec![page("nowhere")]),
            Some(BuildError::Uri("nowhere".to_owned()))
        );
        let widget = Widget::new("w", "W", "W.", "<!doctype html>");
        let twice =
            ResourceRegistry::new(Vec::new(), Vec::new(), &[widget.clone(), widget], "a").err();
        assert!(matches!(twice, Some(BuildError::Duplicate(_))));
    }
}
