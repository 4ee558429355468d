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
        // JSON has no infinities and no NaN.
        match self.0 {
            value if value.is_finite() => serializer.serialize_f64(value),
            value if value.is_nan() && *self != Real(f64::NAN) => {
                serializer.serialize_str(&format!("{NAN_BITS}{:x}", value.to_bits()))
            }
            value => serializer.serialize_str(&value.to_string()),
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
            Text::Name(name) => not_finite(&name)
                .map(Real)
                .ok_or_else(|| serde::de::Error::custom("a number, an infinity or NaN")),
        }
    }
}

/// What a NaN of other bits than the usual ones begins with as text.
const NAN_BITS: &str = "NaN:";

/// The infinity or NaN of this name.
fn not_finite(name: &str) -> Option<f64> {
    let value = match name.strip_prefix(NAN_BITS) {
        Some(bits) => f64::from_bits(u64::from_str_radix(bits, 16).ok()?),
        None => name.parse().ok()?,
    };
    (!value.is_finite()).then_some(value)
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
        let payload = f64::from_bits(f64::NAN.to_bits() | 5);
        for value in [0.1, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, payload] {
            let text = serde_json::to_string(&Real(value)).unwrap();
            let back: Real = serde_json::from_str(&text).unwrap();
            assert_eq!(back, Real(value), "{text}");
        }
        for wrong in ["\"1\"", "\"NaN:0\"", "\"NaN:x\"", "\"far\""] {
            assert!(serde_json::from_str::<Real>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::from_str::<Scalar>("3").unwrap(), Scalar::Int(3));
        assert!(serde_json::from_str::<Scalar>("\"3\"").is_err());
    }
}
