//! Attribute types that can be compared, hashed, printed and parsed, floats included.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A float64 attribute, compared by its bits so that it can be part of a key.
#[derive(Clone, Copy, Debug)]
pub struct Real(pub f64);

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Real {}

impl std::hash::Hash for Real {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // JSON has no infinities and no NaN; other formats keep all bits.
        if self.0.is_finite() || !serializer.is_human_readable() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&self.0.to_string())
        }
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Number(f64),
            Name(String),
        }
        match Text::deserialize(deserializer)? {
            Text::Number(value) => Ok(Real(value)),
            Text::Name(name) => match name.parse::<f64>() {
                Ok(value) if !value.is_finite() => Ok(Real(value)),
                _ => Err(serde::de::Error::custom("a number, an infinity or NaN")),
            },
        }
    }
}

/// A number as the user wrote it: integers stay exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// An integer or a truth value.
    Int(i64),
    /// A float.
    Real(Real),
}

impl Scalar {
    /// The value as float64.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Int(value) => value as f64,
            Scalar::Real(Real(value)) => value,
        }
    }

    /// The value as an element.
    pub fn element<T: crate::dtype::Element>(self) -> T {
        match self {
            Scalar::Int(value) => T::from_i64(value),
            Scalar::Real(Real(value)) => T::from_f64(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_survive_text() {
        for value in [0.1, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let text = serde_json::to_string(&Real(value)).unwrap();
            let back: Real = serde_json::from_str(&text).unwrap();
            assert!(back == Real(value) || value.is_nan() && back.0.is_nan(), "{text}");
        }
        assert_eq!(serde_json::from_str::<Scalar>("3").unwrap(), Scalar::Int(3));
        assert!(serde_json::from_str::<Scalar>("\"3\"").is_err());
    }
}
