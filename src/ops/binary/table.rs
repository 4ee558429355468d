//! The functions of two variables: each is fully described by its row.

use serde::{Deserialize, Serialize};

/// Which element types a function supports, and the type of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Numbers; returns the same type.
    Arithmetic,
    /// Floats; returns the same type.
    Floating,
    /// Integers; returns the same type.
    Whole,
    /// Any type; returns bool.
    Logical,
}

/// Generates the enum of functions and its methods from the rows.
macro_rules! functions {
    (@bool) => { None };
    (@bool $as:ident) => { Some(BinaryFn::$as) };
    (
        $($(#[$doc:meta])* $number:ident $class:ident $name:literal $scalar:literal
            { $a:ident, $b:ident => $value:expr } $c:literal ($($as:ident)?);)*
        ---
        $($(#[$truth_doc:meta])* $truth:ident $truth_name:literal $truth_scalar:literal
            { $x:ident, $y:ident => $holds:expr } $truth_c:literal;)*
        ---
        $($(#[$whole_doc:meta])* $whole:ident $whole_name:literal $whole_scalar:literal
            { $m:ident, $n:ident => $bits:expr } $whole_c:literal ($($whole_as:ident)?);)*
    ) => {
        /// A function of two variables.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum BinaryFn {
            $($(#[$doc])* $number,)*
            $($(#[$truth_doc])* $truth,)*
            $($(#[$whole_doc])* $whole,)*
        }

        impl BinaryFn {
            /// The names of all functions.
            pub const NAMES: &[&str] = &[$($name,)* $($truth_name,)* $($whole_name),*];
            /// The names of all functions with a scalar.
            pub const WITH_SCALAR: &[&str] =
                &[$($scalar,)* $($truth_scalar,)* $($whole_scalar),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(BinaryFn::$number => $name,)*
                    $(BinaryFn::$truth => $truth_name,)*
                    $(BinaryFn::$whole => $whole_name,)*
                }
            }

            /// Its name where one operand is a scalar.
            pub fn scalar_name(self) -> &'static str {
                match self {
                    $(BinaryFn::$number => $scalar,)*
                    $(BinaryFn::$truth => $truth_scalar,)*
                    $(BinaryFn::$whole => $whole_scalar,)*
                }
            }

            /// Its value in CUDA C, of `a` and `b`.
            pub fn c_value(self) -> &'static str {
                match self {
                    $(BinaryFn::$number => $c,)*
                    $(BinaryFn::$truth => $truth_c,)*
                    $(BinaryFn::$whole => $whole_c,)*
                }
            }

            /// Which types it supports, and the type of its result.
            pub fn class(self) -> Class {
                match self {
                    $(BinaryFn::$number => Class::$class,)*
                    $(BinaryFn::$truth => Class::Logical,)*
                    $(BinaryFn::$whole => Class::Whole,)*
                }
            }

            /// The logical function that it is equivalent to on booleans, if it supports them.
            pub fn on_booleans(self) -> Option<BinaryFn> {
                match self {
                    $(BinaryFn::$number => functions!(@bool $($as)?),)*
                    $(BinaryFn::$truth)|* => Some(self),
                    $(BinaryFn::$whole => functions!(@bool $($whole_as)?),)*
                }
            }
        }
    };
}

/// Hands the rows to a macro: here and in each target, which makes kernels of them.
///
/// A row: name, name with a scalar, value, value in CUDA C; for numbers also the types, and for these
/// and bits the equivalent logical function on booleans. `T` is the type of the computation, `L` the
/// instruction set.
macro_rules! binary_rows {
    ($expand:ident) => {
        $expand! {
            /// a + b.
            Add Arithmetic "add" "add_scalar" { a, b => a.plus(b) } "plus(a, b)" (Or);
            /// a - b.
            Sub Arithmetic "sub" "sub_scalar" { a, b => a.minus(b) } "minus(a, b)" ();
            /// a b.
            Mul Arithmetic "mul" "mul_scalar" { a, b => a.times(b) } "times(a, b)" (And);
            /// a / b of floats.
            Div Floating "div" "div_scalar" { a, b => a.over(b) } "a / b" ();
            /// a to the power of b.
            Pow Arithmetic "pow" "pow_scalar" { a, b => a.power::<L>(b) } "power(a, b)" ();
            /// The larger one, or NaN.
            Maximum Arithmetic "maximum" "maximum_scalar" { a, b => a.larger(b) } "larger(a, b)" (Or);
            /// The smaller one, or NaN.
            Minimum Arithmetic "minimum" "minimum_scalar" { a, b => a.smaller(b) } "smaller(a, b)" (And);
            /// a / b rounded towards minus infinity.
            FloorDivide Arithmetic "floor_divide" "floor_divide_scalar"
                { a, b => a.floor_over(b) } "floor_over(a, b)" ();
            /// The remainder of that division, with b's sign.
            Remainder Arithmetic "remainder" "remainder_scalar"
                { a, b => a.modulo(b) } "modulo(a, b)" ();
            ---
            /// a < b.
            Lt "lt" "lt_scalar" { a, b => a.less(b) } "a < b";
            /// a <= b.
            Le "le" "le_scalar" { a, b => a.at_most(b) } "a <= b";
            /// a > b.
            Gt "gt" "gt_scalar" { a, b => b.less(a) } "a > b";
            /// a >= b.
            Ge "ge" "ge_scalar" { a, b => b.at_most(a) } "a >= b";
            /// a equals b.
            Eq "eq" "eq_scalar" { a, b => a.same(b) } "a == b";
            /// a differs from b.
            Ne "ne" "ne_scalar" { a, b => !a.same(b) } "a != b";
            /// Neither is zero.
            And "and" "and_scalar" { a, b => a.truth() & b.truth() } "truth(a) && truth(b)";
            /// At least one is not zero.
            Or "or" "or_scalar" { a, b => a.truth() | b.truth() } "truth(a) || truth(b)";
            /// Exactly one is zero.
            Xor "xor" "xor_scalar" { a, b => a.truth() ^ b.truth() } "truth(a) != truth(b)";
            ---
            /// The bits that both have.
            BitwiseAnd "bitwise_and" "bitwise_and_scalar" { a, b => a & b } "a & b" (And);
            /// The bits that at least one has.
            BitwiseOr "bitwise_or" "bitwise_or_scalar" { a, b => a | b } "a | b" (Or);
            /// The bits that exactly one has.
            BitwiseXor "bitwise_xor" "bitwise_xor_scalar" { a, b => a ^ b } "a ^ b" (Xor);
            /// The bits of a, moved up by b.
            LeftShift "left_shift" "left_shift_scalar" { a, b => a.shifted_left(b) } "shifted_left(a, b)" ();
            /// The bits of a, moved down by b; those of a negative number are preceded by ones.
            RightShift "right_shift" "right_shift_scalar" { a, b => a.shifted_right(b) } "shifted_right(a, b)" ();
        }
    };
}
pub(crate) use binary_rows;

binary_rows!(functions);
