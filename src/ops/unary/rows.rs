//! Turns a row of the table of functions into code.

use crate::ops::Real;

/// What the gradient of a function needs besides the gradient of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saves {
    /// The function's argument.
    Input,
    /// The function's value.
    Output,
    /// Nothing: the gradient is zero, or a multiple of that of the result.
    Nothing,
}

/// Generates the enum of functions and its methods from the rows.
macro_rules! functions {
    (@has {}) => { false };
    (@has $row:tt) => { true };
    (@saves { $saves:expr; $($rest:tt)* }) => { $saves };
    (@variables { $saves:expr; $($x:ident),+ => $result:expr }) => { &[$(stringify!($x)),+] };
    (@value [$value:literal, $slope:literal]) => { $value };
    (@slope [$value:literal, $slope:literal]) => { $slope };
    ($(
        $(#[$doc:meta])*
        $variant:ident $({ $($p:ident: $type:ty),* })? $name:literal $cost:ident
            $floats:tt $integers:tt $gradient:tt $c:tt;
    )*) => {
        /// A function of one variable, with its parameters.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum UnaryFn {
            $($(#[$doc])* #[serde(rename = $name)] $variant $({ $($p: $type),* })?,)*
            /// Whether x is zero, of any dtype.
            #[serde(rename = "not")]
            Not,
        }

        #[allow(unused_variables)]
        impl UnaryFn {
            /// The names of all functions.
            pub const NAMES: &[&str] = &[$($name,)* "not"];
            /// The names of all gradients; `not` has none.
            pub const GRADIENTS: &[&str] = &[$(concat!($name, "_grad")),*];

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(UnaryFn::$variant { .. } => $name,)*
                    UnaryFn::Not => "not",
                }
            }

            /// The name of its gradient.
            pub fn gradient_name(&self) -> &'static str {
                match self {
                    $(UnaryFn::$variant { .. } => concat!($name, "_grad"),)*
                    UnaryFn::Not => "not_grad",
                }
            }

            /// Floating-point operations per element.
            pub fn cost(&self) -> u64 {
                match self {
                    $(UnaryFn::$variant { .. } => $cost,)*
                    UnaryFn::Not => CHEAP,
                }
            }

            /// What its gradient needs besides dy.
            pub fn saves(&self) -> Saves {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? => functions!(@saves $gradient),)*
                    UnaryFn::Not => Nothing,
                }
            }

            /// Its value in CUDA C, of `x` and the parameters.
            pub fn c_value(&self) -> &'static str {
                match self {
                    $(UnaryFn::$variant { .. } => functions!(@value $c),)*
                    UnaryFn::Not => "!truth(x)",
                }
            }

            /// Its gradient in CUDA C, and the variables there: that of the result, and what is
            /// saved. None for `not`.
            pub fn c_gradient(&self) -> Option<(&'static str, &'static [&'static str])> {
                match self {
                    $(UnaryFn::$variant { .. } => {
                        Some((functions!(@slope $c), functions!(@variables $gradient)))
                    })*
                    UnaryFn::Not => None,
                }
            }

            /// Its parameters, by name; NaN for an absent one.
            pub fn parameters(&self) -> SmallVec<[(&'static str, f64); 2]> {
                match self {
                    $(UnaryFn::$variant $({ $($p),* })? => {
                        smallvec![$($((stringify!($p), $p.number())),*)?]
                    })*
                    UnaryFn::Not => smallvec![],
                }
            }

            /// Whether it maps integers to integers (or truth values).
            pub fn takes_integers(&self) -> bool {
                match self {
                    $(UnaryFn::$variant { .. } => functions!(@has $integers),)*
                    UnaryFn::Not => true,
                }
            }
        }
    };
}

pub(super) use functions;

/// A parameter as a number.
pub(super) trait Parameter {
    /// NaN if it is absent.
    fn number(&self) -> f64;
}

impl Parameter for Real {
    fn number(&self) -> f64 {
        self.0
    }
}

impl Parameter for Option<Real> {
    fn number(&self) -> f64 {
        self.map_or(f64::NAN, |real| real.0)
    }
}
