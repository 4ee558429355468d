//! Turns a row of the table of functions into code.

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
    ($(
        $(#[$doc:meta])*
        $variant:ident $({ $($p:ident: $type:ty),* })? $name:literal $cost:ident
            $floats:tt $integers:tt $gradient:tt;
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
