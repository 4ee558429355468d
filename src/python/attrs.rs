//! Conversion between Python keyword arguments and the attributes of an operation.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

use super::dtype::PyDType;
use crate::error::Error;
use crate::ops::Kind;

/// The greatest nesting depth of attributes: a list may contain itself.
const DEEPEST: usize = 8;

/// The operation `name` with these attributes.
pub(super) fn kind(name: &str, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<Kind> {
    let mut map = attrs.map_or_else(|| Ok(Map::new()), |dict| object(dict, 0))?;
    map.insert("op".into(), name.into());
    let value = Value::Object(map);
    let bad = |e: serde_json::Error| Error::value(name.to_owned(), &value, e.to_string());
    let kind: Kind = serde_json::from_value(value.clone()).map_err(bad)?;
    let mut known = attributes(&kind)?;
    add_defaults(&value, &mut known);
    check_names(name, &value, &known)?;
    Ok(kind)
}

/// Adds the attributes that an operation has but does not serialise because they are at their
/// default.
fn add_defaults(got: &Value, known: &mut Value) {
    let (Value::Object(got), Value::Object(known)) = (got, known) else { return };
    for (name, value) in got {
        if !known.contains_key(name) && is_read(got, name) {
            known.insert(name.clone(), value.clone());
        }
    }
}

/// Whether an operation with these attributes rejects a nonsensical one of this name.
fn is_read(attrs: &Map<String, Value>, name: &str) -> bool {
    let mut attrs = attrs.clone();
    attrs.insert(name.into(), Value::Array(vec![Value::Null]));
    serde_json::from_value::<Kind>(Value::Object(attrs)).is_err()
}

/// Rejects attributes that the operation does not have.
fn check_names(op: &str, got: &Value, known: &Value) -> PyResult<()> {
    let (Value::Object(got), Value::Object(known)) = (got, known) else { return Ok(()) };
    for (name, value) in got {
        let Some(known) = known.get(name) else {
            let names = known.keys().filter(|k| *k != "op").map(String::as_str);
            let want = format!("no attributes but {}", names.collect::<Vec<_>>().join(", "));
            return Err(Error::value(op.to_owned(), format!("attribute {name}"), want).into());
        };
        check_names(op, value, known)?;
    }
    Ok(())
}

/// The attributes of an operation, its family's name under `op`.
pub(super) fn attributes(kind: &Kind) -> PyResult<Value> {
    let bad =
        |e: serde_json::Error| Error::value(kind.family().name(), "attributes", e.to_string());
    Ok(serde_json::to_value(kind).map_err(bad)?)
}

/// The values of a dictionary, at this depth.
pub(super) fn object(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Map<String, Value>> {
    let pair =
        |(key, value): (Bound<'_, PyAny>, _)| Ok((key.extract()?, to_json(&value, depth + 1)?));
    dict.iter().map(pair).collect()
}

fn to_json(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let want = "plain values, not nested deeper";
    crate::ensure!(depth < DEEPEST, Error::value("operation", "nested attributes", want).into());
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Ok(dtype.get().0.name().into());
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return Ok(Value::Object(self::object(dict, depth)?));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return object.try_iter()?.map(|item| to_json(&item?, depth + 1)).collect();
    }
    if object.is_instance_of::<PyString>() {
        return Ok(object.extract::<String>()?.into());
    }
    number(object)
}

fn number(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if object.is_instance_of::<PyBool>() {
        return Ok(object.extract::<bool>()?.into());
    }
    if object.is_instance_of::<PyInt>() {
        let wide = |_| Ok(real(object.extract().map_err(|_| too_large(object))?));
        return object.extract::<i64>().map(Value::from).or_else(wide);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(real(object.extract()?));
    }
    // Complex numbers and datetimes convert to float, too, but lose information.
    let numbers = object.py().import("singa_rs.tensor.numbers")?;
    let plain = numbers.call_method1("as_number", (object,))?;
    let message = || format!("attribute: got {}, want a number", super::args::text(object));
    crate::ensure!(!plain.is_none(), PyTypeError::new_err(message()));
    number(&plain)
}

/// JSON has no infinities and no NaN, so attributes accept them by name.
fn real(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}

fn too_large(object: &Bound<'_, PyAny>) -> PyErr {
    let got = super::args::text(object);
    PyValueError::new_err(format!("attribute: got {got}, want a number that float64 holds"))
}

/// A JSON value as a Python object.
pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Number(n) if n.is_f64() => n.as_f64().into_bound_py_any(py),
        Value::Number(n) if n.is_i64() => n.as_i64().into_bound_py_any(py),
        Value::Number(n) => n.as_u64().into_bound_py_any(py),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let items = items.iter().map(|v| to_python(py, v)).collect::<PyResult<Vec<_>>>()?;
            items.into_bound_py_any(py)
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            map.iter().try_for_each(|(k, v)| dict.set_item(k, to_python(py, v)?))?;
            Ok(dict.into_any())
        }
    }
}
