//! Where recorded operations come from.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The part of a training step that asks for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A layer's computation, or the model's own.
    Forward,
    /// The gradient of an operation.
    Backward,
    /// What is done with gradients.
    Update,
}

/// What asked for an operation. Operations of backward have the line and the layer of the operation
/// whose gradient they compute.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The line of the user's program.
    pub line: Arc<str>,
    /// The path of the layer; empty for the model itself, `None` outside of models.
    pub layer: Option<Arc<str>>,
    /// The part of the step.
    pub phase: Phase,
}

impl Origin {
    /// A line outside of models.
    pub fn at(line: &str) -> Self {
        Origin { line: line.into(), layer: None, phase: Phase::Forward }
    }

    /// That of what no line of a program is known to ask for.
    pub fn unknown() -> Self {
        Origin::at("an unknown line")
    }

    /// The layer's path, if it is a layer of a model.
    pub fn path(&self) -> Option<&str> {
        self.layer.as_deref().filter(|path| !path.is_empty())
    }
}

impl fmt::Display for Origin {
    /// The line, and the layer if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)?;
        self.path().map_or(Ok(()), |path| write!(f, " in {path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named() {
        let line = |layer: Option<&str>| {
            let layer = layer.map(Into::into);
            Origin { layer, ..Origin::at("net.py:9") }.to_string()
        };
        assert_eq!(line(None), "net.py:9");
        assert_eq!(line(Some("")), "net.py:9");
        assert_eq!(line(Some("blocks.3.mlp")), "net.py:9 in blocks.3.mlp");
    }
}
