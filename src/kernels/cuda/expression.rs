//! Operations element by element as statements of CUDA C: the expressions are those of the tables
//! in [`crate::ops`].

use super::source::Source;
use super::types::{computed, stored};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::Kind;
use crate::ops::binary::{BinaryFn, BinaryScalar, EasyPower};

/// A value of one element: the name of a variable, and the dtype.
#[derive(Clone, Debug)]
pub struct Value {
    /// The variable, of the type that the dtype is computed in.
    pub name: String,
    /// The dtype that it has in memory.
    pub dtype: DType,
}

/// The value of an operation's expression before it is stored, and what has to be declared for it.
struct Expression {
    declared: String,
    text: &'static str,
}

/// Whether an operation has an expression.
pub fn has_expression(kind: &Kind) -> bool {
    match kind {
        Kind::UnaryGrad(op) => op.f.c_gradient().is_some(),
        kind => matches!(
            kind,
            Kind::Unary(_) | Kind::Binary(_) | Kind::BinaryScalar(_) | Kind::Where(_)
        ),
    }
}

/// Adds the statement that computes an operation on these values; whether there is one.
///
/// # Errors
/// Those of scalars that the dtype does not represent.
pub fn compute(source: &mut Source, kind: &Kind, of: &[&Value], result: &Value) -> Result<bool> {
    let Some(Expression { declared, text }) = expression(source, kind, of)? else {
        return Ok(false);
    };
    let (name, dtype) = (&result.name, result.dtype);
    let (wide, narrow) = (computed(dtype), stored(dtype));
    source.line(format!("    {wide} {name};"));
    // The operation's own result is rounded as if it were stored, which the next one would read.
    source.line(format!("    {{ {declared} {name} = stored<{narrow}>(({wide})({text})); }}"));
    Ok(true)
}

fn expression(source: &mut Source, kind: &Kind, of: &[&Value]) -> Result<Option<Expression>> {
    Ok(Some(match kind {
        Kind::Unary(op) => {
            let numbers = numbers(source, &op.f.parameters());
            Expression { declared: variables(of, &["x"]) + &numbers, text: op.f.c_value() }
        }
        Kind::UnaryGrad(op) => {
            let Some((text, names)) = op.f.c_gradient() else { return Ok(None) };
            let numbers = numbers(source, &op.f.parameters());
            Expression { declared: variables(of, names) + &numbers, text }
        }
        Kind::Binary(op) => binary(op.f, of[0].dtype, variables(of, &["a", "b"])),
        Kind::BinaryScalar(op) => {
            if let Some(power) = op.easy_power(of[0].dtype) {
                let (declared, text) = (variables(of, &["a"]), easy_power(power));
                return Ok(Some(Expression { declared, text }));
            }
            let (tensor, other) = if op.reverse { ("b", "a") } else { ("a", "b") };
            let scalar = scalar(source, op, of[0].dtype)?;
            let declared = variables(of, &[tensor]) + &format!("const T {other} = (T){scalar}; ");
            binary(op.f, of[0].dtype, declared)
        }
        Kind::Where(_) => {
            let (condition, rest) = (&of[0].name, variables(&of[1..], &["a", "b"]));
            let declared = rest + &format!("const bool holds = {condition}; ");
            Expression { declared, text: "holds ? a : b" }
        }
        _ => return Ok(None),
    }))
}

/// A power that needs no logarithm.
fn easy_power(power: EasyPower) -> &'static str {
    match power {
        EasyPower::Itself => "a",
        EasyPower::Square => "times(a, a)",
        EasyPower::Cube => "a * a * a",
        EasyPower::Root => "sqrt(a)",
        EasyPower::Reciprocal => "T(1) / a",
        EasyPower::InverseRoot => "T(1) / sqrt(a)",
    }
}

/// On booleans a function is the logical one that it is equivalent to.
fn binary(f: BinaryFn, dtype: DType, declared: String) -> Expression {
    let f = if dtype == DType::Bool { f.on_booleans().unwrap_or(f) } else { f };
    Expression { declared, text: f.c_value() }
}

/// Declares the type of the computation as `T`, and operands under the names of the table.
fn variables(of: &[&Value], names: &[&str]) -> String {
    let wide = computed(of[0].dtype);
    let one = |(name, value): (&&str, &&Value)| format!("const T {name} = {}; ", value.name);
    format!("typedef {wide} T; ") + &names.iter().zip(of).map(one).collect::<String>()
}

fn numbers(source: &mut Source, parameters: &[(&str, f64)]) -> String {
    let mut one =
        |(name, value): &(&str, f64)| format!("const double {name} = {}; ", source.number(*value));
    parameters.iter().map(&mut one).collect()
}

/// The scalar as an argument, exactly what the tensor's dtype makes of it.
fn scalar(source: &mut Source, op: &BinaryScalar, dtype: DType) -> Result<String> {
    use crate::dtype::Element;
    Ok(crate::dispatch!(float dtype,
        T => source.number(op.element::<T>()?.to_f64()),
        else => crate::dispatch!(int dtype,
            T => source.integer(op.element::<T>()?.to_i64()),
            else => source.integer(op.element::<crate::dtype::Bool>()?.get() as i64))))
}
